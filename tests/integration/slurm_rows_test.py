"""What deploy/slurm makes of Slurm's answers, whatever users wrote into their jobs. Without a Slurm: the
answers are written here as squeue prints them, and a Slurm that records what it is told stands in."""

import importlib
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest

FOLDER = sys.argv.pop(1)
sys.path.insert(0, FOLDER)
accounts, comment, daemon, hooks, journal, known_jobs, leases, registrar, settings, slurm, steering, steward = (
    importlib.import_module("coppice_slurm." + name)
    for name in ("accounts", "comment", "daemon", "hooks", "journal", "known_jobs", "leases", "registrar",
                 "settings", "slurm", "steering", "steward"))

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
        for text in "", "(null)", "mine", "two\nlines", "coppice-job=1 and more":
            for is_ordered in False, True:
                once = comment.marked(text, "5", is_ordered)
                self.assertEqual(comment.job_in(once), "5")
                self.assertEqual(comment.marked(once, "6"), comment.marked(text, "6"))
                self.assertEqual(once.endswith("coppice-ordered-job=5"), is_ordered)
                self.assertEqual(comment.unmarked(once), comment.unmarked(text))
        self.assertEqual(comment.marked("mine", "5", True), "mine coppice-ordered-job=5")
        self.assertEqual(comment.marked("(null)", "5"), "coppice-job=5")
        self.assertIsNone(comment.job_in("coppice-job=7x"))

    def test_wishes_are_read_strictly(self):
        for text, pattern, trees, unread in (
                ("", "", 0, 0), (None, "", 0, 0), ("(null)", "", 0, 0),
                ("night run coppice-pattern=lammps/melt coppice-trees=2 coppice-job=7",
                 "lammps/melt", 2, 0),
                ("coppice-pattern=a@b+c-d_e.f/g\n\tcoppice-trees=9999", "a@b+c-d_e.f/g", 9999, 0),
                ("xcoppice-pattern=a coppice-free", "", 0, 0),
                # A name, and one to the daemon, too: it never is an option of its own.
                ("coppice-pattern=--help", "--help", 0, 0),
                ("coppice-pattern=", "", 0, 1), ("coppice-pattern=a;b", "", 0, 1),
                ("coppice-pattern=$(id)", "", 0, 1), ("coppice-pattern=" + "a" * 129, "", 0, 1),
                ("coppice-pattern=\u00e4", "", 0, 1), ("coppice-patern=a", "", 0, 1),
                ("coppice-trees=0", "", 0, 1), ("coppice-trees=-1", "", 0, 1),
                ("coppice-trees=10000", "", 0, 1), ("coppice-trees=\u0663", "", 0, 1),
                ("coppice-trees=1e3", "", 0, 1), ("coppice-trees=2 --as=root", "", 2, 0),
                ("coppice-pattern=a coppice-pattern=b coppice-trees=1 coppice-trees=x", "a", 1, 2)):
            found = comment.wishes_in(text)
            self.assertEqual((found.pattern, found.trees, len(found.unread)),
                             (pattern, trees, unread), text)
        for text, partition, unread in (
                ("coppice-partition=0x8001 coppice-trees=2", "0x8001", 0), ("coppice-partition=1", "", 1),
                ("coppice-partition=0x", "", 1), ("coppice-partition=0x00001", "", 1),
                ("coppice-partition=0x0000", "", 1), ("coppice-partition=0x8000", "", 1),
                ("coppice-partition=0x8", "0x8", 0)):
            found = comment.wishes_in(text)
            self.assertEqual((found.partition, len(found.unread)), (partition, unread), text)
        for word in comment.wishes_in("coppice-trees=\x1b[2J" + "9" * 500).unread:
            self.assertTrue(word.isprintable() and len(word) < 100, word)

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
            self.assertEqual(leases.seconds_of(limit), wanted, limit)

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

    def checks_accounts(self):
        return True

    def facts(self, number):
        return {"NumTasks": "N/A", "Account": "(null)"}

    def comment(self, number):
        return "(null)"

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

    def search(self, *arguments, **how):
        return self.ask(*arguments, **how)


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

    def test_who_cannot_be_put_off_is_not_told_nodes(self):
        """It runs by now, or Slurm fails, before or after it was put off."""
        for works, tries in ([False], 1), ([True, False, True], 3):
            told, asked = Told(), Asked({"id": "3", "nodes": ["n1"], "node_list": "n1"})
            told.admin_comment = lambda number: "(null)"
            answers, words = iter(works), []

            def update(number, **values):
                words.append(list(values))
                if not next(answers):
                    raise slurm.Failed("scontrol: Job is no longer pending execution")
            told.update = update
            steers = self.steering(told, asked)
            self.assertEqual(steers.steer(WAITING, ["n1"]), [])
            self.assertEqual(words, [["StartTime"], ["ReqNodeList", "StartTime", "AdminComment"], ["StartTime"]][:tries])
            self.assertEqual(asked.questions[-1][0], ("placement", "release", "3"))
            self.assertEqual(list(steers.steered), [] if tries == 1 else ["7"])

    def test_who_was_told_late_keeps_its_placement(self):
        told, asked = Told(), Asked({"id": "3", "nodes": ["n1"], "node_list": "n1"})

        def update(number, **values):
            told.updates.append(values)
            if "ReqNodeList" in values:
                raise slurm.Failed("scontrol: timed out after 20 seconds")
        told.update = update
        self.assertEqual(self.steering(told, asked).steer(WAITING, ["n1"]), ["n1"])
        self.assertEqual(len(told.updates), 2)
        self.assertEqual(len(asked.questions), 1)

    def test_a_coppicectl_that_cannot_run_is_no_daemon_away(self):
        with tempfile.TemporaryDirectory() as scratch:
            asks = daemon.Daemon(settings.Settings(state_dir=scratch, coppicectl=scratch), SILENT)
            with self.assertRaises(slurm.Failed):
                asks.ask("job", "list")
            self.assertFalse(asks.is_noted_away())


