#!/usr/bin/python3
"""coppice-search for a job of a running coppiced: the question comes from there, the order goes back
and is what the launcher gets.

Usage: daemon_test.py openmpi|mpich COPPICE_SEARCH COPPICED COPPICECTL COPPICE_AGENT
"""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import unittest

import coppiced_process
import mpi_run
from node_agent import Agent

MPI, SEARCH, COPPICED, COPPICECTL, AGENT = sys.argv[1:6]
RANKS = 16
# HTTP/2: what a client says first, and a frame that begins a call.
PREFACE, HEADERS, FIRST_STREAM = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1, 1


class Relay:
    """A socket before the daemon's. The second call of the first connection does not get there: the
    connection is cut, and the daemon ended and started anew, which nobody reaches meanwhile."""

    def __init__(self, daemon, path):
        self.daemon, self.path, self.is_cut = daemon, path, False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return self.listener.close()
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.daemon.socket)
            except OSError:
                near.close()
                far.close()
                continue
            threading.Thread(target=self.pass_on, args=(far, near), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(near, far, not self.is_cut), daemon=True).start()

    def pass_on(self, source, target, is_watched=False):
        unread = b""
        begun = len(PREFACE)
        try:
            while data := source.recv(65536):
                unread += data if is_watched else b""
                while len(unread) >= begun + 9:  # a frame's head (RFC 9113, 4.1)
                    unread, begun = unread[begun:], 9 + int.from_bytes(unread[begun:begun + 3], "big")
                    if unread[3] == HEADERS and int.from_bytes(unread[5:9], "big") > FIRST_STREAM:
                        self.is_cut = True
                        break
                if is_watched and self.is_cut:
                    break
                target.sendall(data)
        except OSError:
            pass  # the other way was cut
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
        if is_watched and self.is_cut:
            self.daemon.end()
            self.daemon.start()


