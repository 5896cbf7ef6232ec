"""A Slurm for a test, the real one: munged, slurmctld and one slurmd a node, all on this machine.

Everything is in one scratch directory, on ports of its own, without systemd, control groups and a
database. It needs root, as a slurmd does. What it started is gone after end(), also after a failed
test: its processes by number, and those of jobs, which leave their parents, by the configuration
that their environment names."""

import atexit
import ctypes
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE_S = 120
PR_SET_PDEATHSIG = 1
FIRST_PORT, LAST_PORT = 15000, 32000  # below those that the kernel gives away
LIBC = ctypes.CDLL(None)

CONFIGURATION = """\
ClusterName={name}
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={directory}/munge/socket
SlurmctldPort={port}
SlurmctldPidFile={directory}/slurmctld.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmctldDebug=debug
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmdLogFile={directory}/slurmd.%n.log
SlurmdSpoolDir={directory}/spool/%n
StateSaveLocation={directory}/state
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
TopologyPlugin=topology/{topology}
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=0
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=1
SlurmctldTimeout=300
SlurmdTimeout=300
MessageTimeout=60
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
NodeName={nodes} NodeHostname=localhost Port=[{first}-{last}] CPUs=4 RealMemory=100 State=UNKNOWN
"""


def wait_until(condition, what, patience=PATIENCE_S):
    """`what`: for the error, a text or what makes one. Most looks start a program: between two of them is a
    pause of several times what one takes, so that a wait leaves the processor to what is waited for."""
    deadline = time.monotonic() + patience
    begun = time.monotonic()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("in vain: " + (what() if callable(what) else what))
        select.select([], [], [], min(max(0.05, 4 * (time.monotonic() - begun)), 0.5))
        begun = time.monotonic()


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            return True
        except OSError:
            return False


def reserve_ports(count):
    """The first of `count` neighbouring ports that nobody listens at, and a socket whose name keeps
    other clusters away from them."""
    blocks = range(FIRST_PORT, LAST_PORT - count, 64)
    start = os.getpid() % len(blocks)
    for number in range(len(blocks)):
        first = blocks[(start + number) % len(blocks)]
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0coppice-slurm-ports-{first}")
        except OSError:
            lock.close()
            continue
        if all(is_free(first + i) for i in range(count)):
            return first, lock
        lock.close()
    raise AssertionError("no free ports")


