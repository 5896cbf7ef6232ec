"""The daemon that is attacked: a real coppiced as its unit would run it, watched. A thread looks at its
memory and ends it where MemoryMax would; another hears its signs of life as systemd would."""

import os
import re
import resource
import select
import signal
import socket
import subprocess
import threading
import time

from coppiced_process import PATIENCE_S, Coppiced

MEMORY_LIMIT = 2_000_000_000  # the daemon is ended beyond it
LOOK_S = 0.01
STEADY_S = 0.5
WATCHDOG_S = 6.0  # the unit's is ten times as long
SOCKET_GROUP = 61100  # of all persons; no group of any machine
PAGE = os.sysconf("SC_PAGE_SIZE")
# Memory, so that a busy disk of this machine is not taken for the attack's doing.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Victim(Coppiced):
    def __init__(self, program, directory, fabric, config="", listen=(), descriptors=None, entries=64, nice=0,
                 memory_limit=MEMORY_LIMIT):
        super().__init__(program, directory=directory, fabric=fabric, entries=entries)
        os.chmod(self.directory, 0o755)  # other users come to the socket
        with open(self.config, encoding="utf-8") as file:
            text = file.read()
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(config + "\n" + text)
        for address in listen:
            self.command += ["--listen", address]
        self.log_path = os.path.join(self.directory, "log")
        self.descriptors = descriptors or resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.nice = nice
        self.memory_limit = memory_limit
        self.peak_seen = 0
        self.signs = []
        self.is_ready = threading.Event()
        self.was_ended = False  # by us, as it grew beyond its limit
        self.ear = None

    def start(self):
        """Also again, after it has ended."""
        if self.process is not None:
            self.process.wait(PATIENCE_S)
        self.was_ended = False
        self.is_ready.clear()
        ear_path = os.path.join(self.directory, "notify")
        if self.ear is None:
            self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.ear.bind(ear_path)
            threading.Thread(target=self.hear, daemon=True).start()
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command, stderr=log, preexec_fn=self.set_limits,
                env={**os.environ, "NOTIFY_SOCKET": ear_path,
                     "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))})
        self.await_ready()
        # Whose socket it is, the packages decide (deploy/coppiced.toml); who attacks is one who may
        # connect.
        if os.geteuid() == 0:
            os.chown(self.socket, 0, SOCKET_GROUP)
            os.chmod(self.socket, 0o660)
        threading.Thread(target=self.watch_memory, args=[self.process], daemon=True).start()
        return self

    def set_limits(self):
        os.nice(self.nice)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))

    def await_ready(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_ready.wait(LOOK_S):
            assert self.process.poll() is None, "coppiced ended: " + self.said()
            assert time.monotonic() < deadline, "coppiced is not ready: " + self.said()

    def hear(self):
        while True:
            try:
                said = self.ear.recv(4096)
            except OSError:
                return  # closed
            if b"READY=1" in said:
                self.is_ready.set()
            if b"WATCHDOG=1" in said:
                self.signs.append(time.monotonic())

    def watch_memory(self, process):
        while process.poll() is None:
            resident = self.resident()
            self.peak_seen = max(self.peak_seen, resident)
            if resident > self.memory_limit:
                self.was_ended = True
                process.kill()
                return
            time.sleep(LOOK_S)

    def said(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def bound_address(self):
        """Its address over TCP, of a port that the kernel chose."""
        return re.search(r"listening on .*(127\.0\.0\.1:\d+)", self.said()).group(1)

    # --- what an attack does to it ---

    def has_ended(self):
        return self.was_ended or self.process.poll() is not None

    def resident(self):
        """Bytes; 0 of one that has ended."""
        try:
            with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * PAGE
        except (OSError, IndexError):
            return 0

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # VmHWM begins anew (proc(5))
        self.peak_seen = 0

    def peak(self):
        """Most bytes resident since forget_peak; of one that has ended, that were seen."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
                for line in file:
                    if line.startswith("VmHWM:"):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass
        return self.peak_seen

    def latest_sign(self, begun):
        """Longest time without a sign of life since `begun`."""
        heard = [begun] + [sign for sign in self.signs if sign > begun] + [time.monotonic()]
        return max(after - before for before, after in zip(heard, heard[1:]))

    def kept_bytes(self):
        """Of the database with its log."""
        return sum(os.path.getsize(os.path.join(self.directory, name))
                   for name in os.listdir(self.directory) if name.startswith("coppice.db"))

    def await_memory(self, most, patience_s, meanwhile=lambda: select.select([], [], [], 0.02)):
        """Waits until it has given memory back, and for a while takes none again, as one does that
        has requests under way still; what it has then. One that nobody calls keeps some: a thread
        of jemalloc sleeps while an arena has less than 4 MB to give back."""
        deadline = time.monotonic() + patience_s
        since = time.monotonic()
        while (now := time.monotonic()) < deadline and now - since < STEADY_S:
            if self.resident() > most:
                since = now
            meanwhile()
        return self.resident()

    def clean_up(self):
        super().clean_up()
        if self.ear is not None:
            self.ear.close()

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE_S), None
