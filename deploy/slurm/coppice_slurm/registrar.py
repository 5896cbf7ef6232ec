"""A job of Slurm's becomes one of Coppice's: on the nodes that it got, a rank for each task.

Everything is done in the name of the job's user, who thereby may take trees, and whose forged comment
could not touch another's job.

Ranks are in Slurm's order, or in that of a pattern which the user named (comment.py): then srun has to
start them so, too, and the job's mark in the comment says that to node-prolog."""

import dataclasses
import os
import re

from coppice_slurm.accounts import on_account
from coppice_slurm.comment import NO_WISHES, in_partition, marked
from coppice_slurm.daemon import Refused
from coppice_slurm.known_jobs import KnownJobs

PLACEMENT_MARK = re.compile(r"coppice-placement=(\d+)$", re.A)


def name_of(cluster, number):
    return f"slurm-{cluster}-{number}"


def even_ranks(facts, node_count):
    """Tasks on each node where Slurm spreads them evenly; else None."""
    tasks = int(facts["NumTasks"]) if facts["NumTasks"].isdigit() else 0
    return tasks // node_count if tasks > 0 and tasks % node_count == 0 else None


@dataclasses.dataclass(frozen=True)
class Allocation:
    number: str    # Slurm's, of the job
    uid: str
    nodes: list    # in Slurm's order
    comment: str
    facts: dict    # slurm.FACTS

    def ranks_per_node(self):
        return even_ranks(self.facts, len(self.nodes)) or 1


class Registrar:
    """Makes allocations jobs of Coppice's."""

    def __init__(self, settings, slurm, daemon, journal, cluster):
        self.slurm = slurm
        self.daemon = daemon
        self.journal = journal
        self.cluster = cluster
        self.known = KnownJobs(settings)

    def register(self, allocation, lease_s, deadline=None, wishes=NO_WISHES):
        """Coppice's job, whose number the comment has afterwards. Carried out once, however often it
        is asked for. `wishes`: of a job whose ranks may be ordered. Away, Refused, Failed."""
        how = {"user": allocation.uid, "deadline": deadline}
        job, is_ordered = self.start_placement(allocation, lease_s, wishes, how)
        if job is None:
            hosts = self.order(allocation, wishes, how) if wishes.pattern else None
            is_ordered = hosts is not None
            each = allocation.ranks_per_node()
            job = self.register_hosts(
                allocation, hosts or [node for node in allocation.nodes for _ in range(each)],
                lease_s, wishes, how)
        self.known.add(job, name_of(self.cluster, allocation.number))
        self.slurm.update(allocation.number,
                          Comment=marked(allocation.comment, job, is_ordered))
        return job

    # --- on nodes that Slurm chose ---

    def order(self, allocation, wishes, how):
        """The node of each rank, as the pattern wants it. None if that cannot be found."""
        each, nodes = allocation.ranks_per_node(), allocation.nodes
        try:
            answer = self.daemon.search(
                "map", "--hosts", "-", "--ranks-per-host", str(each),
                f"--application={wishes.pattern}", stdin="".join(node + "\n" for node in nodes), **how)
        except Refused as error:
            self.journal.say(f"job {allocation.number}: ranks are not ordered: {error}")
            return None
        positions = answer["permutation"]
        if sorted(positions) != list(range(len(nodes) * each)):
            raise ValueError(f"coppicectl map: no order of {len(nodes) * each} ranks")
        return [nodes[position // each] for position in positions]

    def register_hosts(self, allocation, hosts, lease_s, wishes, how):
        """`hosts`: of each rank."""
        name = name_of(self.cluster, allocation.number)
        # Another one for each run of a job: a job that was requeued was submitted anew.
        run = f"{name}@{allocation.facts['SubmitTime']}.{allocation.facts['RestartCnt']}"
        command = ("job", "register", "--endpoints", "-", "--name", name, "--lease",
                   f"{lease_s:.0f}s", *in_partition(wishes),
                   *on_account(self.slurm, allocation.facts), "--request-id")
        stdin = "".join(host + "\n" for host in hosts)
        try:
            return self.daemon.ask(*command, run, stdin=stdin, **how)["id"]
        except Refused as error:
            if "[ALREADY_EXISTS]" not in str(error):
                raise
        # That job is over, its lease ran out while nobody renewed it; or it was asked for otherwise; or
        # another user took the id to be in the way, which cannot be done with one that nobody knows.
        return self.daemon.ask(*command, f"{run}.{os.urandom(8).hex()}", stdin=stdin, **how)["id"]

    # --- on those of a placement ---

    def start_placement(self, allocation, lease_s, wishes, how):
        """The job that takes the place of what was chosen, and whether its ranks are ordered. None, False
        if Slurm chose other nodes, or its ranks have to be in another order than the placement's."""
        found = PLACEMENT_MARK.match(self.slurm.admin_comment(allocation.number))
        if found is None:
            return None, False
        each = allocation.ranks_per_node()
        try:
            placement = self.daemon.ask("placement", "show", found.group(1), **how)
            if wishes.pattern:  # the order was found together with the nodes
                fits = (sorted(placement["nodes"]) == sorted(allocation.nodes)
                        and len(placement.get("permutation", [])) == len(allocation.nodes) * each)
            else:
                fits = placement["nodes"] == allocation.nodes
            if not fits:
                self.daemon.ask("placement", "release", found.group(1), **how)
                return None, False
            job = self.daemon.ask(
                "placement", "start", found.group(1), "--ranks-per-node",
                str(each), "--lease", f"{lease_s:.0f}s",
                *(["--arrange-ranks"] if wishes.pattern else []), **how)
            # Started before, it may be over: its lease ran out while nobody renewed it.
            if job["state"] == "JOB_STATE_ACTIVE":
                return job["id"], bool(wishes.pattern)
        except Refused as error:
            self.journal.say(f"job {allocation.number}: placement {found.group(1)}: {error}")
        return None, False
