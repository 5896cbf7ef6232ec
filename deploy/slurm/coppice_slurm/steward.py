"""The service beside slurmctld. Each round looks at Slurm's queue once, and

  - steers jobs (steering.py),
  - renews the leases of jobs that run, so that these are short,
  - ends Coppice's jobs that Slurm no longer has: their epilog did not reach the daemon,
  - registers jobs that run and are none of Coppice's: the daemon was away at their start.

It remembers nothing that it could not find out anew, and is not needed for jobs to run."""

import os
import pwd
import signal
import threading
import time

from coppice_slurm.allocation import Allocation, Registrar, lease_for, name_of
from coppice_slurm.daemon import Away, Daemon, Refused, write
from coppice_slurm.journal import Journal
from coppice_slurm.slurm import Failed, Slurm, is_number
from coppice_slurm.steering import Steering

RECONCILE_S = 10  # between two looks at leases, at least
FRESH_S = 10      # how long a sign of life counts


def sign_path(settings):
    return os.path.join(settings.state_dir, "steering")


def is_alive(settings):
    """Whether a steward is there and the daemon answers it."""
    try:
        with open(sign_path(settings), encoding="utf-8") as sign:
            return time.time() <= float(sign.read().split()[0])
    except (OSError, ValueError, IndexError):
        return False


def seconds(duration):
    """Of a duration in JSON: "12.5s"."""
    return float(duration.rstrip("s"))


def is_user(owner, uid):
    """Whether the owner of a job of Coppice's, a name or a number, is that user of Slurm's."""
    if owner == uid:
        return True
    try:
        return owner == pwd.getpwuid(int(uid)).pw_name
    except (KeyError, OverflowError):
        return False


def jobs_by_number(jobs, prefix):
    """Those of Coppice's that have our names: by Slurm's number, the newest first. A user may have jobs
    whose names begin alike, and so may another cluster ("prod" and "prod-2")."""
    found = {}
    for job in sorted(jobs, key=lambda job: -int(job["id"])):
        name = job.get("display_name", "")
        if name.startswith(prefix) and is_number(name[len(prefix):]):
            found.setdefault(name[len(prefix):], []).append(job)
    return found


class Steward:
    def __init__(self, settings, journal):
        self.settings = settings
        self.journal = journal
        self.slurm = Slurm(settings)
        self.daemon = Daemon(settings, journal)
        cluster = self.slurm.cluster()
        self.prefix = name_of(cluster, "")
        self.registrar = Registrar(self.slurm, self.daemon, journal, cluster)
        self.steering = Steering(settings, self.slurm, self.daemon, journal, cluster)
        self.steering.adopt(self.slurm.queue())
        self.refused = set()  # jobs of Slurm's that the daemon does not want
        self.reconciled = None  # when

    def round(self):
        """Failed: Slurm's side, or coppicectl cannot be run."""
        try:
            self.look()
        except (Away, Failed) as error:
            self.hide()  # first: nobody is put off any more
            self.steering.give_up(self.slurm.queue())
            if isinstance(error, Failed):
                raise

    def look(self):
        """Away, Failed."""
        # The daemon first: a job that it has and Slurm, asked later, has not is over.
        jobs = self.daemon.ask("job", "list", insist=True).get("jobs", [])
        queue = self.slurm.queue()
        # Leases before all else: jobs that run depend on them.
        now = time.monotonic()
        if self.reconciled is None or now - self.reconciled >= self.reconcile_every():
            self.reconciled = now
            self.reconcile(jobs, queue)
        self.steering.round(queue)
        self.show_life()  # last: nobody is put off for a steward that cannot do its work

    def reconcile_every(self):
        return min(RECONCILE_S, self.settings.lease_s / 10)

    def show_life(self):
        """For job_submit.lua, which puts off jobs as long as we are there."""
        steer_s = self.settings.steer_s
        if steer_s > 0:
            write(sign_path(self.settings), f"{time.time() + FRESH_S:.0f} {steer_s:.0f}\n")

    def hide(self):
        try:
            os.unlink(sign_path(self.settings))
        except OSError:
            pass

    def reconcile(self, jobs, queue):
        users = {job["id"]: job["uid"] for job in queue}
        known = set()
        for number, named in jobs_by_number(jobs, self.prefix).items():
            is_live = number in users
            if is_live:  # what another user gave that name is none of ours
                named = [job for job in named if is_user(job["owner"], users[number])]
            for job in named:
                # An earlier run, whose end the daemon missed, has the same name.
                self.keep_or_end(job, is_live and number not in known)
                if is_live:
                    known.add(number)
        running = [job for job in queue if job["state"] == "R"]
        self.refused &= {job["id"] for job in running}
        for job in running:
            if job["id"] not in known and job["id"] not in self.refused:
                self.register(job)

    def keep_or_end(self, job, is_kept):
        name = job["display_name"]
        try:
            if not is_kept:
                self.daemon.ask("job", "end", job["id"])
                self.journal.say(f"{name} is over, job {job['id']} is ended")
            elif seconds(job["lease_left"]) < seconds(job["lease"]) / 2:
                self.daemon.ask("job", "keepalive", job["id"])
        except Refused as error:
            self.journal.say(f"{name}: {error}")

    def register(self, job):
        try:
            facts = self.slurm.facts(job["id"])
            allocation = Allocation(job["id"], job["uid"], self.slurm.names(job["node_list"]),
                                    self.slurm.comment(job["id"]), facts)
            self.registrar.register(allocation, lease_for(self.settings, facts, is_renewed=True))
        except Refused as error:
            self.refused.add(job["id"])
            self.journal.say(f"job {job['id']} is not registered: {error}", is_warning=True)
        except Failed:
            pass  # it has just ended; the next round sees


def run(settings):
    """Until SIGTERM or SIGINT. 0."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    journal = Journal(settings, "coppice-slurm-steward", also_stderr=True)
    os.makedirs(settings.state_dir, exist_ok=True)
    steward, told = None, ""
    while not over.is_set():
        try:
            steward = steward or Steward(settings, journal)
            steward.round()
            told = ""
        except Exception as error:  # whatever it is, the next round is tried
            what = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
            if what != told:
                journal.say(what, is_warning=True)
            told = what
        over.wait(settings.poll_s)
    if steward is not None:
        steward.hide()
    return 0
