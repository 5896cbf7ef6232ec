"""Batches of `coppice-plan tree batch` whose answers are known by counting.

tree_batch_golden_test.py PROGRAM DATA
"""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from scratch_files import WRONG_USAGE

IS_FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
SMALL = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
MEDIUM = "model:fat-tree(supernodes=10,leaves=32,spines=16,hosts-per-leaf=16,tops=64)"
# Chen et al. 2024, 6.2.2: 80 supernodes of 512 ports below 64 top switches.
LARGE = "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)"


def run(*arguments, lines=""):
    return subprocess.run([PROGRAM, "tree", "batch", *map(str, arguments)], capture_output=True,
                          text=True, timeout=600, check=False, input=lines)


def batch(*arguments, lines=""):
    """The plan beside what it is compared with; as many as fit."""
    done = run("--admission", "largest", "--dry-run", "--compare", "--trees", "--json", *arguments,
               lines=lines)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def random_groups(count, size, members, seed=1):
    """For --list -: so many groups of so many random ranks."""
    rng = random.Random(seed)
    return "".join(" ".join(map(str, rng.sample(range(members), size))) + "\n" for _ in range(count))


def root_of(tree):
    """The switch that is the root; of type II only."""
    return tree["nodes"]["switches"][tree["root"] - tree["rank_count"]]


