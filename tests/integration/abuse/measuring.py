"""Measuring loads a network as nothing else here does: row I of README.md, with two real agents."""

import os
import select
import subprocess
import time
import unittest

from coppiced_process import PATIENCE_S
from scene import IS_ROOT, Scene

HOSTS = ("n0000", "n0001")
STILL_S = 0.5  # an agent that has had no processor time for so long does nothing
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
HEARTBEAT_S = 0.05  # what its other business may take of that


class Measuring(unittest.TestCase):
    coppiced = proto = agent = None

    def setUp(self):
        self.scene = Scene(self.coppiced, self.proto)
        self.addCleanup(self.scene.clean_up)
        self.agents = []
        for host in HOSTS:
            folder = os.path.join(self.scene.victim.directory, host)
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

    def wait_until(self, holds, words):
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), deadline, words)
            select.select([], [], [], 0.02)  # between two looks

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
