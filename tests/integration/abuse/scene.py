"""A daemon under attack and its users: each a process of its own (person.py), which is told what to do."""

import json
import os
import select
import subprocess
import tempfile
import threading
import time

import protocol
from attacks import FABRIC
from authority import Authority
from coppiced_process import PATIENCE_S
from victim import MEMORY_LIMIT, SCRATCH, SOCKET_GROUP, Victim

FOLDER = os.path.dirname(os.path.abspath(__file__))
IS_ROOT = os.geteuid() == 0  # else all persons are one, and an administrator
HONEST_UID, ATTACKER_UID, STRANGER_UID = 61000, 61001, 61002  # no users of any machine
# Attackers come from other machines: from another address over TCP, and they are not to win by this one's
# processors. Other tests may run here meanwhile: they are to slow down neither the daemon nor attacks on it, as
# far as the kernel lets us say so. Its weights (sched_prio_to_weight): 9548 at -10, 3121 at -5, 1024 at 0.
ATTACKER_ADDRESS = "127.0.0.2"
ATTACKER_NICE, NICE = (-5, -10) if IS_ROOT else (10, 0)


class Person:
    """A user's process (person.py)."""

    def __init__(self, scene, uid, nice, address, group, certificate=None):
        told = {"uid": uid if IS_ROOT else os.geteuid(), "group": group,
                "address": address or scene.victim.address, "protocol": scene.protocol, "nice": nice,
                "certificate": certificate,
                "source": ATTACKER_ADDRESS if uid == ATTACKER_UID else "127.0.0.1"}
        self.log = tempfile.TemporaryFile(dir=scene.victim.directory, mode="w+")
        self.told, self.listener = [], None
        self.process = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(FOLDER, "person.py"), json.dumps(told)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def order(self, deed, reports=False, **arguments):
        self.process.stdin.write(json.dumps({"deed": deed, "with": arguments, "reports": reports}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        """What the last order came to."""
        for line in self.process.stdout:
            said = json.loads(line)
            if {"outcome", "refused", "failed"} & set(said):
                return said
        self.log.seek(0)
        raise AssertionError("a person ended: " + self.log.read()[-2000:])

    def do(self, deed, **arguments):
        """Outcome of a deed that is not refused."""
        self.order(deed, **arguments)
        said = self.answer()
        assert "outcome" in said, (deed, said)
        return said["outcome"]

    def begin_attack(self, deed, **arguments):
        """A deed that goes on until it is stopped; what it does is told meanwhile."""
        self.order(deed, reports=True, **arguments)
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.told.append(json.loads(line))

    def has_done(self):
        """Whether the attack has come to something: a call was answered or refused, what is not to be
        answered was sent. On a busy machine that takes a while."""
        last = self.told[-1] if self.told else {}
        assert "failed" not in last and "refused" not in last, last
        return last.get("counts", {}).get("done", 0) > 0

    def await_attack(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.has_done():
            assert time.monotonic() < deadline and self.process.poll() is None, self.told[-1:]
            select.select([], [], [], 0.02)  # between two looks

    def stop(self):
        """Kills it; what it has done, by kind."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        if self.listener is not None:
            self.listener.join(PATIENCE_S)
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()
        return self.told[-1]["counts"] if self.told else {}


class Scene:
    """The daemon, the administrator and the honest one."""

    def __init__(self, coppiced, proto, fabric=FABRIC, config="", descriptors=None, tls=False,
                 entries=64, memory_limit=MEMORY_LIMIT):
        directory = tempfile.mkdtemp(prefix="coppice-abuse-", dir=SCRATCH)
        self.persons = []
        listen = ()
        if tls:
            self.authority = Authority(directory, ("server", "attacker", "honest"))
            config += ('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
                       'client_ca = "authority.pem"\n')
            listen = ("127.0.0.1:0",)
        self.protocol = os.path.join(directory, "coppice.protocol")
        protocol.describe(proto, self.protocol)
        self.victim = Victim(coppiced, directory, fabric, config, listen, descriptors, entries,
                             NICE, memory_limit).start()
        self.tcp_address = self.victim.bound_address() if tls else None
        self.administrator = self.person(0)
        self.administrator.do("sweep")

    def person(self, uid, nice=NICE, address=None, group=SOCKET_GROUP, certificate=None):
        self.persons.append(Person(self, uid, nice, address, group, certificate))
        return self.persons[-1]

    def attacker(self, address=None, is_certified=False):
        return self.person(ATTACKER_UID, nice=ATTACKER_NICE, address=address,
                           certificate=self.authority.files_of("attacker") if is_certified else None)

    def stranger(self):
        """Who is not in the socket's group."""
        return self.person(STRANGER_UID, nice=ATTACKER_NICE, group=STRANGER_UID)

    def honest(self, is_certified=False):
        """At the socket or, with a certificate, over TLS."""
        person = self.person(HONEST_UID, address=self.tcp_address if is_certified else None,
                             certificate=self.authority.files_of("honest") if is_certified else None)
        person.do("begin")
        return person

    def clean_up(self):
        for person in self.persons:
            if person.process.poll() is None:
                person.stop()
        self.victim.clean_up()
