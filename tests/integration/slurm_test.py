"""Slurm and Coppice together, both real: where jobs run, what becomes of their trees and leases, and
that Slurm goes on by itself when the daemon is away or stands still."""

import os
import signal
import subprocess
import sys
import types
import unittest

from slurm_cluster import wait_until
from slurm_site import HOSTS, SlurmSite

COPPICED, COPPICECTL, PLAN, DEPLOY = (sys.argv.pop(1) for _ in range(4))
sys.path.insert(0, DEPLOY)
LEAVES = [set(HOSTS[:4]), set(HOSTS[4:])]

# A batch script that has a tree, says which, and stays until it is told to go.
WITH_TREE = """\
set -e
{coppicectl} --server {server} tree create --job "$COPPICE_JOB" --type 2 --json >tree-$SLURM_JOB_ID.new
mv tree-$SLURM_JOB_ID.new tree-$SLURM_JOB_ID
until [ -e go-$SLURM_JOB_ID ]; do sleep 0.1; done
"""


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Slurm's own choice knows no switches here, so that what it does by itself can be told apart.
        cls.site = SlurmSite(COPPICED, COPPICECTL, PLAN, DEPLOY, topology="none")
        cls.addClassCleanup(cls.site.clean_up)
        cls.slurm = cls.site.cluster
        cls.slurm.start()

    def setUp(self):
        self.addCleanup(self.site.wait_until_free)
        self.site.start_steward()

    def with_tree(self, *options):
        """A running job of an ordinary user that has a tree; Slurm's number and Coppice's."""
        script = WITH_TREE.format(coppicectl=COPPICECTL, server=self.site.daemon.address)
        number = self.slurm.submit(script, *options, user="nobody")
        tree = self.slurm.path("out", "tree-" + number)
        wait_until(lambda: os.path.exists(tree) or self.slurm.state(number) == "FAILED",
                   lambda: f"a tree: {self.slurm.show(number)} {self.site.log()}")
        self.assertTrue(os.path.exists(tree), self.slurm.output(number) + self.site.log())
        return number, self.site.job_of(number)

    def fragment(self):
        """Free afterwards: n0003 alone on its switch, and n0004, n0006 and n0007 on theirs. Slurm by itself
        takes n0003 and n0004, which are neighbours by number."""
        self.site.hold(*HOSTS[0:3])
        self.site.hold(HOSTS[5])

    # --- where jobs run ---

    def test_nodes_are_chosen_where_slurm_would_take_others(self):
        self.fragment()
        number = self.slurm.submit("sleep 600", "-N2", user="nobody")
        self.slurm.wait_for(number, "RUNNING")
        nodes = self.slurm.nodes_of(number)
        self.assertLess(set(nodes), LEAVES[1], self.site.log())
        job = self.site.of_json("job", "show", self.site.job_of(number))
        self.assertEqual([end.split("/")[0] for end in job["endpoints"]], nodes)
        self.assertEqual(job["owner"], "nobody")
        self.assertEqual(job["display_name"], f"slurm-copse-{number}")
        # The placement became the job.
        self.assertEqual(self.site.of_json("placement", "list").get("placements", []), [])
        # The same without anybody who chooses.
        self.site.stop_steward()
        self.slurm.run("scancel", number)
        self.site.wait_until_over(job["id"])
        self.slurm.wait_until_idle(nodes)
        number = self.slurm.submit("sleep 600", "-N2", user="nobody")
        self.slurm.wait_for(number, "RUNNING")
        self.assertEqual(self.slurm.nodes_of(number), HOSTS[3:5])

    def test_several_at_once_come_together_each(self):
        numbers = [self.slurm.submit("sleep 600", "-N2", user="nobody") for _ in range(4)]
        for number in numbers:
            self.slurm.wait_for(number, "RUNNING")
        nodes = [set(self.slurm.nodes_of(number)) for number in numbers]
        self.assertEqual(set().union(*nodes), set(HOSTS))
        for pair in nodes:
            self.assertTrue(any(pair <= leaf for leaf in LEAVES), (nodes, self.site.log()))

    def test_what_does_not_fit_waits_its_turn(self):
        held = self.site.hold(*HOSTS[0:5])
        wide = self.slurm.submit("sleep 600", "-N4", user="nobody")
        wait_until(lambda: self.slurm.show(wide)["Reason"] in ("Resources", "Priority"),
                   lambda: str(self.slurm.show(wide)))
        self.slurm.run("scancel", held)
        self.slurm.wait_for(wide, "RUNNING")
        self.assertIsNotNone(self.site.job_of(wide), self.site.log())

    def test_who_was_started_meanwhile_is_left_as_it_is(self):
        """Slurm took the very nodes that the steward was about to name."""
        from coppice_slurm import settings, slurm, steering  # pylint: disable=import-outside-toplevel
        self.site.stop_steward()
        number = self.slurm.submit("sleep 600", "-N2", user="nobody")
        self.slurm.wait_for(number, "RUNNING")
        nodes = self.slurm.nodes_of(number)
        chosen = settings.load(self.site.settings)
        told = slurm.Slurm(chosen)
        journal = types.SimpleNamespace(say=lambda *_, **__: None)
        steers = steering.Steering(chosen, told, None, journal, "copse")
        self.assertFalse(steers.tell_nodes(number, "65534", {"id": "3", "node_list": ",".join(nodes)}))
        self.assertEqual(told.admin_comment(number), "(null)")
        told.update(number, AdminComment="can be changed")
        self.assertEqual(self.slurm.nodes_of(number), nodes)

    def test_who_says_where_is_not_steered(self):
        number = self.slurm.submit("sleep 600", "-N2", "-w", f"{HOSTS[3]},{HOSTS[4]}")
        self.slurm.wait_for(number, "RUNNING")
        self.assertEqual(self.slurm.nodes_of(number), HOSTS[3:5])
        self.assertIsNotNone(self.site.job_of(number))

    def test_administrators_ask_in_the_names_of_users(self):
        for name in ("", "a b", "a\nb"):
            self.assertEqual(self.site.ask("--as", name, "job", "list")[0], 2, name)
        job = self.site.of_json("--as", "nobody", "job", "register", "--all")
        self.assertEqual(job["owner"], "nobody")
        # With the user's rights, not with one's own.
        mine = self.site.of_json("job", "register", "--all")
        status, _, errors = self.site.ask("--as", "nobody", "job", "end", mine["id"])
        self.assertEqual((status, "belongs to root" in errors), (4, True), errors)
        status, _, errors = self.slurm.run(
            COPPICECTL, "--server", self.site.daemon.address, "--as", "root", "job", "end",
            mine["id"], user="nobody", check=False)
        self.assertEqual((status, "only administrators" in errors), (4, True), errors)
        for each in (job, mine):
            self.site.good("job", "end", each["id"])

    def test_what_users_write_hurts_nobody_else(self):
        before = len(self.site.log())
        victim = self.slurm.submit("sleep 600", "-N2", "--hold")
        forged = "\x1f".join([victim, "PD", "None", "2", "NO", "", "(null)", "(null)", "all", "9",
                             "(null)", "65534", "N/A", ""])
        for hostile in ("x\n" + forged + "\n", "x\x85" + forged, b"\xff\xfe", "a|b|c"):
            number = self.slurm.submit("sleep 600", "-N1", "--job-name", hostile, "--comment",
                                       hostile, user="nobody")
            self.slurm.wait_for(number, "RUNNING")
            wait_until(lambda: self.site.job_of(number), self.site.log)
        # The constraint of one who waits, for ever, moves no column of squeue's.
        self.slurm.run("scontrol", "update", f"NodeName={HOSTS[0]}", "Features=a,b")
        number = self.slurm.submit("sleep 600", "-N1", "--constraint", "a|b", user="nobody")
        self.slurm.wait_for(number, "RUNNING", "PENDING")
        number = self.slurm.submit("sleep 600", "-N2", user="nobody")
        self.slurm.wait_for(number, "RUNNING")
        wait_until(lambda: self.site.job_of(number), self.site.log)
        self.assertNotIn("coppice", self.slurm.show(victim).get("AdminComment", ""))
        self.assertEqual(self.slurm.show(victim)["JobState"], "PENDING")
        self.assertIsNone(self.slurm.processes["steward"].poll())
        self.assertNotIn("Error", self.site.log()[before:])

    # --- trees and leases ---

    def test_a_tree_inside_the_job_and_its_entries_after_it(self):
        number, job = self.with_tree("-N4")
        self.assertGreater(self.site.entries_taken(), 0)
        self.assertEqual(self.site.of_json("job", "show", job)["tree_count"], 1)
        open(self.slurm.path("out", "go-" + number), "w", encoding="utf-8").close()
        self.slurm.wait_for(number, "COMPLETED")
        self.site.wait_until_over(job)
        self.assertEqual(self.site.entries_taken(), 0)

    def test_a_cancelled_job_ends(self):
        number, job = self.with_tree("-N4")
        self.slurm.run("scancel", number)
        self.site.wait_until_over(job)
        self.assertEqual(self.site.entries_taken(), 0)

    def test_a_job_whose_processes_are_killed_ends(self):
        number, job = self.with_tree("-N2")
        mine = [pid for pid in self.slurm.owned() if self.job_of_process(pid) == number]
        self.assertTrue(mine)
        for pid in mine:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.site.wait_until_over(job)
        self.assertEqual(self.site.entries_taken(), 0)

    def job_of_process(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                words = dict(word.split(b"=", 1) for word in environ.read().split(b"\0")
                             if b"=" in word)
        except OSError:
            return None
        return words.get(b"SLURM_JOB_ID", b"").decode()

    def test_a_job_whose_node_is_gone_ends(self):
        number, job = self.with_tree("-N2")
        gone = self.slurm.nodes_of(number)[0]
        self.slurm.stop(gone)
        # What slurmctld finds by itself after SlurmdTimeout.
        self.slurm.run("scontrol", "update", f"NodeName={gone}", "State=DOWN", "Reason=gone")
        self.site.wait_until_over(job)
        self.assertEqual(self.site.entries_taken(), 0)
        self.slurm.start_node(gone)
        # Refused where its slurmd has registered before, which brings it back as well (ReturnToService).
        self.slurm.run("scontrol", "update", f"NodeName={gone}", "State=RESUME", check=False)
        self.slurm.wait_until_idle()

    def test_leases_are_renewed_while_the_job_runs(self):
        self.site.stop_steward()
        self.site.install(lease_s=20)
        self.addCleanup(self.site.install)
        self.site.start_steward()
        number, job = self.with_tree("-N2")
        left = []
        wait_until(lambda: self.rose(left, job), lambda: f"a renewed lease: {left}")
        self.assertEqual(self.site.state_of(job), "JOB_STATE_ACTIVE")
        # Nobody renews it any more, as when the host of slurmctld is gone.
        self.site.stop_steward()
        wait_until(lambda: self.site.state_of(job) == "JOB_STATE_EXPIRED",
                   lambda: str(self.site.of_json("job", "show", job)))
        self.assertEqual(self.site.entries_taken(), 0)
        self.assertEqual(self.slurm.state(number), "RUNNING")
        # And when it is back, the job has another one.
        self.site.start_steward()
        wait_until(lambda: self.site.job_of(number) != job, lambda: self.site.log())
        self.assertEqual(self.site.state_of(self.site.job_of(number)), "JOB_STATE_ACTIVE")

    def rose(self, left, job):
        """Whether the lease was longer at a look than at the one before."""
        left.append(float(self.site.of_json("job", "show", job)["lease_left"].rstrip("s")))
        return any(later > earlier + 1 for earlier, later in zip(left, left[1:]))

    # --- ranks ---

    def test_ranks_go_where_the_map_says(self):
        pattern = self.site.write("pattern", "0 1 1 9\n1 0 9 1\n1 9 0 1\n9 1 1 0\n")
        self.site.good("pattern", "put", "cross", pattern)
        self.site.hold(*HOSTS[0:2])
        self.site.hold(*HOSTS[4:6])
        number = self.slurm.submit(f"""\
set -e
{COPPICECTL} --server {self.site.daemon.address} map --job "$COPPICE_JOB" --application cross \\
  --objective dilation --emit slurm >hosts-$SLURM_JOB_ID
export SLURM_HOSTFILE=$PWD/hosts-$SLURM_JOB_ID
srun --distribution=arbitrary -n4 sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME $COPPICE_JOB'
""", "-N4", "-n4", user="nobody")
        self.slurm.wait_for(number, "COMPLETED", "FAILED")
        with open(self.slurm.path("out", "hosts-" + number), encoding="utf-8") as file:
            wanted = file.read().split()
        ran = sorted(line.split() for line in self.slurm.output(number).splitlines())
        self.assertEqual([host for _, host, _ in ran], wanted, self.slurm.output(number))
        self.assertEqual({job for _, _, job in ran}, {self.site.job_of(number)})
        # Ranks 0 and 3, and 1 and 2, talk most: they share a switch, which in order they would not.
        for a, b in (0, 3), (1, 2):
            self.assertTrue(any({wanted[a], wanted[b]} <= leaf for leaf in LEAVES), wanted)
        self.assertEqual(len(set(wanted)), 4)

    # --- without the daemon ---

    def run_to_its_end(self, *options):
        number = self.slurm.submit("echo ran", *options, user="nobody")
        self.slurm.wait_for(number, "COMPLETED")
        self.assertEqual(self.slurm.output(number), "ran\n")
        return number

    def away_lines(self):
        return self.site.log().count("coppiced is away")

    def test_slurm_goes_on_with_the_daemon_stopped(self):
        number, job = self.with_tree("-N2")
        before = self.away_lines()
        self.site.stop_daemon()
        for width in ("-N2", "-N4", "-N1"):
            self.assertIsNone(self.site.job_of(self.run_to_its_end(width)))
        longer = self.slurm.submit("sleep 600", "-N2", user="nobody")
        self.slurm.wait_for(longer, "RUNNING")
        self.slurm.run("scancel", number)
        wait_until(lambda: self.slurm.state(number) == "CANCELLED", "the end of " + number)
        self.assertEqual(self.away_lines(), before + 1, self.site.log())
        self.site.start_daemon()
        # What happened meanwhile is made good.
        self.site.wait_until_over(job)
        wait_until(lambda: self.site.job_of(longer), self.site.log)
        self.assertEqual(self.site.entries_taken(), 0)
        self.assertIsNotNone(self.site.job_of(self.run_to_its_end("-N2")))

    def test_nobody_stays_bound_to_nodes_that_a_daemon_chose_which_is_gone(self):
        self.site.stop_steward()
        self.site.install(steer_s=2)
        self.addCleanup(self.site.install)
        self.site.hold(HOSTS[0])
        # As a steward leaves it that chose these nodes, one of which was taken meanwhile.
        number = self.slurm.submit("sleep 600", "-N2", "-w", f"{HOSTS[0]},{HOSTS[1]}", user="nobody")
        self.slurm.run("scontrol", "update", "JobId=" + number, "AdminComment=coppice-placement=1")
        self.site.stop_daemon()
        try:
            self.slurm.launch("steward", os.path.join(DEPLOY, "coppice-slurm"), "--config",
                              self.site.settings, "steward")
            self.slurm.wait_for(number, "RUNNING")
        finally:
            self.site.start_daemon()
        self.assertNotIn(HOSTS[0], self.slurm.nodes_of(number))
        self.site.stop_steward()
        self.site.install()
        self.site.start_steward()

    def test_slurm_goes_on_with_the_daemon_frozen(self):
        number, job = self.with_tree("-N2")
        self.site.stop_steward()
        self.site.install(patience_s=2, steer_s=2)
        self.addCleanup(self.site.install)
        self.addCleanup(self.site.thaw_daemon)
        self.site.start_steward()
        before = self.away_lines()
        self.site.freeze_daemon()
        for width in ("-N2", "-N4"):
            self.assertIsNone(self.site.job_of(self.run_to_its_end(width)))
        self.slurm.run("scancel", number)
        wait_until(lambda: self.slurm.state(number) == "CANCELLED", "the end of " + number)
        self.assertEqual(self.away_lines(), before + 1, self.site.log())
        self.site.thaw_daemon()
        self.site.wait_until_over(job)
        self.site.stop_steward()
        self.site.install()
        self.site.start_steward()
        self.assertIsNotNone(self.site.job_of(self.run_to_its_end("-N2")))

    def test_jobs_start_without_the_steward(self):
        self.site.stop_steward()
        self.assertFalse(os.path.exists(self.slurm.path("notes", "steering")))
        number, job = self.with_tree("-N2")
        self.slurm.run("scancel", number)
        self.site.wait_until_over(job)

    def test_settings_that_cannot_be_read_are_told_and_hold_nothing_up(self):
        self.site.stop_steward()
        self.addCleanup(self.site.install)
        self.site.write("slurm.toml", "patience = 1\n")
        self.assertIsNone(self.site.job_of(self.run_to_its_end("-N2")))
        done = subprocess.run([os.path.join(DEPLOY, "coppice-slurm"), "--config",
                               self.site.settings, "steward"], capture_output=True, text=True,
                              timeout=60, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)
        self.assertIn("patience is no setting", done.stderr)
        # Nor does what nobody thought of: an answer that is none.
        self.site.install()
        liar = self.site.write("liar", "#!/bin/sh\necho not JSON\n", 0o755)
        with open(self.site.settings, encoding="utf-8") as file:
            text = file.read().replace(COPPICECTL, liar)
        self.site.write("slurm.toml", text)
        self.assertIsNone(self.site.job_of(self.run_to_its_end("-N2")))


if __name__ == "__main__":
    unittest.main()
