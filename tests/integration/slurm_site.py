"""A small cluster for a test: ibsim with OpenSM, coppiced on it, Slurm with one slurmd for each host,
and between them what deploy/slurm has, as a site would install it."""

import json
import os
import signal
import subprocess
import time

from coppiced_process import Coppiced
from simulated_subnet import SimulatedSubnet, few_files
from slurm_cluster import PATIENCE_S, SlurmCluster, wait_until

# Two leaf switches of four hosts.
FABRIC = "model:fat-tree(leaves=2,spines=2,hosts-per-leaf=4)"
HOSTS = [f"n{number:04d}" for number in range(8)]

SCRIPTS = """\
JobSubmitPlugins=lua
PrologSlurmctld={directory}/ctld-hook
EpilogSlurmctld={directory}/ctld-hook
Prolog={directory}/node-prolog
Epilog={directory}/node-epilog
TaskProlog={directory}/task-prolog
"""

NODE_SETTINGS = """\
COPPICE_SERVER={server}
COPPICECTL={coppicectl}
COPPICE_PATIENCE={patience_s}
"""

# Times are long, so that a busy machine does not look like a daemon that is away; tests never wait for
# them to pass, unless a daemon is.
SETTINGS = """\
server = "{server}"
coppicectl = "{coppicectl}"
patience_s = {patience_s}
retry_s = 1
steer_s = {steer_s}
poll_s = 0.2
lease_s = {lease_s}
accounts_s = {accounts_s}
state_dir = "{directory}/notes"
slurm_conf = "{directory}/slurm.conf"
log_file = "{directory}/coppice-slurm.log"
"""


