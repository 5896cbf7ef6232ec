#!/usr/bin/python3
"""A program that sums all the time, over switches, while switches, links, agents and the daemon are taken away at random
instants: no wrong sum, nobody waits longer than a bound, and all members go the same ways. And ranks: the job ends.

Usage: kills_test.py openmpi|mpich LIBRARY ENDURING COPPICED COPPICE_AGENT COPPICECTL COPPICE_PLAN COPPICE_SWITCH
"""
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import switched_network

switched_network.enter()

import mpi_run  # noqa: E402
from hosts_with_agents import on_each  # noqa: E402
from switched_hosts import SwitchedCoppice, SwitchedHosts  # noqa: E402

MPI, LIBRARY, ENDURING, COPPICED, AGENT, COPPICECTL, PLAN, SWITCH = sys.argv[1:9]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
FABRIC = "model:fat-tree(leaves=2,spines=2,hosts-per-leaf=2)"
KILLS, RANKS_KILLED = (240, 60) if FULL else (8, 2)
WAITS_EVERY, RETURNS_WITHIN_S = 3 if FULL else 2, 30
SEED = int(os.environ.get("COPPICE_TEST_SEED") or random.SystemRandom().randrange(1 << 30))
# Beyond a host that dies without a word (25 s), and what all agree upon then.
BOUND_S = 120
# Longer than that, too: one that is stopped still answers by its TCP.
STOPPED_S = 30


class Program:
    """Its lines, as they come."""

    def __init__(self, line, errors):
        self.errors = errors
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for text in self.process.stdout:
            self.lines.put(text)
        self.lines.put("")

    def line(self):
        """The next; empty: it has ended. AssertionError: nothing comes within the bound."""
        try:
            return self.lines.get(timeout=BOUND_S)
        except queue.Empty:
            raise AssertionError(f"nothing within {BOUND_S} s") from None

    def skip(self):
        """What was said before."""
        while not self.lines.empty():
            self.lines.get()


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"COPPICE_TEST_SEED={SEED}", file=sys.stderr)
        cls.random = random.Random(SEED)
        cls.hosts = SwitchedHosts(PLAN, FABRIC)
        cls.addClassCleanup(cls.hosts.close)
        cls.coppice = SwitchedCoppice(cls.hosts, COPPICED, AGENT, COPPICECTL, SWITCH, children=2)
        cls.addClassCleanup(cls.coppice.stop)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def start(self):
        self.coppice.switches.wait()  # for those that the test before has taken away
        self.stop_file = pathlib.Path(self.folder.name) / "stop"
        self.stop_file.unlink(missing_ok=True)
        variables = {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "first-use", "COPPICE_TREES_TYPE": 2, "COPPICE_VERBOSE": 1,
                     "COPPICE_TIMEOUT_MS": 5000, "COPPICE_AGENT": self.coppice.socket, **mpi_run.TREES_AT_ONCE}
        names = self.hosts.names
        line = self.hosts.command(MPI, len(names), on_each(MPI, names, 1), [ENDURING, self.stop_file], variables)
        errors = open(pathlib.Path(self.folder.name) / "errors", "w+", encoding="utf-8")
        self.addCleanup(errors.close)
        program = Program(line, errors)
        self.addCleanup(program.process.kill)
        return program

    def text(self, program):
        program.errors.seek(0)
        return program.errors.read()[-4000:]

    # Each takes something away for a moment.
    def _switch(self):
        guid = self.random.choice(list(self.coppice.switches.running))
        self.coppice.switches.kill(guid)
        self._pause()
        self.coppice.switches.start(guid)

    def _link(self):
        network = self.hosts.network
        name = self.random.choice(list(network.switches))
        other = self.random.choice([other for other in network.switches[name].ports if other in network.nodes])
        network.cut(name, other)
        self._pause()
        network.mend(name, other)

    def _agent(self):
        number = self.random.randrange(len(self.hosts.names))
        self.coppice.nodes.kill_agent(number)
        self._pause()
        self.coppice.nodes.start_agent(number)

    def _daemon(self):
        self.coppice.nodes.daemon.end(signal.SIGKILL)
        self._pause()
        self.coppice.nodes.daemon.start().wait_until_listening()

    def processes(self):
        """By rank."""
        found = subprocess.run(["pgrep", "-f", f"^{re.escape(ENDURING)}"], text=True, capture_output=True, check=True)
        by_rank = {}
        for pid in found.stdout.split():
            variables = pathlib.Path(f"/proc/{pid}/environ").read_text(encoding="utf-8")
            by_rank[int(re.search(r"\b(?:OMPI_COMM_WORLD|PMI)_RANK=(\d+)", variables)[1])] = int(pid)
        return by_rank

    def end(self, program):
        """With all sums right, and the same ways at all members."""
        self.stop_file.touch()
        line = program.line()
        while line.startswith("round"):
            line = program.line()
        self.assertEqual("end: wrong 0 different 0\n", line, self.text(program))
        self.assertEqual(0, program.process.wait(BOUND_S), self.text(program))

    def _returns(self, program):
        """Whether it goes over switches again, within some time."""
        begin = time.monotonic()
        before = after = int(program.line().split()[-1])
        while after == before and time.monotonic() < begin + RETURNS_WITHIN_S:
            line = program.line()
            self.assertRegex(line, "round", self.text(program))
            after = int(line.split()[-1])
        return after != before

    def _pause(self):
        time.sleep(self.random.random())  # the instants are random, not awaited

    def test_whatever_goes_sums_are_right_and_all_go_the_same_way(self):
        program = self.start()
        self.assertRegex(program.line(), "round 0 over switches 1")
        deeds = (self._switch, self._switch, self._link, self._agent, self._daemon)
        returned = 0
        for number in range(KILLS):
            deed = deeds[number % len(deeds)] if number < len(deeds) else self.random.choice(deeds)
            deed()
            program.skip()
            line = program.line()
            self.assertRegex(line, "round", f"after {number}, {deed.__name__}: {self.text(program)}")
            # Now and then the next comes when it goes over switches again.
            if number % WAITS_EVERY == 0 and self._returns(program):
                returned += 1
            self._pause()
        self.end(program)
        print(f"{returned} of {KILLS} times it was over switches again before the next", file=sys.stderr)
        self.assertGreaterEqual(returned, KILLS // WAITS_EVERY // 2, self.text(program) + self.coppice.switches.tell("events"))

    def test_who_is_stopped_while_the_tree_breaks_is_waited_for(self):
        program = self.start()
        self.assertRegex(program.line(), "round 0 over switches 1")
        # Not rank 0, which asks the others.
        stopped = self.processes()[self.random.randrange(1, len(self.hosts.names))]
        os.kill(stopped, signal.SIGSTOP)
        for guid in list(self.coppice.switches.running):
            self.coppice.switches.kill(guid)
            self.coppice.switches.start(guid)
        time.sleep(STOPPED_S)  # nothing is awaited
        self.assertIsNone(program.process.poll(), self.text(program))
        os.kill(stopped, signal.SIGCONT)
        program.skip()
        self.assertRegex(program.line(), "round", self.text(program))
        self.end(program)

    def test_without_a_rank_the_job_ends(self):
        for _ in range(RANKS_KILLED):
            program = self.start()
            self.assertRegex(program.line(), "round 0")
            self._pause()
            os.kill(self.random.choice(list(self.processes().values())), signal.SIGKILL)
            while line := program.line():
                self.assertNotIn("end:", line)
            self.assertNotEqual(0, program.process.wait(BOUND_S))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
