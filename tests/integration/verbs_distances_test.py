"""Real agents measure over verbs for a real daemon, with a double of perftest's programs (tests/perftest)
and folders of devices; and what becomes of it where a node has none, or a program fails."""

import os
import select
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import exit_status
from agent_processes import AgentProcesses, host
from coppiced_process import PATIENCE_S

COPPICED, COPPICECTL, AGENT, DOUBLE = (sys.argv.pop(1) for _ in range(4))
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
QUICK = ["--latency-samples", "10", "--bandwidth-samples", "2", "--bandwidth-bytes", "65536"]
HOSTS = [host(n) for n in (0, 1, 4)]  # two of one leaf switch, and one of another


class VerbsDistances(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="coppice-perftest-")
        self.addCleanup(self.scratch.cleanup)
        self.programs = os.path.join(self.scratch.name, "bin")
        os.mkdir(self.programs)
        for name in ("ib_write_lat", "ib_write_bw"):
            os.symlink(DOUBLE, os.path.join(self.programs, name))
        self.site = AgentProcesses(COPPICED, COPPICECTL, AGENT, FABRIC)
        self.addCleanup(self.site.clean_up)
        self.site.good("fabric", "sweep")
        self.guids = {node["host"]: node["port_guid"]
                      for node in self.site.of_json("fabric", "nodes")["nodes"]}

    def put_device(self, number, device, state="4: ACTIVE"):
        """Its one port, as /sys/class/infiniband has it; the folder of the host's devices."""
        folder = os.path.join(self.scratch.name, host(number))
        port = os.path.join(folder, device, "ports", "1")
        os.makedirs(os.path.join(port, "gids"), exist_ok=True)
        guid = self.guids[host(number)]
        gid = ":".join(["fe80", "0000", "0000", "0000"] + [guid[i:i + 4] for i in (0, 4, 8, 12)])
        for name, text in (("link_layer", "InfiniBand"), ("state", state), ("gids/0", gid)):
            with open(os.path.join(port, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return folder

    def add(self, number, device="mlx5_0", fault="", options=(), programs=True):
        """The agent of a host with a device; None: without one. `fault`: of its programs."""
        folder = os.path.join(self.scratch.name, "no devices")
        if device is not None:
            folder = self.put_device(number, device)
        settings = {"PERFTEST_DOUBLE_FOLDER": self.scratch.name, "PERFTEST_DOUBLE_FAULT": fault,
                    "PATH": self.programs if programs else self.scratch.name}
        self.site.add(host(number),
                      prefix=["/usr/bin/env", *(f"{k}={v}" for k, v in settings.items())],
                      options=["--devices", folder, *options])

    def runs(self):
        """Of programs, so far: process, program, role, device, port, bytes, iterations, key index."""
        path = os.path.join(self.scratch.name, "runs")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [line.split() for line in file]

    def tearDown(self):
        for process, *run in self.runs():
            self.assertFalse(os.path.exists(f"/proc/{process}"), run)
        misuse = os.path.join(self.scratch.name, "misuse")
        if os.path.exists(misuse):
            with open(misuse, encoding="utf-8") as file:
                self.fail(file.read())

    def add_all(self):
        for number in (0, 1, 4):
            self.add(number)
        self.site.wait_until_connected(HOSTS)

    def measured(self, *arguments):
        status, out, errors = self.site.run("distance", "measure", *QUICK, *arguments)
        return status, out, errors

    def over(self):
        return {(d["from"], d["to"]): d["transport"]
                for d in self.site.of_json("distance", "list")["distances"]}

    def test_measures_every_pair_over_verbs_and_keeps_that(self):
        self.add_all()
        status, out, errors = self.measured()
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("3 pairs measured (over verbs), 0 failed", out)
        self.assertEqual(set(self.over().values()), {"TRANSPORT_VERBS"})
        heading, first = self.site.good("distance", "list").splitlines()[:2]
        self.assertEqual(first.split()[heading.split().index("OVER")], "verbs")
        self.assertIn("verbs, TCP", self.site.good("agent", "list"))
        self.assertEqual(sorted(run[1:] for run in self.runs()), sorted(
            [["ib_write_lat", role, "mlx5_0", "1", "8", "10", "-"]
             for role in ("client", "server")] * 3
            + [["ib_write_bw", role, "mlx5_0", "1", "65536", "5", "-"]
               for role in ("client", "server")] * 3))
        first = self.site.of_json("distance", "list")["distances"][0]
        self.assertEqual([first[key] for key in ("latency_us", "latency_spread_us",
                                                 "bandwidth_gbps", "samples")],
                         [1.12, 0.11, 97.56, 10])  # what the double reports
        # After a restart of the daemon, for people and for programs.
        self.site.daemon.end()
        with sqlite3.connect(self.site.daemon.database) as database:
            self.assertEqual(set(database.execute("SELECT transport FROM distance_list")),
                             {("verbs",)})
        self.site.daemon.start().wait_until_listening()
        self.assertEqual(set(self.over().values()), {"TRANSPORT_VERBS"})

    def test_one_transport_can_be_asked_for(self):
        self.add_all()
        self.assertIn("3 pairs measured (over TCP)", self.measured("--over", "tcp")[1])
        self.assertEqual(self.site.of_json("distance", "list", "--over", "verbs").get(
            "distances", []), [])
        pair = os.path.join(self.site.daemon.directory, "pair")
        with open(pair, "w", encoding="utf-8") as file:
            file.write("\n".join(HOSTS[:2]))
        self.assertIn("1 pair measured (over verbs)",
                      self.measured("--over", "verbs", "--hosts", pair)[1])
        # Of the two hosts it is over verbs; of all most pairs are over TCP, and none of this level.
        [only] = self.site.of_json("distance", "list", "--estimate", "--hosts",
                                   pair)["distances"]
        self.assertEqual(only["transport"], "TRANSPORT_VERBS")
        status, _, errors = self.site.run("distance", "list", "--matrix", "--hosts", "-",
                                          stdin="\n".join(HOSTS))
        self.assertEqual(status, exit_status.of(errors))
        self.assertIn(f"between {host(0)} and {host(1)} was not measured over TCP", errors)
        status, _, errors = self.site.run("distance", "list", "--over", "ipoib")
        self.assertEqual(status, 2)
        self.assertIn("ipoib", errors)

    def test_a_node_without_a_device_measures_over_tcp(self):
        self.add(0)
        self.add(1)
        self.add(4, device=None)
        self.site.wait_until_connected(HOSTS)
        status, out, errors = self.measured()
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("3 pairs measured (1 over verbs, 2 over TCP)", out)
        self.assertEqual(self.over()[(host(0), host(1))], "TRANSPORT_VERBS")
        status, out, errors = self.measured("--over", "verbs")
        self.assertIn("1 pair measured (over verbs)", out)
        self.assertIn(f"{host(4)}: its agent has no verbs", errors)

    def test_an_agent_may_be_told_to_leave_verbs_alone(self):
        self.add(0, options=["--measure-device", "none"])
        self.add(1, options=["--measure-device", "mlx5_0/1"])
        self.add(4, options=["--measure-device", "mlx5_3/1"])
        self.site.wait_until_connected(HOSTS)
        self.assertIn("3 pairs measured (over TCP)", self.measured()[1])
        # A port that is named and not there is worth a word.
        for number, word in ((0, False), (1, False), (4, True)):
            said = "measure_device mlx5_3/1: this node has no InfiniBand port 1"
            self.assertEqual(said in self.site.said(host(number)), word)

    def test_without_devices_nothing_is_said_of_verbs(self):
        for number in (0, 1):
            self.add(number, device=None)
        self.site.wait_until_connected(HOSTS[:2])
        status, out, errors = self.measured()
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("1 pair measured (over TCP)", out)
        for name in HOSTS[:2]:
            self.assertNotIn("verbs", self.site.said(name))

    def test_a_program_that_fails_is_named_and_got_round(self):
        self.add(0, fault="*:ib_write_bw:lost")
        self.add(1, device="mlx5_7")
        self.site.wait_until_connected(HOSTS[:2])
        status, out, errors = self.measured()
        self.assertEqual(status, 0)
        self.assertIn("1 pair measured (over TCP)", out)
        self.assertIn(f"{host(0)} and {host(1)}: measured over TCP: ", errors)
        self.assertIn("mlx5_0 port 1: ib_write_bw ended with status 1: ", errors)
        # Where verbs alone are wanted the pair fails.
        status, out, errors = self.measured("--over", "verbs")
        self.assertEqual(status, 1)
        self.assertIn("0 pairs measured, 1 failed", out)
        self.assertIn("Failed status 12", errors)

    def test_a_port_that_goes_down_is_named(self):
        self.add_all()
        self.put_device(1, "mlx5_0", state="1: DOWN")
        status, out, errors = self.measured()
        self.assertEqual(status, 0)
        self.assertIn("3 pairs measured (1 over verbs, 2 over TCP)", out)
        self.assertIn("mlx5_0 port 1: the port is not active (1: DOWN)", errors)
        self.put_device(1, "mlx5_0")
        self.assertIn("3 pairs measured (over verbs)", self.measured()[1])

    def test_without_perftest_it_is_said_what_to_install(self):
        self.add(0)
        self.add(1, programs=False)
        self.site.wait_until_connected(HOSTS[:2])
        status, out, errors = self.measured()
        self.assertEqual(status, 0)
        self.assertIn("1 pair measured (over TCP)", out)
        self.assertIn("ib_write_lat is not installed: apt-get install perftest", errors)

    def test_programs_end_when_nobody_waits_for_them_any_more(self):
        for number in (0, 1):
            self.add(number, fault="*:ib_write_lat:hang")
        self.site.wait_until_connected(HOSTS[:2])
        asking = subprocess.Popen([COPPICECTL, "--server", self.site.daemon.address, "distance",
                                   "measure", *QUICK], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.wait_until(lambda: len(self.runs()) == 2)
        asking.kill()
        asking.wait(PATIENCE_S)
        self.wait_until(lambda: not any(os.path.exists(f"/proc/{run[0]}") for run in self.runs()))
        for name in HOSTS[:2]:
            self.assertIsNone(self.site.processes[name].poll())

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            select.select([], [], [], 0.02)  # between two looks


if __name__ == "__main__":
    unittest.main(verbosity=2)
