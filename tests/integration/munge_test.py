"""Users over TLS by MUNGE: a real coppiced and real munged of the test's own, with keys of their own. Runs as root:
only root can call as somebody else.

Usage: munge_test.py COPPICED COPPICECTL COPPICE_AGENT
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import unittest

import grpc

import exit_status
from coppiced_process import PATIENCE_S, Coppiced
from node_agent import Agent

PROGRAM, CONTROL, AGENT = (sys.argv.pop(1) for _ in range(3))
RULES = '[[switches]]\ndescription = "*"\nentries = 4\ndegree_limit = 16\n'
PURPOSE = "coppice/1 sha256:"
SWEEP = "/coppice.v1.Fabric/Sweep"  # a refusal says who called
STATUS = "/coppice.v1.Admin/GetStatus"  # whoever may read may ask


def wait_until(is_so, what):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError("in vain: " + what)
        select.select([], [], [], 0.02)  # between two looks


class Munged:
    """One of the test's own: key, socket and all else in `directory`."""

    def __init__(self, directory, name):
        self.path = os.path.join(directory, name)
        self.key = self.path + ".key"
        self.socket = self.path + ".socket"
        self.process = None
        with open(self.key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(self.key, 0o600)

    def start(self):
        options = {"key-file": self.key, "socket": self.socket, "pid-file": self.path + ".pid",
                   "log-file": self.path + ".log", "seed-file": self.path + ".seed"}
        self.process = subprocess.Popen(
            ["/usr/sbin/munged", "--foreground", "--force", "--num-threads=2",
             *(f"--{option}={value}" for option, value in options.items())],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.answers, "munged at " + self.socket)
        return self

    def answers(self):
        asked = subprocess.run(["munge", "--no-input", "--socket", self.socket], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
        return asked.returncode == 0

    def credential(self, payload, user="daemon", *options):
        made = subprocess.run(["munge", "--socket", self.socket, "--string", payload, "--uid", user, "--gid", user,
                               *options], capture_output=True, text=True, check=True)
        return made.stdout.strip()

    def state_of(self, credential):
        """As unmunge says, which reads it: "Success (0)"."""
        read = subprocess.run(["unmunge", "--socket", self.socket], input=credential, capture_output=True, text=True,
                              check=False)
        return re.search(r"STATUS: +(.*)", read.stdout).group(1)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(PATIENCE_S)


class MungeTest(unittest.TestCase):
    CONFIG = 'socket = "{socket}"\n'
    TLS = ""

    def setUp(self):
        self.daemon = Coppiced(PROGRAM)
        self.addCleanup(self.daemon.clean_up)
        self.directory = self.daemon.directory
        os.chmod(self.directory, 0o755)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "server.key",
                     "-out", "server.pem")
        self.munged = self.make_munged("site")
        with open(self.daemon.config, "w", encoding="utf-8") as config:
            config.write('socket_mode = "0666"\n[tls]\ncertificate = "server.pem"\nkey = "server.key"\n' + self.TLS
                         + "[munge]\n" + self.CONFIG.format(socket=self.munged.socket) + RULES)
        self.command = list(self.daemon.command)
        self.start("127.0.0.1:0")
        printed = self.openssl("x509", "-in", "server.pem", "-noout", "-fingerprint", "-sha256")
        self.payload = PURPOSE + printed.split("=")[1].strip().replace(":", "").lower()

    def start(self, address):
        self.daemon.command = [*self.command, "--listen", address]
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.daemon.process = subprocess.Popen(self.daemon.command, stderr=log)
        self.daemon.wait_until_listening()
        wait_until(lambda: "listening on" in self.log(), "the port")
        self.server = re.search(r"listening on .*(127\.0\.0\.1:\d+)", self.log()).group(1)
        self.assertEqual(self.ctl("fabric", "sweep", server=self.daemon.address)[0], 0)

    def log(self):
        with open(self.path("log"), encoding="utf-8") as log:
            return log.read()

    def make_munged(self, name):
        munged = Munged(self.directory, name).start()
        self.addCleanup(munged.end)
        return munged

    def openssl(self, *arguments):
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True,
                              timeout=PATIENCE_S, cwd=self.directory).stdout

    def path(self, name):
        return os.path.join(self.directory, name)

    def ctl(self, *arguments, user=None, server=None):
        """Exit status, output and errors of coppicectl, run by that user."""
        as_user = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        done = subprocess.run([CONTROL, "--server", server or self.server, *arguments], capture_output=True,
                              text=True, check=False, timeout=PATIENCE_S, **as_user)
        return done.returncode, done.stdout, exit_status.without_waiting(done.stderr)

    def by_munge(self, *arguments, user=None, socket=None):
        return self.ctl("--tls-ca", self.path("server.pem"), "--munge", socket or self.munged.socket, *arguments,
                        user=user)

    def assert_refused(self, ran, *words):
        exit_status.check_failure(self, ran, words)

    def owner(self, user, *options):
        status, output, errors = self.by_munge("job", "register", "--all", "--json", *options, user=user)
        self.assertEqual(status, 0, errors)
        return json.loads(output)["owner"]

    def channel(self):
        """A connection of its own, made at the first call."""
        with open(self.path("server.pem"), "rb") as file:
            credentials = grpc.ssl_channel_credentials(file.read())
        channel = grpc.secure_channel(self.server, credentials, [("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return channel

    def call(self, channel, credential, method=SWEEP):
        """Code and words of the call's end."""
        metadata = [("coppice-munge", credential)] if credential else []
        call = channel.unary_unary(method, lambda data: data, lambda data: data)
        try:
            call(b"", metadata=metadata, timeout=PATIENCE_S)
        except grpc.RpcError as error:
            return error.code(), error.details()
        return grpc.StatusCode.OK, ""

    def assert_unknown(self, credential, word):
        code, words = self.call(self.channel(), credential)
        self.assertEqual(code, grpc.StatusCode.UNAUTHENTICATED, words)
        self.assertIn(word, words)

    def assert_is(self, user, channel, credential):
        code, words = self.call(channel, credential)
        self.assertEqual(code, grpc.StatusCode.PERMISSION_DENIED, words)
        self.assertIn("and you are " + user + ":", words)


class Users(MungeTest):
    def test_are_those_of_their_uids(self):
        self.assertEqual([self.owner("daemon"), self.owner("bin")], ["daemon", "bin"])
        status, output, _ = self.by_munge("job", "register", "--all", "--json", user="daemon")
        self.assertEqual(status, 0)
        job = json.loads(output)["id"]
        self.assert_refused(self.by_munge("job", "end", job, user="bin"), "belongs to daemon, and you are bin")
        # The same user as at the Unix socket.
        self.assertEqual(self.ctl("job", "end", job, user="daemon", server=self.daemon.address)[0], 0)
        status, output, errors = self.ctl("audit", "--json", server=self.daemon.address)
        self.assertEqual(status, 0, errors)
        self.assertIn("munge:1:1@ipv4:127.0.0.1:", output)
        self.assertIn("munge:2:2@ipv4:127.0.0.1:", output)

    def test_who_is_none_that_is_known_goes_by_the_uid(self):
        status, output, errors = self.by_munge("job", "register", "--all", "--json", user=54321)
        self.assertEqual(status, 0, errors)
        self.assertEqual(json.loads(output)["owner"], "54321")

    def test_root_of_any_node_is_a_user(self):
        self.assertEqual(self.owner(None), "root@munge")
        self.assert_refused(self.by_munge("fabric", "sweep"), "you are root@munge")
        self.assert_refused(self.by_munge("--as", "daemon", "job", "register", "--all"), "only administrators call")

    def test_who_says_nothing_is_nobody(self):
        self.assert_refused(self.ctl("--tls-ca", self.path("server.pem"), "status"), "says of nobody who calls",
                            "--munge", "--tls-cert", "UNAUTHENTICATED")

    def test_keep_their_connections_where_munged_has_gone(self):
        channel = self.channel()
        credential = self.munged.credential(self.payload)
        self.assert_is("daemon", channel, credential)
        unread = self.munged.credential(self.payload, "bin")
        self.munged.end()
        self.assert_is("daemon", channel, credential)
        code, words = self.call(self.channel(), unread)
        self.assertEqual(code, grpc.StatusCode.UNAVAILABLE)
        self.assertIn(f"munged at {self.munged.socket} does not answer", words)
        self.assertIn("systemctl start munge", words)
        self.assert_refused(self.by_munge("status"), f"munged at {self.munged.socket} does not answer", "UNAVAILABLE")
        self.assertEqual(self.ctl("status", server=self.daemon.address)[0], 0)
        wait_until(lambda: "does not answer" in self.log(), "the log's word")
        self.munged.start()
        self.assertEqual(self.owner("bin"), "bin")
        self.assert_is("bin", self.channel(), unread)

    def test_are_told_where_munged_does_not_answer(self):
        credentials = [self.munged.credential(self.payload) for _ in range(8)]
        self.munged.process.send_signal(signal.SIGSTOP)
        ends = []
        callers = [threading.Thread(target=lambda one=one: ends.append(self.call(self.channel(), one)))
                   for one in credentials]
        for caller in callers:
            caller.start()
        # Nobody else waits for that.
        self.assertEqual(self.ctl("status", server=self.daemon.address)[0], 0)
        self.assertEqual(ends, [])
        for caller in callers:
            caller.join(PATIENCE_S)
        self.assertEqual({code for code, _ in ends}, {grpc.StatusCode.UNAVAILABLE})
        self.assertEqual(len(ends), len(credentials))
        self.assertIn("munged has not read it in 5s", ends[0][1])
        self.munged.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.owner("bin"), "bin")

    def test_the_daemon_ends_while_munged_does_not_answer(self):
        credential = self.munged.credential(self.payload)
        self.munged.process.send_signal(signal.SIGSTOP)
        ends = []
        caller = threading.Thread(target=lambda: ends.append(self.call(self.channel(), credential)))
        caller.start()
        self.assertEqual(self.ctl("status", server=self.daemon.address)[0], 0)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.process.wait(PATIENCE_S), 0)
        caller.join(PATIENCE_S)
        self.assertEqual(ends[0][0], grpc.StatusCode.UNAVAILABLE)


class Credentials(MungeTest):
    def test_one_a_connection(self):
        credential = self.munged.credential(self.payload)
        channel = self.channel()
        for _ in range(3):
            self.assert_is("daemon", channel, credential)
        # Whatever else it brings: the connection is its first user's.
        self.assert_is("daemon", channel, self.munged.credential(self.payload, "bin"))
        self.assert_is("daemon", channel, None)

    def test_calls_at_once_on_a_new_connection_are_one_user(self):
        channel = self.channel()
        credential = self.munged.credential(self.payload)
        call = channel.unary_unary(SWEEP, lambda data: data, lambda data: data)
        calls = [call.future(b"", metadata=[("coppice-munge", credential)], timeout=PATIENCE_S) for _ in range(100)]
        for one in calls:
            self.assertIn("and you are daemon:", one.exception(PATIENCE_S).details())

    def test_a_second_time_are_refused(self):
        credential = self.munged.credential(self.payload)
        self.assert_is("daemon", self.channel(), credential)
        self.assert_unknown(credential, "it was used before, and each is good for one connection: make a new one")
        # Also where it was read elsewhere.
        credential = self.munged.credential(self.payload)
        self.assertEqual(self.munged.state_of(credential), "Success (0)")
        self.assert_unknown(credential, "it was used before")

    def test_that_have_expired_are_refused(self):
        credential = self.munged.credential(self.payload, "daemon", "--ttl", "1")
        # Of the same second or a later one: who looks at one uses it up.
        younger = self.munged.credential(self.payload, "daemon", "--ttl", "1")
        wait_until(lambda: "Expired" in self.munged.state_of(younger), "a credential expires")
        self.assert_unknown(credential, "it has expired: call again with a new one")

    def test_of_another_key_are_refused(self):
        other = self.make_munged("other")
        self.assert_unknown(other.credential(self.payload), "it was made with another key")
        self.assert_refused(self.by_munge("status", socket=other.socket), "made with another key",
                            "munge.key", "UNAUTHENTICATED")

    def test_of_another_realm_are_refused(self):
        self.assert_refused(self.by_munge("--munge-realm", "moon", "status"),
                            'it is of the realm "moon", and the daemon takes those of ""', "--munge-realm")

    def test_for_others_are_refused(self):
        self.assert_unknown(self.munged.credential("slurm"), "it was made for another service")
        self.assert_unknown(self.munged.credential(""), "it was made for another service")
        self.assert_unknown(self.munged.credential(PURPOSE + "0" * 64), "made for another daemon's certificate")
        self.assert_unknown(self.munged.credential(self.payload, "daemon", "--restrict-uid", "bin"),
                            "restricted to another reader")

    def test_that_are_none_are_refused(self):
        for text in ("x", "MUNGE:", "MUNGE:AAAA:", "MUNGE:" + "A" * 400 + ":"):
            with self.subTest(text[:20]):
                code, words = self.call(self.channel(), text)
                self.assertEqual(code, grpc.StatusCode.UNAUTHENTICATED, words)
        self.assert_unknown("MUNGE:" + "A" * 5000 + ":", "more than 4096 characters")
        self.assertEqual(self.owner("daemon"), "daemon")

    def test_are_new_after_the_certificate_was_renewed(self):
        self.openssl("req", "-x509", "-key", "server.key", "-days", "3", "-subj", "/CN=server", "-addext",
                     "subjectAltName=IP:127.0.0.1", "-out", "next.pem")
        os.rename(self.path("next.pem"), self.path("server.pem"))
        self.assertEqual(self.owner("daemon"), "daemon")


class Realm(MungeTest):
    CONFIG = 'socket = "{socket}"\nrealm = "lab"\n'

    def test_is_asked_for(self):
        self.assertEqual(self.owner("daemon", "--munge-realm", "lab"), "daemon")
        self.assert_refused(self.by_munge("status"), 'the daemon takes those of "lab"')


class OpenReading(MungeTest):
    TLS = "open_reading = true\n"

    def test_goes_without(self):
        channel = self.channel()
        self.assertEqual(self.call(channel, None, STATUS)[0], grpc.StatusCode.OK)
        self.assertEqual(self.owner("daemon"), "daemon")
        # Not for who says what is not so.
        self.assertEqual(self.call(self.channel(), "MUNGE:AAAA:", STATUS)[0], grpc.StatusCode.UNAUTHENTICATED)


class TrustedRoot(MungeTest):
    CONFIG = 'socket = "{socket}"\ntrust_root = true\n'

    def test_is_root(self):
        self.assertEqual(self.owner(None), "root")
        self.assertEqual(self.by_munge("fabric", "sweep")[0], 0)
        self.assertEqual(self.owner(None, "--as", "bin"), "bin")
        self.assert_refused(self.by_munge("fabric", "sweep", user="daemon"), "you are daemon")

    def agents(self):
        known = json.loads(self.ctl("agent", "list", "--json", server=self.daemon.address)[1])
        return [agent["hello"]["host"] for agent in known.get("agents", []) if agent["connected"]]

    def test_has_an_agent_that_comes_back(self):
        agent = Agent(AGENT, self.server, "n0001")
        self.addCleanup(agent.clean_up)
        agent.command += ["--tls-ca", self.path("server.pem"), "--munge", self.munged.socket]
        agent.start()
        wait_until(lambda: self.agents() == ["n0001"], "the agent is connected")
        for _ in range(2):
            self.daemon.process.terminate()
            self.assertEqual(self.daemon.process.wait(PATIENCE_S), 0)
            self.start(self.server)
            wait_until(lambda: self.agents() == ["n0001"], "the agent is connected again")


if __name__ == "__main__":
    unittest.main()
