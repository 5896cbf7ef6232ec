"""`coppice-plan table` against the paper's numbers and against its formulas, computed here anew.

table_golden_test.py PROGRAM DATA
"""
import json
import math
import pathlib
import subprocess
import sys
import unittest

from profile_text import toml
from scratch_files import WRONG_USAGE, ScratchFiles

# a = 4 * 0.05 + 0.92 = 1.12 us and b = 0.01 us in both directions, delta = 4: Chen 2024, 3.1. The
# NIC may serve everybody, so that the interval of widths is not cut at 64.
PAPER = {"init_us": 0, "link_us": 0.05, "mean_route_links": 4, "port_gbps": 0, "nic_degree": 511,
         "mtu_bytes": 4096,
         "width_tolerance_us": 0.1,
         "nic": {"forward_us": 0.92, "forward_us_per_byte": 0, "match_us": 0.01,
                 "reduce_us_per_byte": 0.001, "send_us": 0.01},
         "switch": {"forward_us": 0.3, "forward_us_per_byte": 0, "match_us": 0.002,
                    "reduce_us_per_byte": 0.002, "send_us": 0.002}}
SIZES = (8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)


def levels_us(a, b, c, members, width):
    """Formula (5) of the first packet, and the slowest stage for each packet after it."""
    return (a + b * width) * math.log(members) / math.log(width) + c * width


def both_ways(node, links, operation, size):
    """a and b of formula (5) for the first packet, added over both directions; c of the others.
    The packets of an allreduce go down while later ones come up."""
    packet, more = min(size, PAPER["mtu_bytes"]), max(0, math.ceil(size / PAPER["mtu_bytes"]) - 1)
    goes_up, goes_down = operation in ("reduce", "allreduce"), operation in ("bcast", "allreduce")
    up, down = packet if goes_up else 0, packet if goes_down else 0
    a = (2 * links * PAPER["link_us"] + 2 * node["forward_us"] +
         (up + down) * node["forward_us_per_byte"])
    match = node["match_us"] + up * node["reduce_us_per_byte"]
    stages = ([match] if goes_up else []) + ([node["send_us"]] if goes_down else [])
    return a, match + node["send_us"], more * max(stages, default=0)


def row(operation, low, high, members):
    cost = both_ways(PAPER["nic"], PAPER["mean_route_links"], operation, high)
    widths = range(2, max(2, min(PAPER["nic_degree"], members - 1)) + 1)
    least = min(levels_us(*cost, members, k) for k in widths)
    good = [k for k in widths if levels_us(*cost, members, k) <= least + 2 * 0.1]
    switch_cost = both_ways(PAPER["switch"], 1, operation, high)
    width = max(2, members ** (2 / PAPER["mean_route_links"]))
    type_ii = levels_us(*switch_cost, members, width)  # formula (8)
    return {"operation": "OPERATION_" + operation.upper(), "min_bytes": str(low),
            "max_bytes": str(high), "type": "TREE_TYPE_II" if type_ii < least else "TREE_TYPE_I",
            "width": min(widths, key=lambda k: levels_us(*cost, members, k)),
            "min_width": good[0], "max_width": good[-1], "type_i_us": least, "type_ii_us": type_ii}


class TableGolden(ScratchFiles):
    def setUp(self):
        super().setUp()
        self.profile = self.file("profile.toml",
                                 "forward_includes_serialisation = true\n" + toml(PAPER))

    def run_table(self, *arguments):
        return subprocess.run([PROGRAM, "table", *arguments], capture_output=True, text=True,
                              timeout=600, check=False)

    def table(self, *arguments):
        done = self.run_table("--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def widths(self, row):
        return [row[key] for key in ("min_width", "width", "max_width")]

    def test_width_41_and_24_to_69_for_512_members(self):
        barrier = self.table("--members", "512", "--profile", self.profile)["rows"][0]
        self.assertEqual(self.widths(barrier), [24, 41, 69])
        # The formula has its least between whole widths, where k (ln k - 1) = a / b = 112.
        self.assertTrue(40.5 * (math.log(40.5) - 1) < 112 < 41.5 * (math.log(41.5) - 1))

    def test_the_papers_profile_stops_at_the_nics_64(self):
        barrier = self.table("--members", "512", "--profile", "paper")["rows"][0]
        self.assertEqual(self.widths(barrier), [24, 41, 64])
        self.assertEqual(barrier["type"], "TREE_TYPE_II")

    def test_every_row_is_the_formulas(self):
        for members in (2, 3, 17, 512, 40960):
            table = self.table("--members", str(members), "--profile", self.profile)
            self.assertEqual((table["profile"], table["members"]), (self.profile, members))
            want = [row("barrier", 0, 0, members)]
            for operation in ("bcast", "reduce", "allreduce"):
                lows = (1, *(size + 1 for size in SIZES))
                want += [row(operation, low, high, members) for low, high in zip(lows, SIZES)]
            self.assertEqual(len(table["rows"]), len(want))
            for got, expected in zip(table["rows"], want):
                self.assertEqual(list(got), list(expected))
                for key, value in expected.items():
                    if key.endswith("_us"):
                        self.assertAlmostEqual(got[key] / value, 1, 9, (expected, got))
                    else:
                        self.assertEqual(got[key], value, (members, expected, got))

    def test_widths_fall_and_type_1_wins_as_messages_grow(self):
        rows = [r for r in self.table("--members", "512", "--profile", self.profile)["rows"]
                if r["operation"] == "OPERATION_ALLREDUCE"]
        for key in ("min_width", "width", "max_width"):
            column = [r[key] for r in rows]
            self.assertEqual(column, sorted(column, reverse=True))
        self.assertEqual((rows[0]["type"], rows[-1]["type"]), ("TREE_TYPE_II", "TREE_TYPE_I"))

    def test_a_fabric_says_how_many_members(self):
        spec = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
        self.assertEqual(self.table("--fabric", spec), self.table("--members", "16"))
        self.assertEqual(self.table("--fabric", spec, "--members", "8"),
                         self.table("--members", "8"))

    def test_for_people(self):
        done = self.run_table("--members", "16")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "profile hdr, 16 members")
        self.assertEqual(lines[1].split("  ")[0], "OPERATION")
        self.assertEqual(len(lines), 2 + 31)
        self.assertEqual(len({len(line) for line in lines[1:]}), 1, "not aligned")

    def test_wrong_calls(self):
        for status, words, *arguments in (
                (1, "--fabric: what to plan on is needed"), (2, "--members", "--members", "many"),
                (2, "--members", "--members", ""), (2, "--members", "--members", "4294967296"),
                (2, "--fabric", "--fabric", ""),
                (2, "--profile", "--members", "4", "--profile", ""),
                (2, "from 1 to", "--members", "0"), (1, "1 members", "--members", "1"),
                (1, "neither a file nor one of", "--members", "4", "--profile", "absent"),
                (1, "moebius", "--fabric", "model:moebius"),
                (1, "--load", "--members", "4", "--load", "x"),
                (1, "--held", "--fabric", "model:torus(dims=3x3)", "--held", "x")):
            done = self.run_table(*arguments)
            if status == WRONG_USAGE:
                self.assertEqual((done.returncode, done.stdout), (status, ""), arguments)
            else:
                self.check_refusal(done)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=sys.argv[:1])
