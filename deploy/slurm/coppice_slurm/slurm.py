"""Slurm, asked and told through its own commands."""

import os
import re
import subprocess
import time

PATIENCE_S = 20  # slurmctld may be busy; nobody waits for this who holds it up


class Failed(Exception):
    """A command of Slurm's failed; says which and why."""


# Between columns: no value has it, while constraints have bars ("a|b").
SEPARATOR = "\x1f"
# Of squeue -o. Nothing that a job's user wrote freely is among them: squeue prints a comment or a name as
# it is, and one with an end of line in it could pass for the row of another's job.
QUEUE_FORMAT = {"%A": "id", "%t": "state", "%r": "reason", "%D": "nodes", "%h": "sharing",
                "%n": "required", "%f": "features", "%E": "dependency", "%P": "partition",
                "%Q": "priority", "%v": "reservation", "%U": "uid", "%K": "array_index",
                "%N": "node_list"}
# Of squeue -O, in columns of a width, so that nothing that a user wrote can pass for another field.
FACTS = ("NumTasks", "RestartCnt", "SubmitTime", "TimeLimit", "BatchFlag", "cpus-per-task", "Account")
WIDTH = 256  # as long as the name of an account may be


def lines_of(text):
    """Slurm ends its lines with this alone; splitlines() knows many more ends."""
    return [line for line in text.split("\n") if line]


def jobs_of(text):
    """Rows of squeue as QUEUE_FORMAT names their columns, without those that are no job's."""
    keys = list(QUEUE_FORMAT.values())
    rows = (line.split(SEPARATOR) for line in lines_of(text))
    jobs = [dict(zip(keys, row)) for row in rows if len(row) == len(keys)]
    return [job for job in jobs
            if all(is_number(job[key]) for key in ("id", "uid", "priority"))]


def comment_in(text, number):
    """Of rows with number and comment, which are one job's, or those of an array: that number's."""
    found = re.search(rf"(?:^|\n){number}{SEPARATOR}(.*?)(?:\n\d+{SEPARATOR}|\n?\Z)", text, re.S)
    return found.group(1) if found else ""


def is_number(text):
    return text.isascii() and text.isdigit()


class Slurm:
    def __init__(self, settings, deadline=None):
        """`deadline`: of time.monotonic(), when every answer must be there."""
        self.deadline = deadline
        self.environment = {**os.environ, "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        if settings.slurm_conf:
            self.environment["SLURM_CONF"] = settings.slurm_conf

    def run(self, *command):
        left = PATIENCE_S
        if self.deadline is not None:
            left = min(left, self.deadline - time.monotonic())
        if left <= 0:
            raise Failed(f"{command[0]}: no time left")
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8",
                                  errors="replace", timeout=left, check=False,
                                  env=self.environment, stdin=subprocess.DEVNULL)
        except (subprocess.TimeoutExpired, OSError) as error:
            raise Failed(f"{command[0]}: {error}") from error
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def configured(self, key):
        found = re.search(rf"^{key}\s*=\s*(\S+)", self.run("scontrol", "show", "config"), re.M)
        if found is None:
            raise Failed(f"scontrol show config: no {key}")
        return found.group(1)

    def cluster(self):
        return self.configured("ClusterName")

    def checks_accounts(self):
        """Whether jobs have only accounts that their users are in; else users name what they like."""
        return "associations" in self.configured("AccountingStorageEnforce").split(",")

    def associations(self, cluster):
        """Who is in which account, and whose default which is, as coppicectl account import reads it."""
        return "".join(
            self.run("sacctmgr", "-P", "show", *what, f"cluster={cluster}", f"format={columns}")
            for what, columns in ((["assoc"], "cluster,account,user,parentname"),
                                  (["user", "withassoc"], "cluster,user,defaultaccount")))

    def facts(self, number):
        """FACTS of a job, by name."""
        columns = ",".join(f"{name}:{WIDTH}" for name in FACTS)
        row = self.run("squeue", "--noheader", "--all", "-j", str(number), "-O", columns)
        return {name: row[i * WIDTH:(i + 1) * WIDTH].strip() for i, name in enumerate(FACTS)}

    def admin_comment(self, number):
        """What administrators noted with a job."""
        # Alone: scontrol shows it among what users wrote.
        row = self.run("squeue", "--noheader", "--all", "-j", str(number), "-O",
                       f"admin_comment:{WIDTH}")
        return row.split("\n")[0].strip()

    def comment(self, number):
        """What the job's user noted with it; ends of lines are kept."""
        text = self.run("squeue", "--noheader", "--all", "-j", str(number), "-o",
                        f"%A{SEPARATOR}%k")
        return comment_in(text, number)

    def queue(self):
        """Jobs that are not over, as QUEUE_FORMAT names their columns."""
        text = self.run("squeue", "--noheader", "--all", "-t",
                        "PENDING,CONFIGURING,RUNNING,SUSPENDED,STOPPED,COMPLETING", "-o",
                        SEPARATOR.join(QUEUE_FORMAT))
        return jobs_of(text)

    def idle_nodes(self, partition):
        """Features of each node that is idle and promised to nobody, by its name."""
        text = self.run("sinfo", "--noheader", "-N", "-p", partition, "-t", "idle", "-o",
                        SEPARATOR.join(("%N", "%t", "%f")))
        rows = (line.strip().split(SEPARATOR) for line in lines_of(text))
        return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "idle"}

    def names(self, node_list):
        return self.run("scontrol", "show", "hostnames", node_list).split()

    def update(self, number, **values):
        self.run("scontrol", "update", f"JobId={number}",
                 *(f"{key}={value}" for key, value in values.items()))
