"""What deploy/slurm makes of Slurm's answers, whatever users wrote into their jobs. Without a Slurm: the
answers are written here as squeue prints them, and a Slurm that records what it is told stands in."""

import importlib
import os
import sys
import tempfile
import time
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
allocation, daemon, journal, settings, slurm, steering, steward = (
    importlib.import_module("coppice_slurm." + name)
    for name in ("allocation", "daemon", "journal", "settings", "slurm", "steering", "steward"))

# One row of squeue: the values of a job that waits, and what is different with this one.
WAITING = {"id": "7", "state": "PD", "reason": "Resources", "nodes": "2", "sharing": "NO",
           "required": "", "features": "(null)", "dependency": "(null)", "partition": "all",
           "priority": "100", "reservation": "(null)", "uid": "65534", "array_index": "N/A",
           "node_list": ""}


def row(**changes):
    return slurm.SEPARATOR.join({**WAITING, **changes}.values()) + "\n"


class RowsTest(unittest.TestCase):
    def test_a_row_is_read_as_it_was_written(self):
        self.assertEqual(list(WAITING), list(slurm.QUEUE_FORMAT.values()))
        self.assertEqual(slurm.jobs_of(row() + row(id="8", features="fast&wide")),
                         [WAITING, {**WAITING, "id": "8", "features": "fast&wide"}])
        self.assertEqual(slurm.jobs_of(""), [])

    def test_a_constraint_with_a_bar_moves_no_column(self):
        (job,) = slurm.jobs_of(row(features="a|b"))
        self.assertEqual((job["features"], job["priority"], job["uid"]), ("a|b", "100", "65534"))
        self.assertFalse(steering.wants_whole_nodes(job))  # Slurm's to judge
        self.assertTrue(steering.wants_whole_nodes(WAITING))

    def test_nothing_that_users_write_freely_is_asked_for_with_all_jobs(self):
        for field in "%k", "%j", "%Z", "%o":  # comment, name, folder, command
            self.assertNotIn(field, slurm.QUEUE_FORMAT)

    def test_ends_of_lines_that_are_none_of_slurms_make_no_row(self):
        for end in "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\r":
            forged = row(id="9", uid="0").rstrip("\n")
            self.assertEqual(slurm.jobs_of(row(features="a" + end + forged)), [], repr(end))

    def test_what_is_no_job_is_left_out(self):
        for wrong in ({"id": "7_[1-3]"}, {"id": ""}, {"uid": "-1"}, {"uid": "root"},
                      {"priority": "all"}, {"id": "\u0667"}, {"priority": "1.5"}):
            self.assertEqual(slurm.jobs_of(row(**wrong) + row(id="8")), [{**WAITING, "id": "8"}])
        self.assertEqual(slurm.jobs_of("7" + slurm.SEPARATOR + "PD\n"), [])

    def test_a_comment_is_that_jobs(self):
        bar = slurm.SEPARATOR
        self.assertEqual(slurm.comment_in(f"7{bar}mine\n", "7"), "mine")
        self.assertEqual(slurm.comment_in(f"7{bar}two\nlines\n", "7"), "two\nlines")
        self.assertEqual(slurm.comment_in(f"7{bar}a{bar}b\x85c\n", "7"), f"a{bar}b\x85c")
        self.assertEqual(slurm.comment_in(f"8{bar}theirs\n7{bar}mine\n9{bar}x\n", "7"), "mine")
        self.assertEqual(slurm.comment_in(f"17{bar}theirs\n", "7"), "")
        self.assertEqual(slurm.comment_in("", "7"), "")

    def test_comments_keep_what_users_wrote(self):
        for comment in "", "(null)", "mine", "two\nlines", "coppice-job=1 and more":
            once = allocation.marked(comment, "5")
            self.assertEqual(allocation.job_in(once), "5")
            self.assertEqual(allocation.marked(once, "6"), allocation.marked(comment, "6"))
        self.assertIsNone(allocation.job_in("coppice-job=7x"))

    def test_bytes_that_are_no_text_are_read_and_told(self):
        with tempfile.TemporaryDirectory() as scratch:
            chosen = settings.Settings(log_file=os.path.join(scratch, "log"))
            said = slurm.Slurm(chosen).run("printf", "a\\377b\\n")
            self.assertEqual(said, "a\ufffdb\n")
            journal.Journal(chosen, "test").say("of the environment: \udcff, two\nlines")
            with open(chosen.log_file, encoding="utf-8") as log:
                (line,) = log.read().splitlines()
            self.assertTrue(line.endswith("\\udcff, two lines"), line)

    def test_limits_are_seconds(self):
        day = 86400
        for limit, wanted in (("30:00", 1800), ("0:30", 30), ("1:00:00", 3600), ("23:59:59", day - 1),
                              ("1-02:03:04", day + 7384), ("UNLIMITED", day), ("", day), (None, day),
                              ("1-30:00", day), ("30", day), ("-1:00", day), ("1:00\n", day)):
            self.assertEqual(allocation.seconds_of(limit), wanted, limit)

    def test_no_answer_is_waited_for_after_the_deadline(self):
        with self.assertRaises(slurm.Failed):
            slurm.Slurm(settings.Settings(), time.monotonic()).run("true")
        soon = slurm.Slurm(settings.Settings(), time.monotonic() + 0.2)
        with self.assertRaises(slurm.Failed):
            soon.run("tail", "-f", "/dev/null")


