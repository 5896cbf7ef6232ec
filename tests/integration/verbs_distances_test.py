"""Real agents measure over verbs for a real daemon, on the double of a device (tests/verbs) that is put
in front of libibverbs; and what becomes of it where a node has none, or its device fails."""

import os
import sqlite3
import sys
import tempfile
import unittest

import exit_status
from agent_processes import AgentProcesses, host

COPPICED, COPPICECTL, AGENT, PRELOAD = (sys.argv.pop(1) for _ in range(4))
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
QUICK = ["--latency-samples", "10", "--bandwidth-samples", "2", "--bandwidth-bytes", "65536"]
HOSTS = [host(n) for n in (0, 1, 4)]  # two of one leaf switch, and one of another


class VerbsDistances(unittest.TestCase):
    def setUp(self):
        self.cables = tempfile.TemporaryDirectory(prefix="coppice-cables-")
        self.addCleanup(self.cables.cleanup)
        self.site = AgentProcesses(COPPICED, COPPICECTL, AGENT, FABRIC)
        self.addCleanup(self.site.clean_up)
        self.site.good("fabric", "sweep")

    def add(self, number, device="mlx5_0", more="", options=()):
        """The agent of a host with a device; None: without one, and without the double."""
        settings = {} if device is None else {
            "LD_PRELOAD": PRELOAD, "VERBS_DOUBLE_FOLDER": self.cables.name,
            "VERBS_DOUBLE_DEVICES": f"{device} lid={number + 1} guid={number + 1:x} {more}"}
        self.site.add(host(number), prefix=["env", *(f"{k}={v}" for k, v in settings.items())],
                      options=options)

    def tearDown(self):
        misuse = os.path.join(self.cables.name, "misuse")
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
        self.assertEqual(os.listdir(self.cables.name), [])  # every pair is destroyed
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

    def test_a_device_that_fails_is_named_and_got_round(self):
        self.add(0, more="fault=port-down@25")
        self.add(1, device="mlx5_7")
        self.site.wait_until_connected(HOSTS[:2])
        status, out, errors = self.measured()
        self.assertEqual(status, 0)
        self.assertIn("1 pair measured (over TCP)", out)
        self.assertIn(f"{host(0)} and {host(1)}: measured over TCP: ", errors)
        self.assertRegex(errors, "mlx5_[07] port 1: ")
        # Where verbs alone are wanted the pair fails.
        status, out, errors = self.measured("--over", "verbs")
        self.assertEqual(status, 1)
        self.assertIn("0 pairs measured, 1 failed", out)
        self.assertIn("mlx5_0 port 1: the port is not active", errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
