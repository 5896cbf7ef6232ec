"""coppice-switch as a process: what it refuses at its start, that it serves without a daemon, and what strangers can
do to it: bytes at random, a thousand connections that say nothing, hellos of no tree.

  switch_test.py COPPICE-SWITCH"""

import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import unittest

SWITCH = sys.argv.pop(1)
GUID = "0002c90300a1b2c3"
STRANGERS, CONNECTIONS = 64, 1000
NO_SUCH_TREE = 4


def header(kind, tree=0, length=0):
    return struct.pack("<4sBBBBQIIQII", b"CPSW", 1, kind, 0, 0, tree, 1, 0, 0, 0, length)


def received(connection):
    """All that comes until the end; a reset ends it, too."""
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except ConnectionError:
        pass
    return data


class SwitchProcess(unittest.TestCase):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.switch = subprocess.Popen(
            [SWITCH, "--switch", GUID, "--server", "unix:/nowhere/coppiced.sock", "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        for line in self.switch.stderr:
            if found := re.search(r"switch " + GUID + r" at (127\.0\.0\.1):(\d+);", line):
                self.address = found.group(1), int(found.group(2))
                break

    def end(self):
        self.switch.kill()
        self.switch.wait()
        self.switch.stderr.close()

    def connect(self):
        connection = socket.create_connection(self.address, timeout=60)
        self.addCleanup(connection.close)
        return connection

    def hello(self):
        """What the switch answers to one of a tree that it has not."""
        connection = self.connect()
        connection.sendall(header(1, tree=9, length=16) + bytes(16))
        answer = received(connection)
        self.assertEqual(answer[:6], b"CPSW\x01\x03")
        return struct.unpack_from("<I", answer, 40)[0]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.switch.pid}/fd"))

    def test_serves_without_a_daemon_and_ends_as_told(self):
        self.assertEqual(self.hello(), NO_SUCH_TREE)
        self.switch.send_signal(signal.SIGTERM)
        self.assertEqual(self.switch.wait(60), 0)

    def test_bytes_at_random_end_their_connection_alone(self):
        for _ in range(20):
            connection = self.connect()
            try:
                connection.sendall(os.urandom(1 << 20))
            except ConnectionError:
                pass
            self.assertLess(len(received(connection)), 300)
        self.assertEqual(self.hello(), NO_SUCH_TREE)
        self.assertIsNone(self.switch.poll())

    def test_of_a_thousand_silent_strangers_only_so_many_stay(self):
        before = self.descriptors()
        held = [self.connect() for _ in range(CONNECTIONS)]
        # Whoever comes after them is heard, and by then all of them have been accepted.
        self.assertEqual(self.hello(), NO_SUCH_TREE)
        self.assertLessEqual(self.descriptors(), before + STRANGERS + 1)
        self.assertIn(b"too many strangers", received(held[0]))
        self.assertIsNone(self.switch.poll())


class WrongUsage(unittest.TestCase):
    def test_each_value_is_refused_by_its_name(self):
        for arguments in (["--switch", "leaf-1"], ["--switch", "0" * 16], [], ["--switch", GUID, "--memory", "much"],
                          ["--switch", GUID, "--advertise", "nowhere"], ["--switch", GUID, "--entries", "0"],
                          ["--switch", GUID, "--server", "nowhere"], ["--switch", GUID, "--listen", "localhost:1"],
                          ["--switch", GUID, "--log-level", "loud"]):
            done = subprocess.run([SWITCH, *arguments], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertRegex(done.stderr, r"^error: .*\[INVALID_ARGUMENT\]", arguments)
            if arguments:
                self.assertIn(arguments[-1] if arguments[-1] != "0" else "--entries", done.stderr)


if __name__ == "__main__":
    unittest.main()
