#!/usr/bin/python3
"""Collectives over switches: a coppice-switch at each switch of a fabric, a daemon that grants trees over them, and
unmodified programs, whose results are the MPI library's own; also where a switch is killed in the middle.

Usage: switched_test.py openmpi|mpich LIBRARY CONFORMANCE STEADY MANY_COMMUNICATORS COPPICED COPPICE_AGENT COPPICECTL
                        COPPICE_SWITCH
"""
import os
import pathlib
import re
import signal
import sys
import tempfile
import unittest

import mpi_run
from coppice_nodes import CoppiceNodes, counts, wait_until
from switch_processes import SwitchProcesses

MPI, LIBRARY, CONFORMANCE, STEADY, MANY, COPPICED, AGENT, COPPICECTL, SWITCH = sys.argv[1:10]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
HOSTS = 8 if FULL else 4  # a rank on each: ranks of one host have no trees
RANKS = 8 if FULL else 4
ENTRIES, COMMUNICATORS = (16, 256) if FULL else (4, 40)
ROUNDS = 200 if FULL else 40
TIMEOUT_S = 7200 if FULL else 900
FABRIC = f"model:fat-tree(leaves={HOSTS},spines=2,hosts-per-leaf=1)"
OVER_SWITCHES = {"COPPICE_TREES": "first-use", "COPPICE_TREES_TYPE": 2, "COPPICE_VERBOSE": 1,
                 "COPPICE_TIMEOUT_MS": 20000, **mpi_run.TREES_AT_ONCE}


class WithSwitches(unittest.TestCase):
    CONFIG = ""  # more of the daemon's

    def setUp(self):
        self.nodes = CoppiceNodes(COPPICED, AGENT, HOSTS, FABRIC, entries=0,  # what switches say counts
                                  more_config=self.CONFIG)
        self.addCleanup(self.nodes.stop)
        self.start_switches(64)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start_switches(self, entries):
        self.switches = SwitchProcesses(SWITCH, COPPICECTL, self.nodes.daemon.address, entries)
        self.addCleanup(self.switches.stop)

    def trees(self):
        return self.switches.ask("tree", "list")["trees"]

    def said_by_auto(self):
        """What the library says of a program for whose trees nobody asked for a type."""
        program = self.nodes.on_hosts(RANKS, ["nice", "-n", "10", STEADY, str(ROUNDS)])
        return counts(mpi_run.run(MPI, RANKS, program, LIBRARY, {**OVER_SWITCHES, "COPPICE_TREES_TYPE": "auto"},
                                  timeout=TIMEOUT_S).stderr)


