#!/usr/bin/python3
"""Many ranks on many hosts: one connection of each host at the daemon, and each communicator's tree is
asked for once.

Usage: scale_test.py openmpi|mpich LIBRARY MANY_COMMUNICATORS COPPICED COPPICE_AGENT
"""
import os
import re
import shutil
import sys
import tempfile
import unittest

import mpi_run
from coppice_nodes import CoppiceNodes, counts, wait_until

MPI, LIBRARY, MANY, COPPICED, AGENT = sys.argv[1:6]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
HOSTS, RANKS, COMMUNICATORS = (16, 512, 100) if FULL else (16, 32, 20)
TIMEOUT_S = 7200 if FULL else 900


class Scale(unittest.TestCase):
    def test_connections_and_requests(self):
        nodes = CoppiceNodes(COPPICED, AGENT, HOSTS,
                             "model:fat-tree(leaves=4,spines=4,hosts-per-leaf=4)")
        self.addCleanup(nodes.stop)
        wait_until(lambda: nodes.connections() == HOSTS, "one connection of each agent")
        folder = tempfile.mkdtemp(prefix="coppice-scale-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        gate = os.path.join(folder, "gate")
        program = nodes.on_hosts(RANKS, [MANY, str(COMMUNICATORS), gate])
        variables = {"COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1,
                     "COPPICE_TIMEOUT_MS": 60000, **mpi_run.TREES_AT_ONCE}
        line = mpi_run.command(MPI, RANKS, program, LIBRARY, variables)
        seen = []

        def when_made(out):
            seen[:] = (next((said for said in out if said.startswith("made")), ""), nodes.connections(),
                       nodes.requests("CreateTree"))
            with open(gate, "w", encoding="utf-8"):
                pass
        _, text = mpi_run.run_beside(line, when_made, TIMEOUT_S)
        made, connections, asked = seen
        leaders, wrong, alone = map(
            int, re.fullmatch(r"made (\d+) wrong (\d+) alone (\d+)\n", made).groups())
        said = counts(text)
        self.assertEqual(wrong, 0)
        self.assertEqual(connections, HOSTS)
        # The splits make at least as many communicators as calls; each of those on several hosts
        # is asked for once.
        self.assertGreaterEqual(leaders, COMMUNICATORS)
        self.assertEqual((asked, said["asked"], said["granted"], said["released"]), (leaders,) * 4)
        self.assertEqual(said["native"], alone)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
