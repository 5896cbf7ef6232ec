"""A simulated InfiniBand subnet for a test of whole programs: ibsim on a generated fabric, with a
socket name and a directory of its own. What runs on it needs its environment and few open files."""

import atexit
import glob
import itertools
import os
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE_S = 120


def preload():
    """umad2sim's path."""
    found = [path for root in ("/usr/lib/*", "/usr/lib64", "/usr/lib", "/usr/local/lib")
             for path in glob.glob(root + "/umad2sim/libumad2sim.so")]
    if not found:
        raise AssertionError("no libumad2sim.so: install ibsim-utils")
    return found[0]


def few_files():
    """The preload takes all descriptors from 1,024 on for its own. To be called in a child."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("in vain: " + what)
        select.select([], [], [], 0.01)  # between two looks


class SimulatedSubnet:
    numbers = itertools.count(1)

    def __init__(self, net, host="n0000"):
        self.directory = tempfile.mkdtemp(prefix="coppice-sim-")
        shutil.copy(net, os.path.join(self.directory, "net"))
        self.log = os.path.join(self.directory, "ibsim.log")
        name = "%s-%d" % (os.path.basename(self.directory), next(self.numbers))
        self.environment = {**os.environ, "IBSIM_SOCKNAME": name, "SIM_HOST": host,
                            "LD_PRELOAD": preload(), "OSM_CACHE_DIR": self.directory,
                            "OSM_TMP_DIR": self.directory}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["ibsim", "-s", "net"], cwd=self.directory, stdin=subprocess.PIPE, stdout=log,
                stderr=log, env={**os.environ, "IBSIM_SOCKNAME": name})
        self.manager = None
        atexit.register(self.end)  # unittest's clean-ups do not run on Ctrl-C
        wait_until(lambda: self.prompts() >= 1, "ibsim")

    def prompts(self):
        with open(self.log, "rb") as log:
            return log.read().count(b"sim> ")

    def console(self, command):
        before = self.prompts()
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        wait_until(lambda: self.prompts() > before, command)

    def manage(self, *options):
        """LIDs and forwarding tables, once."""
        subprocess.run(["opensm", "--once", "-R", "minhop", "-f", "osm.log", *options], cwd=self.directory,
                       env=self.environment, check=True, capture_output=True, timeout=PATIENCE_S,
                       preexec_fn=few_files)

    def start_manager(self, host):
        """One that stays, at that host, and looks for no changes; with -d 2 it holds no line of its log back."""
        log = os.path.join(self.directory, "stays.log")
        if os.path.exists(log):
            os.unlink(log)
        self.manager = subprocess.Popen(["opensm", "-s", "0", "-d", "2", "-R", "minhop", "-f", log], cwd=self.directory,
                                        env={**self.environment, "SIM_HOST": host}, preexec_fn=few_files,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def is_up():
            with open(log, "rb") as file:
                return b"SUBNET UP" in file.read()
        wait_until(lambda: os.path.exists(log) and is_up(), "the subnet manager")

    def end_manager(self):
        if self.manager is not None:
            self.manager.kill()
            self.manager.wait(PATIENCE_S)
        self.manager = None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.end_manager()
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        shutil.rmtree(self.directory, ignore_errors=True)
