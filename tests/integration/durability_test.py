"""What a daemon that was granted trees by must not lose: its file, its lock, space on its disk, and the
jobs of those who could not renew while it stood still."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from coppiced_process import PATIENCE_S, Coppiced

PROGRAM, CONTROL = sys.argv.pop(1), sys.argv.pop(1)


class DurabilityTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(PROGRAM)
        self.addCleanup(self.daemon.clean_up)

    def ctl(self, *arguments):
        """Exit status, output and errors of coppicectl."""
        done = subprocess.run([CONTROL, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def ask(self, *arguments):
        status, output, errors = self.ctl(*arguments, "--json")
        self.assertEqual(status, 0, errors)
        return json.loads(output)

    def register(self, *arguments):
        self.ask("fabric", "sweep")  # returns once a fabric is known
        return str(self.ask("job", "register", "--all", *arguments)["id"])

    def grant(self, job):
        return self.ctl("tree", "create", "--job", job)

    def assert_wrong(self, word):
        """`status` says so, by its exit status, too."""
        status, _, errors = self.ctl("status")
        self.assertEqual(status, 7)
        self.assertIn(word, errors)

    def await_event(self, kind):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if events := self.ask("events", "--kind", kind).get("events"):
                return events[0]["message"]
        raise AssertionError("no event " + kind)

    def test_a_lost_file_is_noticed_and_nothing_granted(self):
        self.daemon.start().wait_until_listening()
        job = self.register()
        self.assertEqual(self.grant(job)[0], 0)
        aside = self.daemon.database + ".aside"
        os.rename(self.daemon.database, aside)
        for words in ("was deleted or moved", "was exchanged"):
            status, _, errors = self.grant(job)
            self.assertEqual(status, 5, errors)
            self.assertIn(words, errors)
            self.assert_wrong(words)
            shutil.copy(aside, self.daemon.database)
        os.rename(aside, self.daemon.database)
        self.assertEqual(self.grant(job)[0], 0)
        self.assertRegex(self.ctl("status", "-o", "wide")[1], r"\b[1-9][0-9]* writes? refused")
        self.assertEqual(self.ctl("status")[0], 0)
        self.daemon.end()
        self.daemon.start().wait_until_listening()
        self.assertEqual(len(self.ask("tree", "list")["trees"]), 2)

    def test_a_link_to_the_database_is_the_database(self):
        self.daemon.start().wait_until_listening()
        for link in (os.symlink, os.link):
            second = Coppiced(PROGRAM)
            self.addCleanup(second.clean_up)
            # Both in one folder: a hard link cannot leave its file system.
            path = self.daemon.database + "." + link.__name__
            link(self.daemon.database, path)
            second.command[second.command.index(second.database)] = path
            status, errors = second.run()
            self.assertEqual(status, 1)
            self.assertIn(path + " is in use", errors)

    def test_a_full_disk_is_told_as_such(self):
        # A disk of its own, which nobody else sees.
        disk = os.path.join(self.daemon.directory, "disk")
        os.mkdir(disk)
        database = os.path.join(disk, "coppice.db")
        command = self.daemon.command
        command[command.index(self.daemon.database)] = database
        mounted = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'
        self.daemon.command = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                               mounted, disk, *command]
        self.daemon.start().wait_until_listening()
        job = self.register()
        seen = "/proc/%d/root%s" % (self.daemon.process.pid, disk)
        with open(os.path.join(seen, "filler"), "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 4096)
            except OSError:
                pass
        status, tries = 0, 0
        while status == 0 and tries < 500:
            status, _, errors = self.ctl("tree", "create", "--job", job, "--type", "1")
            tries += 1
        self.assertEqual(status, 5, errors)
        self.assertIn("disk full", errors)
        self.assert_wrong("disk full")
        os.remove(os.path.join(seen, "filler"))
        # Nobody asks for anything: the daemon itself finds out.
        self.assertIn("disk full", self.await_event("store.failed"))
        self.assertIn("written to again", self.await_event("store.recovered"))
        self.assertEqual(self.ctl("status")[0], 0)
        self.assertEqual(self.grant(job)[0], 0)

    def test_a_stall_ends_no_job(self):
        self.daemon.start().wait_until_listening()
        job = self.register("--lease", "5s")
        self.daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(6)  # the stall itself: longer than the lease
        self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ctl("job", "keepalive", job)[0], 0)
        self.assertIn("it did not run for", self.await_event("daemon.stalled"))
        self.assertEqual(self.ask("events", "--kind", "job.expired").get("events", []), [])


if __name__ == "__main__":
    unittest.main()
