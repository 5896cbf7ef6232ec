"""coppicectl reservation against a real daemon: what is kept for a tenant, what is lent and taken back,
and that a kill changes nothing of it. Runs as root, who asks in the names of others."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import exit_status
from coppiced_process import PATIENCE_S, Coppiced

PROGRAM, CONTROL = sys.argv.pop(1), sys.argv.pop(1)
ACCOUNTS = """\
Cluster|Account|User|ParentName
prod|physics||
prod|physics|bin|
prod|biology||
prod|biology|daemon|
"""


class Reservations(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(PROGRAM)
        self.addCleanup(self.daemon.clean_up)
        with open(self.daemon.config, "r+", encoding="utf-8") as config:
            rules = config.read()
            config.seek(0)
            config.write('socket_mode = "0666"\n' + rules + '\n[quotas]\nentries = "100%"\nleft_to_administrators = 0\n')
        os.chmod(self.daemon.directory, 0o755)
        self.start()
        self.ask("account", "import", "-", stdin=ACCOUNTS)
        self.ask("account", "set-tenant", "physics", "t1")
        self.ask("account", "set-tenant", "biology", "t2")
        self.jobs = {user: json.loads(self.ask("--as", user, "job", "register", "--all", "--json"))["id"]
                     for user in ("bin", "daemon")}

    def start(self):
        self.daemon.start().wait_until_listening()
        self.ask("fabric", "sweep")

    def ctl(self, *arguments, stdin=""):
        done = subprocess.run([CONTROL, "--server", self.daemon.address, *arguments], input=stdin,
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def ask(self, *arguments, stdin=""):
        status, output, errors = self.ctl(*arguments, stdin=stdin)
        self.assertEqual(status, 0, errors)
        return output

    def refused(self, *arguments):
        status, _, errors = self.ctl(*arguments)
        self.assertEqual(status, exit_status.of(errors), errors)
        return errors

    def fill(self, user):
        """Trees of type II until there is no room: how many, and why there is no more."""
        for trees in range(1000):
            status, _, errors = self.ctl("--as", user, "tree", "create", "--job", self.jobs[user], "--type", "2")
            if status != 0:
                self.assertEqual(status, exit_status.of(errors), errors)
                return trees, errors
        return self.fail("there is no end of entries")

    def entries(self):
        return int(json.loads(self.ask("quota", "--tenant", "none", "--json"))["limits"][0]["whole"])

    def test_what_is_kept_outlives_a_kill(self):
        self.ask("reservation", "create", "--tenant", "t1", "--entries", "1", "--until", "8h")
        line = self.ask("reservation", "list").splitlines()[1].split()
        self.assertEqual(line[:3], ["1", "t1", "1"])
        self.daemon.end(signal.SIGKILL)
        self.start()
        taken, why = self.fill("daemon")
        self.assertIn("reservation 1 of tenant t1 until ", why)
        kept, _ = self.fill("bin")
        self.assertGreater(kept, 0)
        self.assertEqual(taken + kept, self.entries())
        self.assertEqual(self.ask("reservation", "delete", "1"), "Reservation 1 has ended\n")
        self.assertIn("no reservation 1", self.refused("reservation", "delete", "1"))

    def test_what_is_lent_is_taken_back(self):
        self.ask("reservation", "create", "--tenant", "t1", "--entries", "1", "--until", "8h", "--lend")
        lent, _ = self.fill("daemon")
        self.assertEqual(lent, self.entries())
        self.ask("--as", "bin", "tree", "create", "--job", self.jobs["bin"], "--type", "2")
        events = self.ask("events", "--kind", "trees.revoked", "-o", "wide")
        self.assertIn("lent by reservation 1 of tenant t1", events)

    def test_one_that_begins_later(self):
        self.ask("reservation", "create", "--tenant", "t1", "--entries", "1", "--from", "3s", "--until", "8h")
        lent, _ = self.fill("daemon")
        self.assertEqual(lent, self.entries())
        end = time.monotonic() + PATIENCE_S
        while "lent by reservation 1" not in self.ask("events", "--kind", "trees.revoked", "-o", "wide"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        self.assertEqual(self.fill("daemon")[0], 0)

    def test_errors(self):
        create = ["reservation", "create", "--tenant", "t1"]
        self.assertIn("say what is to be kept", self.refused(*create, "--until", "8h"))
        self.assertIn("ask for", self.refused(*create, "--entries", "100000", "--until", "8h"))
        self.assertIn("is no host", self.refused(*create, "--nodes", "moon", "--until", "8h"))
        self.assertIn("is not after", self.refused(*create, "--entries", "1", "--until", "2020-01-01"))
        self.assertIn("for administrators", self.refused("--as", "bin", *create, "--entries", "1", "--until", "8h"))
        status, _, errors = self.ctl(*create, "--entries", "1", "--until", "soon")
        self.assertEqual(status, 2)
        self.assertIn("8h from now", errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
