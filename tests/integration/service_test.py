"""The daemon as a service: what it tells a service manager, how it reloads, whose jobs are whose, and
TCP, with TLS and without. Runs as root: only root can call as somebody else."""

import grp
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import unittest

import exit_status
from coppiced_process import PATIENCE_S, Coppiced

PROGRAM, CONTROL = sys.argv.pop(1), sys.argv.pop(1)
RULES = '[[switches]]\ndescription = "*"\nentries = %d\ndegree_limit = 16\n'


class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(PROGRAM)
        self.addCleanup(self.daemon.clean_up)
        os.chmod(self.daemon.directory, 0o755)  # other users come to the socket

    def write(self, text):
        with open(self.daemon.config, "w", encoding="utf-8") as config:
            config.write(text)

    def start(self, stderr=subprocess.PIPE, **environment):
        self.daemon.process = subprocess.Popen(self.daemon.command, stderr=stderr, text=True,
                                               env={**os.environ, **environment})

    def start_ready(self):
        self.daemon.start().wait_until_listening()
        self.ask("fabric", "sweep")  # returns once a fabric is known

    def ctl(self, *arguments, server=None, user=None, control=CONTROL):
        """Exit status, output and errors of coppicectl."""
        as_user = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        done = subprocess.run([control, "--server", server or self.daemon.address, *arguments],
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                              **as_user)
        return done.returncode, done.stdout, done.stderr

    def ask(self, *arguments, **options):
        status, output, errors = self.ctl(*arguments, **options)
        self.assertEqual(status, 0, errors)
        return output

    def ask_json(self, *arguments, **options):
        return json.loads(self.ask(*arguments, "--json", **options))

    def assert_refused(self, word, *arguments, **options):
        status, _, errors = self.ctl(*arguments, **options)
        self.assertEqual(status, exit_status.of(errors), errors)
        self.assertIn(word, errors)

    def log_line(self, pattern):
        """The next line of the log that matches."""
        for line in self.daemon.process.stderr:
            if found := re.search(pattern, line):
                return found
        raise AssertionError("the log ends without " + pattern)


class Reload(ServiceTest):
    def test_puts_in_force_what_may_change_and_names_the_rest(self):
        self.start_ready()
        self.assertIn("Nothing has changed", self.ask("reload"))
        self.write('log_level = "debug"\nsocket_mode = "0600"\n[lease]\ndefault = "90s"\n'
                   '[planning]\npromised_duty = 0.5\n' + RULES % 9)
        answer = self.ask_json("reload")
        self.assertEqual(answer["changed"],
                         ["log_level", "lease.default", "planning.promised_duty", "switches"])
        self.assertEqual(answer["needs_restart"], ["socket_mode"])
        self.assertEqual(self.ask_json("job", "register", "--all")["lease"], "90s")
        switches = self.ask_json("fabric", "switches")["switches"]
        self.assertEqual({switch["entries_total"] for switch in switches}, {9})
        # What is in force is no change any more; what needs a restart still does.
        again = self.ask_json("reload")
        self.assertEqual((again["changed"], again["needs_restart"]), ([], ["socket_mode"]))
        told = self.ask_json("events", "--kind", "config.reloaded")["events"]
        self.assertIn("switches", told[1]["message"])
        self.assertIn("socket_mode", told[1]["message"])

    def test_leaves_all_as_it_was_after_a_mistake(self):
        self.start_ready()
        self.write('[lease]\ndefault = "90s"\n\nmax = "never"\n' + RULES % 9)
        place = self.daemon.config + ":4: lease.max: "
        self.assert_refused(place, "reload")
        refused = self.ask_json("events", "--kind", "config.refused")["events"]
        self.assertEqual(len(refused), 1)
        self.assertIn(place, refused[0]["message"])
        self.assertEqual(self.ask_json("job", "register", "--all")["lease"], "60s")
        # A file that is missing is a mistake, too.
        os.remove(self.daemon.config)
        self.assert_refused(self.daemon.config, "reload")

    def test_sighup_does_the_same(self):
        self.start_ready()
        self.write('[lease]\ndefault = "90s"\n' + RULES % 4)
        self.daemon.process.send_signal(signal.SIGHUP)
        self.log_line("configuration read again: in force: lease.default")
        self.assertEqual(self.ask_json("job", "register", "--all")["lease"], "90s")
        self.write("lease = 3\n")
        self.daemon.process.send_signal(signal.SIGHUP)
        self.log_line("configuration refused: .*coppiced.toml:1: lease")
        self.assertEqual(self.daemon.end()[0], 0)

    def test_a_group_that_is_named_must_exist(self):
        self.write('\nadmin_group = "coppice-none"\n')
        status, errors = self.daemon.run()
        self.assertEqual(status, 1)
        self.assertIn(self.daemon.config + ":2: admin_group: ", errors)
        self.assertIn("coppice-none", errors)