class SlurmSite:
    def __init__(self, coppiced, coppicectl, plan, deploy, topology="none", slurm_settings=""):
        self.coppicectl = coppicectl
        self.daemon = Coppiced(coppiced, fabric="umad", entries=4)
        # Users of jobs connect to the daemon's socket: the nodes here have no agents.
        os.chmod(self.daemon.directory, 0o755)
        with open(self.daemon.config, "r+", encoding="utf-8") as config:
            rules = config.read()
            config.seek(0)
            config.write('socket_mode = "0666"\n' + rules)
        net = os.path.join(self.daemon.directory, "net")
        subprocess.run([plan, "fabric", "--fabric", FABRIC, "--ibsim", net], check=True,
                       capture_output=True, timeout=PATIENCE_S)
        self.subnet = SimulatedSubnet(net)
        self.subnet.manage()
        self.start_daemon()
        self.good("fabric", "sweep")
        self.cluster = SlurmCluster(HOSTS, SCRIPTS + slurm_settings, topology)
        self.deploy = deploy
        self.install()
        self.steward = None

    def clean_up(self):
        if hasattr(self, "cluster"):
            self.cluster.end()
        self.daemon.clean_up()
        self.subnet.end()

    # --- the daemon ---

    def start_daemon(self):
        with open(os.path.join(self.daemon.directory, "log"), "ab") as log:
            self.daemon.process = subprocess.Popen(
                self.daemon.command, cwd=self.subnet.directory, env=self.subnet.environment,
                stdin=subprocess.DEVNULL, stderr=log, preexec_fn=few_files)
        self.daemon.wait_until_listening()
        wait_until(lambda: self.ask("fabric", "show")[0] == 0, "the daemon's fabric")

    def stop_daemon(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait(PATIENCE_S)

    def freeze_daemon(self):
        self.daemon.process.send_signal(signal.SIGSTOP)

    def thaw_daemon(self):
        self.daemon.process.send_signal(signal.SIGCONT)

    def ask(self, *arguments):
        done = subprocess.run([self.coppicectl, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments):
        status, out, errors = self.ask(*arguments)
        assert status == 0, (arguments, out, errors)
        return out

    def of_json(self, *arguments):
        return json.loads(self.good(*arguments, "--json"))

    def entries_taken(self):
        return sum(switch["entries_taken"] for switch in self.of_json("entries")["switches"])

    # --- what a site installs ---

    def write(self, name, text, mode=0o644):
        path = self.cluster.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def install(self, patience_s=20, steer_s=20, lease_s=3600, accounts_s=0):
        """The scripts are run through others that say where the test has its files; a site has them
        where they look by themselves."""
        directory = self.cluster.directory
        os.makedirs(self.cluster.path("notes"), exist_ok=True)
        self.settings = self.write("slurm.toml", SETTINGS.format(
            server=self.daemon.address, coppicectl=self.coppicectl, directory=directory,
            patience_s=patience_s, steer_s=steer_s, lease_s=lease_s, accounts_s=accounts_s))
        self.write("ctld-hook", f'#!/bin/sh\nexec "{self.deploy}/coppice-slurm" '
                   f'--config "{self.settings}"\n', 0o755)
        for script in ("node-prolog", "node-epilog", "task-prolog"):
            # Each node has a folder of its own, as on a machine of its own.
            self.write(script, f'#!/bin/sh\nCOPPICE_SLURM_JOBS="{directory}/jobs/$SLURMD_NODENAME" '
                       f'COPPICE_SLURM_NODE="{directory}/slurm-node.conf" '
                       f'exec "{self.deploy}/{script}"\n', 0o755)
        self.write("slurm-node.conf", NODE_SETTINGS.format(
            server=self.daemon.address, coppicectl=self.coppicectl, patience_s=patience_s))
        with open(os.path.join(self.deploy, "job_submit.lua"), encoding="utf-8") as lua:
            self.write("job_submit.lua", lua.read().replace("/run/coppice-slurm", directory + "/notes"))

    def start_steward(self):
        """Unless it runs."""
        if "steward" not in self.cluster.processes:
            self.cluster.launch("steward", os.path.join(self.deploy, "coppice-slurm"), "--config",
                                self.settings, "steward")
        self.wait_until_steered()

    def stop_steward(self):
        self.cluster.stop("steward", signal.SIGTERM)

    def wait_until_steered(self):
        """job_submit.lua puts off jobs from now on: the steward's sign of life is new, however busy the machine is."""
        begin = time.time()

        def is_steered():
            try:
                return os.stat(self.cluster.path("notes", "steering")).st_mtime >= begin
            except FileNotFoundError:
                return False
        wait_until(is_steered, lambda: "the steward: " + self.cluster.said("steward"))

    def log(self):
        try:
            with open(self.cluster.path("coppice-slurm.log"), encoding="utf-8") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    # --- Slurm's jobs and Coppice's ---

    def job_of(self, number):
        """Coppice's job of a job of Slurm's, from its comment; None."""
        comment = self.cluster.run("squeue", "-h", "-a", "-t", "all", "-j", number, "-o", "%k")[1]
        marks = [word for word in comment.split()
                 if word.startswith(("coppice-job=", "coppice-ordered-job="))]
        return marks[-1].split("=")[1] if marks else None

    def state_of(self, job):
        return self.of_json("job", "show", job)["state"]

    def wait_until_over(self, job):
        wait_until(lambda: self.state_of(job) == "JOB_STATE_ENDED",
                   lambda: f"job {job} to end: {self.of_json('job', 'show', job)}")

    def hold(self, *nodes):
        """A job that stays on those nodes, and runs."""
        number = self.cluster.submit("sleep 600", f"-N{len(nodes)}", "-w", ",".join(nodes))
        self.cluster.wait_for(number, "RUNNING")
        return number

    def wait_until_free(self):
        """Every job is cancelled and over, on both sides."""
        self.cluster.run("scancel", "--user=root", check=False)
        self.cluster.run("scancel", "--user=nobody", check=False)
        self.cluster.wait_until_idle()
        wait_until(lambda: not self.of_json("job", "list").get("jobs"),
                   lambda: f"jobs to end: {self.of_json('job', 'list')}")