class PlaceTest(unittest.TestCase):
    """What the daemon is asked for when a job's user said what it does."""

    def placed(self, text, refuses=False, tasks="4", account="(null)"):
        told, asked = Told(), Asked({"id": "3", "nodes": ["n1"], "node_list": "n1"})
        told.comment = lambda number: text
        told.facts = lambda number: {"NumTasks": tasks, "Account": account}
        if refuses:
            def search(*arguments, **how):
                asked.questions.append((arguments, how))
                raise daemon.Refused("no pattern is stored as a [NOT_FOUND]")
            asked.search = search
        steering.Steering(settings.Settings(), told, asked, SILENT, "copse").place(WAITING, ["n1"])
        return [[word for word in arguments
                 if any(part in word for part in ("pattern", "rank", "tree", "account"))]
                for arguments, _ in asked.questions]

    def test_what_the_user_said_is_handed_on(self):
        self.assertEqual(self.placed("mine"), [[]])
        self.assertEqual(self.placed("coppice-trees=3"), [["--trees"]])
        self.assertEqual(self.placed("coppice-pattern=--help"),
                         [["--pattern=--help", "--ranks-per-node"]])
        self.assertEqual(self.placed("coppice-pattern=a", tasks="5"), [[]])  # 5 on 2 nodes
        self.assertEqual(self.placed("mine", account="physics"), [["--account=physics"]])

    def test_a_pattern_that_is_refused_is_left_out(self):
        self.assertEqual(self.placed("coppice-pattern=a coppice-trees=2", refuses=True),
                         [["--trees", "--pattern=a", "--ranks-per-node"], ["--trees"]])

    def test_a_job_that_has_gone_says_nothing(self):
        told = Told()
        told.comment = self.gone
        asked = Asked({})
        steering.Steering(settings.Settings(), told, asked, SILENT, "copse").place(WAITING, [])
        self.assertEqual(len(asked.questions), 1)

    @staticmethod
    def gone(number):
        raise slurm.Failed("squeue: Invalid job id specified")