class Told:
    """A Slurm that notes what it is told, or fails."""

    def __init__(self, works=True):
        self.works = works
        self.updates = []

    def admin_comment(self, number):
        return "coppice-placement=3"

    def update(self, number, **values):
        if not self.works:
            raise slurm.Failed("scontrol: slurmctld is busy")
        self.updates.append((number, values))


class Asked:
    """A daemon that notes its questions and answers with the same, which may be an exception."""

    def __init__(self, answer):
        self.answer = answer
        self.questions = []

    def ask(self, *arguments, **how):
        self.questions.append((arguments, how))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


SILENT = types.SimpleNamespace(say=lambda *_, **__: None)


class SteeringTest(unittest.TestCase):
    def steering(self, told, asked, **chosen):
        return steering.Steering(settings.Settings(**chosen), told, asked, SILENT, "copse")

    def test_nodes_are_taken_back_while_the_daemon_is_away(self):
        told, asked = Told(), Asked(daemon.Away("gone"))
        steers = self.steering(told, asked)
        steers.steered = {"7": (0, "65534")}
        steers.give_up([WAITING])
        self.assertEqual(told.updates, [("7", {"ReqNodeList": "", "AdminComment": steering.LEFT})])
        self.assertEqual(steers.steered, {})

    def test_who_could_not_be_told_is_told_again(self):
        told = Told(works=False)
        steers = self.steering(told, Asked({}), retry_s=0.0)
        steers.steered = {"7": (0, "65534"), "8": (0, "65534")}
        steers.take_back([WAITING])  # 8 has gone
        self.assertEqual(list(steers.steered), ["7"])
        told.works = True
        steers.take_back([WAITING])
        self.assertEqual((len(told.updates), steers.steered), (1, {}))

    def test_who_is_never_steered_is_not_put_off(self):
        told = Told()
        told.admin_comment = lambda number: steering.PUT_OFF
        steers = self.steering(told, Asked({}))
        for change in {"sharing": "OK"}, {"features": "a|b"}:
            steers.passed, told.updates = set(), []
            for _ in range(2):  # once
                self.assertTrue(steers.give_turn({**WAITING, "reason": "BeginTime", **change}, {}))
            self.assertEqual(told.updates, [("7", {"StartTime": "now", "AdminComment": ""})])

    def test_ten_thousand_candidates_are_no_argument(self):
        asked = Asked({"id": "3", "nodes": ["n1"], "node_list": "n1"})
        steers = self.steering(Told(), asked)
        nodes = [f"node-with-a-long-name-{number:05d}" for number in range(10000)]
        self.assertEqual(steers.steer(WAITING, nodes), ["n1"])
        ((arguments, how),) = asked.questions
        self.assertLess(max(map(len, arguments)), 100)
        self.assertEqual(how["stdin"].split(), nodes)

    def test_a_coppicectl_that_cannot_run_is_no_daemon_away(self):
        with tempfile.TemporaryDirectory() as scratch:
            asks = daemon.Daemon(settings.Settings(state_dir=scratch, coppicectl=scratch), SILENT)
            with self.assertRaises(slurm.Failed):
                asks.ask("job", "list")
            self.assertFalse(asks.is_noted_away())


class ReconcileTest(unittest.TestCase):
    @staticmethod
    def job(number, name, owner="nobody"):
        return {"id": number, "display_name": name, "owner": owner, "lease": "600s",
                "lease_left": "1s"}

    def asked(self, jobs, queue):
        """What the steward of cluster prod tells the daemon."""
        stewards = steward.Steward.__new__(steward.Steward)
        stewards.prefix, stewards.refused = allocation.name_of("prod", ""), set()
        stewards.daemon, stewards.journal, stewards.settings = Asked({}), SILENT, settings.Settings()
        stewards.register = lambda job: stewards.daemon.ask("register", job["id"])
        stewards.reconcile(jobs, queue)
        return [arguments for arguments, _ in stewards.daemon.questions]

    def test_only_jobs_of_the_cluster_are_ended(self):
        others = [self.job("1", "slurm-prod-test"), self.job("2", "slurm-prod-2-5"),
                  self.job("3", "slurm-prod-"), self.job("4", "mine"),
                  self.job("5", "slurm-prod-5x")]
        self.assertEqual(self.asked([*others, self.job("6", "slurm-prod-5")], []),
                         [("job", "end", "6")])

    def test_a_name_alone_keeps_no_job_from_being_registered(self):
        running = {**WAITING, "state": "R"}
        mine = self.job("9", "slurm-prod-7")
        self.assertEqual(self.asked([mine], [running]), [("job", "keepalive", "9")])
        self.assertEqual(self.asked([self.job("9", "slurm-prod-7", "65534")], [running]),
                         [("job", "keepalive", "9")])
        self.assertEqual(self.asked([self.job("9", "slurm-prod-7", "root")], [running]),
                         [("register", "7")])

    def test_of_two_runs_the_earlier_is_ended(self):
        jobs = [self.job("9", "slurm-prod-7"), self.job("10", "slurm-prod-7")]
        self.assertEqual(sorted(self.asked(jobs, [{**WAITING, "state": "R"}])),
                         [("job", "end", "9"), ("job", "keepalive", "10")])


if __name__ == "__main__":
    unittest.main()
