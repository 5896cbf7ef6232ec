"""Starts and stops a coppiced for a test: in a scratch directory, on a model fabric, on a Unix
socket of its own; readiness is polled, nothing sleeps for a fixed time."""

import atexit
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
PATIENCE_S = 60


class Coppiced:
    def __init__(self, program, directory=None, fabric=FABRIC, entries=4,
                 degree_limit=16):
        self.directory = directory or tempfile.mkdtemp(prefix="coppice-it-")
        self.socket = os.path.join(self.directory, "coppiced.sock")
        self.address = "unix:" + self.socket
        self.database = os.path.join(self.directory, "coppice.db")
        self.config = os.path.join(self.directory, "coppiced.toml")
        with open(self.config, "w", encoding="utf-8") as config:
            config.write('[[switches]]\ndescription = "*"\nentries = %d\ndegree_limit = %d\n'
                         % (entries, degree_limit))
        self.command = [program, "--config", self.config, "--fabric", fabric,
                        "--database", self.database, "--listen", self.address]
        self.process = None
        atexit.register(self.clean_up)  # unittest's clean-ups do not run on Ctrl-C

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        return self

    def wait_until_listening(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError("coppiced ended: " + self.process.stderr.read())
            probe = socket.socket(socket.AF_UNIX)
            try:
                probe.connect(self.socket)
                return self
            except OSError:
                select.select([], [], [], 0.01)  # between two looks
            finally:
                probe.close()
        raise AssertionError("coppiced does not listen at " + self.socket)

    def end(self, how=signal.SIGTERM):
        """Sends the signal; exit status and what was written to stderr."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, errors

    def run(self, timeout=PATIENCE_S):
        """Runs it to its end, as one that cannot start does."""
        done = subprocess.run(self.command, capture_output=True, text=True, timeout=timeout,
                              check=False)
        return done.returncode, done.stderr

    def clean_up(self):
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