class OrderTest(unittest.TestCase):
    FACTS = {"NumTasks": "4", "RestartCnt": "0", "SubmitTime": "T", "TimeLimit": "",
             "BatchFlag": "1", "cpus-per-task": "1", "Account": "(null)"}
    CPUS = {"SLURM_JOB_CPUS_PER_NODE": "4(x2)"}

    def allocation(self, **facts):
        return registrar.Allocation("7", "65534", ["n1", "n2"], "coppice-pattern=a",
                                    {**self.FACTS, **facts})

    def test_only_ranks_that_srun_can_start_so_are_ordered(self):
        self.assertIsNone(hooks.why_not_ordered(self.allocation(), self.CPUS))
        self.assertIsNone(hooks.why_not_ordered(self.allocation(**{"cpus-per-task": "2"}), self.CPUS))
        self.assertIsNone(hooks.why_not_ordered(self.allocation(**{"cpus-per-task": "N/A"}),
                                                self.CPUS))
        for facts, environment, why in (
                ({"NumTasks": "5"}, self.CPUS, "as many"), ({"NumTasks": "N/A"}, self.CPUS, "as many"),
                ({"BatchFlag": "0"}, self.CPUS, "batch"),
                ({"cpus-per-task": "3"}, self.CPUS, "CPUs"),
                ({}, {"SLURM_JOB_CPUS_PER_NODE": "4,1"}, "CPUs"),
                ({}, {"SLURM_JOB_CPUS_PER_NODE": "some"}, "CPUs"), ({}, {}, "CPUs"),
                ({}, {**self.CPUS, "SLURM_HET_JOB_ID": "7"}, "heterogeneous")):
            self.assertIn(why, hooks.why_not_ordered(self.allocation(**facts), environment))

    def registrar(self, asked, told=None):
        made = registrar.Registrar.__new__(registrar.Registrar)
        made.slurm, made.daemon, made.journal, made.cluster = told, asked, SILENT, "copse"
        return made

    def test_positions_become_nodes(self):
        wishes = comment.Wishes(pattern="--as=root")
        asked = Asked({"permutation": [3, 0, 1, 2]})
        self.assertEqual(self.registrar(asked).order(self.allocation(), wishes, {}),
                         ["n2", "n1", "n1", "n2"])
        self.assertIn("--application=--as=root", asked.questions[0][0])
        for wrong in [0, 1, 2], [0, 0, 1, 2], [0, 1, 2, 4]:
            with self.assertRaises(ValueError):
                self.registrar(Asked({"permutation": wrong})).order(self.allocation(), wishes, {})
        refused = Asked(daemon.Refused("no"))
        self.assertIsNone(self.registrar(refused).order(self.allocation(), wishes, {}))

    def test_an_id_that_another_took_is_in_nobodys_way(self):
        asked = Asked({"id": "9"})
        taken = {"slurm-copse-7@T.0"}

        def ask(*arguments, **how):
            asked.questions.append((arguments, how))
            if arguments[-1] in taken:
                raise daemon.Refused("request_id was used with other content [ALREADY_EXISTS]")
            return asked.answer
        asked.ask = ask
        for _ in range(2):
            self.assertEqual(
                self.registrar(asked).register_hosts(
                    self.allocation(), ["n1"], 60, comment.Wishes(partition="0x0001"), {}), "9")
        for arguments, _ in asked.questions:
            self.assertEqual(arguments[arguments.index("--partition") + 1], "0x0001")
        ids = [arguments[-1] for arguments, _ in asked.questions]
        self.assertEqual(len(set(ids)), 3)  # the one that is known, and each time one that is not

    def test_an_order_that_was_found_with_the_nodes_is_not_searched_again(self):
        told = Told()
        asked = Asked(None)
        placement = {"nodes": ["n2", "n1"], "permutation": [3, 0, 1, 2]}
        started = {"id": "9", "state": "JOB_STATE_ACTIVE"}

        def ask(*arguments, **how):
            asked.questions.append((arguments, how))
            return started if arguments[1] == "start" else placement
        asked.ask = ask
        made = self.registrar(asked, told)
        wishes = comment.Wishes(pattern="a")
        self.assertEqual(made.start_placement(self.allocation(), 60, wishes, {}), ("9", True))
        self.assertIn("--arrange-ranks", asked.questions[-1][0])
        # In Slurm's order, or for a pattern that it was not made with, it is of no use.
        for given, change in ((comment.NO_WISHES, {}), (wishes, {"permutation": []}),
                              (wishes, {"nodes": ["n1", "n3"]}), (wishes, {"permutation": [0, 1]})):
            placement = {"nodes": ["n2", "n1"], "permutation": [3, 0, 1, 2], **change}
            self.assertEqual(made.start_placement(self.allocation(), 60, given, {}), (None, False))
            self.assertEqual(asked.questions[-1][0][:2], ("placement", "release"))