class ServiceManager(ServiceTest):
    def setUp(self):
        super().setUp()
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.ear.close)
        self.ear.settimeout(PATIENCE_S)
        self.ear.bind(os.path.join(self.daemon.directory, "notify"))

    def hear(self, wanted):
        """Messages up to the first that holds the line `wanted`, that one last."""
        heard = []
        while not heard or wanted not in heard[-1]:
            heard.append(self.ear.recv(4096).decode().splitlines())
        return heard

    def start_heard(self, **environment):
        self.start(NOTIFY_SOCKET=self.ear.getsockname(), **environment)
        self.daemon.wait_until_listening()

    def test_hears_of_start_reload_and_stop(self):
        self.start_heard()
        ready = self.hear("READY=1")[-1]
        self.assertTrue(any(line.startswith("STATUS=") for line in ready), ready)
        self.ask("fabric", "sweep")  # returns once a fabric is known
        self.daemon.process.send_signal(signal.SIGHUP)
        reloading = self.hear("RELOADING=1")[-1]
        self.assertTrue(any(re.fullmatch(r"MONOTONIC_USEC=\d+", line) for line in reloading))
        self.assertIn("STATUS=fabric version 1: 6 switches, 16 ports; 0 jobs, 0 trees",
                      self.hear("READY=1")[-1])
        self.daemon.end()
        self.hear("STOPPING=1")

    def test_hears_a_sign_of_life_only_while_clients_are_answered(self):
        self.start_heard(WATCHDOG_USEC="3000000")
        self.hear("READY=1")
        self.hear("WATCHDOG=1")
        os.unlink(self.daemon.socket)  # nobody can connect any more
        self.log_line("does not answer at unix:")
        # What was sent before; then rounds without a sign of life.
        self.ear.setblocking(False)
        try:
            while True:
                self.ear.recv(4096)
        except BlockingIOError:
            self.ear.settimeout(PATIENCE_S)
        for _ in range(2):
            self.assertTrue(self.ear.recv(4096).startswith(b"STATUS="))

    def test_hears_signs_of_life_however_often_it_reloads(self):
        # Nobody reads its log, of which there is much.
        self.start(stderr=subprocess.DEVNULL, NOTIFY_SOCKET=self.ear.getsockname(),
                   WATCHDOG_USEC="3000000")
        self.hear("READY=1")
        end = time.monotonic() + PATIENCE_S
        heard = []
        while not any("WATCHDOG=1" in message for message in heard):
            self.assertLess(time.monotonic(), end, "no sign of life between reloads")
            self.daemon.process.send_signal(signal.SIGHUP)
            heard = self.hear("READY=1")

    def test_hears_signs_of_life_while_a_reload_waits(self):
        self.start_heard(WATCHDOG_USEC="3000000")
        self.hear("READY=1")
        with open(self.daemon.config, encoding="utf-8") as config:
            text = config.read()
        os.remove(self.daemon.config)
        os.mkfifo(self.daemon.config)  # nobody has written to it yet
        self.daemon.process.send_signal(signal.SIGHUP)
        self.hear("RELOADING=1")
        for _ in range(2):
            self.assertFalse(any("READY=1" in message for message in self.hear("WATCHDOG=1")))
        try:
            self.write(text)
        except BrokenPipeError:
            pass  # the daemon went on as soon as there was a writer, and reads regular files only
        self.hear("READY=1")
        self.assertEqual(self.daemon.end()[0], 0)

    def test_the_journal_gets_priorities_and_no_times(self):
        reader, writer = os.pipe()
        stream = os.fstat(writer)
        self.start(stderr=writer, JOURNAL_STREAM="%d:%d" % (stream.st_dev, stream.st_ino))
        os.close(writer)
        self.daemon.wait_until_listening()
        self.daemon.process.terminate()
        with open(reader, encoding="utf-8") as log:
            lines = log.read().splitlines()
        self.assertEqual(self.daemon.process.wait(PATIENCE_S), 0)
        self.assertTrue(any(line.startswith("<6>listening on unix:") for line in lines), lines)
        self.assertTrue(all(re.match(r"<[2-7]>\S", line) for line in lines), lines)


