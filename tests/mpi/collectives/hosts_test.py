#!/usr/bin/python3
"""Trees over several hosts, each with an agent of its own that only its own ranks reach: results are
the native ones, also where the daemon is killed in the middle.

Usage: hosts_test.py openmpi|mpich LIBRARY STEADY COPPICED COPPICE_AGENT
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import namespace_hosts

namespace_hosts.enter()

import mpi_run  # noqa: E402
from coppice_nodes import counts  # noqa: E402
from hosts_with_agents import HostsWithAgents, on_each  # noqa: E402
from packaged_programs import Hpcc, Lammps, NATIVE_SUMS_IN_RANK_ORDER  # noqa: E402

MPI, LIBRARY, STEADY, COPPICED, AGENT = sys.argv[1:6]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
HOSTS = ["n0000", "n0001", "n0002", "n0003"] if FULL else ["n0000", "n0001"]
FABRIC = f"model:fat-tree(leaves={len(HOSTS)},spines=2,hosts-per-leaf=1)"
RANKS, ROUNDS = 2 * len(HOSTS), 200 if FULL else 40
TIMEOUT_S = 300
# Ranks give way to the launcher, as in coppice_nodes.py.
PROGRAM = ["nice", "-n", "10", STEADY, str(ROUNDS)]


def result(text):
    return re.search(r"result \w+", text).group(0)


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = namespace_hosts.NamespaceHosts(HOSTS)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.nodes = HostsWithAgents(self.hosts, COPPICED, AGENT, FABRIC)
        self.addCleanup(self.nodes.stop)

    def kill_daemon(self):
        self.nodes.daemon.end(signal.SIGKILL)

    def run_along_trees(self, program, in_the_middle, words=()):
        """(what it wrote, what the library says of trees): `in_the_middle` is called with the
        program running, as its standard output is read."""
        line = self.hosts.command(
            MPI, RANKS, [*on_each(MPI, HOSTS, 2), *words], program,
            {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1,
             "COPPICE_TIMEOUT_MS": 5000, "COPPICE_AGENT": self.nodes.socket,
             **mpi_run.TREES_AT_ONCE})
        out, text = mpi_run.run_beside(line, in_the_middle, TIMEOUT_S)
        return out, counts(text)

    def run_steady(self, in_the_middle):
        """What the library says of trees; the program's result is the native one."""
        gate = self.path / "gate"

        def until_half(out):
            self.assertEqual("half\n", out.readline())
            in_the_middle()
            gate.touch()
        out, said = self.run_along_trees([*PROGRAM, gate], until_half)
        natively = mpi_run.run(MPI, RANKS, PROGRAM, timeout=TIMEOUT_S).stdout
        self.assertEqual(result(natively), result(out))
        return said

    def test_an_agent_on_each_host(self):
        said = self.run_steady(lambda: None)
        self.assertGreater(said["allreduce"], 0)
        self.assertEqual((said["asked"], 0, 0), (said["granted"], said["native"], said["gone"]))

    def test_the_daemon_is_killed_in_the_middle(self):
        said = self.run_steady(self.kill_daemon)
        self.assertGreater(said["granted"], 0)
        self.assertGreater(said["native"], 0)  # communicators that were made afterwards

    def results(self, kind, trees, is_killed=False):
        """Of a packaged program on the hosts; along trees, also what the library says of them."""
        folder = tempfile.mkdtemp(dir=self.path)
        program = kind(folder, is_stopped=is_killed)
        if not trees:
            line = self.hosts.command(MPI, RANKS, [*on_each(MPI, HOSTS, 2), "-wdir", folder],
                                      program.command, NATIVE_SUMS_IN_RANK_ORDER)
            done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual(0, done.returncode, done.stderr)
            return program.results(done.stdout)

        def in_the_middle(_):
            if is_killed:
                with program.middle():
                    self.kill_daemon()
        out, said = self.run_along_trees(program.command, in_the_middle, ["-wdir", folder])
        self.assertGreater(said["granted"], 0)
        self.assertGreater(said["allreduce"] + said["reduce"] + said["bcast"], 0)
        return program.results(out), said

    def compare(self, kind):
        natively = self.results(kind, trees=False)
        self.assertEqual(natively, self.results(kind, trees=True)[0])
        with_trees, said = self.results(kind, trees=True, is_killed=True)
        self.assertEqual(natively, with_trees, "daemon killed in the middle")
        return said

    # Debian has no build of them with MPICH.
    if MPI == "openmpi":
        def test_lammps(self):
            self.assertEqual(0, self.compare(Lammps)["native"])  # it makes no communicators later

        def test_hpcc(self):
            self.assertGreater(self.compare(Hpcc)["native"], 0)  # HPL's communicators


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