class AccountsTest(unittest.TestCase):
    """Which account a job has, and what becomes of answers of sacctmgr that are none."""

    def test_accounts_that_slurm_looked_at_are_handed_on(self):
        told = Told()
        self.assertEqual(accounts.on_account(told, {"Account": "--as=root"}), ["--account=--as=root"])
        for nothing in "", "(null)", "N/A":
            self.assertEqual(accounts.on_account(told, {"Account": nothing}), [])
        told.checks_accounts = lambda: False
        self.assertEqual(accounts.on_account(told, {"Account": "physics"}), [])
        with tempfile.TemporaryDirectory() as scratch:
            for words, checks in (("none", False), ("associations,limits,qos", True), ("safe", False)):
                self.stand_in(scratch, "scontrol", f"echo 'AccountingStorageEnforce = {words}'")
                self.assertEqual(slurm.Slurm(self.chosen(scratch)).checks_accounts(), checks, words)

    @staticmethod
    def stand_in(folder, name, script):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script + "\n")
        os.chmod(path, 0o755)
        return path

    def chosen(self, folder):
        path = os.environ["PATH"]
        os.environ["PATH"] = folder + ":" + path
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        return settings.Settings(state_dir=folder)

    def test_answers_that_are_none_are_told_once_and_tried_again(self):
        said, asked = [], Asked({})
        with tempfile.TemporaryDirectory() as scratch:
            self.stand_in(scratch, "scontrol", "echo 'ClusterName = copse'")
            self.stand_in(scratch, "sacctmgr", 'echo "$*"; test "$3" = assoc || exit $(cat "$0.status")')
            log = types.SimpleNamespace(say=lambda text, **_: said.append(text))
            imports = accounts.AccountsImport(slurm.Slurm(self.chosen(scratch)), asked, log)
            for status, is_fresh in (("0", True), ("1", False), ("1", False), ("0", True)):
                with open(os.path.join(scratch, "sacctmgr.status"), "w", encoding="utf-8") as file:
                    file.write(status)
                self.assertEqual(imports.round(), is_fresh)
            # Half an answer is none.
            ((arguments, how), _) = asked.questions
            self.assertEqual(arguments, ("account", "import", "-", "--cluster", "copse"))
            self.assertEqual(how["stdin"].split("\n"),
                             ["-P show assoc cluster=copse format=cluster,account,user,parentname",
                              "-P show user withassoc cluster=copse format=cluster,user,defaultaccount", ""])
            asked.answer = daemon.Refused("standard input: no account is in it [NOT_FOUND]")
            self.assertEqual([imports.round(), imports.round()], [False, False])
            asked.answer = daemon.Away("gone")
            self.assertFalse(imports.round())
        self.assertEqual(len(said), 3, said)
        self.assertIn("not imported: sacctmgr -P show user", said[0])
        self.assertEqual(said[1], "accounts are imported again")
        self.assertIn("NOT_FOUND", said[2])


