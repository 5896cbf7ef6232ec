"""The daemon as a process: what it refuses to start with, how it stops, what it leaves."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import unittest

import exit_status
from coppiced_process import Coppiced

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


class DaemonTest(unittest.TestCase):
    def daemon(self, **arguments):
        made = Coppiced(PROGRAM, **arguments)
        self.addCleanup(made.clean_up)
        return made

    def assert_refused(self, daemon, *words):
        status, errors = daemon.run()
        self.assertEqual(status, 2 if exit_status.of(errors) == 2 else 1, errors)
        for word in words:
            self.assertIn(word, errors)

    def test_flags(self):
        version = run("--version")
        self.assertEqual(version.returncode, 0)
        self.assertTrue(version.stdout.startswith("coppiced "))
        self.assertEqual(run("--help").returncode, 0)
        self.assertEqual(run("--no-such-flag").returncode, 2)
        self.assertEqual(run("surplus").returncode, 2)

    def test_checks_its_configuration(self):
        daemon = self.daemon()
        self.assertEqual(run("--check-config", "--config", daemon.config).returncode, 0)
        self.assertEqual(run("--check-config").returncode, 0)
        with open(daemon.config, "a", encoding="utf-8") as config:
            config.write("colour = 3\n")
        bad = run("--check-config", "--config", daemon.config)
        self.assertEqual(bad.returncode, 2)
        self.assertIn(daemon.config + ":5: switches.colour: no such key", bad.stderr)
        self.assert_refused(daemon, daemon.config + ":5")
        self.assertFalse(os.path.exists(daemon.database))
        for flags, word in ((("--fabric", "tape:1"), "tape:1"), (("--log-level", "loud"), "loud"),
                            (("--listen", "nowhere"), "nowhere")):
            refused = run("--check-config", *flags)
            self.assertEqual(refused.returncode, 2, flags)
            self.assertIn(word, refused.stderr)
        refused = run("--check-config", "--config", "/nonexistent/c.toml")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("/nonexistent/c.toml", refused.stderr)

    def test_values_that_only_their_users_judge_are_named_with_their_line(self):
        daemon = self.daemon()
        for line, words in (('fabric = "umad:a:b:c"', ("umad:a:b:c",)),
                            ('fabric = "model:torus(dims=0)"', ("dims",)),
                            ('fabric = "file:/nonexistent/net"', ("/nonexistent/net",)),
                            ('listen = ["unix:/a", "1.2.3.4:99999"]', ("1.2.3.4:99999",))):
            with open(daemon.config, "w", encoding="utf-8") as config:
                config.write("# a comment\n" + line + "\n")
            place = daemon.config + ":2: " + line.split()[0] + ": "
            bad = run("--check-config", "--config", daemon.config)
            self.assertEqual(bad.returncode, 1 if "nonexistent" in line else 2, line)
            for word in (place, *words):
                self.assertIn(word, bad.stderr)
            # What stands on the command line is not blamed on the file.
            flags = [daemon.command[0], "--check-config", *daemon.command[1:]]
            good = subprocess.run(flags, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(good.returncode, 0, good.stderr)

    def test_stops_cleanly_and_starts_again(self):
        daemon = self.daemon()
        for how in (signal.SIGTERM, signal.SIGINT):
            status, errors = daemon.start().wait_until_listening().end(how)
            self.assertEqual(status, 0, errors)
            self.assertFalse(os.path.exists(daemon.socket))

    def test_replaces_the_socket_of_a_dead_daemon(self):
        daemon = self.daemon()
        daemon.start().wait_until_listening().end(signal.SIGKILL)
        self.assertTrue(os.path.exists(daemon.socket))
        status, errors = daemon.start().wait_until_listening().end()
        self.assertEqual(status, 0, errors)

    def test_a_second_daemon_is_refused(self):
        first = self.daemon()
        first.start().wait_until_listening()
        # On the same database, at another socket.
        second = self.daemon()
        second.command[second.command.index(second.database)] = first.database
        self.assert_refused(second, first.database)
        # At the same socket, with another database.
        third = self.daemon()
        third.command[third.command.index(third.address)] = first.address
        self.assert_refused(third, first.socket, "listens")
        first.wait_until_listening()
        self.assertEqual(first.end()[0], 0)

    def test_databases_that_it_cannot_use(self):
        text = self.daemon()
        with open(text.database, "w", encoding="utf-8") as file:
            file.write("this is no database, it is a text of more than a hundred bytes " * 20)
        self.assert_refused(text, text.database)

        newer = self.daemon()
        newer.start().wait_until_listening().end()
        with sqlite3.connect(newer.database) as database:
            database.execute("PRAGMA user_version = 1000000")
        self.assert_refused(newer, newer.database)

        missing = self.daemon()
        missing.command[missing.command.index(missing.database)] = missing.directory + "/none/x.db"
        self.assert_refused(missing, missing.directory + "/none")

    def test_a_read_only_database(self):
        daemon = self.daemon()
        daemon.start().wait_until_listening().end()
        os.chmod(daemon.database, 0o444)
        if os.geteuid() == 0:  # root writes everywhere: take that away from the daemon
            daemon.command = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all",
                              *daemon.command]
            os.chmod(daemon.directory, 0o755)
        self.assert_refused(daemon, daemon.database)

    def test_a_missing_or_malformed_fabric_file(self):
        self.assert_refused(self.daemon(fabric="file:/nonexistent/net"), "/nonexistent/net")
        daemon = self.daemon()
        net = os.path.join(daemon.directory, "net")
        with open(net, "w", encoding="utf-8") as file:
            file.write('Switch 4 "S-0000000000000001" # "s"\n[1] "H-00000000000000')
        daemon.command[daemon.command.index("--fabric") + 1] = "file:" + net
        self.assert_refused(daemon, net)
        self.assert_refused(self.daemon(fabric="model:moebius(3)"), "moebius")

    def test_a_file_in_the_place_of_the_socket_stays(self):
        daemon = self.daemon()
        with open(daemon.socket, "w", encoding="utf-8") as file:
            file.write("mine")
        self.assert_refused(daemon, daemon.socket)
        with open(daemon.socket, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_port_that_is_taken(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        daemon = self.daemon()
        daemon.command[daemon.command.index(daemon.address)] = address
        self.assert_refused(daemon, address, "without TLS", "insecure_tcp = true", "[tls]")
        daemon.command.append("--insecure-tcp")
        self.assert_refused(daemon, address, "cannot be bound")


if __name__ == "__main__":
    unittest.main()
