"""With two real agents: measuring, which loads a network as nothing else here does (row I of README.md), and
users who come through their node's agent (row D)."""

import os
import select
import subprocess
import time
import unittest

from coppiced_process import PATIENCE_S
from scene import HONEST_UID, IS_ROOT, Scene

HOSTS = ("n0000", "n0001")
STILL_S = 0.5  # an agent that has had no processor time for so long does nothing
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
HEARTBEAT_S = 0.05  # what its other business may take of that
MOST_RESIDENT = 1_000_000_000  # of the daemon and of an agent
LOUD_S = 3


class WithAgents(unittest.TestCase):
    coppiced = proto = agent = None

    def setUp(self):
        self.scene = Scene(self.coppiced, self.proto)
        self.addCleanup(self.scene.clean_up)
        self.agents = []
        for host in HOSTS:
            folder = self.folder_of(host)
            os.mkdir(folder)
            with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
                process = subprocess.Popen(
                    [self.agent, "--server", self.scene.victim.address, "--host", host, "--socket",
                     os.path.join(folder, "agent.sock"), "--state-dir", folder,
                     "--measure-listen", "127.0.0.1:0"], stderr=log)
            self.agents.append(process)
            self.addCleanup(process.wait, PATIENCE_S)
            self.addCleanup(process.kill)
        self.wait_until(lambda: self.scene.administrator.do("connected_agents") == len(HOSTS),
                        "the agents did not connect")

    def folder_of(self, host):
        return os.path.join(self.scene.victim.directory, host)

    def wait_until(self, holds, words):
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), deadline, words)
            select.select([], [], [], 0.02)  # between two looks


class ThroughAnAgent(WithAgents):
    def test_d_register_job_of_empty_endpoints(self):
        """Whole requests of 60 MB: neither grows, and another user is answered by the same agent."""
        socket = os.path.join(self.folder_of(HOSTS[0]), "agent.sock")
        attacker, honest = self.scene.attacker(), self.scene.person(HONEST_UID)
        honest.do("ask_agent", agent=socket)
        self.scene.victim.forget_peak()
        attacker.begin_attack("empty_messages_to_agent", agent=socket, megabytes=60, connections=4)
        attacker.await_attack()
        asked, end = [], time.monotonic() + LOUD_S
        while time.monotonic() < end:
            asked.append(honest.do("ask_agent", agent=socket))
        told = attacker.stop()
        with open(f"/proc/{self.agents[0].pid}/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
        print(f"\n  D through an agent: agent {peak / 1e6:.0f} MB, daemon {self.scene.victim.peak() / 1e6:.0f} MB; "
              f"{len(asked)} others' calls, the slowest {max(asked) * 1e3:.0f} ms; {told}", flush=True)
        self.assertGreater(told.get("connections", 0), 1, told)
        self.assertGreater(len(asked), 10)
        self.assertLess(peak, MOST_RESIDENT)
        self.assertLess(self.scene.victim.peak(), MOST_RESIDENT)
        self.assertIsNone(self.agents[0].poll(), "the agent has ended")
        self.assertFalse(self.scene.victim.has_ended())


class Measuring(WithAgents):
    def processor_time(self):
        """Seconds that the agents have had."""
        total = 0
        for process in self.agents:
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])  # utime and stime (proc(5))
        return total * TICK_S

    def are_still(self):
        before = self.processor_time()
        select.select([], [], [], STILL_S)
        return self.processor_time() - before < HEARTBEAT_S

    def test_i_is_not_for_users(self):
        if not IS_ROOT:
            self.skipTest("not root: no ordinary user")
        self.assertEqual(self.scene.attacker().do("measure", seconds=1), "PERMISSION_DENIED")

    def test_i_ends_at_the_agents_when_it_is_taken_back(self):
        self.scene.administrator.order("measure", seconds=1.5)
        self.wait_until(lambda: not self.are_still(), "nothing was measured")
        self.assertEqual(self.scene.administrator.answer()["outcome"], "DEADLINE_EXCEEDED")
        self.wait_until(self.are_still, "the agents still measure")
