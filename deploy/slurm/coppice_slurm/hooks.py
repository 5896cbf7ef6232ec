"""PrologSlurmctld and EpilogSlurmctld: a job of Slurm's is registered with the nodes that it got, and
ended with it."""

import dataclasses
import re
import time

from coppice_slurm.comment import job_in, unmarked, wishes_in
from coppice_slurm.daemon import Away, Daemon, Refused
from coppice_slurm.journal import Journal
from coppice_slurm.known_jobs import KnownJobs
from coppice_slurm.leases import is_alive, lease_for
from coppice_slurm.registrar import Allocation, Registrar, even_ranks
from coppice_slurm.slurm import Failed, Slurm


def fewest_cpus(counts):
    """Of a node, in "4(x3),2"; 0 if that cannot be read."""
    words = (counts or "").split(",")
    found = [re.fullmatch(r"(\d+)(?:\(x\d+\))?", word, re.A) for word in words]
    return min(int(match.group(1)) for match in found) if all(found) else 0


def why_not_ordered(allocation, environment):
    """Why this job's ranks stay in Slurm's order, whatever its pattern; None if they need not."""
    if "SLURM_HET_JOB_ID" in environment:
        return "it is one of several of a heterogeneous job"
    if allocation.facts["BatchFlag"] != "1":
        return "no batch script would start them so"
    each = even_ranks(allocation.facts, len(allocation.nodes))
    if each is None:
        return (f"{allocation.facts['NumTasks']} tasks are not as many on each of "
                f"{len(allocation.nodes)} nodes")
    # srun would have to put as many on a node as it lacks CPUs for, and would refuse.
    per_task = allocation.facts["cpus-per-task"]
    if each * (int(per_task) if per_task.isdigit() else 1) > fewest_cpus(
            environment.get("SLURM_JOB_CPUS_PER_NODE")):
        return f"not every node has CPUs for {each} tasks"
    return None


def wishes_of(allocation, environment, journal):
    """What can be done of what the user asked for; the rest is told."""
    wishes = wishes_in(allocation.comment)
    if wishes.unread:
        journal.say(f"job {allocation.number}: its comment has what is not understood: "
                    f"{' '.join(wishes.unread[:3])}")
    why = why_not_ordered(allocation, environment) if wishes.pattern else None
    if why is None:
        return wishes
    journal.say(f"job {allocation.number}: ranks are not ordered: {why}")
    return dataclasses.replace(wishes, pattern="")


def prolog(settings, environment):
    """PrologSlurmctld: waits `patience_s` at most for the daemon, and twice that in all, whatever
    becomes of it: what slurmctld has to kill, it puts back into the queue."""
    deadline = time.monotonic() + settings.patience_s
    journal = Journal(settings, "coppice-slurm")
    slurm = Slurm(settings, deadline + settings.patience_s)
    number = environment["SLURM_JOB_ID"]
    comment = environment.get("SLURM_JOB_COMMENT", "")
    registrar = Registrar(settings, slurm, Daemon(settings, journal), journal,
                          environment.get("SLURM_CLUSTER_NAME", ""))
    try:
        facts = slurm.facts(number)
        allocation = Allocation(number, environment["SLURM_JOB_UID"],
                                slurm.names(environment["SLURM_JOB_NODELIST"]), comment, facts)
        registrar.register(allocation, lease_for(settings, facts, is_alive(settings)), deadline,
                           wishes_of(allocation, environment, journal))
        return
    except Away:
        pass  # that was told once
    except (Refused, Failed) as error:
        journal.say(f"job {number} is not registered: {error}", is_warning=True)
    if job_in(comment) is not None:  # of an earlier run of the job, or forged
        try:
            slurm.update(number, Comment=unmarked(comment))
        except Failed as error:
            journal.say(f"job {number}: {error}")


def epilog(settings, environment):
    """EpilogSlurmctld. What it misses ends with the lease, or by the steward."""
    journal = Journal(settings, "coppice-slurm")
    job = job_in(environment.get("SLURM_JOB_COMMENT"))
    if job is None:
        return
    try:
        Daemon(settings, journal).ask("job", "end", job, user=environment["SLURM_JOB_UID"])
        KnownJobs(settings).forget(job)
    except Away:
        pass
    except (Refused, Failed) as error:
        journal.say(f"job {environment['SLURM_JOB_ID']}: {error}", is_warning=True)
