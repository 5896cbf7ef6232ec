"""The service beside slurmctld. Each round looks at Slurm's queue once, and

  - steers jobs (steering.py),
  - renews the leases of jobs that run, so that these are short,
  - ends Coppice's jobs that Slurm no longer has: their epilog did not reach the daemon,
  - registers jobs that run and are none of Coppice's: the daemon was away at their start.

Beside its rounds it imports accounts, where that is asked for (accounts.py).

It remembers which jobs it may end (known_jobs.py) and nothing else that it could not find out anew, and
is not needed for jobs to run."""

import os
import pwd
import signal
import threading
import time

from coppice_slurm.accounts import keep_accounts
from coppice_slurm.comment import Wishes, job_in, wishes_in
from coppice_slurm.daemon import Away, Daemon, Refused
from coppice_slurm.journal import Journal
from coppice_slurm.leases import hide_life, lease_for, show_life
from coppice_slurm.registrar import Allocation, Registrar, name_of
from coppice_slurm.slurm import Failed, Slurm, is_number
from coppice_slurm.steering import Steering

RECONCILE_S = 10  # between two looks at leases, at least


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
    whose names are alike, and so may another cluster ("prod" and "prod-2")."""
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
        self.registrar = Registrar(settings, self.slurm, self.daemon, journal, cluster)
        self.known = self.registrar.known
        self.steering = Steering(settings, self.slurm, self.daemon, journal, cluster)
        self.steering.adopt(self.slurm.queue())
        self.refused = set()  # jobs of Slurm's that the daemon does not want
        self.reconciled = None  # when

    def round(self):
        """Failed: Slurm's side, or coppicectl cannot be run."""
        try:
            self.look()
        except (Away, Failed) as error:
            hide_life(self.settings)  # first: nobody is put off any more
            self.steering.give_up(self.slurm.queue())
            if isinstance(error, Failed):
                raise

    def look(self):
        """Away, Failed."""
        noted = self.known.numbers()  # first of all: what the daemon, asked later, has not is over
        # Then the daemon: a job that it has and Slurm, asked later, has not is over.
        jobs = self.daemon.ask("job", "list", insist=True).get("jobs", [])
        queue = self.slurm.queue()
        # Leases before all else: jobs that run depend on them.
        now = time.monotonic()
        if self.reconciled is None or now - self.reconciled >= self.reconcile_every():
            self.reconciled = now
            self.reconcile(jobs, queue)
            for number in noted - {job["id"] for job in jobs}:
                self.known.forget(number)
        self.steering.round(queue)
        if self.settings.steer_s > 0:
            show_life(self.settings)  # last: nobody is put off for a steward that cannot do its work

    def reconcile_every(self):
        return min(RECONCILE_S, self.settings.lease_s / 10)

    def reconcile(self, jobs, queue):
        users = {job["id"]: job["uid"] for job in queue}
        live = set()
        for number, named in jobs_by_number(jobs, self.prefix).items():
            for job in named:
                is_its_user = number in users and is_user(job["owner"], users[number])
                if not self.known.has(job["id"], job["display_name"]):
                    if not is_its_user or not self.adopt(job, number):
                        continue  # somebody gave it that name
                # An earlier run, whose end the daemon missed, has the same name.
                self.keep_or_end(job, is_its_user and number not in live)
                if is_its_user:
                    live.add(number)
        running = [job for job in queue if job["state"] == "R"]
        self.refused &= {job["id"] for job in running}
        for job in running:
            if job["id"] not in live and job["id"] not in self.refused:
                self.register(job)

    def adopt(self, job, number):
        """Whether a job is that of a running one of Slurm's, as its comment says: what is known was lost
        with the state directory."""
        try:
            if job_in(self.slurm.comment(number)) != job["id"]:
                return False
        except Failed:
            return False  # it has just ended
        self.known.add(job["id"], job["display_name"])
        return True

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
            self.registrar.register(allocation, lease_for(self.settings, facts, is_renewed=True),
                                    wishes=Wishes(partition=wishes_in(allocation.comment).partition))
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
    if settings.accounts_s > 0:
        threading.Thread(target=keep_accounts, args=(settings, journal, over), daemon=True).start()
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
    hide_life(settings)
    return 0
