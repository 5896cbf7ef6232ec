"""A job of Slurm's as a job of Coppice's: registered with the nodes that it got, ended with it.

The number of Coppice's job stands in the job's comment ("coppice-job=7", behind what the user wrote
there): Slurm hands the comment to the prologs of the nodes and to EpilogSlurmctld, and nobody has to
ask for it. Everything is done in the name of the job's user, who thereby may take trees, and whose
forged comment could not touch another's job."""

import dataclasses
import re
import time

from coppice_slurm.daemon import Away, Daemon, Refused
from coppice_slurm.journal import Journal
from coppice_slurm.slurm import Failed, Slurm

JOB_MARK = re.compile(r"(?:^|\s)coppice-job=(\d+)\s*$")
ATTEMPTS = 9  # to register one allocation
PLACEMENT_MARK = re.compile(r"coppice-placement=(\d+)$")


def name_of(cluster, number):
    return f"slurm-{cluster}-{number}"


def job_in(comment):
    """Coppice's job that a comment ends with; None."""
    found = JOB_MARK.search(comment or "")
    return found.group(1) if found else None


def marked(comment, job):
    """The comment with that job at its end."""
    own = JOB_MARK.sub("", comment or "").strip()
    return f"coppice-job={job}" if own in ("", "(null)") else f"{own} coppice-job={job}"


def ranks_per_node(facts, nodes):
    """As many ranks on each node as Slurm spreads tasks evenly; else one."""
    tasks = int(facts["NumTasks"]) if facts["NumTasks"].isdigit() else 0
    return tasks // len(nodes) if tasks > 0 and tasks % len(nodes) == 0 else 1


@dataclasses.dataclass(frozen=True)
class Allocation:
    number: str    # Slurm's, of the job
    uid: str
    nodes: list
    comment: str
    facts: dict    # slurm.FACTS


class Registrar:
    """Makes allocations jobs of Coppice's."""

    def __init__(self, slurm, daemon, journal, cluster):
        self.slurm = slurm
        self.daemon = daemon
        self.journal = journal
        self.cluster = cluster

    def register(self, allocation, lease_s, deadline=None):
        """Coppice's job, whose number the comment has afterwards. Carried out once, however often it
        is asked for. Away, Refused, Failed."""
        job = self.start_placement(allocation, lease_s, deadline)
        if job is None:
            job = self.register_nodes(allocation, lease_s, deadline)
        self.slurm.update(allocation.number, Comment=marked(allocation.comment, job))
        return job

    def request_id(self, allocation, attempt):
        """Another one for each run of a job: a job that was requeued was submitted anew."""
        return (f"{name_of(self.cluster, allocation.number)}@{allocation.facts['SubmitTime']}"
                f".{allocation.facts['RestartCnt']}.{attempt}")

    def register_nodes(self, allocation, lease_s, deadline):
        each = ranks_per_node(allocation.facts, allocation.nodes)
        endpoints = "".join((node + "\n") * each for node in allocation.nodes)
        for attempt in range(ATTEMPTS):
            try:
                return self.daemon.ask(
                    "job", "register", "--endpoints", "-", "--name",
                    name_of(self.cluster, allocation.number), "--request-id",
                    self.request_id(allocation, attempt), "--lease", f"{lease_s:.0f}s",
                    user=allocation.uid, deadline=deadline, stdin=endpoints)["id"]
            except Refused as error:
                # That job's lease has run out, while nobody renewed it: another one.
                if "[ALREADY_EXISTS]" not in str(error) or attempt + 1 == ATTEMPTS:
                    raise
        return None

    def start_placement(self, allocation, lease_s, deadline):
        """The job that takes the place of what was chosen. None if Slurm chose other nodes, or gives
        its ranks to them in another order, which is that of the list."""
        found = PLACEMENT_MARK.match(self.slurm.admin_comment(allocation.number))
        if found is None:
            return None
        how = {"user": allocation.uid, "deadline": deadline}
        try:
            placement = self.daemon.ask("placement", "show", found.group(1), **how)
            if placement["nodes"] == allocation.nodes:
                job = self.daemon.ask(
                    "placement", "start", found.group(1), "--request-id",
                    self.request_id(allocation, 0), "--ranks-per-node",
                    str(ranks_per_node(allocation.facts, allocation.nodes)), "--lease",
                    f"{lease_s:.0f}s", **how)
                # Started before, it may be over: its lease ran out while nobody renewed it.
                return job["id"] if job["state"] == "JOB_STATE_ACTIVE" else None
            self.daemon.ask("placement", "release", found.group(1), **how)
        except Refused as error:
            self.journal.say(f"job {allocation.number}: placement {found.group(1)}: {error}")
        return None


def seconds_of(limit):
    """Of "1-02:03:04", or "30:00" as squeue writes what is less than an hour; a day if it is none."""
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", limit or "", re.A)
    if found is None:
        return 86400
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def lease_for(settings, facts, is_renewed):
    """Seconds: short if the steward renews it, else to the end of the job and a little more, but no
    longer than the day that the daemon grants."""
    if is_renewed:
        return settings.lease_s
    return min(seconds_of(facts.get("TimeLimit")) + settings.lease_s, 86400)


def prolog(settings, environment):
    """PrologSlurmctld: waits `patience_s` at most for the daemon, and twice that in all, whatever
    becomes of it: what slurmctld has to kill, it puts back into the queue."""
    from coppice_slurm.steward import is_alive  # it needs this module, too
    deadline = time.monotonic() + settings.patience_s
    journal = Journal(settings, "coppice-slurm")
    slurm = Slurm(settings, deadline + settings.patience_s)
    number = environment["SLURM_JOB_ID"]
    registrar = Registrar(slurm, Daemon(settings, journal), journal,
                          environment.get("SLURM_CLUSTER_NAME", ""))
    try:
        facts = slurm.facts(number)
        allocation = Allocation(number, environment["SLURM_JOB_UID"],
                                slurm.names(environment["SLURM_JOB_NODELIST"]),
                                environment.get("SLURM_JOB_COMMENT", ""), facts)
        registrar.register(allocation, lease_for(settings, facts, is_alive(settings)), deadline)
    except Away:
        pass  # that was told once
    except (Refused, Failed) as error:
        journal.say(f"job {number} is not registered: {error}", is_warning=True)


def epilog(settings, environment):
    """EpilogSlurmctld. What it misses ends with the lease, or by the steward."""
    journal = Journal(settings, "coppice-slurm")
    job = job_in(environment.get("SLURM_JOB_COMMENT"))
    if job is None:
        return
    try:
        Daemon(settings, journal).ask("job", "end", job, user=environment["SLURM_JOB_UID"])
    except Away:
        pass
    except (Refused, Failed) as error:
        journal.say(f"job {environment['SLURM_JOB_ID']}: {error}", is_warning=True)
