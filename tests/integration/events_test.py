"""coppicectl follows events over restarts of the daemon: each once, in order, none missed."""

import json
import os
import select
import signal
import subprocess
import sys
import unittest

from coppiced_process import Coppiced

COPPICED, COPPICECTL = sys.argv.pop(1), sys.argv.pop(1)


class EventsTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED)
        self.addCleanup(self.daemon.clean_up)
        self.daemon.start().wait_until_listening()
        self.ctl("fabric", "sweep")

    def ctl(self, *arguments):
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def follow(self, *arguments):
        program = subprocess.Popen(
            [COPPICECTL, "--server", self.daemon.address, "events", "--follow", "--json",
             *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.read = b""
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def next(self, program):
        # Not a buffered readline: what it holds back is unknown to select.
        while b"\n" not in self.read:
            ready, _, _ = select.select([program.stdout], [], [], 120)
            self.assertTrue(ready, "no event came")
            some = os.read(program.stdout.fileno(), 65536)
            self.assertTrue(some, "it gave up")
            self.read += some
        line, self.read = self.read.split(b"\n", 1)
        return json.loads(line)

    def listed(self, *arguments):
        return json.loads(self.ctl("events", "--json", *arguments))["events"]

    def restart(self, how):
        self.daemon.end(how)
        if how == signal.SIGKILL and os.path.exists(self.daemon.socket):
            os.unlink(self.daemon.socket)
        self.daemon.start().wait_until_listening()
        self.ctl("fabric", "sweep")

    def test_following_goes_on_over_restarts(self):
        program = self.follow("--kind", "job.")
        seen = []

        def read_until(job):
            while not seen or seen[-1]["object"] != "job:" + job:
                seen.append(self.next(program))
        for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            for _ in range(3):
                job = json.loads(self.ctl("job", "register", "--all", "--json"))["id"]
                read_until(job)
            # Happens, perhaps, just before the daemon goes.
            self.ctl("job", "end", job)
            self.restart(how)
        last = json.loads(self.ctl("job", "register", "--all", "--json"))["id"]
        read_until(last)
        self.assertEqual(seen, self.listed("--kind", "job."))

    def test_following_begins_after_an_id(self):
        for _ in range(3):
            self.ctl("job", "register", "--all")
        events = self.listed("--kind", "job.")
        while len(events) < 3:  # nobody awaits them
            events = self.listed("--kind", "job.")
        program = self.follow("--kind", "job.", "--after", events[1]["id"])
        self.assertEqual(self.next(program), events[2])

    def test_following_the_impossible_fails(self):
        done = subprocess.run([COPPICECTL, "--server", "unix:/nonexistent/s", "events", "--follow"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 5)
        self.assertIn("/nonexistent/s", done.stderr)


if __name__ == "__main__":
    unittest.main()
