#!/usr/bin/python3
"""Calls that MPI does not allow come out the same with the preloaded library and without it, whatever
that is asked for.

Usage: invalid_calls_test.py openmpi|mpich LIBRARY INVALID_CALLS SCRIPTED_LIBRARY
"""
import os
import sys
import tempfile
import unittest

import mpi_run

MPI, _, PROGRAM, SCRIPTED = sys.argv[1:5]
# Lines of invalid_calls list, at least, of each rank.
LEAST = 60
TIMEOUT_S = 120


class InvalidCalls(unittest.TestCase):
    def run_program(self, what, ranks, library=None, **variables):
        """The lines of all ranks."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {"COPPICE_TEST_SCRIPT": os.path.join(folder, "script"),
                           "COPPICE_TEST_SCRIPT_SHAPES": "c", **variables}
            if "COPPICE_TRACE" in variables:
                environment["COPPICE_TRACE"] = os.path.join(folder, "trace")
            done = mpi_run.run(MPI, ranks, [PROGRAM, what], library, environment,
                               timeout=TIMEOUT_S)
        return sorted(done.stdout.splitlines())

    def compare(self, what, ranks):
        natively = self.run_program(what, ranks)
        trees = {"COPPICE_TREES": "first-use", **mpi_run.TREES_AT_ONCE}
        asked_for = ({"COPPICE_TRACE": "trace"}, trees, {"COPPICE_TREES": "first-use"},
                     {"COPPICE_REORDER": 1},
                     {"COPPICE_TRACE": "trace", "COPPICE_REORDER": 1, **trees})
        for variables in asked_for:
            with self.subTest(variables=variables):
                self.assertEqual(natively, self.run_program(what, ranks, SCRIPTED, **variables))
        return natively

    def test_a_list_of_calls(self):
        said = self.compare("list", 2)
        self.assertGreaterEqual(len(said), 2 * LEAST)

    def test_broadcasts_of_other_lengths(self):
        self.compare("lengths", 4)

    def test_a_reduction_where_own_data_lies(self):
        self.compare("alias", 3)

    def test_handlers_of_earlier_communicators(self):
        self.compare("handlers", 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
