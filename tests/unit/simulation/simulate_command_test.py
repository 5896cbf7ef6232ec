#!/usr/bin/python3
"""coppice-plan simulate: what it prints, and what it refuses.

Usage: simulate_command_test.py PLAN
"""
import json
import subprocess
import sys
import tempfile
import unittest

PLAN = sys.argv[1]
FABRIC = "model:fat-tree(leaves=4,spines=1,hosts-per-leaf=4)"


def members_file(count):
    file = tempfile.NamedTemporaryFile("w", suffix=".txt")
    file.write("".join(f"n{host:04d}\n" for host in range(count)))
    file.flush()
    return file


def simulate(*arguments, fabric=FABRIC, count=16):
    with members_file(count) as members:
        return subprocess.run([PLAN, "simulate", "--fabric", fabric, "--members", members.name,
                               *arguments], capture_output=True, text=True, timeout=60)


def listed(*arguments):
    done = simulate("--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def rows(*arguments):
    return {(row["bytes"], row["builder"]): row for row in listed(*arguments)}


class SimulateCommand(unittest.TestCase):
    def test_every_builder_and_size_is_a_row(self):
        found = rows("--bytes", "8,2048", "--width", "4")
        builders = ["kary", "knomial", "hierarchical", "postal", "type II", "auto"]
        self.assertEqual({(size, builder) for size in (8, 2048) for builder in builders},
                         set(found))
        for row in found.values():
            self.assertGreater(row["simulated"]["median_us"], 0)
        self.assertEqual(4, found[8, "kary"]["width"])
        self.assertEqual("TREE_TYPE_II", found[8, "type II"]["type"])
        for arguments, sizes in (((), [8]), (("--bytes", "8"), [8]), (("--bytes", "8K"), [8192]),
                                 (("--bytes", "2048,100"), [2048, 100])):
            self.assertEqual([(size, builder) for size in sizes for builder in builders],
                             [(row["bytes"], row["builder"]) for row in listed(*arguments)])

    def test_an_idle_fabric_without_shared_links_takes_what_is_predicted(self):
        row = rows("--op", "barrier", "--width", "4")[8, "hierarchical"]
        self.assertAlmostEqual(row["predicted_us"], row["simulated"]["median_us"], places=3)

    def test_noise_costs_and_repeats_by_seed(self):
        quiet = rows()[8, "kary"]["simulated"]["median_us"]
        noisy = rows("--noise", "0.8", "--runs", "9", "--seed", "3")
        self.assertEqual(noisy, rows("--noise", "0.8", "--runs", "9", "--seed", "3"))
        times = noisy[8, "kary"]["simulated"]
        self.assertLess(quiet, times["min_us"])
        self.assertLess(times["min_us"], times["median_us"])
        self.assertLess(times["median_us"], times["max_us"])
        periodic = rows("--noise", "0.8", "--pattern", "periodic")[8, "kary"]["simulated"]
        self.assertLess(quiet, periodic["median_us"])

    def test_links_say_what_crosses_them(self):
        links = rows("--width", "4", "--links")[8, "hierarchical"]["links"]
        self.assertEqual(sorted((link["packets"] for link in links), reverse=True),
                         [link["packets"] for link in links])
        into_first_leaf = [link for link in links if '"S0"' in link["from"] and '"L0"' in link["to"]]
        self.assertEqual([3], [link["packets"] for link in into_first_leaf])
        self.assertIn("links\n", simulate("--links").stdout)
        self.assertIn("PACKETS", simulate("--links").stdout)

    def test_a_tree_that_cannot_be_built_is_a_row_that_says_why(self):
        row = rows("--entries", "0")[8, "type II"]
        self.assertIn("entry", row["why_not"])
        self.assertIn("none: ", simulate("--entries", "0").stdout)

    def test_many_collectives_at_once(self):
        alone = rows("--bytes", "8")[8, "kary"]["simulated"]["median_us"]
        arguments = ("--grid", "4x4", "--bytes", "20000", "--header-bytes", "26")
        many = rows(*arguments)
        size = ("--grid", "4x4", "--bytes", "2K", "--header-bytes")
        self.assertEqual(rows(*size, "1024"), rows(*size, "1K"))
        self.assertNotEqual(rows(*size, "26"), rows(*size, "1K"))
        self.assertEqual({"kary", "knomial", "hierarchical", "postal", "type II", "auto"},
                         {builder for _, builder in many})
        late = rows(*arguments, "--skew", "1000")[20000, "kary"]["simulated"]["median_us"]
        self.assertLess(many[20000, "kary"]["simulated"]["median_us"], late)
        self.assertLess(alone, late)
        shared = rows(*arguments, "--shared-units")[20000, "type II"]["simulated"]["median_us"]
        self.assertLessEqual(many[20000, "type II"]["simulated"]["median_us"], shared)
        text = simulate("--random", "5x6", "--skew", "3").stdout
        self.assertIn("5 communicators at once", text)
        self.assertIn("3 us late", text)
        self.assertEqual(2, simulate("--grid", "4x4", "--random", "5x6").returncode)

    def test_what_has_no_effect_is_refused(self):
        for arguments in (["--axes", "0"], ["--order", "first"], ["--shared-units"],
                          ["--pattern", "periodic"], ["--runs", "2"], ["--seed", "2"],
                          ["--op", "barrier", "--bytes", "8"],
                          ["--skew", "5", "--runs", "2"]):  # all runs have the same skew
            done = simulate(*arguments)
            self.assertEqual((2, ""), (done.returncode, done.stdout), arguments)
            self.assertIn(next(word for word in reversed(arguments) if word[:2] == "--"), done.stderr)
        for arguments in (["--runs", "1"], ["--skew", "5", "--seed", "2"],
                          ["--random", "2x4", "--seed", "2", "--shared-units"],
                          ["--grid", "4x4", "--axes", "0", "--order", "first"],
                          ["--noise", "0.1", "--pattern", "periodic", "--seed", "2", "--runs", "2"]):
            self.assertEqual(0, simulate(*arguments).returncode, arguments)

    def test_wrong_usage_and_failed_requests(self):
        self.assertEqual(2, simulate("--noise", "1.5").returncode)
        self.assertEqual(2, simulate("--runs", "0").returncode)
        self.assertEqual(2, simulate("--pattern", "bursts").returncode)
        failed = simulate(count=17)
        self.assertEqual(3, failed.returncode)  # there is no such node
        self.assertIn("n0016", failed.stderr)
        many = simulate("--bytes", "1000000000000")
        self.assertEqual(6, many.returncode)
        self.assertIn("events", many.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
