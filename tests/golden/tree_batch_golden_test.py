"""Batches of `coppice-plan tree-batch` whose answers are known by counting.

tree_batch_golden_test.py PROGRAM DATA
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SMALL = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
# Chen et al. 2024, 6.2.2: 80 supernodes of 512 ports below 64 top switches.
LARGE = "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)"


def run(*arguments):
    return subprocess.run([PROGRAM, "tree-batch", *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, check=False)


def batch(*arguments):
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class TreeBatchTest(unittest.TestCase):
    def check_totals(self, answer, entries):
        """Totals are those of the lines, and no switch takes more than it has. For trees of one
        switch each."""
        lines = answer["communicators"]
        trees = [line for line in lines if line["type"] == "II"]
        totals = answer["totals"]
        self.assertEqual(len(trees), totals["admitted"])
        self.assertEqual(len(lines) - len(trees), totals["failures"])
        self.assertEqual(sum(line["switches"] for line in trees), totals["entries"])
        self.assertTrue(all(line["switches"] == 1 for line in trees))
        roots = collections.Counter(line["root"] for line in trees)
        self.assertLessEqual(max(roots.values(), default=0), entries)

    def test_a_grid_on_a_small_fabric(self):
        # A row is one leaf switch's hosts, a column one host of every leaf switch.
        answer = batch("--fabric", SMALL, "--grid", "4x4", "--switch-degree", 16, "--entries", 4)
        self.assertEqual(8, answer["totals"]["admitted"])
        self.check_totals(answer, 4)
        self.assertEqual(8, answer["bounds"]["entries_counting"])

    def test_six_switches_with_an_entry_each_serve_six_of_eight(self):
        answer = batch("--fabric", SMALL, "--grid", "4x4", "--switch-degree", 16, "--entries", 1,
                       "--type", 2)
        self.assertEqual(6, answer["totals"]["admitted"])
        self.assertEqual(2, answer["totals"]["failures"])
        self.check_totals(answer, 1)
        refused = [line for line in answer["communicators"] if line["type"] != "II"]
        self.assertTrue(all(line["reason"] for line in refused))

    def test_the_papers_grids_need_one_entry_a_communicator(self):
        for grid, communicators in (("160x256", 416), ("202x202", 404)):
            for entries in (10000, 16, 1):
                with self.subTest(grid=grid, entries=entries):
                    answer = batch("--fabric", LARGE, "--grid", grid, "--switch-degree", 256,
                                   "--entries", entries, "--goal", "entries")
                    self.assertEqual(communicators, answer["totals"]["admitted"])
                    self.check_totals(answer, entries)
                    if entries < communicators:
                        continue  # the unreduced trees do not all find room
                    self.assertEqual(0, answer["unreduced"]["failures"])
                    self.assertLessEqual(10 * answer["totals"]["entries"],
                                         answer["unreduced"]["entries"])

    def test_links_carry_no_more_than_leaf_switches_force(self):
        # Limit 64: four switches for 202 ranks. 16 of a line are on one leaf switch.
        answer = batch("--fabric", LARGE, "--grid", "202x202", "--order", "first",
                       "--switch-degree", 64, "--entries", 100)
        self.assertEqual(404, answer["totals"]["admitted"])
        self.assertLessEqual(20 * answer["totals"]["entries"],
                             21 * answer["bounds"]["entries_counting"])
        self.assertEqual(16, answer["bounds"]["most_packets"])
        self.assertEqual(16, answer["totals"]["most_loaded"]["packets"])

    def test_goals_trade_entries_for_links(self):
        def totals(goal):
            answer = batch("--fabric", LARGE, "--random", "40x100", "--switch-degree", 64,
                           "--entries", 16, "--goal", goal)
            return answer["totals"]["entries"], answer["totals"]["most_loaded"]["packets"]
        entries, both, links = totals("entries"), totals("both"), totals("links")
        self.assertLessEqual(entries[0], both[0])
        self.assertLessEqual(20 * both[0], 21 * entries[0])
        self.assertLess(both[1], entries[1])
        self.assertLessEqual(links[1], entries[1])

    def test_a_real_cluster_with_its_forwarding_tables(self):
        cluster = pathlib.Path(__file__).parent.parent / "data" / "plafrim"
        request = ("--fabric", f"file:{cluster}/ibnetdiscover.txt", "--routes",
                   cluster / "ibroute.txt", "--random", "30x16", "--switch-degree", 8, "--type", 2)
        for entries in (8, 100):
            with self.subTest(entries=entries):
                answer = batch(*request, "--entries", entries)
                self.assertEqual("forwarding tables", answer["routes"])
                totals, one_by_one = answer["totals"], answer["one_by_one"]
                self.assertGreaterEqual(totals["admitted"], one_by_one["admitted"])
                self.assertGreaterEqual(totals["failures"], answer["bounds"]["failures"])
                lines = [line for line in answer["communicators"] if line["type"] == "II"]
                self.assertEqual(totals["entries"], sum(line["switches"] for line in lines))
                self.assertEqual(totals["admitted"], len(lines))
                roots = collections.Counter(line["root"] for line in lines)
                self.assertLessEqual(max(roots.values()), entries)

    def test_a_list_says_which_ranks(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("0-3\n# the first host of every leaf switch\n0-12:4\n")
            file.flush()
            answer = batch("--fabric", SMALL, "--list", file.name)
        self.assertEqual([4, 4], [line["ranks"] for line in answer["communicators"]])
        self.assertEqual([1, 2], [line["radius"] for line in answer["communicators"]])

    def test_equal_requests_have_equal_answers(self):
        request = ("--fabric", SMALL, "--random", "9x5", "--seed", 3, "--entries", 2)
        self.assertEqual(batch(*request), batch(*request))

    def test_what_cannot_be_is_refused(self):
        for status, arguments in ((2, ("--grid", "4x5")), (2, ("--grid", "0x4")),
                                  (2, ("--grid", "99999999999x9999999999")),
                                  (3, ("--list", "/nonexistent")), (2, ()),
                                  (2, ("--grid", "4x4", "--random", "2x2"))):
            with self.subTest(arguments=arguments):
                done = run("--fabric", SMALL, *arguments)
                self.assertEqual(status, done.returncode, done.stderr)
                self.assertTrue(done.stderr.strip())


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