class Users(ServiceTest):
    def test_jobs_belong_to_who_registered_them(self):
        self.assertEqual(os.geteuid(), 0, "run as root: only root can call as somebody else")
        self.write('socket_mode = "0666"\n' + RULES % 4)
        self.start_ready()
        control = shutil.copy(CONTROL, self.daemon.directory)  # where others may run it
        mine = {"user": "daemon", "control": control}
        others = {"user": "bin", "control": control}
        job = self.ask_json("job", "register", "--all", **mine)
        self.assertEqual(job["owner"], "daemon")
        self.assert_refused("belongs to daemon, and you are bin", "job", "end", job["id"], **others)
        self.assert_refused("a sweep is for administrators", "fabric", "sweep", **others)
        self.assert_refused("a reload is for administrators", "reload", **others)
        self.ask("job", "show", job["id"], **others)
        # As a member of the group that the file names from now on.
        self.write('socket_mode = "0666"\nadmin_group = "bin"\n' + RULES % 4)
        self.assertEqual(self.ask_json("reload")["changed"], ["admin_group"])
        self.ask("fabric", "sweep", **others)
        self.ask("job", "end", job["id"], **others)


    def test_the_socket_is_its_groups(self):
        """That of the file's keys; the default's need not exist on this host."""
        self.write('socket_group = "bin"\n' + RULES % 4)
        self.start_ready()
        info = os.stat(self.daemon.socket)
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_gid), (0o660, grp.getgrnam("bin").gr_gid))
        control = shutil.copy(CONTROL, self.daemon.directory)
        self.ask("status", user="bin", control=control)
        self.assert_refused("no answer", "status", user="daemon", control=control)
        for suffix in ("", "-wal", "-shm", ".lock"):
            self.assertEqual(stat.S_IMODE(os.stat(self.daemon.database + suffix).st_mode), 0o600)
        self.assertEqual(self.daemon.end()[0], 0)
        self.write('socket_group = "coppice-test"\n' + RULES % 4)
        status, errors = self.daemon.run()
        self.assertEqual(status, 1)
        self.assertIn('socket_group: there is no group "coppice-test"', errors)


