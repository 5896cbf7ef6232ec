"""What a job's user says in its comment, with a real Slurm: nodes and ranks as the pattern wants them, by
srun alone; steps of other sizes; words that mean nothing or mischief; a daemon that stands still."""

import os
import stat
import subprocess
import sys
import unittest

from slurm_cluster import PATIENCE_S, wait_until
from slurm_site import HOSTS, SlurmSite

COPPICED, COPPICECTL, PLAN, DEPLOY = (sys.argv.pop(1) for _ in range(4))
LEAVES = [set(HOSTS[:4]), set(HOSTS[4:])]
WHERE = "sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME'"
# Who talks most: rank i with rank i + 4. In Slurm's order all of that goes over the spines.
PARTNERS = [(rank, rank + 4) for rank in range(4)]


def pattern_of(ranks, pairs):
    rows = [["0" if i == j else "1" for j in range(ranks)] for i in range(ranks)]
    for a, b in pairs:
        rows[a][b] = rows[b][a] = "1000"
    return "".join(" ".join(row) + "\n" for row in rows)


class SlurmOrderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = SlurmSite(COPPICED, COPPICECTL, PLAN, DEPLOY, topology="none")
        cls.addClassCleanup(cls.site.clean_up)
        cls.slurm = cls.site.cluster
        cls.slurm.start()
        cls.site.good("pattern", "put", "partners",
                      cls.site.write("pattern", pattern_of(8, PARTNERS)))

    def setUp(self):
        self.addCleanup(self.site.wait_until_free)
        self.site.start_steward()
        self.before = len(self.site.log())

    def log(self):
        """What was said since the test began."""
        return self.site.log()[self.before:]

    def run_job(self, script, *options, comment):
        """A job of an ordinary user's to its end: Slurm's number, Coppice's, and its output."""
        number = self.slurm.submit(script, "--comment", comment, *options, user="nobody")
        self.slurm.wait_for(number, "COMPLETED", "FAILED")
        out = self.slurm.output(number)
        self.assertEqual(self.slurm.state(number), "COMPLETED", out + self.log())
        return number, self.site.job_of(number), out

    @staticmethod
    def hosts_in(out):
        """Of lines with rank and host: the host of each rank."""
        ran = sorted((int(rank), host) for rank, host in map(str.split, out.splitlines()))
        assert [rank for rank, _ in ran] == list(range(len(ran))), out
        return [host for _, host in ran]

    def endpoints(self, job):
        lines = self.site.good("job", "show", job, "--endpoints").split()
        self.assertEqual(self.site.of_json("job", "show", job)["endpoints"], lines)
        return [line.rsplit("/", 1)[0] for line in lines]

    def placements_started(self):
        return self.site.good("events").count("placement.started")

    # --- ranks ---

    def test_srun_starts_ranks_as_the_pattern_wants(self):
        started = self.placements_started()
        _, job, out = self.run_job("srun " + WHERE, "-N8", "-n8",
                                   comment="nightly coppice-pattern=partners coppice-trees=2")
        ran = self.hosts_in(out)
        self.assertEqual(ran, self.endpoints(job), self.log())
        self.assertEqual(sorted(ran), HOSTS)
        for a, b in PARTNERS:
            self.assertTrue(any({ran[a], ran[b]} <= leaf for leaf in LEAVES), ran)
        # Found together with the nodes, and nobody finds a better one.
        self.assertEqual(self.placements_started(), started + 1, self.log())
        self.assertNotIn("not ordered", self.log())
        found = self.site.of_json("map", "--hosts", self.site.write("ran", "\n".join(ran) + "\n"),
                                  "--application", "partners")
        self.assertEqual(found["before"]["max_congestion"], found["objective"]["max_congestion"])
        with_slurm = self.site.of_json("map", "--hosts", self.site.write("all", "\n".join(HOSTS) + "\n"),
                                       "--application", "partners")
        self.assertGreater(with_slurm["before"]["max_congestion"],
                           found["before"]["max_congestion"])

    def test_several_ranks_on_a_node_and_steps_of_other_sizes(self):
        self.site.stop_steward()  # Slurm chooses the nodes
        number, job, out = self.run_job(f"""\
set -e
step() {{ echo "== $1"; shift; "$@" {WHERE}; }}
step plain srun
step two srun -n2
step one srun -n1 -N1
step nodes srun -N2
step there srun -n1 -N1 -w {HOSTS[2]}
step more env -u SLURM_HOSTFILE -u SLURM_DISTRIBUTION srun -n12
echo == tasks
srun -Q -n1 env | grep -E '^(SLURM|COPPICE)_HOSTFILE' || echo none
echo == script
env | grep -E '^(SLURM|COPPICE)_HOSTFILE|^SLURM_DISTRIBUTION' | sort
""", "-N4", "-n8", comment="coppice-pattern=partners")
        steps = dict(part.split("\n", 1) for part in out.split("== ")[1:])
        ran = self.hosts_in(steps["plain"])
        self.assertEqual(ran, self.endpoints(job), self.log())
        self.assertEqual(sorted(ran), sorted(2 * HOSTS[:4]))
        for a, b in PARTNERS:
            self.assertEqual(ran[a], ran[b], ran)
        self.assertEqual(self.hosts_in(steps["two"]), ran[:2])
        self.assertEqual(self.hosts_in(steps["one"]), ran[:1])
        self.assertEqual(len(set(self.hosts_in(steps["nodes"]))), 2)
        self.assertEqual(self.hosts_in(steps["there"]), [HOSTS[2]])
        self.assertEqual(len(self.hosts_in(steps["more"])), 12)
        self.assertEqual(steps["tasks"], "none\n")
        path = self.slurm.path("jobs", HOSTS[0], number + ".hosts")
        self.assertEqual(steps["script"].splitlines(),
                         [f"COPPICE_HOSTFILE={path}", "SLURM_DISTRIBUTION=arbitrary",
                          f"SLURM_HOSTFILE={path}"])

    def test_the_order_is_roots_and_gone_with_the_job(self):
        number = self.slurm.submit("sleep 600", "-N4", "-n8", "--comment=coppice-pattern=partners",
                                   user="nobody")
        path = self.slurm.path("jobs", "{}", number + ".hosts")
        first = path.format(HOSTS[0])
        self.slurm.wait_for(number, "RUNNING")
        first = path.format(self.slurm.nodes_of(number)[0])
        wait_until(lambda: os.path.exists(first), self.log)
        held = os.stat(first)
        self.assertEqual((held.st_uid, stat.S_IMODE(held.st_mode)), (0, 0o644))
        folder = os.stat(os.path.dirname(first))
        self.assertEqual((folder.st_uid, stat.S_IMODE(folder.st_mode)), (0, 0o755))
        # Only the first node asked.
        self.assertEqual([host for host in HOSTS if os.path.exists(path.format(host))],
                         self.slurm.nodes_of(number)[:1])
        self.slurm.run("scancel", number)
        wait_until(lambda: not os.path.exists(first), "the end of " + first)
        self.assertEqual(os.listdir(os.path.dirname(first)), [])

    def test_a_job_that_a_job_submits_has_nothing_of_it(self):
        number, job, out = self.run_job(
            "sbatch --parsable -N1 --output=inner-%j --wrap='env; srun hostname'", "-N4", "-n8",
            comment="coppice-pattern=partners")
        inner = out.strip()
        self.slurm.wait_for(inner, "COMPLETED", "FAILED")
        self.assertEqual(self.slurm.state(inner), "COMPLETED", self.slurm.output("inner-" + inner))
        said = self.slurm.output("inner-" + inner).splitlines()
        self.assertEqual([line for line in said if "HOSTFILE" in line], [])
        self.assertIn("COPPICE_JOB=" + self.site.job_of(inner), said)
        self.assertNotEqual(self.site.job_of(inner), job)

    # --- Slurm's order ---

    def in_slurms_order(self, *options, comment, ranks):
        number, job, out = self.run_job("env | grep -c HOSTFILE || srun " + WHERE, *options,
                                        comment=comment)
        self.assertEqual(out.split("\n")[0], "0", out)
        ran = self.hosts_in(out.split("\n", 1)[1])
        self.assertEqual(ran, sorted(ran), out)
        self.assertEqual(len(ran), ranks)
        self.assertIsNotNone(job, self.log())
        return number, job

    def test_patterns_that_do_not_fit_are_left_out(self):
        number, _ = self.in_slurms_order("-N4", "-n4", comment="coppice-pattern=none", ranks=4)
        self.assertIn(f"job {number}: ranks are not ordered: ", self.log())
        self.assertIn(f"job {number}: nodes are chosen without its pattern: ", self.log())
        number, _ = self.in_slurms_order("-N4", "-n4", comment="coppice-pattern=partners", ranks=4)
        self.assertIn(f"job {number}: ranks are not ordered: ", self.log())
        number, _ = self.in_slurms_order("-N3", "-n8", comment="coppice-pattern=partners", ranks=8)
        self.assertIn(f"job {number}: ranks are not ordered: 8 tasks are not as many on each of 3",
                      self.log())

    def test_what_has_no_batch_script_is_in_slurms_order(self):
        _, out, errors = self.slurm.run("salloc", "-N4", "-n8", "--comment=coppice-pattern=partners",
                                        "srun", *WHERE.split(" ", 2)[:2],
                                        "echo $SLURM_PROCID $SLURMD_NODENAME", user="nobody")
        ran = self.hosts_in(out)
        self.assertEqual(ran, sorted(ran), errors)
        self.assertIn("ranks are not ordered: no batch script", self.log())

    def test_what_means_nothing_is_told_and_does_nothing(self):
        for comment in ("coppice-pattern=$(touch planted) coppice-trees=2",
                        "coppice-pattern=;touch${IFS}planted", "coppice-pattern=`touch planted`",
                        "coppice-trees=-1", "coppice-trees=99999999999999999999",
                        "coppice-pattern=a\ncoppice-pattern=b;c", "coppice-patern=partners",
                        "coppice-pattern=" + "x" * 200):
            number, _ = self.in_slurms_order("-N2", "-n2", comment=comment, ranks=2)
            self.assertEqual(self.log().count(f"job {number}: its comment has what is not "
                                              "understood: "), 1, comment + self.log())
        # Names that the daemon could have, and does not.
        for comment in "coppice-pattern=--help", "coppice-pattern=-h", "coppice-pattern=../../etc/passwd":
            number, _ = self.in_slurms_order("-N2", "-n2", comment=comment, ranks=2)
            self.assertIn(f"job {number}: ranks are not ordered: ", self.log())
            self.assertNotIn(f"job {number}: its comment", self.log())
        self.assertEqual([path for path in (self.slurm.path("out", "planted"),
                                            self.slurm.path("planted")) if os.path.exists(path)], [])

    def node_prolog(self, comment, node_list=HOSTS[0]):
        """As slurmd runs it on the first node; the order that it leaves, None if it leaves none."""
        environment = {"SLURM_CONF": self.slurm.configuration, "SLURM_JOB_ID": "4711",
                       "SLURM_JOB_COMMENT": comment, "SLURM_NODELIST": node_list,
                       "SLURMD_NODENAME": HOSTS[0]}
        def run(script):
            done = subprocess.run([self.slurm.path(script)], env=environment, timeout=PATIENCE_S,
                                  check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        run("node-prolog")
        self.addCleanup(run, "node-epilog")
        notes = self.slurm.path("jobs", HOSTS[0])
        left = sorted(os.listdir(notes))
        self.assertLessEqual(set(left), {"4711", "4711.hosts"})
        if "4711.hosts" not in left:
            return None
        with open(os.path.join(notes, "4711.hosts"), encoding="utf-8") as file:
            return file.read().split()

    def test_a_node_believes_no_order_of_other_nodes(self):
        hosts = self.site.write("hosts", "".join(HOSTS[i] + "\n" for i in (1, 0, 0, 1)))
        job = self.site.of_json("job", "register", "--endpoints", hosts)["id"]
        self.addCleanup(self.site.good, "job", "end", job)
        mark = "mine coppice-ordered-job=" + job
        order = [HOSTS[i] for i in (1, 0, 0, 1)]
        self.assertEqual(self.node_prolog(mark, f"{HOSTS[0]},{HOSTS[1]}"), order)
        self.assertIsNone(self.node_prolog("mine coppice-job=" + job, f"{HOSTS[0]},{HOSTS[1]}"))
        for others in (HOSTS[0], f"{HOSTS[0]},{HOSTS[2]}", f"{HOSTS[0]},{HOSTS[1]},{HOSTS[2]}"):
            self.assertIsNone(self.node_prolog(mark, others))
        for forged in (mark + "$(touch planted)", mark + "\n", mark + " --help",
                       "coppice-ordered-job=99999999999999999999999",
                       "coppice-ordered-job=--help", "coppice-ordered-job="):
            self.assertIsNone(self.node_prolog(forged, f"{HOSTS[0]},{HOSTS[1]}"), forged)
        # Mistakes of the administrator's keep no job from its start either.
        self.addCleanup(self.site.install)
        for text in ("COPPICE_PATIENCE=(\n", "COPPICE_PATIENCE=long\n", "COPPICECTL=/nowhere\n",
                     "exit 3\n", "COPPICE_SERVER=unix:/nowhere\n"):
            self.site.write("slurm-node.conf", text)
            self.assertIsNone(self.node_prolog(mark, f"{HOSTS[0]},{HOSTS[1]}"), text)

    # --- without the daemon ---

    def test_jobs_start_in_slurms_order_with_the_daemon_frozen(self):
        hosts = self.site.write("hosts", f"{HOSTS[1]}\n{HOSTS[0]}\n")
        job = self.site.of_json("job", "register", "--endpoints", hosts)["id"]
        self.addCleanup(self.site.good, "job", "end", job)
        self.site.stop_steward()
        self.site.install(patience_s=2, steer_s=2)
        self.addCleanup(self.site.install)
        self.addCleanup(self.site.thaw_daemon)
        self.site.start_steward()
        self.site.freeze_daemon()
        # Between registration and the start of the batch script.
        self.assertIsNone(self.node_prolog("coppice-ordered-job=" + job,
                                           f"{HOSTS[0]},{HOSTS[1]}"))
        self.assertTrue(os.path.exists(self.slurm.path("jobs", HOSTS[0], "4711")))
        # Before both.
        number, registered, out = self.run_job("srun " + WHERE, "-N4", "-n8",
                                               comment="coppice-pattern=partners "
                                               "coppice-ordered-job=" + job)  # forged
        self.assertIsNone(registered)
        self.assertEqual(self.hosts_in(out), sorted(self.hosts_in(out)))
        self.slurm.wait_until_idle()  # none is drained
        self.site.thaw_daemon()
        self.site.stop_steward()
        self.site.install()
        self.site.start_steward()
        _, job, out = self.run_job("srun " + WHERE, "-N4", "-n8", comment="coppice-pattern=partners")
        self.assertEqual(self.hosts_in(out), self.endpoints(job), self.log())

    # --- other users ---

    def test_another_cannot_be_in_the_way_of_a_registration(self):
        self.site.stop_steward()  # so that the prolog registers, without a placement
        number = self.slurm.submit("sleep 600", "-N2", "--hold", user="nobody")
        submitted = self.slurm.show(number)["SubmitTime"]
        in_the_way = self.site.of_json("--as", "daemon", "job", "register", "--all", "--request-id",
                                       f"slurm-copse-{number}@{submitted}.0")["id"]
        self.addCleanup(self.site.good, "job", "end", in_the_way)
        self.slurm.run("scontrol", "release", number)
        self.slurm.wait_for(number, "RUNNING")
        job = self.site.job_of(number)
        self.assertIsNotNone(job, self.log())
        self.assertNotEqual(job, in_the_way)
        self.assertEqual(self.site.of_json("job", "show", job)["owner"], "nobody")
        self.slurm.run("scancel", number)
        self.site.wait_until_over(job)

    def test_jobs_that_only_have_such_a_name_are_left_alone(self):
        def registered(name):
            return self.site.of_json("--as", "nobody", "job", "register", "--all", "--name", name)["id"]
        own, lost = registered("slurm-copse-99998"), registered("slurm-copse-99999")
        self.addCleanup(self.site.good, "job", "end", own)
        # As a prolog leaves it whose job is over since.
        self.site.write(os.path.join("notes", "jobs", lost), "slurm-copse-99999")
        self.site.wait_until_over(lost)
        self.assertEqual(self.site.state_of(own), "JOB_STATE_ACTIVE")
        wait_until(lambda: not os.path.exists(self.slurm.path("notes", "jobs", lost)),
                   "the note to go, too")


if __name__ == "__main__":
    unittest.main()
