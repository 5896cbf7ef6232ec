"""Hosts made of network namespaces behind slow uplinks, as below switches: what agents measure has the
order of what was made.

    root  50 Mbit/s          6 links between hosts
      pod   pod 200 Mbit/s   4
     leaf  leaf              2, as quick as this machine
     n0 n1 ...

The uplink of a leaf switch is a veth pair whose rate is limited both ways, and so is that of a pod.
Everything lives in a network namespace of the test's own and goes with it."""

import os
import statistics
import subprocess
import sys
import unittest

from agent_processes import AgentProcesses, host

MARK = "COPPICE_TEST_IN_NAMESPACE"
FABRIC = "model:xgft(m=2x2x2,w=1x1x1)"
HOSTS = 8
LEAF_MBIT, POD_MBIT = 200, 50


def run(*words):
    subprocess.run(words, check=True)


def add_switch(name):
    run("ip", "link", "add", "name", name, "type", "bridge")
    run("ip", "link", "set", name, "up")


def limit(device, mbit):
    run("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit",
        "burst", "32kb", "latency", "50ms")


def join(switch, above, mbit):
    """A cable between two switches with that rate in each direction."""
    up, down = f"{switch}-up", f"{switch}-dn"
    run("ip", "link", "add", "name", up, "type", "veth", "peer", "name", down)
    for device, owner in ((up, switch), (down, above)):
        run("ip", "link", "set", device, "master", owner, "up")
        limit(device, mbit)


class Network:
    def __init__(self):
        run("ip", "link", "set", "lo", "up")
        add_switch("root")
        self.holders = []
        for pod in range(2):
            add_switch(f"pod{pod}")
            join(f"pod{pod}", "root", POD_MBIT)
        for leaf in range(4):
            add_switch(f"leaf{leaf}")
            join(f"leaf{leaf}", f"pod{leaf // 2}", LEAF_MBIT)
        for number in range(HOSTS):
            self.add_host(number)

    def add_host(self, number):
        # Holds the namespace until its standard input closes, which the end of the test does.
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready && exec cat"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        assert holder.stdout.readline() == "ready\n"
        run("ip", "link", "add", "name", f"host{number}", "type", "veth", "peer", "name", "eth0",
            "netns", str(holder.pid))
        run("ip", "link", "set", f"host{number}", "master", f"leaf{number // 2}", "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                      ["address", "add", self.address(number) + "/24", "dev", "eth0"]):
            run("nsenter", "-t", str(holder.pid), "-n", "ip", *words)

    def address(self, number):
        return f"10.77.0.{number + 1}"

    def enter(self, number):
        """What takes a command to that host."""
        return ["nsenter", "-t", str(self.holders[number].pid), "-n"]

    def close(self):
        for holder in self.holders:
            holder.stdin.close()
            holder.stdout.close()
            holder.wait(30)


def links(a, b):
    return 2 if a // 2 == b // 2 else 4 if a // 4 == b // 4 else 6


class MeasuredNetwork(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.network = Network()
        cls.addClassCleanup(cls.network.close)

    def setUp(self):
        self.site = AgentProcesses(COPPICED, COPPICECTL, AGENT, FABRIC)
        self.addCleanup(self.site.clean_up)
        self.site.good("fabric", "sweep")
        for number in range(HOSTS):
            # A namespace of the network only: the daemon's socket is everybody's. The port is free:
            # nobody else is in there.
            self.site.add(host(number), self.network.address(number) + ":18515",
                          self.network.enter(number))
        self.site.wait_until_connected([host(number) for number in range(HOSTS)])

    def by_level(self, distances):
        """Time of a byte and latency of each pair, by links between its hosts."""
        gaps, latencies = {2: [], 4: [], 6: []}, {2: [], 4: [], 6: []}
        for d in distances:
            level = links(int(d["from"][1:]), int(d["to"][1:]))
            gaps[level].append(1 / d["bandwidth_gbps"])
            latencies[level].append(d["latency_us"])
        return gaps, latencies

    def test_distances_have_the_order_of_the_network(self):
        summary = self.site.of_json("distance", "measure", "--latency-samples", "50",
                                    "--bandwidth-samples", "6", "--bandwidth-bytes", "400000")
        self.assertEqual((summary["pairs"], summary["failures"]), (28, []))
        gaps, latencies = self.by_level(self.site.of_json("distance", "list")["distances"])
        self.assertEqual({level: len(values) for level, values in gaps.items()},
                         {2: 4, 4: 8, 6: 16})
        near, pod, far = (statistics.median(gaps[level]) for level in (2, 4, 6))
        print("time of a byte: 1 : %.2f : %.2f" % (pod / near, far / near), file=sys.stderr)
        print("latency: ", {k: round(statistics.median(v), 1) for k, v in latencies.items()},
              file=sys.stderr)
        self.assertLess(near * 1.5, pod)
        self.assertLess(pod * 1.5, far)
        # No uplink carries more than its rate, whoever shares it: each pair of each round.
        self.assertGreater(min(gaps[4]), 1000 / LEAF_MBIT / 1.5)
        self.assertGreater(min(gaps[6]), 1000 / POD_MBIT / 1.5)
        # Ranks that talk come together, which hops would do, too, and the cost says so.
        pattern = os.path.join(self.site.daemon.directory, "pattern")
        rows = [" ".join("9" if a ^ b == 4 else "0" for b in range(HOSTS)) for a in range(HOSTS)]
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
        hosts = "\n".join(host(number) for number in range(HOSTS))
        mapped = self.site.of_json("map", "--distance", "measured", "--objective", "qap",
                                   "--pattern", pattern, "--hosts", "-", stdin=hosts)
        order = mapped["permutation"]
        for rank in range(4):
            self.assertEqual(links(order[rank], order[rank + 4]), 2, order)
        self.assertLess(mapped["objective"]["qap_cost"], mapped["before"]["qap_cost"] / 2)

    def test_samples_stand_for_what_was_not_measured(self):
        summary = self.site.of_json("distance", "measure", "--complete-up-to", "4",
                                    "--latency-samples", "20", "--bandwidth-samples", "4",
                                    "--bandwidth-bytes", "200000")
        self.assertEqual(summary["failures"], [])
        hosts = "\n".join(host(number) for number in range(HOSTS))
        listed = self.site.of_json("distance", "list", "--estimate", "--hosts", "-",
                                   stdin=hosts)["distances"]
        self.assertEqual(len(listed), 28)
        gaps, _ = self.by_level(listed)
        near, pod, far = (statistics.median(gaps[level]) for level in (2, 4, 6))
        self.assertLess(near, pod)
        self.assertLess(pod, far)


if __name__ == "__main__":
    if os.environ.get(MARK) != "1":
        os.environ[MARK] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
    COPPICED, COPPICECTL, AGENT = (sys.argv.pop(1) for _ in range(3))
    unittest.main(verbosity=2)
