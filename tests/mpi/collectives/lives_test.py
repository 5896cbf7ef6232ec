#!/usr/bin/python3
"""Trees of communicators whose ends functions of the program see, of communicators for messages of all
lengths, and of members that call other forms of one function.

Usage: lives_test.py openmpi|mpich LIBRARY SCRIPTED_LIBRARY COMMUNICATOR_LIVES
"""
import os
import re
import sys
import tempfile
import unittest

import mpi_run
from coppice_nodes import counts

MPI, _, SCRIPTED, PROGRAM = sys.argv[1:5]
RANKS = 3
TIMEOUT_S = 300


class Lives(unittest.TestCase):
    def run_program(self, *words, when="first-use", **more):
        """The counts, and how many trees were granted for how many bytes; all were given back."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {"COPPICE_TREES": when, "COPPICE_VERBOSE": 1, **mpi_run.TREES_AT_ONCE,
                           "COPPICE_TEST_SCRIPT": os.path.join(folder, "script"), **more}
            done = mpi_run.run(MPI, RANKS, [PROGRAM, *map(str, words)], SCRIPTED, environment,
                               timeout=TIMEOUT_S)
        self.assertEqual("wrong 0\n", done.stdout)
        self.assertRegex(done.stderr, r"script: granted \d+ left 0\n")
        granted = {int(bytes_): int(times) for bytes_, times in
                   re.findall(r"script: for (\d+) bytes (\d+)", done.stderr)}
        said = counts(done.stderr)
        self.assertEqual([sum(granted.values())] * 2, [said["asked"], said["granted"]])
        return said, granted

    def test_functions_of_attributes_use_a_communicator_that_ends(self):
        """Natively: its tree was given back before."""
        count = 50
        for when in ("first", "last"):
            said, granted = self.run_program("ends", when, count)
            self.assertEqual({4: count}, granted)
            self.assertEqual((RANKS * count, 0, 2 * RANKS * count),
                             (said["allreduce"], said["barrier"], said["native"]), when)

    @unittest.skipIf(MPI == "openmpi", "Open MPI calls these functions in MPI_Comm_free")
    def test_they_do_so_in_a_later_call(self):
        said, granted = self.run_program("ends", "pending", 10)
        self.assertEqual({4: 10}, granted)
        self.assertEqual(2 * RANKS * 10, said["native"])

    def test_one_tree_for_short_and_one_for_long_messages(self):
        said, granted = self.run_program("lengths")
        self.assertEqual({0: 1, 2**18: 1, 2**20: 1}, granted)
        self.assertEqual((0, RANKS, RANKS * 8),
                         (said["native"], said["barrier"], said["allreduce"]))
        # The world and both duplicates when they are made; that for long ones when it is needed.
        _, granted = self.run_program("lengths", when="creation")
        self.assertEqual({0: 3, 2**18: 1, 2**20: 1}, granted)

    def test_both_trees_change(self):
        for changes in ("revise", "revoke"):
            self.run_program("lengths", COPPICE_TEST_SCRIPT_CHANGES=changes)

    @unittest.skipIf(MPI == "openmpi", "Debian's has no functions of MPI 4")
    def test_large_counts_beside_ints(self):
        said, _ = self.run_program("counts")
        # The last broadcast, of more elements than an int holds at rank 0, whose call is not counted.
        self.assertEqual((3 * RANKS, 3 * RANKS, 3 * RANKS, RANKS - 1),
                         tuple(said[name] for name in ("bcast", "allreduce", "reduce", "native")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
