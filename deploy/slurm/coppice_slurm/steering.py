"""Chooses nodes for jobs that could start now, by priority, and has Slurm start them there.

    pending, its start put off by job_submit.lua,
    or simply waiting for nothing but nodes
          |  placement of Coppice's on nodes that are idle now
          v
    put off if it has not started, then
    "ReqNodeList=..., StartTime=now"  --- starts there -------> the prolog starts the placement
          |
          +--- not within `steer_s` ---> ReqNodeList is taken back: Slurm's own choice

A job that does not fit now keeps its partition's turn: no later one is steered past it."""

import time

from coppice_slurm.accounts import on_account
from coppice_slurm.comment import NO_WISHES, in_partition, wishes_in
from coppice_slurm.daemon import Away, Refused
from coppice_slurm.registrar import PLACEMENT_MARK, even_ranks, name_of
from coppice_slurm.slurm import PATIENCE_S, Failed
from coppice_slurm.whole_nodes import has_features, wants_whole_nodes

WAITS_FOR_NODES = ("None", "BeginTime", "Resources", "Priority")
PUT_OFF, LEFT = "coppice-steer", "coppice-left-to-slurm"
HOSTS_KEPT_S = 60
# How long a job is put off while it is told its nodes: longer than both commands may take. Told at once, it has
# waited no longer.
TOLD_WITHIN_S = 3 * PATIENCE_S


