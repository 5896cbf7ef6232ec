"""Starts and stops a coppice-agent for a test, before a coppiced of coppiced_process.py, and processes
that hold jobs with it."""

import atexit
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60


def start_holder(library, agent_socket, ranks, **options):
    """A process that registers a job of 2 s and holds it until it is killed; and the job's id. It
    creates a tree for each line that it is given."""
    program = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.path.insert(0, %r); import libcoppice\n"
         "client = libcoppice.Client(%r, %r)\n"
         "job = client.register(%r, hold=True, lease_ms=2000)\n"
         "print(job, flush=True)\n"
         "for line in sys.stdin:\n"
         "    print(client.create_tree(job), flush=True)\n"
         % (os.path.dirname(os.path.abspath(__file__)), library, agent_socket, ranks)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    return program, program.stdout.readline().strip()


class Agent:
    def __init__(self, program, server, host, prefix=(), owner=None):
        """`prefix`: a command that takes it elsewhere; `owner`: the user that it becomes there."""
        self.directory = tempfile.mkdtemp(prefix="coppice-agent-")
        os.chmod(self.directory, 0o755)  # other users' processes come to its socket
        self.socket = os.path.join(self.directory, "agent.sock")
        self.state = os.path.join(self.directory, "state")
        os.mkdir(self.state, 0o700)
        if owner is not None:
            for folder in (self.directory, self.state):
                os.chown(folder, owner, owner)
        self.log = os.path.join(self.directory, "log")
        self.command = [*prefix, program, "--socket", self.socket, "--state-dir", self.state,
                        "--host", host, "--measure-listen", "127.0.0.1:0"]
        if server is not None:  # else a configuration that is added names it
            self.command += ["--server", server]
        self.process = None
        atexit.register(self.clean_up)

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError("coppice-agent ended: " + self.logged())
            probe = socket.socket(socket.AF_UNIX)
            try:
                probe.connect(self.socket)
                return self
            except OSError:
                select.select([], [], [], 0.01)  # between two looks
            finally:
                probe.close()
        raise AssertionError("coppice-agent does not listen at " + self.socket)

    def logged(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def end(self, how=signal.SIGTERM):
        """Sends the signal; exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=PATIENCE_S)

    def clean_up(self):
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
