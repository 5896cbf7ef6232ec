#!/usr/bin/python3
"""Programs over switches on hosts and switches that are namespaces of their own, of fabrics of two and three levels:
results are the native ones, and each link of a tree carries each segment once up and once down.

Usage: switched_hosts_test.py openmpi|mpich LIBRARY CONFORMANCE STEADY REPEATED COPPICED COPPICE_AGENT COPPICECTL
                              COPPICE_PLAN COPPICE_SWITCH
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import switched_network

switched_network.enter()

import mpi_run  # noqa: E402
from coppice_nodes import counts  # noqa: E402
from hosts_with_agents import on_each  # noqa: E402
from packaged_programs import Hpcc, Lammps, differences  # noqa: E402
from switched_hosts import SwitchedCoppice, SwitchedHosts  # noqa: E402

MPI, LIBRARY, CONFORMANCE, STEADY, REPEATED, COPPICED, AGENT, COPPICECTL, PLAN, SWITCH = sys.argv[1:11]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
TIMEOUT_S = 3600 if FULL else 600
HEADER, SEGMENT, ROUNDS = 40, 64 << 10, 40


class OnHosts(unittest.TestCase):
    # No more children than a switch has below it: so that each switch on the way combines.
    FABRIC, WIDTH = "model:fat-tree(leaves=2,spines=1,hosts-per-leaf=2)", 2

    @classmethod
    def setUpClass(cls):
        cls.hosts = SwitchedHosts(PLAN, cls.FABRIC)
        cls.addClassCleanup(cls.hosts.close)
        cls.coppice = SwitchedCoppice(cls.hosts, COPPICED, AGENT, COPPICECTL, SWITCH, children=cls.WIDTH)
        cls.addClassCleanup(cls.coppice.stop)
        cls.ranks = len(cls.hosts.names)

    def run_on_each(self, program, trees=True, words=()):
        variables = {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "creation", "COPPICE_TREES_TYPE": 2, "COPPICE_VERBOSE": 1,
                     "COPPICE_TIMEOUT_MS": 20000, "COPPICE_AGENT": self.coppice.socket,
                     **mpi_run.TREES_AT_ONCE} if trees else {}
        line = self.hosts.command(MPI, self.ranks, [*on_each(MPI, self.hosts.names, 1), *words], program, variables)
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-2000:] + done.stderr[-4000:])
        return done

    def test_every_collective(self):
        done = self.run_on_each([CONFORMANCE, "--expect-trees"])
        self.assertIn("differ 0,", done.stdout)
        self.assertGreater(counts(done.stderr)["over_switches"], 1000)

    def results(self, kind, trees=True):
        """Of a packaged program."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        program = kind(folder)
        done = self.run_on_each(program.command, trees, ["-wdir", folder])
        if trees:
            self.assertGreater(counts(done.stderr)["over_switches"], 0)
        return program.results(done.stdout)

    # Debian has no build of them with MPICH.
    if MPI == "openmpi":
        def test_lammps(self):
            """The same bits in every run: natively sums are of another order, which grows with the steps."""
            over = self.results(Lammps)
            self.assertEqual(over, self.results(Lammps))
            self.assertLess(differences(self.results(Lammps, trees=False), over)[1], 1e-4)

        @unittest.skipUnless(FULL, "the full tier has it")
        def test_hpcc(self):
            self.assertEqual(self.results(Hpcc, trees=False), self.results(Hpcc))


class WithCounters(OnHosts):
    """Each link of a tree carries each segment once up and once down."""

    def moved(self, how, trees=True):
        """{(from, to): bytes} of ROUNDS Allreduces of a segment each, which is what twice as many move more."""
        totals = []
        for count in (ROUNDS, 2 * ROUNDS):
            before = self.hosts.network.sent()
            self.run_on_each([REPEATED, how, SEGMENT, count], trees)
            after = self.hosts.network.sent()
            totals.append({way: after[way][0] - before[way][0] for way in after})
        return {way: totals[1][way] - totals[0][way] for way in totals[0]}

    def test_each_link_carries_each_segment_once_up_and_once_down(self):
        """And uplinks a share of what they do natively: a leaf of n ranks sends one message up, where a flat algorithm
        sends one for each rank (seen on Open MPI: messages of MPICH's hosts go through the memory of this machine)."""
        over = self.moved("allreduce")
        payload = (SEGMENT + HEADER) * ROUNDS
        used = {way for way, count in over.items() if count > payload / 2}
        network = self.hosts.network
        for host in network.hosts.values():
            self.assertLessEqual({(host.name, *host.ports), (*host.ports, host.name)}, used)
        # A tree over n nodes has n - 1 links, each of which is used both ways.
        self.assertEqual(2 * (len({name for way in used for name in way}) - 1), len(used), used)
        for way in used:
            # Beside the payload headers of Ethernet, IP and TCP, and acknowledgements of what comes the other way.
            self.assertGreater(over[way], payload * 0.95, way)
            self.assertLess(over[way], payload * 1.05 * 1514 / 1448, way)
        if MPI != "openmpi":
            return
        flat = self.moved("flat", trees=False)
        uplinks = [way for way in used if all(name in network.switches for name in way)]
        natively = sum(sorted((flat[way] for way in flat if all(name in network.switches for name in way)),
                              reverse=True)[:len(uplinks)])
        self.assertLess(sum(over[way] for way in uplinks), natively / self.WIDTH * 1.05)


class OnTwoLevels(WithCounters):
    if FULL:
        FABRIC, WIDTH = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 4


class OnTwoLevelsOf8(OnHosts):
    FABRIC, WIDTH = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 4


class OnThreeLevelsOf8(WithCounters):
    FABRIC, WIDTH = "model:xgft(m=2x2x2,w=1x2x2)", 2


class OnThreeLevels(OnHosts):
    FABRIC, WIDTH = "model:fat-tree(ports=4,levels=3)", 4


def load_tests(loader, _, __):
    kinds = [OnTwoLevels, *([OnTwoLevelsOf8, OnThreeLevelsOf8, OnThreeLevels] if FULL else [])]
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, kinds))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
