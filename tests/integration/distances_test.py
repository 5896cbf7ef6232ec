"""Real agents on this machine measure for a real daemon, which keeps what they say and maps by it."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import unittest

import exit_status
from agent_processes import AgentProcesses, host

COPPICED, COPPICECTL, COPPICE_PLAN, AGENT = (sys.argv.pop(1) for _ in range(4))
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
QUICK = ["--latency-samples", "20", "--bandwidth-samples", "3", "--bandwidth-bytes", "64K"]
HOSTS = [host(n) for n in (0, 1, 4, 5)]  # two of each of two leaf switches


class Distances(unittest.TestCase):
    def setUp(self):
        self.site = AgentProcesses(COPPICED, COPPICECTL, AGENT, FABRIC)
        self.addCleanup(self.site.clean_up)
        self.site.good("fabric", "sweep")
        for name in HOSTS:
            self.site.add(name)
        self.site.wait_until_connected(HOSTS)

    def refused(self, *arguments, words, **options):
        exit_status.check_failure(self, self.site.run(*arguments, **options), words)

    def test_measures_every_pair_and_keeps_it(self):
        summary = self.site.of_json("distance", "measure", *QUICK)
        self.assertEqual((summary["pairs"], summary["rounds"], summary["failures"]), (6, 3, []))
        listed = self.site.of_json("distance", "list")["distances"]
        heading, first = self.site.good("distance", "list").splitlines()[:2]
        for listing in ("distance", "agent"):
            narrow, wide = self.site.good(listing, "list"), self.site.good(listing, "list", "-o", "wide")
            self.assertEqual(len(narrow.splitlines()), len(wide.splitlines()))
            self.assertLessEqual(max(map(len, narrow.splitlines())), 80, narrow)
            self.assertGreater(max(map(len, wide.splitlines())), 80, wide)
        self.assertEqual(first.split()[heading.split().index("OVER")], "TCP")
        pair = next(d for d in listed if first.split()[:2] == [d["from"], d["to"]])
        figures = dict(zip(re.split("  +", heading), re.split("  +", first)))
        self.assertEqual(figures["GBIT/S"], "%.3f" % pair["bandwidth_gbps"])
        self.assertEqual({(d["from"], d["to"]) for d in listed},
                         {(a, b) for a in HOSTS for b in HOSTS if a < b})
        for distance in listed:
            self.assertGreater(distance["latency_us"], 0)
            self.assertGreater(distance["bandwidth_gbps"], 0)
            self.assertEqual(distance["samples"], 18)  # of 20, less the worst tenth
            self.assertIn("measured", distance)
        self.assertIn("4 connected, 6 distances measured", self.site.good("status"))
        # After a restart they are there, and the agents come back by themselves.
        self.assertEqual(self.site.daemon.end(signal.SIGTERM)[0], 0)
        self.site.daemon.start().wait_until_listening()
        self.site.good("fabric", "sweep")
        self.assertEqual(self.site.of_json("distance", "list")["distances"], listed)
        self.site.wait_until_connected(HOSTS)
        self.assertEqual(self.site.of_json("distance", "measure", *QUICK)["pairs"], 6)

    def test_maps_by_what_was_measured_as_coppice_plan_does_by_the_matrix(self):
        self.site.good("distance", "measure", *QUICK)
        folder = self.site.daemon.directory
        hosts, pattern, matrix = (os.path.join(folder, name) for name in ("hosts", "pattern", "d"))
        order = [HOSTS[i] for i in (2, 0, 3, 1)]
        with open(hosts, "w", encoding="utf-8") as file:
            file.write("\n".join(order))
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("4\n0 9 1 1\n9 0 1 1\n1 1 0 9\n1 1 9 0\n")
        with open(matrix, "w", encoding="utf-8") as file:
            file.write(self.site.good("distance", "list", "--matrix", "--hosts", hosts))
        options = ["--pattern", pattern, "--hosts", hosts, "--objective", "qap", "--json"]
        by_daemon = self.site.of_json("map", "--distance", "measured", *options[:-1])
        done = subprocess.run([COPPICE_PLAN, "map", "--fabric", FABRIC, "--distance", matrix,
                               *options], capture_output=True, text=True, check=True)
        by_plan = json.loads(done.stdout)
        for which in ("before", "objective"):
            # The matrix has six digits.
            self.assertAlmostEqual(by_daemon[which]["qap_cost"] / by_plan[which]["qap_cost"], 1, 4)
        self.assertLessEqual(by_daemon["objective"]["qap_cost"], by_daemon["before"]["qap_cost"])

    def test_estimates_what_was_not_measured_or_names_it(self):
        pair = "\n".join(HOSTS[:2])
        self.assertEqual(self.site.of_json("distance", "measure", "--hosts", "-", *QUICK,
                                           stdin=pair)["pairs"], 1)
        [known] = self.site.of_json("distance", "list")["distances"]
        others = f"{host(8)}\n{host(9)}\n"
        [guess] = self.site.of_json("distance", "list", "--hosts", "-", "--estimate",
                                    stdin=others)["distances"]
        self.assertEqual((guess["from"], guess["to"], guess["samples"]), (host(8), host(9), 0))
        self.assertEqual(guess["latency_us"], known["latency_us"])
        self.refused("distance", "list", "--matrix", "--hosts", "-", stdin=f"{host(0)}\n{host(4)}",
                     words=["FAILED_PRECONDITION", host(0), host(4), "4 links apart"])
        hosts = os.path.join(self.site.daemon.directory, "hosts")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write(f"{host(0)}\n{host(4)}\n")
        self.refused("map", "--distance", "measured", "--pattern", "-", "--hosts", hosts,
                     "--objective", "qap", stdin="0 1\n1 0\n",
                     words=["FAILED_PRECONDITION", host(0), host(4)])

    def test_an_agent_that_is_killed_fails_its_pairs_only(self):
        gone = HOSTS[3]
        self.site.end(gone)
        self.site.wait_until_connected(HOSTS[:3])
        status, out, errors = self.site.run("distance", "measure", "--json", *QUICK)
        self.assertEqual((status, json.loads(out)["pairs"]), (0, 3), errors)
        status, out, errors = self.site.run("distance", "measure", "--json", "--hosts", "-", *QUICK,
                                            stdin="\n".join(HOSTS))
        self.assertEqual((status, json.loads(out)["pairs"]), (0, 3), errors)
        self.assertIn(f"{gone}: it has no agent", errors)
        self.assertIn("gone", self.site.good("agent", "list"))

    def test_an_agent_that_is_killed_in_a_round_fails_its_pairs_only(self):
        gone = HOSTS[0]
        # It takes its task and never connects to its peer, which waits.
        self.site.processes[gone].send_signal(signal.SIGSTOP)
        measure = subprocess.Popen([COPPICECTL, "--server", self.site.daemon.address, "distance",
                                    "measure", "--json", *QUICK], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(measure.communicate)
        self.addCleanup(measure.kill)
        # The round's other pair is measured: this one is under way.
        while not self.site.of_json("distance", "list").get("distances"):
            select.select([], [], [], 0.02)  # between two looks
        self.site.end(gone)
        out, errors = measure.communicate(timeout=120)
        self.assertEqual(json.loads(out)["pairs"], 3, (out, errors))
        listed = self.site.of_json("distance", "list")["distances"]
        self.assertEqual({(d["from"], d["to"]) for d in listed},
                         {(a, b) for a in HOSTS[1:] for b in HOSTS[1:] if a < b})

    def test_refuses_in_words(self):
        self.refused("distance", "measure", "--hosts", "-", stdin="nowhere\n",
                     words=["NOT_FOUND", "nowhere"])
        self.refused("distance", "measure", "--hosts", "-", stdin=f"{HOSTS[0]}\n{host(9)}",
                     words=["FAILED_PRECONDITION", "without an agent: " + host(9)])
        self.refused("distance", "measure", "--complete-up-to", "5000",
                     words=["INVALID_ARGUMENT", "complete_up_to"])
        self.refused("distance", "list", "--hosts", "-", stdin="nowhere\n", words=["nowhere"])
        self.refused("distance", "list", "--matrix", words=["no hosts"])
        for word, *arguments in (("subcommand",), ("x", "measure", "--latency-samples", "x")):
            status, out, errors = self.site.run("distance", *arguments)
            self.assertEqual((status, out, word in errors), (2, "", True), errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
