"""coppice-plan answers as coppicectl does of a daemon with the same fabric, jobs and switches, and keeps a session
in a file.

  offline_test.py COPPICED COPPICECTL COPPICE_PLAN"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

import exit_status
from coppiced_process import Coppiced
from simulated_subnet import wait_until

COPPICED, COPPICECTL, PLAN = (sys.argv.pop(1) for _ in range(3))
FABRIC = "model:fat-tree(supernodes=3,leaves=2,spines=2,hosts-per-leaf=3,tops=2)"
ENTRIES, DEGREE = 3, 8
# The busiest link of a granted tree is measured beside the load that the others promised when it was granted, or when
# the daemon that has it began.
PASSING = {"busiest_link_us", "create_time", "update_time", "fabric_version", "lease_left", "term_left", "owner", "search_seconds"}


def without_passing(value):
    """What was answered, without what is of the moment."""
    if isinstance(value, list):
        return [without_passing(one) for one in value]
    if isinstance(value, dict):
        return {key: without_passing(one) for key, one in value.items() if key not in PASSING}
    return value


class Offline(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="coppice-offline-")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.database = os.path.join(self.folder, "plan.db")
        self.daemon = Coppiced(COPPICED, fabric=FABRIC, entries=ENTRIES, degree_limit=DEGREE)
        self.addCleanup(self.daemon.clean_up)
        self.daemon.start().wait_until_listening()
        wait_until(lambda: self.live("fabric", "sweep").returncode == 0, "no first sweep")

    def run_program(self, command, environment=None):
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, **(environment or {})})

    def live(self, *arguments):
        return self.run_program([COPPICECTL, *arguments], {"COPPICE_SERVER": self.daemon.address})

    def offline(self, *arguments):
        return self.run_program([PLAN, *arguments, "--fabric", FABRIC, "--entries", str(ENTRIES),
                                 "--switch-degree", str(DEGREE), "--database", self.database])

    def both(self, *arguments):
        """The answer, once both have given the same."""
        answers = []
        for ask in (self.live, self.offline):
            done = ask(*arguments, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""), (arguments, done.stdout))
            answers.append(without_passing(json.loads(done.stdout)))
        self.assertEqual(answers[0], answers[1], arguments)
        return answers[0]

    def refused_by_both(self, *arguments):
        live, offline = self.live(*arguments), self.offline(*arguments)
        self.assertNotEqual(live.returncode, 0)
        self.assertEqual((live.returncode, live.stdout, live.stderr),
                         (offline.returncode, offline.stdout, offline.stderr), arguments)

    def test_a_session_goes_alike(self):
        self.both("job", "register", "--endpoints", "n[0000-0008]", "--lease", "1h", "--name", "a")
        self.both("job", "register", "--endpoints", "n[0009-0017]", "--lease", "1h", "--name", "b")
        for arguments in ((), ("--type", "2"), ("--type", "1", "--builder", "kary", "--width", "3"),
                          ("--op", "bcast", "--bytes", "64K"), ("--ranks", "0-4"),
                          ("--members", "n[0002-0005]"), ("--tradeoffs",)):
            self.both("tree", "advise", "--job", "1", *arguments)
        # Each has an entry less than the one before, until there is none left.
        for number in range(1, ENTRIES + 1):
            tree = self.both("tree", "create", "--job", "1", "--type", "2", "--root", "T0")
            self.assertEqual(tree["id"], str(number))
        self.refused_by_both("tree", "create", "--job", "1", "--type", "2", "--root", "T0")
        self.both("tree", "batch", "--job", "2", "--grid", "3x3", "--dry-run", "--compare")
        self.both("tree", "batch", "--job", "2", "--grid", "3x3")
        self.both("tree", "list")
        taken = self.both("entries")
        self.assertIn(0, {one["entries_free"] for one in taken["switches"]})
        self.both("tree", "release", "1")
        self.both("entries")
        self.both("job", "end", "2")
        held = self.both("placement", "create", "--nodes", "4", "--term", "1h")
        self.assertEqual(len(held["nodes"]), 4)
        self.refused_by_both("placement", "create", "--nodes", "16")
        self.both("placement", "advise", "--nodes", "3", "--weights", "distance=1", "--same-pod")
        self.both("placement", "start", held["id"])
        self.both("placement", "list")
        self.both("job", "list")
        self.refused_by_both("tree", "show", "77")

    def test_the_table_of_types_is_alike(self):
        for arguments in (("--members", "512"), ()):
            live = self.live("table", "--json", *arguments)
            offline = self.run_program([PLAN, "table", "--json", "--fabric", FABRIC, *arguments])
            self.assertEqual((live.returncode, live.stderr), (0, ""))
            self.assertEqual((offline.returncode, offline.stdout, offline.stderr), (0, live.stdout, ""))

    def test_algorithms_and_the_options_of_map_are_alike(self):
        def of(program, *arguments):
            done = self.run_program([program, "map", *arguments], {"COPPICE_SERVER": self.daemon.address})
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            return done.stdout

        for arguments in (("--list",), ("--list", "--json")):
            self.assertEqual(of(COPPICECTL, *arguments), of(PLAN, *arguments))
        listed = json.loads(of(PLAN, "--list", "--json"))["algorithms"]
        self.assertIn("auto", {one["name"] for one in listed})
        self.assertIn(" to 16777216)", of(PLAN, "--list"))
        meanings = re.compile(r"^  (--[\w-]+)(?:.*\n {30}|.*?  +)(\S.*)$", re.M)
        live, offline = (dict(meanings.findall(of(program, "--help").partition("\nFiles (")[0]))
                         for program in (COPPICECTL, PLAN))
        alike = {option for option in live if live[option] == offline.get(option)}
        self.assertEqual(alike, {"--" + option for option in (
            "pattern", "messages", "hosts", "ranks-per-host", "distance", "traffic", "algorithm", "objective", "budget",
            "seed", "option", "emit", "out", "list")})
        self.assertEqual(set(live) & set(offline), alike | {"--json"})

    def test_what_cannot_be_written_is_told(self):
        members = ("--fabric", FABRIC, "--members", "n[0000-0003]")
        pattern = os.path.join(self.folder, "pattern")
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 1\n1 0\n")
        mapping = ("map", "--pattern", pattern, "--fabric", FABRIC)
        for arguments in (("fabric", "--fabric", FABRIC), ("simulate", *members), ("tree", *members), mapping,
                          ("map", "--list"), (*mapping, "--emit", "slurm")):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([PLAN, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
                                      check=False)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("standard output could not be written [DATA_LOSS]", done.stderr)
        for arguments in (("fabric", "--fabric", FABRIC, "--out"), (*mapping, "--emit", "slurm", "--out")):
            for path, status, word in (("/dev/full", 1, "[DATA_LOSS]"), ("/nonexistent/x", 3, "[NOT_FOUND]")):
                done = self.run_program([PLAN, *arguments, path])
                self.assertEqual((done.returncode, done.stdout), (status, ""), arguments)
                self.assertIn(word, done.stderr)

    def test_members_without_a_job_are_one_for_the_call(self):
        registered = self.live("job", "register", "--endpoints", "n[0000-0005]", "--json")
        live = json.loads(self.live("tree", "advise", "--job", json.loads(registered.stdout)["id"],
                                    "--json").stdout)
        offline = self.run_program([PLAN, "tree", "--fabric", FABRIC, "--entries", str(ENTRIES),
                                    "--switch-degree", str(DEGREE), "--members", "n[0000-0005]", "--json"])
        self.assertEqual((offline.returncode, offline.stderr), (0, ""))
        self.assertEqual(json.loads(offline.stdout), {**live, "job_id": None})
        self.assertFalse(os.path.exists(self.database))

    def test_the_engine_refuses_in_json_and_what_has_no_effect(self):
        members = ("--fabric", FABRIC, "--members", "n[0000-0003]")
        for arguments in (("map", "--pattern", "/nonexistent", "--fabric", FABRIC),
                          ("simulate", "--fabric", FABRIC, "--members", "nobody"),
                          ("fabric", "describe", "--fabric", "file:/nonexistent"),
                          ("table", "--fabric", "file:/nonexistent"),
                          ("calibrate", "/nonexistent"), ("tree", "batch", *members, "--grid", "9x9")):
            done = self.run_program([PLAN, *arguments, "--json"])
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual((done.returncode, done.stdout), (exit_status.of(done.stderr), ""))
            self.assertIn("code", json.loads(done.stderr)["error"], arguments)
        for option in ("--held", "--down", "--database"):
            for arguments in (("simulate", *members), ("fabric", "describe", "--fabric", FABRIC)):
                done = self.run_program([PLAN, *arguments, option, "x"])
                self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
                self.assertIn(option + ": has no effect", done.stderr)

    def test_tables_of_the_engine_fit_80_columns(self):
        pattern = os.path.join(self.folder, "pattern")
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 1 2 9\n1 0 7 0\n0 3 0 1\n5 0 0 0\n")
        members = ("--fabric", FABRIC, "--members", "n[0000-0017]")
        for arguments in (("simulate", *members), ("simulate", *members, "--runs", "9", "--noise", "0.5"),
                          ("map", "--pattern", pattern, "--fabric", FABRIC, "--hosts", "n[0000-0003]")):
            terminal, its_end = pty.openpty()
            with subprocess.Popen([PLAN, *arguments], stdout=its_end, stderr=subprocess.DEVNULL) as program:
                os.close(its_end)
                shown = b""
                try:
                    while more := os.read(terminal, 4096):
                        shown += more
                except OSError:  # the other end is closed
                    pass
                self.assertEqual(program.wait(60), 0)
            os.close(terminal)
            lines = shown.decode().splitlines()
            self.assertGreater(len(lines), 6)
            self.assertLessEqual(max(map(len, lines)), 80, shown.decode())
        wide = self.run_program([PLAN, "simulate", *members, "-o", "wide"])
        self.assertIn("HEIGHT", wide.stdout)

    def test_another_fabric_than_the_databases_is_refused(self):
        """And takes nothing from what the database keeps; one that lacks a few nodes is the same one."""
        self.good(self.offline("job", "register", "--endpoints", "n[0000-0017]", "--lease", "1h"))
        self.good(self.offline("tree", "create", "--job", "1", "--type", "2"))
        before = self.good(self.offline("tree", "list", "--json"))
        # Models number their nodes alike, so a larger one has the jobs' ports, too.
        for model in ("model:fat-tree(leaves=2,spines=1,hosts-per-leaf=2)",
                      "model:fat-tree(leaves=8,spines=4,hosts-per-leaf=8)", "model:torus(dims=4x4,hosts=4)"):
            other = self.run_program([PLAN, "entries", "--database", self.database, "--fabric", model])
            self.assertEqual((other.returncode, other.stdout), (6, ""))
            self.assertIn(f"{self.database}: is of another fabric", other.stderr)
            self.assertIn(f"{model} lacks", other.stderr)
            self.assertEqual(self.good(self.offline("tree", "list", "--json")), before)
        self.good(self.offline("entries", "--down", "n[0000-0003]"))

    def test_what_is_done_is_told_to_who_cannot_read_the_answer(self):
        def unread(number, *arguments):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([PLAN, *arguments, "--fabric", FABRIC, "--database", self.database], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, number, done.stderr)
            return done.stderr

        lost = "standard output could not be written, but "
        for json_or_not in ((), ("--json",)):
            self.assertIn(lost + "job ", unread(1, "job", "register", "--endpoints", "n[0000-0008]", *json_or_not))
        self.assertIn(lost + "tree 1 of job 1 is granted", unread(1, "tree", "create", "--job", "1", "--json"))
        self.assertIn(lost + "job 2 has been granted 3 trees",
                      unread(1, "tree", "batch", "--job", "2", "--grid", "3x3", "--axes", "0"))
        self.assertIn(lost + "placement 1 holds its nodes", unread(1, "placement", "create", "--nodes", "3"))
        self.assertIn(lost + "job 3 is registered", unread(1, "placement", "start", "1"))
        self.assertNotIn(", but", unread(1, "tree", "advise", "--job", "1"))

    def test_what_nobody_keeps_is_said(self):
        for arguments, what in ((("placement", "create", "--nodes", "3"), "placement 1 holds its nodes"),
                                (("tree", "create", "--type", "2"), "tree 1 of job 1 is granted"),
                                (("job", "register", "--all"), "job 1 is registered")):
            done = self.run_program([PLAN, *arguments, "--fabric", FABRIC, "--json"])
            self.assertEqual(done.stderr, what + ", for this call only: --database FILE keeps it\n")
            self.assertEqual((done.returncode, json.loads(done.stdout)["id"]), (0, "1"))
            self.good(self.offline(*arguments))
        self.good(self.run_program([PLAN, "tree", "advise", "--fabric", FABRIC]))
        refused = self.run_program([PLAN, "placement", "create", "--nodes", "99", "--fabric", FABRIC])
        self.assertNotIn("this call only", refused.stderr)

    def test_what_can_only_be_meant_otherwise_is_said(self):
        members = ("--members", "n[0000-0003]", "--fabric", FABRIC)
        wide = self.run_program([PLAN, "tree", *members, "--type", "1", "--width", "5"])
        self.assertEqual((wide.returncode, wide.stderr),
                         (0, "--width 5 is more than the tree has ranks, 4: no node has so many children\n"))
        self.good(self.run_program([PLAN, "tree", *members, "--type", "1", "--width", "4"]))
        part = self.run_program([PLAN, "tree", "batch", *members, "--grid", "1x3", "--axes", "1", "--dry-run"])
        self.assertEqual((part.returncode, part.stderr),
                         (0, "the grid has 3 of the job's 4 ranks: the others are in none of its communicators\n"))
        self.good(self.run_program([PLAN, "tree", "batch", *members, "--grid", "2x2", "--dry-run"]))

    def test_messages_have_words_of_the_commands(self):
        """None of the wire, and no other program's."""
        for arguments in (("events", "--kind", "zzz"), ("placement", "create", "--nodes", "0"),
                          ("tree", "--type", "2", "--max-entries", "0"), ("tree", "--policy", "link=-1"),
                          ("job", "register", "--endpoints", "nobody"), ("pattern", "show", "x"),
                          ("placement", "advise", "--nodes", "1", "--candidates", "m0001"),
                          ("fabric", "route", "n0000", "xyz"), ("table", "--database", "/proc/plan.db")):
            done = self.run_program([PLAN, *arguments, "--fabric", FABRIC])
            self.assertEqual(done.returncode, exit_status.of(done.stderr), done.stderr)
            words = re.sub(r"\[[A-Z_]+\]\n", "", done.stderr)
            self.assertNotRegex(words, r"\w_\w|coppicectl|the daemon|\[", arguments)

    def test_help_says_for_how_long_what_is_held(self):
        for command, option, field, said, seconds in (
                (("job", "register"), "--lease", "lease", "as a rule 60s", "60s"),
                (("placement", "create"), "--term", "term", "as a rule 5m", "300s")):
            said_of = self.good(self.run_program([PLAN, *command, "--help"])).partition(option)[2]
            self.assertIn(said, re.sub(r"\s+", " ", said_of)[:150])
            what = ("--endpoints", "n0000") if field == "lease" else ("--nodes", "1")
            self.assertEqual(json.loads(self.good(self.offline(*command, *what, "--json")))[field], seconds)

    def test_documents_are_indented_alike(self):
        pattern = os.path.join(self.folder, "pattern")
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 1\n1 0\n")
        members = ("--members", "n[0000-0003]")
        for arguments in (("fabric",), ("fabric", "nodes"), ("tree", *members), ("simulate", *members),
                          ("map", "--pattern", pattern, "--hosts", "n[0000-0001]"), ("map", "--list"),
                          ("tree", "batch", *members, "--grid", "2x2", "--dry-run")):
            fabric = () if "--list" in arguments else ("--fabric", FABRIC)
            document = self.good(self.run_program([PLAN, *arguments, *fabric, "--json"]))
            self.assertRegex(document, r'^\{\n "', arguments)
        self.good(self.offline("pattern", "put", "cfd", pattern))
        self.assertEqual(json.loads(self.good(self.offline("pattern", "delete", "cfd", "--json"))), {})
        self.assertEqual(json.loads(self.good(self.offline("pattern", "list", "--json")))["patterns"], [])

    def test_the_report_of_map_says_where_the_order_is(self):
        pattern, out = (os.path.join(self.folder, name) for name in ("pattern", "order"))
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 128000000\n8000000 0\n")
        mapping = ("map", "--pattern", pattern, "--hosts", "n[0000,0017]")
        for ask in (self.live, lambda *line: self.run_program([PLAN, *line, "--fabric", FABRIC])):
            alone = ask(*mapping).stdout
            self.assertIn("--emit permutation", alone)
            self.assertRegex(alone, r"hop-bytes +816000000 +816000000 ")  # 136 MB over 6 links, and no 8.16e+08
            self.assertNotIn("any 1 ranks", alone)
            with_file = ask(*mapping, "--emit", "slurm", "--out", out).stdout
            self.assertIn(f"the order is in {out}, as --emit slurm has it\n", with_file)
            self.assertNotIn("--emit permutation", with_file)

    def test_wrong_words_are_wrong_usage(self):
        """Whoever judges them; a file or a folder that is not there is what was named and is not there."""
        pattern = os.path.join(self.folder, "pattern")
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 1\n1 0\n")
        mapping = ("map", "--pattern", pattern, "--hosts", "n[0000-0001]")
        tree = ("tree", "--members", "n[0000-0003]", "--fabric", FABRIC)
        for status, word, done in (
                (2, "no mapping algorithm foo", self.live(*mapping, "--algorithm", "foo")),
                (2, "no mapping algorithm foo",
                 self.run_program([PLAN, *mapping, "--fabric", FABRIC, "--algorithm", "foo"])),
                (2, "--profile nope: neither a file", self.run_program([PLAN, *tree, "--profile", "nope"])),
                (3, "--profile: cannot open", self.run_program([PLAN, *tree, "--profile", "/nowhere/x.toml"])),
                (3, "make the folder", self.run_program([PLAN, *tree, "--database", "/nowhere/plan.db"]))):
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertIn(word, done.stderr)

    def test_what_a_file_names_wrongly_names_its_option(self):
        wrong = os.path.join(self.folder, "wrong")
        with open(wrong, "w", encoding="utf-8") as file:
            file.write("no such thing\n")
        for option in ("--full-switches", "--load", "--routes", "--held"):
            for path in (wrong, os.path.join(self.folder, "absent")):
                done = self.run_program([PLAN, "tree", "--fabric", FABRIC, option, path])
                self.assertRegex(done.stderr, f"^error: {option}: .*{path}")

    def test_a_file_for_the_order_is_looked_at_before_the_search(self):
        pattern, out = (os.path.join(self.folder, name) for name in ("pattern", "order"))
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 1\n1 0\n")
        with open(out, "w", encoding="utf-8") as file:
            file.write("an earlier order\n")
        mapping = ("map", "--pattern", pattern, "--emit", "slurm", "--hosts", "n[0000-0001]", "--budget", "1h")
        for ask in (self.live, lambda *line: self.run_program([PLAN, *line, "--fabric", FABRIC])):
            for where in ("/nowhere/order", self.folder):
                done = ask(*mapping, "--out", where)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, f"cannot open {where}.*\\[")
            self.assertNotEqual(ask(*mapping, "--out", out, "--algorithm", "foo").returncode, 0)
            with open(out, encoding="utf-8") as file:
                self.assertEqual(file.read(), "an earlier order\n")

    def test_loads_of_links_and_routes_are_the_same(self):
        load = os.path.join(self.folder, "load")
        links = json.loads(self.good(self.offline("fabric", "links", "--json")))["links"]
        with open(load, "w", encoding="ascii") as file:
            for number, link in enumerate(links):
                print(link["a"]["guid"], link["a"]["port"], number / 100, file=file)
        self.good(self.offline("job", "register", "--all"))
        self.good(self.offline("tree", "create", "--job", "1", "--type", "1", "--bytes", "1M"))
        links = json.loads(self.good(self.offline("fabric", "links", "--json", "--load", load)))["links"]
        busy = {}
        for link in links:
            for end, way in (("a", "ab"), ("b", "ba")):
                busy[link[end]["guid"], link[end]["port"]] = (link["utilisation_" + way] or 0, link["promised_" + way])
        route = ("fabric", "route", "n0000", "n0017", "--load", load)
        hops = json.loads(self.good(self.offline(*route, "--json")))["hops"]
        self.assertEqual(len(hops), 6)
        of_route = [(hop["utilisation"], hop["promised"]) for hop in hops]
        self.assertEqual(of_route, [busy[hop["guid"], hop["out_port"]] for hop in hops])
        self.assertTrue(all(max(which) > 0 for which in zip(*of_route)))
        table = self.good(self.offline(*route)).splitlines()[1:-1]
        self.assertEqual([line.split()[-1] for line in table], [f"{sum(both):.3f}" for both in of_route])

    def good(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_options_stand_before_the_command_too(self):
        for before in (("--fabric", FABRIC), ("--fabric", FABRIC, "--entries", str(ENTRIES))):
            for command in (("tree", "--members", "n[0000-0003]"), ("place", "--nodes", "2"), ("fabric", "nodes")):
                self.assertEqual(self.good(self.run_program([PLAN, *before, *command, "--json"])).strip()[0], "{")
        self.good(self.run_program([PLAN, "--fabric", FABRIC, "fabric", "--json"]))
        self.good(self.run_program([PLAN, "--fabric=" + FABRIC, "--entries=3", "fabric", "nodes"]))
        wrong = self.run_program([PLAN, "--colour", "red", "fabric"])
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn('"--colour": no such', wrong.stderr)
        for command, needed in (("tree", "--fabric"), ("fabric", "--fabric"), ("place", "--nodes")):
            alone = self.run_program([PLAN, command])
            self.assertEqual((alone.returncode, alone.stdout), (2, ""))
            self.assertIn(needed, alone.stderr)

    def test_what_only_a_subnet_has_is_no_command(self):
        for command in ("watch", "counters", "history"):
            done = self.offline("fabric", command)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("error: ", done.stderr)

    def test_who_holds_nodes_does_so_once(self):
        held = os.path.join(self.folder, "held")
        with open(held, "w", encoding="utf-8") as file:
            file.write("n[0000-0002] a\nn0004 b\nn0003 a\n")
        for _ in range(2):
            done = self.offline("job", "list", "--json", "--held", held)
            jobs = json.loads(done.stdout)["jobs"]
            self.assertEqual([(job["display_name"], job["rank_count"]) for job in jobs],
                             [("a", 4), ("b", 1)], done.stderr)


if __name__ == "__main__":
    unittest.main()
