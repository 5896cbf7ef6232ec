#!/usr/bin/python3
"""What is preloaded beside the library, or in its place, and keeps it from its work: said once, and not
by a crash.

Usage: preload_test.py openmpi|mpich LIBRARY LIBRARY_OF_OTHER_MPI PROGRAM TOOL_BEFORE_INIT
                       TOOL_BEFORE_FINALIZE
"""
import os
import pathlib
import sys
import tempfile
import unittest

import mpi_run
import trace_text

MPI, LIBRARY, OTHER, PROGRAM, INIT, FINALIZE = sys.argv[1:7]


class Preloads(unittest.TestCase):
    def run_program(self, *libraries, traces=True):
        """What it said, and whether there is a trace."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace"
            done = mpi_run.run(MPI, 2, [PROGRAM, "alltoall", 5], ":".join(libraries),
                               {"COPPICE_TRACE": file} if traces else {})
            if file.exists():
                self.assertEqual({(0, 1): (1, 5), (1, 0): (1, 5)}, trace_text.read(file))
            return done.stderr, file.exists()

    def test_tools_before_it(self):
        for libraries, call in (((INIT, LIBRARY), "MPI_Init"), ((FINALIZE, LIBRARY), "MPI_Finalize"),
                                ((INIT, FINALIZE, LIBRARY), "MPI_Init")):
            said, has_trace = self.run_program(*libraries)
            self.assertEqual(1, said.count(f"because {call} did not reach libcoppice_mpi"), said)
            self.assertFalse(has_trace)

    def test_tools_behind_it(self):
        said, has_trace = self.run_program(LIBRARY, INIT, FINALIZE)
        self.assertNotIn("coppice:", said)
        self.assertTrue(has_trace)

    def test_nothing_is_asked_for(self):
        said, _ = self.run_program(INIT, FINALIZE, LIBRARY, traces=False)
        self.assertNotIn("coppice:", said)

    def test_the_library_of_another_mpi(self):
        done = mpi_run.run(MPI, 1, [PROGRAM, "split"], OTHER, check=False)
        self.assertEqual(1, done.returncode)
        self.assertEqual(1, done.stderr.count(f"coppice: {OTHER} is for "), done.stderr)
        self.assertIn(f"preload {os.path.basename(LIBRARY)} instead", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
