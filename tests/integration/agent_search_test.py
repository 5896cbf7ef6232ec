"""Searches that a node's agent starts, between real processes and a real coppiced: whose they are, what
they are told, and that nothing is left of them, however they end. What they start is a script that
stands for coppice-search and its launcher. Runs as root, for processes of several users."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
import unittest

import libcoppice
from coppiced_process import Coppiced, PATIENCE_S
from node_agent import Agent

COPPICED, COPPICECTL, AGENT, LIBRARY = (sys.argv.pop(1) for _ in range(4))
RANKS = ["n0005", "n0001", "n0005/1", "n0009", "n0001"]
NOBODY, OTHER = 65534, 54321

# HOSTFILE JOB APPLICATION BUDGET SEED SERVER AGENT: what it does the application's name says. Processes that
# it starts note their numbers in `pids`; one has a session of its own and wants no signals.
SCRIPT = """#!/bin/sh
cd %s
umask 0
keep() {
  setsid sh -c 'trap "" TERM HUP INT; echo $$ >>pids; exec sleep 1000' &
  sh -c 'echo $$ >>pids; exec sleep 1000' &
  echo $$ >>pids
}
case $3 in
  notes)
    echo "$@" >words; cat "$1" >hosts; stat -c "%%a %%u" "$1" >owner; echo "$1" >hostfile; env >environment
    id -u >user; id -G >groups; ls /proc/self/fd >descriptors; readlink /proc/self/fd/0 /proc/self/fd/1 >streams
    pwd -P >/dev/null; cat /proc/self/status >status ;;
  fails) echo "coppice-search: NOT_FOUND: pattern of $2" >&2; echo "launcher: one has failed" >&2; exit 3 ;;
  garbage) head -c 100000 /dev/urandom >&2; exit 1 ;;
  leaves) keep; while [ "$(wc -l <pids)" -lt 3 ]; do :; done; exit 0 ;;
  hangs) keep; wait ;;
  stubborn) trap "" TERM; keep; while :; do wait; done ;;
esac
"""


def bytes_field(number, value):
    """Of protobuf's encoding; up to 127 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def frame(message):
    return len(message).to_bytes(4, "little") + message