class Job(unittest.TestCase):
    def setUp(self):
        self.daemon = coppiced_process.Coppiced(COPPICED).start().wait_until_listening()
        self.addCleanup(self.daemon.clean_up)
        scratch = pathlib.Path(self.daemon.directory)
        self.hosts = [f"n{i:04}" for i in range(RANKS)]
        (scratch / "hosts").write_text("\n".join(self.hosts) + "\n")
        # Rank r talks to the rank 8 further on, which sits on another leaf switch.
        self.pattern = scratch / "far.mtx"
        self.pattern.write_text("%%MatrixMarket matrix coordinate real general\n16 16 16\n" + "".join(
            f"{r + 1} {(r + 8) % RANKS + 1} 1000\n" for r in range(RANKS)))
        register = ["job", "register", "--endpoints", str(scratch / "hosts")]
        registered = self.ask(*register, "--json")
        while "no fabric is known yet" in registered.stderr:  # until the first sweep has ended
            registered = self.ask(*register, "--json")
        self.job = json.loads(registered.stdout)["id"]

    def ask(self, *arguments):
        return subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=60)

    def control(self, *arguments, json_of=False, status=0):
        done = self.ask(*arguments, *(["--json"] if json_of else []))
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout) if json_of else done.stdout + done.stderr

    def search(self, *arguments, check=True):
        return mpi_run.run(MPI, 2, [SEARCH, "--server", self.daemon.address, "--job", self.job,
                                    "--json", *arguments], timeout=300, check=check)

    def test_the_order_comes_back_to_the_launcher(self):
        self.assertIn("no order is kept", self.control("map", "--job", self.job, "--stored", status=3))
        found = json.loads(self.search("--pattern", str(self.pattern)).stdout)
        self.assertEqual(sorted(found["permutation"]), list(range(RANKS)))
        # The daemon's measures: all pairs sit on one leaf switch each.
        self.assertEqual(found["before"]["inter_switch_bytes"], 16000)
        self.assertEqual(found["objective"]["inter_switch_bytes"], 0)
        self.assertGreater(found["before"]["max_congestion"], 0)
        self.assertLessEqual(found["objective"]["max_congestion"],
                             found["before"]["max_congestion"])
        stored = self.control("map", "--job", self.job, "--stored", json_of=True)
        self.assertEqual(stored["permutation"], found["permutation"])
        self.assertEqual(stored["note"], found["reason"])
        lines = self.control("map", "--job", self.job, "--stored", "--emit", "slurm").split()
        self.assertEqual(lines, [self.hosts[slot] for slot in found["permutation"]])

    def test_a_stored_pattern_and_routes(self):
        self.control("pattern", "put", "far", str(self.pattern))
        found = json.loads(self.search("--application", "far", "--distance", "routes").stdout)
        self.assertEqual(found["objective"]["inter_switch_bytes"], 0)

    def test_through_the_nodes_agent(self):
        """Which is the only one that knows where the daemon is."""
        agent = Agent(AGENT, self.daemon.address, self.hosts[0])
        self.addCleanup(agent.clean_up)
        agent.start()

        def search(*arguments):
            return mpi_run.run(MPI, 2, [SEARCH, "--json", *arguments], timeout=300, check=False,
                               environment={"COPPICE_SERVER": "unix:/nonexistent/coppiced.sock"})
        ours = ["--agent", agent.socket, "--job", self.job, "--pattern", str(self.pattern)]
        done = search(*ours)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["objective"]["inter_switch_bytes"], 0)
        stored = self.control("map", "--job", self.job, "--stored", json_of=True)
        self.assertEqual(stored["permutation"], found["permutation"])
        done = search("--agent", agent.socket, "--job", "77", "--pattern", str(self.pattern))
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.count("[NOT_FOUND]"), 1, done.stderr)
        for wrong in ([*ours, "--server", self.daemon.address], ["--agent", agent.socket, "--qap", "x"]):
            self.assertEqual(search(*wrong).returncode, 2, wrong)
        agent.end()
        done = search(*ours)
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stderr.count("[UNAVAILABLE]"), 1, done.stderr)

    def search_over_a_restart(self):
        """The daemon ends when it is to measure the order, and comes back."""
        relay = Relay(self.daemon, os.path.join(self.daemon.directory, "relay.sock"))
        self.addCleanup(relay.listener.shutdown, socket.SHUT_RDWR)
        done = mpi_run.run(MPI, 2, [SEARCH, "--server", "unix:" + relay.path, "--job", self.job, "--json", "--budget",
                                    "100ms", "--threads", "1", "--pattern", str(self.pattern)],
                           timeout=300, check=False)
        self.assertTrue(relay.is_cut, done.stderr)
        return done

    def test_a_daemon_that_is_started_anew_meanwhile(self):
        """Its fabric has another version then, and the same links."""
        done = self.search_over_a_restart()
        self.assertEqual(0, done.returncode, done.stderr)
        stored = self.control("map", "--job", self.job, "--stored", json_of=True)
        self.assertEqual(stored["permutation"], json.loads(done.stdout)["permutation"])

    def test_a_daemon_that_comes_back_with_other_links(self):
        fabric = self.daemon.command.index("--fabric") + 1
        self.daemon.command[fabric] = "model:fat-tree(leaves=2,spines=2,hosts-per-leaf=8)"
        done = self.search_over_a_restart()
        self.assertEqual((6, 1), (done.returncode, done.stderr.count("[ABORTED]")), done.stderr)
        self.assertIn("no order is kept", self.control("map", "--job", self.job, "--stored", status=3))

    def test_what_the_daemon_refuses_is_told_once(self):
        done = self.search("--application", "nobodys", check=False)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.count("nobodys"), 1, done.stderr)
        self.control("job", "end", self.job)
        done = self.search("--pattern", str(self.pattern), check=False)
        self.assertEqual(done.returncode, 6)
        self.assertEqual(done.stderr.count("has ended"), 1, done.stderr)
        self.assertIn("has ended", self.control("map", "--job", self.job, "--stored", status=6))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