def die_with_parent():
    """To be called in a child: an interrupted test leaves no servers."""
    os.setsid()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class SlurmCluster:
    def __init__(self, nodes, settings="", topology="tree", name="copse"):
        """`nodes`: their names, as many as hosts. `settings`: more lines of slurm.conf, where
        {directory} is the scratch directory and {accounting_port} a port of the cluster's. `topology`: the plugin;
        tree needs a topology.conf before start()."""
        self.name = name
        self.nodes = list(nodes)
        self.directory = tempfile.mkdtemp(prefix="coppice-slurm-")
        os.chmod(self.directory, 0o755)  # jobs of other users run in here
        for folder in ("munge", "spool", "state", "out"):
            os.mkdir(os.path.join(self.directory, folder), 0o755)
        os.chmod(self.path("out"), 0o777)
        self.port, self.lock = reserve_ports(2 + len(self.nodes))
        self.accounting_port = self.port + 1 + len(self.nodes)
        self.configuration = self.path("slurm.conf")
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(
                name=name, directory=self.directory, topology=topology, port=self.port, nodes=",".join(self.nodes),
                first=self.port + 1, last=self.port + len(self.nodes)))
            file.write(settings.format(directory=self.directory, accounting_port=self.accounting_port))
        self.environment = {**os.environ, "SLURM_CONF": self.configuration}
        self.processes = {}
        atexit.register(self.end)  # unittest's clean-ups do not run on Ctrl-C

    def path(self, *names):
        return os.path.join(self.directory, *names)

    # --- servers ---

    def launch(self, name, *command):
        with open(self.path(name + ".out"), "ab") as out:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.directory,
                env=self.environment, preexec_fn=die_with_parent)

    def start(self, with_nodes=True):
        """munged, unless it runs, and slurmctld, and the nodes' slurmds until all are idle."""
        if "munged" not in self.processes:
            self.start_munged()
        self.start_controller()
        if with_nodes:
            for node in self.nodes:
                self.start_node(node)
            self.wait_until_idle()
        return self

    def start_munged(self):
        key = self.path("munge", "key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o600)
        self.launch("munged", "/usr/sbin/munged", "--foreground", "--force", "--num-threads=2",
                    "--key-file=" + key, "--socket=" + self.path("munge", "socket"),
                    "--pid-file=" + self.path("munge", "pid"),
                    "--log-file=" + self.path("munge", "log"),
                    "--seed-file=" + self.path("munge", "seed"))
        wait_until(lambda: os.path.exists(self.path("munge", "socket")), "munged")

    def start_controller(self):
        self.launch("slurmctld", "/usr/sbin/slurmctld", "-D")
        wait_until(lambda: self.run("scontrol", "ping", check=False)[0] == 0,
                   lambda: "slurmctld: " + self.said("slurmctld"))

    def start_node(self, node):
        self.launch(node, "/usr/sbin/slurmd", "-D", "-N", node)

    def wait_until_idle(self, nodes=None):
        wanted = set(nodes or self.nodes)
        wait_until(lambda: {node for node, state in self.node_states().items()
                            if state == "idle"} >= wanted, lambda: f"idle nodes: {self.node_states()}")

    def stop(self, name, how=signal.SIGKILL):
        process = self.processes.pop(name)
        if process.poll() is None:
            process.send_signal(how)
        process.wait(PATIENCE_S)

    def said(self, name):
        with open(self.path(name + ".out"), encoding="utf-8", errors="replace") as out:
            return out.read()

    # --- what users and administrators do ---

    def run(self, *command, check=True, user=None, stdin="", timeout=PATIENCE_S):
        """Exit status, standard output and standard error of a command of Slurm's."""
        if user is not None:
            entry = pwd.getpwnam(user)
            command = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}",
                       "--clear-groups", *command]
        done = subprocess.run(command, capture_output=True, encoding="utf-8",
                              errors="replace", timeout=timeout,
                              check=False, env=self.environment, cwd=self.path("out"), input=stdin)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.returncode, done.stdout, done.stderr

    def submit(self, script, *options, user=None):
        """Number of a batch job; its output is output(number)."""
        _, out, _ = self.run("sbatch", "--parsable", "--output", self.path("out", "%j"), *options,
                             stdin="#!/bin/bash\n" + script + "\n", user=user)
        return out.strip().split(";")[0]

    def output(self, job):
        try:
            with open(self.path("out", job), encoding="utf-8") as out:
                return out.read()
        except FileNotFoundError:
            return ""

    def show(self, job):
        """What scontrol says of a job, by key."""
        _, out, _ = self.run("scontrol", "--oneliner", "show", "job", job)
        return dict(word.split("=", 1) for word in out.split() if "=" in word)

    def state(self, job):
        return self.show(job)["JobState"]

    def names(self, node_list):
        _, out, _ = self.run("scontrol", "show", "hostnames", node_list)
        return out.split()

    def nodes_of(self, job):
        return self.names(self.show(job)["NodeList"])

    def wait_for(self, job, *states):
        wait_until(lambda: self.state(job) in states,
                   lambda: f"job {job} to be {states}: {self.show(job)}")

    def node_states(self):
        _, out, _ = self.run("sinfo", "-h", "-N", "-o", "%N %t", check=False)
        return dict(line.split() for line in out.splitlines())

    # --- the end ---

    def owned(self):
        """Processes that have our configuration in their environment."""
        mark = b"SLURM_CONF=" + self.configuration.encode()
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/environ", "rb") as environ:
                    if mark in environ.read().split(b"\0") and int(number) != os.getpid():
                        found.append(int(number))
            except OSError:
                continue  # it has gone, or is none of root's
        return found

    def end(self):
        if not os.path.isdir(self.directory):
            return
        for name in list(self.processes):
            self.stop(name)
        deadline = time.monotonic() + PATIENCE_S
        while (left := self.owned()) and time.monotonic() < deadline:
            for number in left:
                try:
                    os.kill(number, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            select.select([], [], [], 0.05)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.lock.close()