class AgentSearchTest(unittest.TestCase):
    def setUp(self):
        self.assertEqual(os.getuid(), 0, "this test has processes of three users: run it as root")
        self.daemon = Coppiced(COPPICED)
        self.addCleanup(self.daemon.clean_up)
        self.daemon.start().wait_until_listening()
        self.ctl("fabric", "sweep")
        self.agent = Agent(AGENT, self.daemon.address, "n0001")
        self.addCleanup(self.agent.clean_up)
        self.folder = os.path.join(self.agent.directory, "search")
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)
        self.script = os.path.join(self.folder, "search.sh")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(SCRIPT % self.folder)
        os.chmod(self.script, 0o755)
        self.command = [self.script, "{hostfile}", "{job}", "{application}", "{budget}", "{seed}", "{server}",
                        "{agent}"]
        self.addCleanup(self.kill_all)

    def ctl(self, *arguments):
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def start_agent(self, command=None, as_user=(), **settings):
        config = os.path.join(self.agent.directory, "agent.toml")
        with open(config, "w", encoding="utf-8") as file:
            if command != []:
                file.write("[search]\ncommand = %s\n" % (command or self.command))
            if as_user:
                file.write("as_user = %s\n" % list(as_user))
            for name, value in settings.items():
                file.write("%s = %s\n" % (name, value))
        if "--config" not in self.agent.command:
            self.agent.command += ["--config", config]
        self.agent.start()

    def client(self, timeout_ms=60000):
        client = libcoppice.Client(LIBRARY, self.agent.socket, timeout_ms)
        self.addCleanup(client.close)
        return client

    def fails(self, status, words, call):
        with self.assertRaises(libcoppice.Failed) as caught:
            call()
        self.assertEqual(caught.exception.status, status, caught.exception.message)
        for word in words:
            self.assertIn(word, caught.exception.message)
        return caught.exception.message

    def await_that(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail("never: " + what + "\n" + self.agent.logged())
            select.select([], [], [], 0.01)  # between two looks

    def noted(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def processes(self):
        """Those of the script that live."""
        try:
            pids = self.noted("pids").split()
        except FileNotFoundError:
            return []
        return [pid for pid in pids if self.lives(pid)]

    @staticmethod
    def lives(pid):
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def kill_all(self):
        for pid in self.processes():
            os.kill(int(pid), signal.SIGKILL)

    def await_three(self, count=3):
        self.await_that(lambda: len(self.processes()) == count, "%d processes of the search" % count)

    def await_none(self):
        self.await_that(lambda: not self.processes(), "the end of the search's processes")

    def asker(self, job, application="hangs", budget_ms=60000, user=None):
        """A process that asks for a search and prints how that ended."""
        program = ("import sys; sys.path.insert(0, %r); import libcoppice\n"
                   "client = libcoppice.Client(%r, %r, 60000)\n"
                   "job = %r or client.register(%r)\n"
                   "try:\n"
                   "    client.search(job, %r, %d)\n"
                   "    print('done', job)\n"
                   "except libcoppice.Failed as error:\n"
                   "    print(error)\n"
                   % (os.path.dirname(os.path.abspath(__file__)), LIBRARY, self.agent.socket, job,
                      RANKS, application, budget_ms))
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                                   user=user, group=user)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def told(self, asker):
        """What an asker printed at its end."""
        out, _ = asker.communicate(timeout=PATIENCE_S)
        return out.strip()

    def test_what_the_command_is_told_and_has(self):
        self.start_agent()
        client = self.client()
        job = client.register(RANKS)
        client.search(job, "notes", 1500, seed=5)
        words = self.noted("words").split()
        self.assertEqual(words[1:], [str(job), "notes", "1500ms", "5", self.daemon.address,
                                     self.agent.socket])
        self.assertEqual(self.noted("hosts").split(), ["n0005", "n0001", "n0009"])
        self.assertEqual(self.noted("owner").split(), ["600", "0"])
        self.assertFalse(os.path.exists(self.noted("hostfile").strip()))
        names = {line.split("=")[0] for line in self.noted("environment").splitlines()}
        self.assertIn("COPPICE_SERVER=" + self.daemon.address, self.noted("environment").splitlines())
        self.assertLessEqual(names, {"PATH", "LANG", "HOME", "TMPDIR", "COPPICE_SERVER", "PWD", "OLDPWD",
                                     "SHLVL", "_"})
        # 3 is the listing's own.
        self.assertEqual(self.noted("descriptors").split(), ["0", "1", "2", "3"])
        self.assertEqual(self.noted("streams").split()[0], "/dev/null")
        status = dict(line.split(":", 1) for line in self.noted("status").splitlines() if ":" in line)
        glibcs = 0b11 << 31  # its own two, 32 and 33, which posix_spawn(3) leaves ignored
        self.assertEqual(int(status["SigBlk"], 16), 0)
        self.assertEqual(int(status["SigIgn"], 16) & ~glibcs, 0)

    def test_a_command_that_fails_is_named_with_its_words(self):
        self.start_agent()
        client = self.client()
        job = client.register(RANKS)
        message = self.fails(libcoppice.UNKNOWN,
                             ["search of job %d" % job, self.script, "exit status 3",
                              "coppice-search: NOT_FOUND: pattern of %d" % job],
                             lambda: client.search(job, "fails", 1000))
        self.assertNotIn("launcher", message)
        self.assertIn(message.split(": ", 1)[1], self.agent.logged())
        message = self.fails(libcoppice.UNKNOWN, ["exit status 1"],
                             lambda: client.search(job, "garbage", 1000))
        self.assertTrue(message.isascii() and message.isprintable())
        self.assertLess(len(message), 1024)
        client.search(job, "notes", 1000)  # the next one is as good as the first

    def test_one_that_hangs_is_ended_after_budget_and_grace(self):
        self.start_agent(grace='"300ms"')
        client = self.client()
        job = client.register(RANKS)
        for application in ("hangs", "stubborn"):
            self.fails(libcoppice.DEADLINE_EXCEEDED, [self.script, "search.grace"],
                       lambda name=application: client.search(job, name, 4000))
            self.assertEqual(len(self.noted("pids").split()), 3)
            self.assertEqual(self.processes(), [])  # by the time of the answer
            os.unlink(os.path.join(self.folder, "pids"))

    def test_one_whose_caller_waits_no_longer_is_ended(self):
        self.start_agent()
        client = self.client(timeout_ms=500)
        job = client.register(RANKS)
        self.fails(libcoppice.DEADLINE_EXCEEDED, [], lambda: client.search(job, "hangs", 1000))
        self.await_that(lambda: "or than its caller waits" in self.agent.logged(), "its end in the log")
        self.assertEqual(self.processes(), [])

    def test_what_a_good_one_leaves_behind_is_ended(self):
        self.start_agent()
        client = self.client()
        client.search(client.register(RANKS), "leaves", 1000)
        self.assertEqual(len(self.noted("pids").split()), 3)
        self.assertEqual(self.processes(), [])

    def test_one_whose_caller_is_gone_is_ended(self):
        self.start_agent()
        job = self.client().register(RANKS)
        for how in (signal.SIGKILL, signal.SIGTERM):
            asker = self.asker(job)
            self.await_three()
            asker.send_signal(how)
            asker.wait()
            self.await_none()
            # Then there may be another one of the job.
            self.await_that(lambda: self.agent.logged().count("wanted no more of it") == (
                1 if how == signal.SIGKILL else 2), "its end in the log")
            os.unlink(os.path.join(self.folder, "pids"))

    def test_one_that_is_cancelled_is_ended(self):
        self.start_agent()
        job = self.client().register(RANKS)
        with socket.socket(socket.AF_UNIX) as raw:
            raw.settimeout(PATIENCE_S)
            raw.connect(self.agent.socket)
            budget = bytes([3 << 3]) + b"\xe0\xd4\x03"  # 60,000
            request = bytes_field(1, str(job).encode()) + bytes_field(2, b"hangs") + budget
            raw.sendall(frame(b"\x08\x01" + bytes_field(2, b"/coppice.v1.Local/SearchOrder")
                              + bytes_field(3, request)))
            self.await_three()
            raw.sendall(frame(b"\x08\x01\x28\x01"))
            answer = raw.recv(65536)
            self.assertIn(b"wanted no more of it", answer)
            # LocalReply: call 1, end: code 1.
            self.assertEqual(answer[4:6], b"\x08\x01")
            self.assertEqual(answer[6] >> 3, 3)
            self.assertIn(bytes([1 << 3, libcoppice.CANCELLED]), answer[7:12])
        self.assertEqual(self.processes(), [])

    def test_an_agent_that_ends_leaves_none(self):
        self.start_agent()
        for how in (signal.SIGTERM, signal.SIGKILL):
            asker = self.asker(0)
            self.await_three()
            self.agent.end(how)
            self.await_none()
            self.assertIn("%d: " % libcoppice.UNAVAILABLE, self.told(asker))
            os.unlink(os.path.join(self.folder, "pids"))
            self.agent.start()
        self.client().search(self.client().register(RANKS), "notes", 1000)

    def test_one_of_a_job_and_few_at_once(self):
        self.start_agent(at_once=3)
        client = self.client()
        first, second, third = (client.register(RANKS) for _ in range(3))
        askers = [self.asker(first)]
        self.await_three()
        self.fails(libcoppice.ALREADY_EXISTS, ["search of job %d" % first, "goes on already"],
                   lambda: client.search(first, "notes", 1000))
        askers.append(self.asker(second))
        self.await_three(6)
        # A user has half of three, rounded up.
        self.fails(libcoppice.RESOURCE_EXHAUSTED, ["search.at_once"],
                   lambda: client.search(third, "notes", 1000))
        for asker in askers:
            asker.kill()
        self.await_none()

        def has_room():
            try:
                client.search(third, "notes", 1000)
                return True
            except libcoppice.Failed as error:
                self.assertEqual(error.status, libcoppice.RESOURCE_EXHAUSTED)
                return False
        self.await_that(has_room, "room for a search")

    def test_others_are_refused_unless_it_is_configured(self):
        self.start_agent()
        told = self.told(self.asker(0, "notes", 1000, NOBODY))
        self.assertIn("%d: " % libcoppice.PERMISSION_DENIED, told)
        self.assertIn("search.as_user", told)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "words")))

    def test_others_have_searches_of_their_own(self):
        self.start_agent(as_user=["setpriv", "--reuid={uid}", "--regid={uid}", "--clear-groups"],
                         grace='"300ms"')
        told = self.told(self.asker(0, "notes", 1000, NOBODY))
        self.assertRegex(told, "^done [0-9]+$")
        self.assertEqual(self.noted("user").split(), [str(NOBODY)])
        self.assertEqual(self.noted("groups").split(), [str(NOBODY)])
        self.assertEqual(self.noted("owner").split(), ["600", str(NOBODY)])
        self.assertNotIn("HOME=", self.noted("environment"))
        # Of one's own jobs only.
        job = int(told.split()[1])
        told = self.told(self.asker(job, "notes", 1000, OTHER))
        self.assertIn("%d: " % libcoppice.PERMISSION_DENIED, told)
        self.assertIn("nobody", told)
        # And they end like the agent's own.
        told = self.told(self.asker(job, "stubborn", 4000, NOBODY))
        self.assertIn("%d: " % libcoppice.DEADLINE_EXCEEDED, told)
        self.assertEqual(len(self.noted("pids").split()), 3)
        self.assertEqual(self.processes(), [])

    def test_what_cannot_be_started_says_what_to_set(self):
        self.start_agent(command=[])
        client = self.client()
        job = client.register(RANKS)
        self.fails(libcoppice.FAILED_PRECONDITION, ["search.command"],
                   lambda: client.search(job, "notes", 1000))
        self.agent.end()
        self.start_agent(command=["/nonexistent/mpirun", "{job}"])
        self.fails(libcoppice.FAILED_PRECONDITION,
                   ["/nonexistent/mpirun %d" % job, "No such file", "search.command"],
                   lambda: self.client().search(job, "notes", 1000))
        self.agent.end()
        self.start_agent(as_user=["/nonexistent/sudo", "{uid}"])
        told = self.told(self.asker(0, "notes", 1000, NOBODY))
        self.assertIn("%d: " % libcoppice.FAILED_PRECONDITION, told)
        self.assertIn("/nonexistent/sudo", told)

    def test_what_is_asked_wrongly(self):
        self.start_agent(max_budget='"2s"')
        client = self.client()
        job = client.register(RANKS)
        self.fails(libcoppice.INVALID_ARGUMENT, ["search.max_budget", "2000"],
                   lambda: client.search(job, "notes", 2001))
        self.fails(libcoppice.INVALID_ARGUMENT, ["--out=x"],
                   lambda: client.search(job, "--out=x", 1000))
        self.fails(libcoppice.FAILED_PRECONDITION, ["77"], lambda: client.search(77, "notes", 1000))
        client.end(job)
        self.fails(libcoppice.FAILED_PRECONDITION, ["job %d" % job],
                   lambda: client.search(job, "notes", 1000))
        other = client.register(RANKS)
        self.daemon.end(signal.SIGTERM)
        self.fails(libcoppice.UNAVAILABLE, [], lambda: client.search(other, "notes", 1000))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "words")))

    def test_the_command_line(self):
        self.start_agent()
        job = self.client().register(RANKS)

        def search(*arguments):
            done = subprocess.run([COPPICECTL, "--server", self.daemon.address, "search", *arguments],
                                  capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                                  env={**os.environ, "COPPICE_AGENT": self.agent.socket})
            return done.returncode, done.stderr
        # The script leaves no order.
        status, errors = search("--job", str(job), "--application", "notes", "--budget", "2s")
        self.assertEqual(status, 1)
        self.assertIn("no order", errors)
        self.assertIn("2000ms", self.noted("words"))
        status, errors = search("--job", str(job), "--application", "fails")
        self.assertEqual(status, 1)
        self.assertIn("pattern of %d" % job, errors)
        status, errors = search("--job", str(job), "--application", "x", "--agent", "/nonexistent/s")
        self.assertEqual(status, 1)
        self.assertIn("UNAVAILABLE", errors)
        for wrong in (["--job", str(job)], ["--job", "x", "--application", "y"],
                      ["--job", "1", "--application", "y", "--budget", "soon"]):
            self.assertEqual(search(*wrong)[0], 2, wrong)

    def test_the_guard_is_not_for_people(self):
        """It believes neither its input nor the file."""
        def guard(text, *files):
            done = subprocess.run([AGENT, "guard-search", *files], input=text, capture_output=True,
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 1, (text, done.stderr))
            return done.stderr.decode()

        def of(application, server=b"unix:/s"):
            request = bytes_field(1, b"7") + bytes_field(2, application) + b"\x18\x01"
            message = bytes_field(1, request) + bytes_field(2, server) + b"\x22\x02/a"
            return b"%d\n" % len(message) + message
        good, empty = (os.path.join(self.folder, name) for name in ("good.toml", "empty.toml"))
        with open(good, "w", encoding="utf-8") as file:
            file.write('[search]\ncommand = ["touch", "%s/{job}", "{hostfile}"]\n' % self.folder)
        with open(empty, "w", encoding="utf-8") as file:
            file.write("")
        for text in (b"", b"x", b"5\nab", b"99999999999999999999\n", b"12", b"2\n\xff\xff"):
            self.assertIn("coppicectl search", guard(text, good))
        self.assertIn("coppicectl search", guard(of(b"x")))
        self.assertIn("coppicectl search", guard(of(b"x"), good, good))
        self.assertIn("--out", guard(of(b"--out"), good))
        self.assertIn("nowhere", guard(of(b"x", b"nowhere"), good))
        self.assertIn("search.command", guard(of(b"x"), empty))
        self.assertIn("/nonexistent/toml", guard(of(b"x"), "/nonexistent/toml"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "7")))
        # It ends what it has begun as soon as there is no more input, if not before.
        subprocess.run([AGENT, "guard-search", good], input=of(b"x"), timeout=PATIENCE_S, check=False)


if __name__ == "__main__":
    unittest.main()
