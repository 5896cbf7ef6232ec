#!/usr/bin/python3
"""Runs of MPICH that share a name server do not take each other's ranks for their own.

Usage: names_test.py mpich LIBRARY WORLDS STEADY
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

import namespace_hosts

namespace_hosts.enter()  # the name server's port is a fixed one

import mpi_run  # noqa: E402
import trace_text  # noqa: E402
from coppice_nodes import wait_until  # noqa: E402

MPI, LIBRARY, WORLDS, STEADY = sys.argv[1:5]
ADDRESS = ("127.0.0.1", 6392)  # Hydra's preset
TIMEOUT_S = 120
# Only rank 0 has the library.
FIRST_ALONE = '[ $PMI_RANK = 0 ] && export LD_PRELOAD=$1; shift; exec "$@"'


def command(program, environment, preload=None):
    first, *rest = mpi_run.command(MPI, 2, program, preload, environment)
    return [first, "-nameserver", ADDRESS[0], *rest]


class SharedNameServer(unittest.TestCase):
    def setUp(self):
        namespace_hosts.ip("link", "set", "lo", "up")
        server = subprocess.Popen(["hydra_nameserver"])

        def stop():
            server.kill()
            server.wait(TIMEOUT_S)
        self.addCleanup(stop)

        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(ADDRESS) == 0
        wait_until(listens, "hydra_nameserver")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_beside(self):
        """Two runs while another one is under way: of the first one rank has no library."""
        done = subprocess.run(
            command(["/bin/sh", "-c", FIRST_ALONE, "sh", LIBRARY, WORLDS, "bcast"],
                    {"COPPICE_TRACE": self.path / "some", "COPPICE_START_TIMEOUT_MS": 300}),
            capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("did not say within 300 ms", done.stderr)
        done = subprocess.run(command([WORLDS, "bcast"], {"COPPICE_TRACE": self.path / "all"},
                                      LIBRARY), capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({(0, 1): (1, 256), (1, 0): (1, 256)}, trace_text.read(self.path / "all"))

    def test_runs_at_the_same_time(self):
        gate = self.path / "gate"
        line = command([STEADY, "4", gate], {"COPPICE_TRACE": self.path / "first"}, LIBRARY)
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as first:
            try:
                self.assertEqual("half\n", first.stdout.readline())
                self.run_beside()
                gate.touch()
                first.communicate(timeout=TIMEOUT_S)
            finally:
                first.kill()
        self.assertEqual(0, first.returncode)
        self.assertEqual(["all", "first", "gate"], sorted(os.listdir(self.path)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