class TreeBatchTest(unittest.TestCase):
    def check_totals(self, answer, entries):
        """Totals are those of the trees, and no switch takes more than it has. For trees of one
        switch each."""
        summary, totals = answer["summary"], answer["summary"]["comparison"]["batch"]
        trees = [one["tree"] for one in answer["trees"] if one["tree"]["type"] == "TREE_TYPE_II"]
        self.assertEqual(len(trees), totals["admitted"])
        self.assertEqual(summary["communicators"] - len(trees), totals["refused"])
        self.assertEqual(sum(tree["switch_count"] for tree in trees), int(totals["entries"]))
        self.assertEqual((summary["granted"], summary["type_i"], summary["entries"]),
                         (len(trees), 0, totals["entries"]))
        self.assertTrue(all(tree["switch_count"] == 1 for tree in trees))
        roots = collections.Counter(root_of(tree) for tree in trees)
        self.assertLessEqual(max(roots.values(), default=0), entries)

    def test_a_grid_on_a_small_fabric(self):
        # A row is one leaf switch's hosts, a column one host of every leaf switch.
        answer = batch("--fabric", SMALL, "--grid", "4x4", "--switch-degree", 16, "--entries", 4)
        self.assertEqual(8, answer["summary"]["granted"])
        self.check_totals(answer, 4)
        self.assertEqual("8", answer["summary"]["comparison"]["bounds"]["entries_counting"])

    def test_six_switches_with_an_entry_each_serve_six_of_eight(self):
        request = ("--fabric", SMALL, "--grid", "4x4", "--switch-degree", 16, "--entries", 1)
        answer = batch(*request)
        self.assertEqual(6, answer["summary"]["granted"])
        self.check_totals(answer, 1)
        refused = answer["summary"]["refusals"]
        self.assertEqual(2, len(refused))
        self.assertTrue(all(one["why_not"] for one in refused))
        # The two have trees over NICs where those will do, and none has one where all are wanted.
        either = batch(*request, "--type-i")
        self.assertEqual((8, 2), (either["summary"]["granted"], either["summary"]["type_i"]))
        self.assertEqual(6, either["summary"]["comparison"]["batch"]["admitted"])
        self.assertEqual(6, run(*request).returncode)

    def test_the_papers_grids_need_one_entry_a_communicator(self):
        cases = ((10000, 16, 1), (10000, 16, 1)) if IS_FULL else ((10000, 1), (16,))
        for grid, communicators, each in (("160x256", 416, cases[0]), ("202x202", 404, cases[1])):
            for entries in each:
                with self.subTest(grid=grid, entries=entries):
                    answer = batch("--fabric", LARGE, "--grid", grid, "--switch-degree", 256,
                                   "--entries", entries, "--goal", "entries")
                    self.assertEqual(communicators, answer["summary"]["granted"])
                    self.check_totals(answer, entries)
                    if entries < communicators:
                        continue  # the unreduced trees do not all find room
                    unreduced = answer["summary"]["comparison"]["unreduced"]
                    self.assertEqual(0, unreduced["refused"])
                    self.assertLessEqual(10 * int(answer["summary"]["entries"]),
                                         int(unreduced["entries"]))

    def test_links_carry_no_more_than_leaf_switches_force(self):
        # Limit 64: four switches for 202 ranks. 16 of a line are on one leaf switch.
        answer = batch("--fabric", LARGE, "--grid", "202x202", "--order", "first",
                       "--switch-degree", 64, "--entries", 100)
        summary, bounds = answer["summary"], answer["summary"]["comparison"]["bounds"]
        self.assertEqual(404, summary["granted"])
        self.assertLessEqual(20 * int(summary["entries"]), 21 * int(bounds["entries_counting"]))
        self.assertEqual(16, bounds["most_packets"])
        self.assertEqual(16, summary["most_packets"])

    def test_goals_trade_entries_for_links(self):
        groups = random_groups(40, 100, 5120)

        def totals(goal):
            summary = batch("--fabric", MEDIUM, "--list", "-", "--switch-degree", 64, "--entries", 16,
                            "--goal", goal, lines=groups)["summary"]
            return int(summary["entries"]), summary["most_packets"]
        entries, both, links = totals("entries"), totals("both"), totals("links")
        self.assertLessEqual(entries[0], both[0])
        self.assertLessEqual(20 * both[0], 21 * entries[0])
        self.assertLess(both[1], entries[1])
        self.assertLessEqual(links[1], entries[1])

    def test_a_real_cluster_with_its_forwarding_tables(self):
        cluster = pathlib.Path(__file__).parent.parent / "data" / "plafrim"
        request = ("--fabric", f"file:{cluster}/ibnetdiscover.txt", "--routes",
                   cluster / "ibroute.txt", "--list", "-", "--switch-degree", 8)
        groups = random_groups(30, 16, 125)
        for entries in (8, 100):
            with self.subTest(entries=entries):
                answer = batch(*request, "--entries", entries, lines=groups)
                comparison = answer["summary"]["comparison"]
                totals, one_by_one = comparison["batch"], comparison["one_by_one"]
                self.assertGreaterEqual(totals["admitted"], one_by_one["admitted"])
                self.assertGreaterEqual(totals["refused"], comparison["bounds"]["refused"])
                trees = [one["tree"] for one in answer["trees"]]
                self.assertEqual({"ROUTE_KIND_FORWARDING_TABLES"},
                                 {tree["route_kind"] for tree in trees})
                self.assertEqual(int(totals["entries"]), sum(t["switch_count"] for t in trees))
                self.assertEqual(totals["admitted"], len(trees))
                roots = collections.Counter(root_of(tree) for tree in trees)
                self.assertLessEqual(max(roots.values()), entries)

    def test_a_list_says_which_ranks(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("0-3\n# the first host of every leaf switch\n0-12:4\n")
            file.flush()
            answer = batch("--fabric", SMALL, "--list", file.name)
        self.assertEqual([4, 4], [one["tree"]["rank_count"] for one in answer["trees"]])
        self.assertEqual([1, 2], [one["tree"]["radius"] for one in answer["trees"]])

    def test_ranks_are_the_members_in_their_order(self):
        answer = batch("--fabric", SMALL, "--members", "n[0012-0015],n0000", "--list", "-",
                       lines="0-3\n3-4\n")
        self.assertEqual([1, 2], [one["tree"]["radius"] for one in answer["trees"]])

    def test_equal_requests_have_equal_answers(self):
        request, groups = ("--fabric", SMALL, "--list", "-", "--entries", 2), random_groups(9, 5, 16)
        one, other = batch(*request, lines=groups), batch(*request, lines=groups)
        for tree in one["trees"] + other["trees"]:
            tree["tree"].pop("create_time")
        self.assertEqual(one, other)

    def test_for_people_in_80_columns(self):
        done = run("--fabric", SMALL, "--grid", "4x4", "--trees", "--dry-run", "--compare")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if not line.startswith("most loaded: ")]
        self.assertLessEqual(max(map(len, lines)), 80, done.stdout)
        for words in ("ROOT", "one by one, unreduced", "bounds: 8 entries", "most loaded: "):
            self.assertIn(words, done.stdout)

    def test_what_cannot_be_is_refused(self):
        for status, arguments in ((2, ("--grid", "4x5")), (2, ("--grid", "0x4")),
                                  (2, ("--grid", "99999999999x9999999999")),
                                  (3, ("--list", "/nonexistent")), (WRONG_USAGE, ()),
                                  (WRONG_USAGE, ("--grid", "4x4", "--compare")),
                                  (WRONG_USAGE, ("--grid", "4x4", "--list", "-"))):
            with self.subTest(arguments=arguments):
                done = run("--fabric", SMALL, *arguments)
                self.assertEqual(status, done.returncode, done.stderr)
                self.assertTrue(done.stderr.strip())


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