class DaemonTest(unittest.TestCase):
    def test_a_search_that_takes_long_says_nothing_of_the_daemon(self):
        with tempfile.TemporaryDirectory() as scratch:
            slow = os.path.join(scratch, "slow")
            with open(slow, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexec tail -f /dev/null\n")
            os.chmod(slow, 0o755)
            asks = daemon.Daemon(settings.Settings(state_dir=scratch, coppicectl=slow, patience_s=0.2),
                                 SILENT)
            with self.assertRaises(daemon.Refused):
                asks.search("map")
            self.assertFalse(asks.is_noted_away())
            with self.assertRaises(daemon.Away):
                asks.ask("job", "list")
            self.assertTrue(asks.is_noted_away())
            with self.assertRaises(daemon.Away):
                asks.search("map")


class ReconcileTest(unittest.TestCase):
    @staticmethod
    def job(number, name, owner="nobody"):
        return {"id": number, "display_name": name, "owner": owner, "lease": "600s",
                "lease_left": "1s"}

    def asked(self, jobs, queue, known=None, comments=()):
        """What the steward of cluster prod tells the daemon. `known`: ids of jobs that were registered for
        Slurm's, else all."""
        with tempfile.TemporaryDirectory() as scratch:
            stewards = steward.Steward.__new__(steward.Steward)
            stewards.settings = settings.Settings(state_dir=scratch)
            stewards.prefix, stewards.refused = registrar.name_of("prod", ""), set()
            stewards.daemon, stewards.journal = Asked({}), SILENT
            stewards.known = known_jobs.KnownJobs(stewards.settings)
            stewards.slurm = types.SimpleNamespace(comment=dict(comments).get)
            stewards.register = lambda job: stewards.daemon.ask("register", job["id"])
            for job in jobs:
                if known is None or job["id"] in known:
                    stewards.known.add(job["id"], job["display_name"])
            stewards.reconcile(jobs, queue)
            self.left_known = stewards.known.numbers()
        return [arguments for arguments, _ in stewards.daemon.questions]

    def test_only_jobs_of_the_cluster_are_ended(self):
        others = [self.job("1", "slurm-prod-test"), self.job("2", "slurm-prod-2-5"),
                  self.job("3", "slurm-prod-"), self.job("4", "mine"),
                  self.job("5", "slurm-prod-5x")]
        self.assertEqual(self.asked([*others, self.job("6", "slurm-prod-5")], []),
                         [("job", "end", "6")])

    def test_who_gives_a_job_such_a_name_keeps_it(self):
        jobs = [self.job("6", "slurm-prod-5"), self.job("8", "slurm-prod-5")]
        self.assertEqual(self.asked(jobs, [], known={"8"}), [("job", "end", "8")])
        # Nor does it pass for the one that was registered, be it newer or older.
        running = {**WAITING, "state": "R"}
        for number in "6", "10":
            jobs = [self.job("8", "slurm-prod-7"), self.job(number, "slurm-prod-7")]
            self.assertEqual(self.asked(jobs, [running], known={"8"}), [("job", "keepalive", "8")])
        # A number that was given to another since, as after the daemon lost its database.
        self.assertEqual(self.asked([self.job("8", "slurm-prod-7")], [], known=set()), [])

    def test_what_is_known_is_found_again_for_jobs_that_run(self):
        jobs = [self.job("8", "slurm-prod-7"), self.job("9", "slurm-prod-7")]
        running = {**WAITING, "state": "R"}
        self.assertEqual(self.asked(jobs, [running], set(), {"7": "mine coppice-job=8"}),
                         [("job", "keepalive", "8")])
        self.assertEqual(self.left_known, {"8"})

    def test_a_name_alone_keeps_no_job_from_being_registered(self):
        running = {**WAITING, "state": "R"}
        mine = self.job("9", "slurm-prod-7")
        self.assertEqual(self.asked([mine], [running]), [("job", "keepalive", "9")])
        self.assertEqual(self.asked([self.job("9", "slurm-prod-7", "65534")], [running]),
                         [("job", "keepalive", "9")])
        self.assertEqual(self.asked([self.job("9", "slurm-prod-7", "root")], [running], set()),
                         [("register", "7")])
        # Registered for a job of another user's that had the number before.
        self.assertEqual(self.asked([self.job("9", "slurm-prod-7", "root")], [running]),
                         [("job", "end", "9"), ("register", "7")])

    def test_who_is_registered_late_is_so_in_the_partition_of_his_comment(self):
        stewards = steward.Steward.__new__(steward.Steward)
        stewards.settings, stewards.refused, stewards.journal = settings.Settings(), set(), SILENT
        stewards.slurm = types.SimpleNamespace(
            facts=lambda number: {"TimeLimit": "10:00", "StartTime": "N/A", "EndTime": "N/A"},
            names=lambda text: [text],
            comment=lambda number: "coppice-partition=0x0002 coppice-pattern=partners")
        wished = []
        stewards.registrar = types.SimpleNamespace(
            register=lambda allocation, lease_s, wishes: wished.append(wishes))
        stewards.register({**WAITING, "state": "R"})
        # Ranks that were not ordered at the start are not ordered under way.
        self.assertEqual(wished, [comment.Wishes(partition="0x0002")])

    def test_of_two_runs_the_earlier_is_ended(self):
        jobs = [self.job("9", "slurm-prod-7"), self.job("10", "slurm-prod-7")]
        self.assertEqual(sorted(self.asked(jobs, [{**WAITING, "state": "R"}])),
                         [("job", "end", "9"), ("job", "keepalive", "10")])


class UsageTest(unittest.TestCase):
    def run_with(self, *words, **variables):
        return subprocess.run([sys.executable, os.path.join(FOLDER, "coppice-slurm"), *words], env=variables,
                              capture_output=True, text=True, timeout=30)

    def test_wrong_usage_is_told_as_of_all_programs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("no_such_setting = 1\n")
            file.flush()
            for words, reason in ((("--no-such-option",), "--no-such-option"), (("dance",), "dance"),
                                  ((), "coppice-slurm steward"),
                                  (("--config", file.name, "steward"), "no_such_setting is no setting")):
                run = self.run_with(*words)
                self.assertEqual((run.returncode, run.stdout), (2, ""), words)
                told = r"error: [^\n]+ \[INVALID_ARGUMENT\]\n"
                is_of_file = "--config" in words  # --help has nothing on that
                self.assertRegex(run.stderr, r"\A" + told + ("" if is_of_file else "Run with --help[^\n]+\n") + r"\Z")
                self.assertIn(reason, run.stderr)

    def test_settings_that_cannot_be_read_keep_no_job_from_starting(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("no_such_setting = 1\n")
            file.flush()
            run = self.run_with("--config", file.name, SLURM_SCRIPT_CONTEXT="prolog_slurmctld")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("no_such_setting", run.stderr)


if __name__ == "__main__":
    unittest.main()