class OverSwitches(WithSwitches):
    def test_every_collective(self):
        program = self.nodes.on_hosts(
            RANKS, [CONFORMANCE, "--expect-trees", "--over-switches", *(["--full"] if FULL else [])])
        done = mpi_run.run(MPI, RANKS, program, LIBRARY, OVER_SWITCHES, timeout=TIMEOUT_S)
        self.assertIn("differ 0,", done.stdout)
        said = counts(done.stderr)
        self.assertGreater(said["over_switches"], said["allreduce"] // 2)
        self.assertEqual((said["gone"], said["released"]), (0, said["granted"]), done.stderr)
        self.assertEqual([], self.trees())
        self.assertIn("has a tree of type II", done.stderr)

    def test_threads(self):
        program = self.nodes.on_hosts(RANKS, [CONFORMANCE, "--expect-trees", "--threads"])
        done = mpi_run.run(MPI, RANKS, program, LIBRARY, OVER_SWITCHES, timeout=TIMEOUT_S)
        self.assertIn("differ 0,", done.stdout)
        self.assertGreater(counts(done.stderr)["over_switches"], 100)

    def test_whichever_way_is_sooner(self):
        """Members try switches and the native way in turns."""
        program = self.nodes.on_hosts(RANKS, [CONFORMANCE])
        variables = {name: value for name, value in OVER_SWITCHES.items() if name != "COPPICE_TREES_MAX_BYTES"}
        done = mpi_run.run(MPI, RANKS, program, LIBRARY, variables, timeout=TIMEOUT_S)
        self.assertIn("differ 0,", done.stdout)
        said = counts(done.stderr)
        self.assertGreater(said["over_switches"], 100)
        self.assertGreater(said["native"], 100)
        self.assertEqual((said["gone"], said["released"]), (0, said["granted"]), done.stderr)

    def test_without_a_measurement_auto_is_over_the_ranks(self):
        said = self.said_by_auto()
        self.assertGreater(said["allreduce"], 0)
        self.assertEqual(0, said["over_switches"])

    def test_more_communicators_than_the_switches_have_entries(self):
        """Trees over switches until these are full, then refusals that name them; the ledger and the switches agree,
        and all sums are right."""
        self.switches.stop()
        self.start_switches(ENTRIES)
        gate, seen = pathlib.Path(self.folder.name) / "gate", []
        line = mpi_run.command(MPI, RANKS, self.nodes.on_hosts(RANKS, [MANY, COMMUNICATORS, gate]), LIBRARY,
                               OVER_SWITCHES)

        def when_made(out):
            made = next((said for said in out if said.startswith("made")), "")
            wait_until(self.do_ledger_and_switches_agree, "ledger and switches agree")
            seen[:] = made, [switch["entries_taken"] for switch in self.switches.ask("entries")["switches"]]
            gate.touch()
        _, text = mpi_run.run_beside(line, when_made, TIMEOUT_S)
        made, taken = seen
        self.assertEqual("0", re.search(r"wrong (\d+)", made).group(1), made)
        self.assertEqual(ENTRIES, max(taken))
        self.assertRegex(text, rf'have no free entry.*"[LS]\d" \({ENTRIES} entries\)')
        said = counts(text)
        self.assertGreater(said["over_switches"], 0)
        self.assertGreater(said["asked"], said["granted"])
        self.assertEqual([], self.trees())

    def do_ledger_and_switches_agree(self):
        return all(switch["entries_taken"] == switch["agent"]["last_report"]["entries_used"]
                   for switch in self.switches.ask("entries")["switches"])

    def steady(self, in_the_middle):
        """What the library says; the result of the program is the native one."""
        gate = pathlib.Path(self.folder.name) / "gate"
        program = ["nice", "-n", "10", STEADY, str(ROUNDS)]
        line = mpi_run.command(MPI, RANKS, self.nodes.on_hosts(RANKS, [*program, gate]), LIBRARY, OVER_SWITCHES)

        def until_half(out):
            self.assertEqual("half\n", out.readline())
            in_the_middle()
            gate.touch()
        out, text = mpi_run.run_beside(line, until_half, TIMEOUT_S)
        natively = mpi_run.run(MPI, RANKS, program, timeout=TIMEOUT_S).stdout
        self.assertEqual(*(re.search(r"result \w+", one).group(0) for one in (natively, out)), text)
        return counts(text), text

    def test_a_root_switch_is_killed_in_the_middle(self):
        def kill():
            trees = [self.switches.ask("tree", "show", tree["id"]) for tree in self.trees()]
            root = next(tree["root"] for tree in trees if tree["type"] == "TREE_TYPE_II")
            self.switches.kill(root.removeprefix("switch:"))
        said, text = self.steady(kill)
        self.assertGreater(said["over_switches"], 0)
        self.assertIn("is broken", text)

    def test_the_daemon_is_killed_in_the_middle(self):
        said, _ = self.steady(lambda: self.nodes.daemon.end(signal.SIGKILL))
        self.assertGreater(said["over_switches"], 0)
        self.assertEqual(0, said["gone"])


class OverMeasuredSwitches(WithSwitches):
    """Where the profile says what they take: less than the ranks."""
    CONFIG = '[profile]\nbase = "hdr"\nswitch_is_measured = true\n'

    def test_auto_is_over_switches(self):
        said = self.said_by_auto()
        self.assertGreater(said["over_switches"], said["allreduce"] // 4)  # long ones may be sooner over the ranks


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