class Steering:
    def __init__(self, settings, slurm, daemon, journal, cluster):
        self.settings = settings
        self.slurm = slurm
        self.daemon = daemon
        self.journal = journal
        self.cluster = cluster
        self.steered = {}  # job -> (time by which it must have started, uid)
        self.passed = set()  # jobs that had their turn
        self.hosts, self.hosts_time = set(), 0.0

    def known_hosts(self):
        """Hosts of the fabric; Slurm may have nodes that it does not."""
        if time.monotonic() - self.hosts_time > HOSTS_KEPT_S or not self.hosts:
            nodes = self.daemon.ask("fabric", "nodes")["nodes"]
            self.hosts = {node["host"] for node in nodes}
            self.hosts_time = time.monotonic()
        return self.hosts

    def adopt(self, queue):
        """After a restart: what an earlier steward chose and did not see start."""
        for job in queue:
            if job["state"] != "PD" or not job["required"]:
                continue
            if PLACEMENT_MARK.match(self.slurm.admin_comment(job["id"])):
                self.steered[job["id"]] = (time.monotonic() + self.settings.steer_s, job["uid"])

    def round(self, queue):
        """One look at all jobs. Away, Failed."""
        self.take_back(queue)
        if self.settings.steer_s == 0:
            return
        pending = {job["id"] for job in queue if job["state"] == "PD"}
        self.passed &= pending
        free, closed = {}, set()
        over = time.monotonic() + self.settings.steer_s
        for job in sorted(queue, key=lambda job: -int(job["priority"])):
            if time.monotonic() > over:
                return  # searches took long; the rest in the next round, of what is idle by then
            if job["state"] != "PD" or job["partition"] in closed:
                continue
            if job["id"] in self.steered or job["reason"] not in WAITS_FOR_NODES:
                continue
            if job["partition"] not in free:
                free[job["partition"]] = self.slurm.idle_nodes(job["partition"])
            if not self.give_turn(job, free):
                closed.add(job["partition"])

    def give_turn(self, job, free):
        """False: nobody after it in its partition should be steered in this round."""
        if job["id"] in self.passed or not wants_whole_nodes(job):
            if job["id"] not in self.passed and job["reason"] == "BeginTime":
                self.passed.add(job["id"])
                self.let_begin(job, self.slurm.admin_comment(job["id"]) == PUT_OFF)
            # It is Slurm's. One that waits for nodes is first in line for them.
            return job["reason"] not in ("Resources", "Priority")
        hosts = self.known_hosts()
        candidates = [node for node, features in free[job["partition"]].items()
                      if node in hosts and has_features(features, job["features"])]
        is_put_off = self.slurm.admin_comment(job["id"]) == PUT_OFF
        if job["reason"] == "BeginTime" and not is_put_off:
            return True  # its user said when
        if len(candidates) < int(job["nodes"]):
            self.let_begin(job, is_put_off)
            return False
        self.passed.add(job["id"])
        nodes = self.steer(job, candidates)
        if not nodes:
            self.let_begin(job, is_put_off)
        for partition in free.values():
            for node in nodes:
                partition.pop(node, None)
        return True

    def steer(self, job, candidates):
        """Nodes that the job was sent to; none if that failed."""
        try:
            placement = self.place(job, candidates)
        except Refused as error:
            self.journal.say(f"job {job['id']} is left to Slurm: {error}")
            return []
        if self.tell_nodes(job["id"], job["uid"], placement):
            return placement["nodes"]
        self.release(placement["id"], job["uid"])
        return []

    def tell_nodes(self, number, uid, placement):
        """False: Slurm has started it meanwhile, or cannot be told. Of a job that runs ReqNodeList is another
        thing, a wish to shrink it; afterwards nobody can change that job where no slurmdbd counts it (Slurm
        22.05). A later begin is refused then, and once it is taken nothing starts the job in between."""
        if not self.tell(number, StartTime=f"now+{TOLD_WITHIN_S}"):
            return False
        self.steered[number] = (time.monotonic() + self.settings.steer_s, uid)
        mark = f"coppice-placement={placement['id']}"
        if self.tell(number, ReqNodeList=placement["node_list"], StartTime="now", AdminComment=mark):
            return True
        try:
            if self.slurm.admin_comment(number) == mark:  # it came late, and was carried out
                return True
        except Failed as error:
            self.journal.say(str(error))
        self.tell(number, StartTime="now")
        return False

    def place(self, job, candidates):
        """A placement for what the job does, if its user said that. Away, Refused, Failed."""
        wishes, each, account = self.wishes_of(job)
        command = ["placement", "create", "--nodes", job["nodes"], "--candidates", "-", "--name",
                   name_of(self.cluster, job["id"]), "--term",
                   f"{self.settings.steer_s + self.settings.retry_s:.0f}s",
                   *(["--trees", str(wishes.trees)] if wishes.trees else []), *in_partition(wishes),
                   *account]
        how = {"user": job["uid"], "stdin": "".join(node + "\n" for node in candidates)}
        if each is not None:
            try:
                return self.daemon.search(*command, f"--pattern={wishes.pattern}",
                                          "--ranks-per-node", str(each), **how)
            except Refused as error:
                self.journal.say(f"job {job['id']}: nodes are chosen without its pattern: {error}")
        return self.daemon.ask(*command, **how)

    def wishes_of(self, job):
        """And ranks on each node, None without a pattern that has a use, and options for its account. What
        cannot be read the prolog tells."""
        try:
            wishes = wishes_in(self.slurm.comment(job["id"]))
            facts = self.slurm.facts(job["id"])
            each = even_ranks(facts, int(job["nodes"])) if wishes.pattern else None
            return wishes, each, on_account(self.slurm, facts)
        except Failed as error:
            self.journal.say(str(error))
            return NO_WISHES, None, []

    def tell(self, number, **values):
        """False: the job has gone or changed meanwhile, which is nobody's fault."""
        try:
            self.slurm.update(number, **values)
            return True
        except Failed as error:
            self.journal.say(str(error))
            return False

    def let_begin(self, job, is_put_off):
        """Nothing can be chosen for it now: it waits in Slurm's order, not for us."""
        if is_put_off:
            self.tell(job["id"], StartTime="now", AdminComment="")

    def give_up(self, queue):
        """The daemon is away: whoever was put off for it begins, and nobody is bound to nodes that it
        chose for longer than while it is there."""
        self.take_back(queue)
        for job in queue:
            if job["state"] == "PD" and job["reason"] == "BeginTime":
                self.let_begin(job, self.slurm.admin_comment(job["id"]) == PUT_OFF)

    def take_back(self, queue):
        """Whom Slurm did not start in time may run anywhere."""
        pending = {job["id"] for job in queue if job["state"] == "PD"}
        for number, (deadline, uid) in list(self.steered.items()):
            if number not in pending:
                del self.steered[number]
            elif time.monotonic() >= deadline:
                if self.let_go(number, uid):
                    del self.steered[number]
                else:  # a moment later once more: nobody else would take its nodes back
                    self.steered[number] = (time.monotonic() + self.settings.retry_s, uid)

    def let_go(self, number, uid):
        """False: Slurm could not be told."""
        try:
            placement = PLACEMENT_MARK.match(self.slurm.admin_comment(number))
        except Failed as error:
            self.journal.say(str(error))
            return False
        if not self.tell(number, ReqNodeList="", AdminComment=LEFT):
            return False
        self.journal.say(f"job {number} did not start on the nodes chosen, Slurm chooses anew")
        if placement is not None:
            self.release(placement.group(1), uid)
        return True

    def release(self, placement, uid):
        try:
            self.daemon.ask("placement", "release", placement, user=uid)
        except (Away, Refused, Failed):
            pass  # it is over, or will be when its term is
