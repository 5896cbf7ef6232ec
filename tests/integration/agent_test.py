"""A node's agent between real processes and a real coppiced: the examples of libcoppice, many
processes over one connection, restarts of everything, and errors as a user meets them."""

import json
import os
import queue
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import unittest

import libcoppice
from coppiced_process import Coppiced
from node_agent import Agent, start_holder

COPPICED, COPPICECTL, AGENT, LIBRARY, EXAMPLE_C, EXAMPLE_CXX = (sys.argv.pop(1) for _ in range(6))
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/agent.toml")
RANKS = ["n0000", "n0000", "n0001", "n0001", "n0005", "n0005", "n0009", "n0014"]
NOBODY, OTHER = 65534, 54321


def connections_at(path):
    """Of a Unix socket's server side that are established (proc(5), /proc/net/unix)."""
    connected = "03"
    with open("/proc/net/unix", encoding="utf-8") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return sum(1 for row in rows if len(row) > 7 and row[7] == path and row[5] == connected)


class AgentTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED)
        self.addCleanup(self.daemon.clean_up)
        self.daemon.start().wait_until_listening()
        self.ctl("fabric", "sweep")
        self.agent = Agent(AGENT, self.daemon.address, "n0001")
        self.addCleanup(self.agent.clean_up)
        self.agent.start()

    def ctl(self, *arguments):
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def jobs(self):
        return {job["id"]: job for job in
                json.loads(self.ctl("job", "list", "--json")).get("jobs", [])}

    def hellos_of(self, host):
        agents = json.loads(self.ctl("agent", "list", "--json")).get("agents", [])
        return [agent["hello"] for agent in agents
                if agent.get("connected") and agent["hello"]["host"] == host]

    def await_that(self, condition, what):
        for _ in range(6000):
            if condition():
                return
            select.select([], [], [], 0.01)  # between two looks
        self.fail("never: " + what + "\n" + self.agent.logged())

    def client(self, timeout_ms=20000):
        client = libcoppice.Client(LIBRARY, self.agent.socket, timeout_ms)
        self.addCleanup(client.close)
        return client

    def patiently(self, call):
        """Until daemon and agent have found each other again."""
        result = []

        def succeeds():
            try:
                result.append(call())
                return True
            except libcoppice.Failed as error:
                self.assertEqual(error.status, libcoppice.UNAVAILABLE, error)
                return False
        self.await_that(succeeds, "an answer")
        return result[0]

    def fails(self, status, word, call):
        with self.assertRaises(libcoppice.Failed) as caught:
            call()
        self.assertEqual(caught.exception.status, status, caught.exception.message)
        self.assertIn(word, caught.exception.message)

    def restart_daemon(self, how):
        self.daemon.end(how)
        if os.path.exists(self.daemon.socket):
            os.unlink(self.daemon.socket)
        self.daemon.start().wait_until_listening()

    def held_job(self):
        """A process that holds a job until it is killed; and the job."""
        program, job = start_holder(LIBRARY, self.agent.socket, RANKS)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program, job

    def lease_is_renewed(self, job):
        """It has more left than before, which time alone does not do."""
        before = self.jobs()[job]["lease_left"]

        def longer():
            nonlocal before
            now = self.jobs()[job]["lease_left"]
            is_longer = float(now.rstrip("s")) > float(before.rstrip("s"))
            before = now
            return is_longer
        self.await_that(longer, "the lease of job " + job + " is renewed")

    def test_the_examples_run(self):
        for example in (EXAMPLE_C, EXAMPLE_CXX):
            done = subprocess.run([example, *RANKS], capture_output=True, text=True, timeout=120,
                                  check=False, env={**os.environ,
                                                    "COPPICE_AGENT": self.agent.socket})
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in ("agent ", " of n0001", "job ", "tree ", "hangs on -1",
                         "change 6 of tree", "order of score"):
                self.assertIn(word, done.stdout)
        self.assertEqual(self.jobs(), {})
        for example in (EXAMPLE_C, EXAMPLE_CXX):
            done = subprocess.run([example, "nowhere"], capture_output=True, text=True,
                                  timeout=120, check=False,
                                  env={**os.environ, "COPPICE_AGENT": self.agent.socket})
            self.assertEqual(done.returncode, 1)
            self.assertIn("nowhere", done.stderr)

    def test_many_processes_are_one_connection(self):
        client = self.client()
        job = client.register(RANKS)
        program = (
            "import sys; sys.path.insert(0, %r); import libcoppice\n"
            "client = libcoppice.Client(%r, %r, 60000)\n"
            "for _ in range(3):\n"
            "    tree = client.create_tree(%d, kind=1)\n"
            "    client.get_tree(tree)\n"
            "    client.release_tree(tree)\n"
            "print('done', flush=True)\n"
            "sys.stdin.read()" % (os.path.dirname(os.path.abspath(__file__)), LIBRARY,
                                  self.agent.socket, job))
        processes = [subprocess.Popen([sys.executable, "-S", "-c", program],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) for _ in range(64)]
        try:
            for process in processes:
                said = process.stdout.readline()
                self.assertEqual(said, "done\n", said or process.stderr.read())
            # All 64 are still connected, and the one of this test.
            self.assertEqual(connections_at(self.agent.socket), 65)
            self.assertEqual(connections_at(self.daemon.socket), 1)
        finally:
            for process in processes:
                process.communicate(timeout=120)
        self.assertEqual([process.returncode for process in processes], [0] * 64)
        self.await_that(lambda: connections_at(self.agent.socket) == 1, "the processes are gone")

    def test_a_held_job_outlives_the_agent_and_the_daemon(self):
        program, job = self.held_job()
        self.lease_is_renewed(job)
        for how in (signal.SIGKILL, signal.SIGTERM):
            status = self.agent.end(how)
            self.assertIn(status, (0, -signal.SIGKILL))
            self.agent.start()
            self.lease_is_renewed(job)
        for how in (signal.SIGKILL, signal.SIGTERM):
            self.restart_daemon(how)
            self.lease_is_renewed(job)
        self.assertEqual(libcoppice.held(self.agent.state), [job])
        program.kill()
        program.wait()
        self.await_that(lambda: job not in self.jobs(), "job " + job + " is ended")
        self.await_that(lambda: libcoppice.held(self.agent.state) == [], "it is let go")
        self.assertIn("its processes are gone; ended", self.agent.logged())

    def test_without_a_descriptor_living_processes_are_not_taken_for_dead(self):
        program, job = self.held_job()
        limits = resource.prlimit(self.agent.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.agent.process.pid, resource.RLIMIT_NOFILE, (0, limits[1]))
        # Several looks at the processes long.
        for _ in range(3):
            self.lease_is_renewed(job)
        program.kill()
        program.wait()
        self.await_that(lambda: job not in self.jobs(), "job " + job + " is ended")
        resource.prlimit(self.agent.process.pid, resource.RLIMIT_NOFILE, limits)
        self.client().register(RANKS)

    def test_a_process_that_went_while_the_agent_was_away(self):
        program, job = self.held_job()
        self.agent.end(signal.SIGKILL)
        program.kill()
        program.wait()
        self.agent.start()
        self.await_that(lambda: job not in self.jobs(), "job " + job + " is ended")
        self.assertIn("its processes are gone; ended", self.agent.logged())

    def test_a_watch_goes_on_through_restarts(self):
        client = self.client()
        job = client.register(RANKS)
        changes = queue.Queue()
        client.watch(job, lambda *change: changes.put(change))

        first = client.create_tree(job)
        self.assertEqual(changes.get(timeout=120)[:3], (libcoppice.GRANTED, first, 1))
        self.agent.end(signal.SIGKILL)
        self.agent.start()
        second = self.patiently(lambda: client.create_tree(job))
        client.release_tree(second)
        for kind in (libcoppice.GRANTED, libcoppice.RELEASED):
            self.assertEqual(changes.get(timeout=120)[:2], (kind, second))
        self.restart_daemon(signal.SIGKILL)
        third = self.patiently(lambda: client.create_tree(job))
        self.patiently(lambda: client.release_tree(third))
        client.end(job)
        # A daemon started anew keeps no changes of before: what came and went may be unseen.
        told = []
        while not told or told[-1][0] != libcoppice.OVER:
            told.append(changes.get(timeout=120))
        self.assertLessEqual({change[1] for change in told}, {0, first, third}, told)

    def test_errors_say_what_to_do(self):
        client = self.client()
        self.fails(libcoppice.NOT_FOUND, "nowhere", lambda: client.register(["nowhere"]))
        self.fails(libcoppice.INVALID_ARGUMENT, "endpoints", lambda: client.register([]))
        self.fails(libcoppice.NOT_FOUND, "77", lambda: client.get_tree(77))
        self.fails(libcoppice.NOT_FOUND, "job 77", lambda: client.create_tree(77))
        job = client.register(RANKS)
        self.fails(libcoppice.INVALID_ARGUMENT, "99", lambda: client.create_tree(job, [0, 99]))
        client.end(job)
        self.fails(libcoppice.FAILED_PRECONDITION, str(job), lambda: client.create_tree(job))
        self.daemon.end(signal.SIGTERM)
        self.fails(libcoppice.UNAVAILABLE, "", lambda: client.register(RANKS))
        self.agent.end(signal.SIGTERM)
        self.fails(libcoppice.UNAVAILABLE, "coppice-agent", lambda: client.register(RANKS))

    def test_jobs_belong_to_the_user_at_the_socket(self):
        """Two users at one socket: neither touches what is the other's; root, an administrator
        everywhere, comes third."""
        self.assertEqual(os.getuid(), 0, "this test has processes of three users: run it as root")
        mine, job = self.held_job_of(NOBODY)
        other, others = self.held_job_of(OTHER)
        mine.stdin.write("tree\n")
        mine.stdin.flush()
        tree = int(mine.stdout.readline())
        client = ("import sys; sys.path.insert(0, %r); import libcoppice\n"
                  "client = libcoppice.Client(%r, %r)\n"
                  "for call in %r:\n"
                  "    try:\n"
                  "        eval(call)\n"
                  "        print('done: ' + call)\n"
                  "    except libcoppice.Failed as error:\n"
                  "        print(error)\n")
        calls = ["client.create_tree(%s)" % job, "client.release_tree(%d)" % tree,
                 "client.end(%s)" % job]
        done = subprocess.run(
            [sys.executable, "-c", client % (os.path.dirname(os.path.abspath(__file__)), LIBRARY,
                                             self.agent.socket, calls)],
            capture_output=True, text=True, timeout=120, check=False, user=OTHER, group=OTHER)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout.splitlines()
        self.assertEqual(len(said), len(calls), said)
        for line in said:
            self.assertIn("%d: " % libcoppice.PERMISSION_DENIED, line)
            self.assertIn("nobody", line)
        self.assertEqual(self.jobs()[job]["owner"], "nobody")
        self.assertEqual(self.jobs()[others]["owner"], str(OTHER))
        self.assertEqual(json.loads(self.ctl("tree", "show", str(tree), "--json"))["id"], str(tree))
        # The end of one user's process ends that user's job only.
        mine.kill()
        self.await_that(lambda: job not in self.jobs(), "job " + job + " is ended")
        self.lease_is_renewed(others)
        other.kill()
        self.await_that(lambda: others not in self.jobs(), "job " + others + " is ended")

    def held_job_of(self, user):
        program, job = start_holder(LIBRARY, self.agent.socket, RANKS, user=user, group=user)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program, job

    def test_coppicectl_comes_through_the_agent(self):
        """As a user who cannot open the daemon's socket, and names no server."""
        control = shutil.copy(COPPICECTL, self.agent.directory)  # where others may run it

        def ask(*arguments, status=0, user=OTHER, agent=self.agent.socket):
            environment = {key: value for key, value in os.environ.items()
                           if key != "COPPICE_SERVER"}
            done = subprocess.run([control, *arguments], capture_output=True, text=True,
                                  timeout=120, check=False, user=user, group=user,
                                  env={**environment, "COPPICE_AGENT": agent})
            self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
            return done.stdout if status == 0 else done.stderr

        def answer(*arguments):
            return json.loads(ask(*arguments, "--json"))

        job = answer("job", "register", "--all")
        self.assertEqual(job["owner"], str(OTHER))
        tree = answer("tree", "create", "--job", job["id"], "--ranks", "0-3")
        self.assertEqual(answer("tree", "show", tree["id"])["job_id"], job["id"])
        ask("job", "keepalive", job["id"])
        for command in (["status"], ["fabric", "switches"], ["fabric", "nodes"], ["entries"],
                        ["events"], ["agent", "list"], ["job", "list"], ["tree", "list"],
                        ["placement", "list"], ["pattern", "list"],
                        ["export", "slurm-topology"],
                        ["tree", "advise", "--job", job["id"]]):
            ask(*command)
        # Details of errors come through; what administers does not.
        self.assertIn("4711", ask("tree", "show", "4711", status=3))
        self.assertIn("does not pass it on", ask("fabric", "sweep", status=1))
        self.assertIn("your own name", ask("--as", "nobody", "job", "list", status=2))
        self.assertIn("belongs to %d" % OTHER,
                      ask("job", "end", job["id"], status=4, user=NOBODY))
        # A watch has no end of its own.
        watch = subprocess.Popen([control, "tree", "watch", "--json"], stdout=subprocess.PIPE,
                                 text=True, user=OTHER, group=OTHER,
                                 env={**os.environ, "COPPICE_AGENT": self.agent.socket})
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        self.assertIn('"' + tree["id"] + '"', watch.stdout.readline() + watch.stdout.readline())
        ask("tree", "release", tree["id"])
        ask("job", "end", job["id"])
        self.assertIn("no answer", ask("status", "--timeout", "5", status=5,
                                       agent="/nonexistent/a.sock"))

    def test_coppicectl_finds_the_agent_where_it_usually_is(self):
        """Agent and coppicectl know their default alone. /run is the test's own, for them only."""
        other = Agent(AGENT, self.daemon.address, "n0002")
        self.addCleanup(other.clean_up)
        control = shutil.copy(COPPICECTL, other.directory)  # where others may run it
        # The folder of the socket is one that this process sees, too.
        apart = ["unshare", "--mount", "/bin/sh", "-ec", "mount -t tmpfs none /run; "
                 "mkdir /run/coppice; mount --bind \"$1\" /run/coppice; shift; exec \"$@\"", "sh",
                 other.directory]
        other.command = [*apart, AGENT, "--server", self.daemon.address, "--state-dir",
                         other.state, "--host", "n0002", "--measure-listen", ""]
        other.start()
        user = ["setpriv", "--reuid=%d" % OTHER, "--regid=%d" % OTHER, "--clear-groups"]
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("COPPICE_")}
        done = subprocess.run([*apart, *user, control, "job", "register", "--all", "--json"],
                              capture_output=True, text=True, timeout=120, check=False,
                              env=environment)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(str(OTHER), json.loads(done.stdout)["owner"])
        other.end()
        done = subprocess.run([*apart, *user, control, "job", "list"], capture_output=True,
                              text=True, timeout=120, check=False, env=environment)
        self.assertEqual(5, done.returncode, done.stdout)

    def await_sign_of_another(self, daemon):
        """That the agent says to `daemon` that it was another's."""
        told = []

        def warns():
            done = subprocess.run([COPPICECTL, "--server", daemon.address, "status"],
                                  capture_output=True, text=True, timeout=120, check=False)
            told.append(done.stdout + done.stderr)
            return "another daemon: " in told[-1] and done.returncode == 7
        self.await_that(warns, "the warning")
        self.assertIn("the agent of host n0001 was served by the daemon with database", told[-1])

    def test_two_daemons_of_one_subnet_are_noticed_when_an_agent_changes_over(self):
        other = Coppiced(COPPICED)
        self.addCleanup(other.clean_up)
        other.start().wait_until_listening()
        # The agent's server is a name that leads from one to the other.
        name = os.path.join(self.agent.directory, "daemon.sock")
        os.symlink(self.daemon.socket, name)
        self.agent.end()
        self.agent.command[self.agent.command.index(self.daemon.address)] = "unix:" + name
        self.agent.start()
        self.await_that(lambda: self.hellos_of("n0001"), "the agent is there")
        os.symlink(other.socket, name + ".new")
        os.rename(name + ".new", name)
        self.restart_daemon(signal.SIGTERM)
        self.await_sign_of_another(other)
        self.assertNotIn("another daemon: ", self.ctl("status"))  # lives, and nobody told it
        events = json.loads(subprocess.run(
            [COPPICECTL, "--server", other.address, "events", "--kind", "daemon.other", "--json"],
            capture_output=True, text=True, timeout=120, check=True).stdout)["events"]
        self.assertEqual(1, len(events))
        # And back.
        os.symlink(self.daemon.socket, name + ".new")
        os.rename(name + ".new", name)
        other.end()
        other.start().wait_until_listening()
        self.await_sign_of_another(self.daemon)

    def test_an_agent_that_comes_over_from_another_daemon_says_so(self):
        self.await_that(lambda: self.hellos_of("n0001"), "the agent is there")
        self.daemon.end()
        for name in os.listdir(os.path.dirname(self.daemon.database)):
            if name.startswith(os.path.basename(self.daemon.database)):
                os.remove(os.path.join(os.path.dirname(self.daemon.database), name))
        self.daemon.start().wait_until_listening()  # as another daemon: with another database
        self.ctl("fabric", "sweep")
        self.await_sign_of_another(self.daemon)

    def test_the_sample_starts_in_folders_that_are_missing(self):
        other = Agent(AGENT, self.daemon.address, "n0002")
        self.addCleanup(other.clean_up)
        os.rmdir(other.state)
        folder = os.path.join(other.directory, "run")
        other.socket = os.path.join(folder, "agent.sock")
        # The folders' modes are not those of whoever starts it.
        other.command = ["/bin/sh", "-c", 'umask 077; exec "$@"', "sh", AGENT, "--config", SAMPLE,
                         "--server", self.daemon.address, "--socket", other.socket,
                         "--state-dir", other.state, "--host", "n0002", "--measure-listen", ""]
        for _ in range(2):  # made, and there
            other.start()
            client = libcoppice.Client(LIBRARY, other.socket, 20000)
            self.addCleanup(client.close)
            self.patiently(lambda: client.register(RANKS))
            self.assertEqual(0o755, stat.S_IMODE(os.stat(folder).st_mode))
            self.assertEqual(0o700, stat.S_IMODE(os.stat(other.state).st_mode))
            self.await_that(lambda: self.hellos_of("n0002"), "the agent of n0002 is there")
            for hello in self.hellos_of("n0002"):
                self.assertEqual("", hello.get("measure_address", ""))
            self.assertEqual(0, other.end())

    def test_a_folder_whose_parent_is_missing_is_not_made(self):
        missing = os.path.join(self.agent.directory, "missing")
        for flag in ("--socket", "--state-dir"):
            good = {"--socket": os.path.join(self.agent.directory, "other.sock"),
                    "--state-dir": os.path.join(self.agent.directory, "other")}
            folder = os.path.join(missing, "folder")
            good[flag] = os.path.join(folder, "a.sock") if flag == "--socket" else folder
            done = subprocess.run([AGENT, "--server", self.daemon.address, "--measure-listen", "",
                                   *(word for pair in good.items() for word in pair)],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(f"folder {folder}: ", done.stderr)
            self.assertIn("; make it, or name another: " + flag, done.stderr)
            self.assertFalse(os.path.exists(missing))

    def test_an_agent_that_cannot_start_says_why(self):
        def refused(word, *arguments, status=1):
            done = subprocess.run([AGENT, *arguments], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertIn(word, done.stderr)
        good = ["--server", self.daemon.address, "--state-dir", self.agent.state,
                "--measure-listen", "127.0.0.1:0", "--socket"]
        refused("another agent listens there", *good, self.agent.socket)
        refused("/nonexistent/folder", *good, "/nonexistent/folder/a.sock")
        refused("somewhere", "--server", "somewhere", status=2)
        refused("port GUID", "--port-guid", "12", status=2)
        refused("/nonexistent/agent.toml", "--config", "/nonexistent/agent.toml")
        refused("log level", "--log-level", "loud", *good, self.agent.socket, status=2)
        done = subprocess.run([AGENT, "--no-such-flag"], capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