class Tcp(ServiceTest):
    def file(self, name):
        return os.path.join(self.daemon.directory, name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True,
                       timeout=PATIENCE_S, cwd=self.daemon.directory)

    def make_authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-days", "2", "-subj", "/CN=" + name, "-keyout", name + ".key",
                     "-out", name + ".pem")

    def make_certificate(self, name, authority, extension="subjectAltName=IP:127.0.0.1"):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
        with open(self.file(name + ".ext"), "w", encoding="utf-8") as file:
            file.write(extension + "\n")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".pem", "-CAkey",
                     authority + ".key", "-CAcreateserial", "-days", "2", "-extfile",
                     name + ".ext", "-out", name + ".pem")

    def start_tcp(self, *flags):
        self.daemon.command += ["--listen", "127.0.0.1:0", *flags]
        self.start()
        address = self.log_line(r"listening on .*(127\.0\.0\.1:\d+)").group(1)
        self.ask("fabric", "sweep")  # over the Unix socket; returns once a fabric is known
        return address

    def tls(self, name=None):
        options = ["--tls-ca", self.file("authority.pem")]
        if name:
            options += ["--tls-cert", self.file(name + ".pem"), "--tls-key", self.file(name + ".key")]
        return options

    def test_is_refused_without_leave(self):
        self.daemon.command += ["--listen", "127.0.0.1:0"]
        status, errors = self.daemon.run()
        self.assertEqual(status, 2)
        for word in ("127.0.0.1:0", "[tls]", "insecure_tcp = true"):
            self.assertIn(word, errors)

    def test_insecure_callers_share_what_is_anonymous(self):
        server = self.start_tcp("--insecure-tcp")
        job = self.ask_json("job", "register", "--all", server=server)
        self.assertEqual(job["owner"], "anonymous")
        self.assert_refused("a sweep is for administrators", "fabric", "sweep", server=server)
        owned = self.ask_json("job", "register", "--all")
        self.assert_refused("you are anonymous", "job", "end", owned["id"], server=server)
        self.assert_refused("Trees.AdviseTree may take much of what all callers share", "tree",
                            "advise", "--job", job["id"], server=server)
        self.assert_refused("Placements.CreatePlacement may take much", "placement", "create",
                            "--nodes", "2", server=server)
        self.ask("job", "end", job["id"], server=server)

    def test_certificates_name_their_owners(self):
        self.make_authority("authority")
        for name in ("server", "alice", "ops"):
            self.make_certificate(name, "authority")
        self.write('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
                   'client_ca = "authority.pem"\nadministrators = ["ops"]\n' + RULES % 4)
        server = self.start_tcp()
        job = self.ask_json("job", "register", "--all", *self.tls("alice"), server=server)
        self.assertEqual(job["owner"], "tls:alice")
        self.assert_refused("you are tls:alice", "fabric", "sweep", *self.tls("alice"),
                            server=server)
        self.ask("fabric", "sweep", *self.tls("ops"), server=server)
        self.ask("job", "end", job["id"], *self.tls("alice"), server=server)
        # Without a certificate, and without TLS: no connection.
        self.assert_refused("no answer", "status", "--timeout", "5", *self.tls(), server=server)
        self.assert_refused("no answer", "status", "--timeout", "5", server=server)

    def test_callers_without_certificates_may_read(self):
        self.make_authority("authority")
        self.make_certificate("server", "authority")
        keys = '[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
        self.write(keys + RULES % 4)
        self.daemon.command += ["--listen", "127.0.0.1:0"]
        status, errors = self.daemon.run()
        self.assertEqual(status, 2)
        for word in ("tls.client_ca: is missing", "open_reading = true"):
            self.assertIn(word, errors)
        # Where the site lets everybody read.
        self.write(keys + "open_reading = true\n" + RULES % 4)
        del self.daemon.command[-2:]
        server = self.start_tcp()
        self.ask("status", *self.tls(), server=server)
        self.assert_refused("may only read", "job", "register", "--all", *self.tls(),
                            server=server)

    def shown_to(self, server):
        """The certificate that a new connection is shown, as a set of PEM lines."""
        host, port = server.split(":")
        return ssl.get_server_certificate((host, int(port)), timeout=PATIENCE_S).strip()

    def pem(self, name):
        with open(self.file(name + ".pem"), encoding="utf-8") as file:
            return file.read().strip()

    def put(self, certificate, key):
        """Exchanges the server's files, as who renews them does: one after the other."""
        for source, target in ((key, "server.key"), (certificate, "server.pem")):
            shutil.copy(self.file(source), self.file("renewed"))
            os.rename(self.file("renewed"), self.file(target))

    def expire(self, name):
        """Signs the request of that name anew, until yesterday."""
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "authority.pem", "-CAkey",
                     "authority.key", "-CAcreateserial", "-days", "-1", "-extfile", name + ".ext",
                     "-out", name + ".pem")

    def start_with_certificates(self, *names):
        self.make_authority("authority")
        for name in ("server", *names):
            self.make_certificate(name, "authority")
        self.write('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
                   'open_reading = true\n' + RULES % 4)
        return self.start_tcp()

    def test_renewed_certificates_are_shown_to_the_next_connection(self):
        server = self.start_with_certificates("next")
        first = self.pem("server")
        self.assertEqual(self.shown_to(server), first)
        self.put("next.pem", "next.key")
        self.assertEqual(self.shown_to(server), self.pem("next"))
        self.ask("status", *self.tls(), server=server)
        self.assertIn("Nothing has changed", self.ask("reload"))
        self.log_line("TLS: .*server.pem is read again and in force")

    def test_every_address_shows_what_was_renewed(self):
        self.make_authority("authority")
        for name in ("server", "next"):
            self.make_certificate(name, "authority")
        self.write('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
                   'open_reading = true\n' + RULES % 4)
        self.daemon.command += ["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"]
        self.start()
        line = self.log_line(r"listening on .*").group(0)
        addresses = set(re.findall(r"127\.0\.0\.1:\d+", line))
        self.assertEqual(len(addresses), 2)
        for server in addresses:
            self.assertEqual(self.shown_to(server), self.pem("server"))
        self.put("next.pem", "next.key")
        for server in addresses:
            self.assertEqual(self.shown_to(server), self.pem("next"))

    def test_renewed_files_that_do_not_fit_are_named_and_not_taken(self):
        server = self.start_with_certificates("next", "late", "last")
        first = self.pem("server")
        self.expire("late")
        with open(self.file("text"), "w", encoding="utf-8") as file:
            file.write("no certificate")
        for certificate, key, word in (("next.pem", "server.key", "is not the key of"),
                                       ("text", "next.key", "holds no certificate"),
                                       ("late.pem", "late.key", "has expired on"),
                                       ("next.pem", "text", "holds no private key")):
            with self.subTest(word):
                self.put(certificate, key)
                for _ in range(2):
                    self.assertEqual(self.shown_to(server), first)
                self.log_line("TLS: file .*" + word + ".*what was there before")
                self.assert_refused(word, "reload")
        os.remove(self.file("server.key"))
        self.assertEqual(self.shown_to(server), first)
        self.assert_refused("server.key: cannot be read", "reload")
        self.put("last.pem", "last.key")
        self.assertEqual(self.shown_to(server), self.pem("last"))
        self.assertIn("Nothing has changed", self.ask("reload"))
        refused = self.ask_json("events", "--kind", "config.refused")["events"]
        self.assertEqual(len(refused), 5)

    def test_expired_certificates_are_refused(self):
        self.make_authority("authority")
        for name in ("server", "alice", "late"):
            self.make_certificate(name, "authority")
        self.write('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
                   'client_ca = "authority.pem"\n' + RULES % 4)
        self.expire("late")
        server = self.start_tcp()
        self.ask("status", *self.tls("alice"), server=server)
        self.assert_refused("no answer", "status", "--timeout", "5", *self.tls("late"),
                            server=server)
        self.daemon.end()
        self.expire("server")
        status, errors = self.daemon.run()
        self.assertEqual(status, 2)
        self.assertIn("server.pem: its certificate has expired on", errors)
        self.assertIn(self.daemon.config + ":", errors)

    def test_files_that_do_not_fit_are_named(self):
        self.make_authority("authority")
        self.make_authority("other")
        for text, word in (('certificate = "none.pem"\nkey = "other.key"', "none.pem"),
                           ('certificate = "authority.pem"\nkey = "other.key"', "is not the key"),
                           ('certificate = "authority.pem"\nkey = "other.pem"', "private key"),
                           ('certificate = "authority.pem"', "tls.key: is missing"),
                           ('certificate = "authority.pem"\nkey = "authority.key"\n'
                            'administrators = ["ops"]', "tls.client_ca")):
            self.write("[tls]\nopen_reading = true\n" + text + "\n")
            status, errors = self.daemon.run()
            self.assertEqual(status, 2, text)
            self.assertIn(word, errors)
            self.assertIn(self.daemon.config + ":", errors)


if __name__ == "__main__":
    unittest.main()
