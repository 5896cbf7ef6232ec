#!/usr/bin/python3
"""Programs over switches on hosts and switches that are namespaces of their own: each link of a tree carries each
segment once up and once down, and results are the native ones.

Usage: switched_hosts_test.py openmpi|mpich LIBRARY CONFORMANCE STEADY REPEATED COPPICED COPPICE_AGENT COPPICECTL
                              COPPICE_PLAN COPPICE_SWITCH
"""
import os
import subprocess
import sys
import unittest

import switched_network

switched_network.enter()

import mpi_run  # noqa: E402
from coppice_nodes import counts  # noqa: E402
from hosts_with_agents import on_each  # noqa: E402
from switched_hosts import SwitchedCoppice, SwitchedHosts  # noqa: E402

MPI, LIBRARY, CONFORMANCE, STEADY, REPEATED, COPPICED, AGENT, COPPICECTL, PLAN, SWITCH = sys.argv[1:11]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
FABRIC = ("model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)" if FULL
          else "model:fat-tree(leaves=2,spines=1,hosts-per-leaf=2)")
WIDTH = 4 if FULL else 2
TIMEOUT_S = 3600 if FULL else 600
HEADER, SEGMENT, ROUNDS = 40, 64 << 10, 40


class OnHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SwitchedHosts(PLAN, FABRIC)
        cls.addClassCleanup(cls.hosts.close)
        # No more children than a switch has below it: so that each switch on the way combines.
        cls.coppice = SwitchedCoppice(cls.hosts, COPPICED, AGENT, COPPICECTL, SWITCH, children=WIDTH)
        cls.addClassCleanup(cls.coppice.stop)
        cls.ranks = len(cls.hosts.names)

    def run_on_each(self, program, trees=True):
        variables = {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "creation", "COPPICE_TREES_TYPE": 2, "COPPICE_VERBOSE": 1,
                     "COPPICE_TIMEOUT_MS": 20000, "COPPICE_AGENT": self.coppice.socket,
                     **mpi_run.TREES_AT_ONCE} if trees else {}
        line = self.hosts.command(MPI, self.ranks, on_each(MPI, self.hosts.names, 1), program, variables)
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-2000:] + done.stderr[-4000:])
        return done

    def test_every_collective(self):
        done = self.run_on_each([CONFORMANCE, "--expect-trees"])
        self.assertIn("differ 0,", done.stdout)
        self.assertGreater(counts(done.stderr)["over_switches"], 1000)

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
        self.assertLess(sum(over[way] for way in uplinks), natively / WIDTH * 1.05)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
