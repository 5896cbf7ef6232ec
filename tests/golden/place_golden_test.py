"""What `coppice-plan place` answers, run on the built program: measures counted anew from the model's
shape, the least cost of all subsets, and everything that is refused.

place_golden_test.py PROGRAM DATA
"""
import itertools
import json
import pathlib
import subprocess
import sys
import unittest

from scratch_files import WRONG_USAGE, ScratchFiles

# Three pods of two leaf switches with three hosts each.
FABRIC = "model:fat-tree(supernodes=3,leaves=2,spines=2,hosts-per-leaf=3,tops=2)"
LEAF, POD, HOSTS = 3, 6, 18
WEIGHTS = {"leaf_switches": 1, "pods": 4, "distance": 1, "fragmentation": 0.1}


def name(host):
    return f"n{host:04d}"


def number(text):
    return int(text[1:])


def hops(a, b):
    if a // LEAF == b // LEAF:
        return 2
    return 4 if a // POD == b // POD else 6


def measures(hosts, held):
    """Of a set of hosts, those of placement_terms.h that routes and load are no part of."""
    leaves = {h // LEAF for h in hosts}
    pairs = list(itertools.combinations(hosts, 2))
    total = sum(hops(a, b) for a, b in pairs)

    def broken(taken):
        states = [[h in taken for h in range(LEAF * l, LEAF * l + LEAF)] for l in range(HOSTS // LEAF)]
        return sum(any(s) and not all(s) for s in states)

    return {"leaf_switches": len(leaves), "pods": len({h // POD for h in hosts}),
            "total_distance": total, "mean_distance": total / len(pairs) if pairs else 0,
            "fragmentation": broken(held | set(hosts)) - broken(held)}


def cost(m):
    return (WEIGHTS["leaf_switches"] * m["leaf_switches"] + WEIGHTS["pods"] * m["pods"] +
            WEIGHTS["distance"] * m["mean_distance"] + WEIGHTS["fragmentation"] * m["fragmentation"])


class PlaceGolden(ScratchFiles):
    def run_place(self, *arguments):
        return subprocess.run([PROGRAM, "place", "--fabric", FABRIC, *arguments],
                              capture_output=True, text=True, timeout=600, check=False)

    def place(self, *arguments):
        done = self.run_place("--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def refuse(self, status, message, *arguments):
        done = self.run_place(*arguments)
        if status == WRONG_USAGE:
            self.assertEqual((done.returncode, done.stdout), (status, ""), arguments)
            self.assertIn(message, done.stderr)
        else:
            self.assertIn(message, self.check_refusal(done))

    def test_costs_the_least_of_all_sets(self):
        weights = ",".join(f"{term}={weight}" for term, weight in WEIGHTS.items())
        held = {0, 1, 6}
        held_file = self.file("held", "# running\nn[0000-0001,0006] job1\n")
        free = [h for h in range(HOSTS) if h not in held]
        for count in (1, 2, 4, 5):
            answer = self.place("--nodes", str(count), "--held", held_file, "--weights", weights)
            hosts = [number(n) for n in answer["nodes"]]
            self.assertFalse(held & set(hosts))
            self.assertEqual(len(set(hosts)), count)
            want = measures(hosts, held)
            for key, value in want.items():
                self.assertAlmostEqual(answer["measures"][key], value)
            least = min(cost(measures(s, held)) for s in itertools.combinations(free, count))
            self.assertAlmostEqual(answer["measures"]["cost"], cost(want))
            self.assertAlmostEqual(cost(want), least)
            self.assertTrue(answer["is_optimal"])
            self.assertIn("proven", answer["reason"])

    def test_constraints_hold(self):
        answer = self.place("--nodes", "4", "--nodes-per-leaf", "2", "--include", "n0007",
                            "--avoid", "n[0008,0009]", "--min-pods", "2")
        hosts = [number(n) for n in answer["nodes"]]
        self.assertIn(7, hosts)
        self.assertFalse({8, 9} & set(hosts))
        self.assertEqual(answer["measures"]["leaf_switches"], 2)
        self.assertEqual(answer["measures"]["pods"], 2)
        chosen = self.place("--nodes", "2", "--candidates", "n[0003,0010,0011]")
        self.assertEqual(chosen["nodes"], ["n0010", "n0011"])
        self.assertEqual(chosen["node_list"], "n[0010-0011]")

    def test_a_list_may_be_a_file(self):
        path = self.file("nodes", "# mine\nn[0003-0004]\nn0005\n")
        self.assertEqual(self.place("--nodes", "3", "--candidates", path)["node_list"],
                         "n[0003-0005]")

    def test_a_pattern_orders_ranks(self):
        rows = [[1000 if abs(u - v) == 2 else 0 for v in range(4)] for u in range(4)]
        path = self.file("pattern", "4\n" + "\n".join(" ".join(map(str, r)) for r in rows) + "\n")
        answer = self.place("--nodes", "2", "--ranks-per-node", "2", "--pattern", path,
                            "--budget", "200ms")
        self.assertEqual(sorted(answer["permutation"]), [0, 1, 2, 3])
        node = [slot // 2 for slot in answer["permutation"]]
        self.assertEqual((node[0], node[1]), (node[2], node[3]))
        self.assertEqual(answer["measures"]["max_congestion"], 0)

    def test_traffic_is_of_the_cost(self):
        """Each of two nodes sends all of its bytes to the other one: a node's mean share."""
        arguments = ("--nodes", "2", "--pattern", self.file("pattern", "2\n0 1000\n1000 0\n"),
                     "--weights", "leaf-switches=1,traffic=2", "--budget", "200ms")
        measured = self.place(*arguments)["measures"]
        self.assertEqual((measured["leaf_switches"], measured["traffic"], measured["cost"]), (1, 1, 3))
        self.assertIn("\ntraffic    1.00\ncost       3.00", self.run_place(*arguments).stdout)

    def test_full_switches_are_told(self):
        answer = self.place("--nodes", "2", "--trees", "2", "--entries", "1")
        self.assertEqual(answer["measures"]["switches_without_entries"], 1)
        self.assertEqual(
            self.place("--nodes", "2", "--trees", "2",
                       "--entries", "2")["measures"]["switches_without_entries"], 0)

    def test_nodes_that_are_down_are_not_given(self):
        answer = self.place("--nodes", "16", "--down", "n[0001,0017]")
        self.assertEqual(answer["node_list"], "n[0000,0002-0016]")
        self.assertIn("no node n0001", self.check_refusal(
            self.run_place("--nodes", "2", "--include", "n0001", "--down", "n[0001,0017]")))

    def test_refusals(self):
        twice = self.file("twice", "n0001 a\nn[0001-0002] b\n")
        for status, message, *arguments in (
                (1, "INVALID_ARGUMENT", "--nodes", "19"),
                (1, "same pod and min pods contradict", "--nodes", "4", "--same-pod", "--min-pods",
                 "2"),
                (1, "same pod leaves at most 6", "--nodes", "7", "--same-pod"),
                (1, "NOT_FOUND: include: the fabric has no node x1", "--nodes", "2",
                 "--include", "x1"),
                (1, "avoid: node n0001 is named twice", "--nodes", "2", "--avoid", "n0001,n0001"),
                (1, "a bracket is not closed", "--nodes", "2", "--avoid", "n[1-"),
                (1, "twice, line 2: host n0001 is held twice", "--nodes", "2", "--held", twice),
                (1, "RESOURCE_EXHAUSTED: only 15 of 18", "--nodes", "16", "--held",
                 self.file("held", "n[0000-0002] a\n")),
                (1, "RESOURCE_EXHAUSTED: host n0000 to include is held", "--nodes", "2", "--held",
                 self.file("held", "n[0000-0002] a\n"), "--include", "n0000"),
                (2, "--nodes is required",),
                (1, "INVALID_ARGUMENT: --weights pods=x", "--nodes", "2", "--weights", "pods=x"),
                (1, "INVALID_ARGUMENT: --budget soon: write a duration", "--nodes", "2", "--budget", "soon",
                 "--pattern", self.file("pattern", "2\n0 1000\n1000 0\n")),
                (1, "NOT_FOUND: --down n99: the fabric has no host n99", "--nodes", "2", "--down", "n99")):
            self.refuse(status, message, *arguments)


if __name__ == "__main__":
    PROGRAM, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
