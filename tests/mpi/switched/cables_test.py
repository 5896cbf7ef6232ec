#!/usr/bin/python3
"""Programs over switches whose cables lose and reorder packets: results are right; and whose cables take long: what a
collective takes, beside the native one.

Usage: cables_test.py openmpi|mpich LIBRARY CABLES REPEATED COPPICED COPPICE_AGENT COPPICECTL COPPICE_PLAN COPPICE_SWITCH
"""
import os
import re
import subprocess
import sys
import unittest

import switched_network

switched_network.enter()

import mpi_run  # noqa: E402
from cables import Cables  # noqa: E402
from coppice_nodes import counts  # noqa: E402
from hosts_with_agents import on_each  # noqa: E402
from switched_hosts import SwitchedCoppice, SwitchedHosts  # noqa: E402

MPI, LIBRARY, CABLES, REPEATED, COPPICED, AGENT, COPPICECTL, PLAN, SWITCH = sys.argv[1:10]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
FABRIC, WIDTH = (("model:fat-tree(leaves=4,spines=1,hosts-per-leaf=4)", 4) if FULL
                 else ("model:fat-tree(leaves=2,spines=1,hosts-per-leaf=2)", 2))
SEED = int(os.environ.get("COPPICE_TEST_SEED") or 1)
TIMEOUT_S = 600


class OnCables(unittest.TestCase):
    def build(self, **shape):
        cables = Cables(CABLES, seed=SEED, **shape)
        self.addCleanup(cables.close)
        self.hosts = SwitchedHosts(PLAN, FABRIC, cables.lay)
        self.addCleanup(self.hosts.close)
        cables.go()
        self.coppice = SwitchedCoppice(self.hosts, COPPICED, AGENT, COPPICECTL, SWITCH, children=WIDTH)
        self.addCleanup(self.coppice.stop)

    def run_repeated(self, words, trees=True):
        """(the median in microseconds, what the library says)"""
        names = self.hosts.names
        variables = {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "creation", "COPPICE_TREES_TYPE": 2, "COPPICE_VERBOSE": 1,
                     "COPPICE_TIMEOUT_MS": 20000, "COPPICE_AGENT": self.coppice.socket,
                     **mpi_run.TREES_AT_ONCE} if trees else {}
        line = self.hosts.command(MPI, len(names), on_each(MPI, names, 1), [REPEATED, *words], variables)
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-2000:] + done.stderr[-4000:])
        median, wrong = re.search(r"median (\S+) us, wrong (\d+)", done.stdout).groups()
        self.assertEqual("0", wrong)
        return float(median), counts(done.stderr) if trees else None

    def test_packets_are_lost_and_reordered(self):
        self.build(loss=0.01, reordered=0.1)
        for size in (8, 4096, 200_000):
            _, said = self.run_repeated(["allreduce", size, 60])
            self.assertGreater(said["over_switches"], 60)

    @unittest.skipUnless(MPI == "openmpi", "natively, messages of MPICH's hosts go through this machine's memory")
    def test_cables_take_long(self):
        """Times are printed, and judged by nobody."""
        self.build(delay_us=500)
        for words in (["allreduce", 8, 100], ["barrier", 0, 100]):
            over, said = self.run_repeated(words)
            self.assertGreater(said["over_switches"], 100)
            natively, _ = self.run_repeated(words, trees=False)
            print(f"{words[0]} {words[1]} B, 500 us a cable: {over:.0f} us over switches, {natively:.0f} us natively, "
                  f"{over / natively:.2f}", file=sys.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
