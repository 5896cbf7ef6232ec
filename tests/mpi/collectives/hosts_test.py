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
from coppice_nodes import counts, wait_until  # noqa: E402
from coppiced_process import Coppiced, PATIENCE_S  # noqa: E402

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
        self.daemon = Coppiced(COPPICED, fabric=FABRIC, entries=64).start().wait_until_listening()
        self.addCleanup(self.daemon.clean_up)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        for number in range(len(HOSTS)):
            self.start_agent(number)

    def start_agent(self, number):
        """Which finds out its host's name, as its ranks do by it. Returns when it listens."""
        state = self.path / f"state{number}"
        state.mkdir(mode=0o700)
        socket = self.hosts.run / "agent.sock"
        with open(state / "log", "w", encoding="utf-8") as log:
            agent = subprocess.Popen(
                [*self.hosts.inside(number), AGENT, "--server", self.daemon.address,
                 "--socket", socket, "--state-dir", state, "--measure-listen", "127.0.0.1:0"],
                stderr=log)

        def stop():
            agent.kill()
            agent.wait(PATIENCE_S)
            subprocess.run([*self.hosts.inside(number), "rm", "-f", socket], check=True)
        self.addCleanup(stop)

        def listens():
            self.assertIsNone(agent.poll(), (state / "log").read_text(encoding="utf-8"))
            return subprocess.run([*self.hosts.inside(number), "test", "-S", socket],
                                  check=False).returncode == 0
        wait_until(listens, f"an agent on {HOSTS[number]}")
        self.assertFalse(socket.exists(), "other hosts reach the agent")

    def run_steady(self, in_the_middle):
        """What the program says of trees; its result is the native one."""
        gate = self.path / "gate"
        line = self.hosts.command(
            MPI, RANKS, ["--host" if MPI == "openmpi" else "-hosts",
                         ",".join(f"{name}:2" for name in HOSTS)], [*PROGRAM, gate],
            {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1,
             "COPPICE_TIMEOUT_MS": 5000, "COPPICE_AGENT": self.hosts.run / "agent.sock",
             "OMPI_MCA_mpi_yield_when_idle": 1})
        with open(self.path / "errors", "w+", encoding="utf-8") as errors:
            with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True) as run:
                try:
                    said = run.stdout.readline()
                    in_the_middle()
                    gate.touch()
                    out = run.communicate(timeout=TIMEOUT_S)[0]
                finally:
                    run.kill()
            errors.seek(0)
            text = errors.read()
        self.assertEqual(("half\n", 0), (said, run.returncode), text)
        natively = mpi_run.run(MPI, RANKS, PROGRAM, timeout=TIMEOUT_S).stdout
        self.assertEqual(result(natively), result(out))
        return counts(text)

    def test_an_agent_on_each_host(self):
        said = self.run_steady(lambda: None)
        self.assertGreater(said["allreduce"], 0)
        self.assertEqual((said["asked"], 0, 0), (said["granted"], said["native"], said["gone"]))

    def test_the_daemon_is_killed_in_the_middle(self):
        said = self.run_steady(lambda: self.daemon.end(signal.SIGKILL))
        self.assertGreater(said["granted"], 0)
        self.assertGreater(said["native"], 0)  # communicators that were made afterwards


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
