"""`coppicectl tree batch` and `coppicectl calibrate`, as a user and a script meet them."""

import json
import math
import os
import subprocess
import sys
import unittest

import exit_status
from coppiced_process import Coppiced

COPPICED, COPPICECTL = sys.argv.pop(1), sys.argv.pop(1)


def samples():
    """Latencies of NICs ten times slower than any: type I, formulas (2) and (3) of the paper."""
    lines = ["operation,bytes,members,type,width,microseconds"]
    for operation in ("bcast", "reduce", "allreduce"):
        for size in (8, 512, 4096):
            for members in (32, 512):
                for width in (2, 8, 32):
                    up = size if operation != "bcast" else 0
                    down = size if operation != "reduce" else 0
                    level = 8 * 0.15 + 2 * 9 + (up + down) * 3e-4 + width * (0.5 + up * 1e-3 + 0.3)
                    us = 1 + level * math.log(members) / math.log(width)
                    lines.append(f"{operation},{size},{members},I,{width},{us!r}")
    return "\n".join(lines) + "\n"


FIXED = ["--fix", "link_us=0.15", "--fix", "nic.send_us=0.3", "--fix", "switch", "--fix",
         "port_gbps=0", "--fix", "mean_route_links=4"]


class BatchCommand(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED, entries=1)  # 4 leaves of 4 hosts, 2 spines: 6 entries
        self.addCleanup(self.daemon.clean_up)
        self.daemon.start().wait_until_listening()
        self.good("fabric", "sweep")
        self.job = json.loads(self.good("job", "register", "--all", "--lease", "24h", "--json"))["id"]

    def run_program(self, *arguments, stdin=""):
        done = subprocess.run([COPPICECTL, *arguments], capture_output=True, text=True, timeout=120,
                              check=False, input=stdin,
                              env={**os.environ, "COPPICE_SERVER": self.daemon.address})
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments, **options):
        status, out, errors = self.run_program(*arguments, **options)
        self.assertEqual((status, exit_status.without_waiting(errors)), (0, ""), arguments)
        return out

    def fails(self, *arguments, words=(), **options):
        exit_status.check_failure(self, self.run_program(*arguments, **options), words)

    def refused(self, expected, *arguments, words=(), **options):
        status, out, errors = self.run_program(*arguments, **options)
        self.assertEqual((status, out), (expected, ""), (arguments, errors))
        for word in words:
            self.assertIn(word, errors, arguments)

    def batch(self, *arguments, **options):
        return self.good("tree", "batch", "--job", self.job, *arguments, **options)

    def trees(self):
        return json.loads(self.good("tree", "list", "--json"))["trees"]

    def test_grids_and_lists(self):
        plan = json.loads(self.batch("--grid", "4x4", "--axes", "1", "--dry-run", "--json"))
        self.assertEqual((plan["summary"]["granted"], len(plan["trees"])), (4, 4))
        self.assertEqual(self.trees(), [])
        text = self.batch("--grid", "4x4", "--axes", "1", "--request-id", "rows", "--trees")
        self.assertEqual(text.count("\n"), 1 + 4 + 1 + 2 + ("most loaded" in text), text)
        self.assertLessEqual(max(map(len, text.splitlines()[:5])), 80, text)
        self.assertNotIn("HEIGHT", text)
        first = [tree["id"] for tree in self.trees()]
        self.assertEqual(len(first), 4)
        wide = self.batch("--grid", "4x4", "--axes", "1", "--request-id", "rows", "--trees", "-o", "wide")
        self.assertIn("HEIGHT", wide)
        self.batch("--grid", "4x4", "--axes", "1", "--request-id", "rows")
        self.assertEqual([tree["id"] for tree in self.trees()], first)
        self.fails("tree", "batch", "--job", self.job, "--grid", "4x4", "--request-id", "rows",
                   words=["rows"])
        answer = json.loads(self.batch("--list", "-", "--type-i", "--json", "--trees", "--op",
                                       "bcast", "--bytes", "8,2048",
                                       stdin="0-3 8\n# a comment\n0,4-12:4\n5\n"))
        self.assertEqual([tree["tree"]["rank_count"] for tree in answer["trees"]], [5, 4, 1])
        self.assertEqual(answer["trees"][0]["tree"]["operation"], "OPERATION_BCAST")
        self.assertEqual(len(answer["trees"][1]["tree"]["nodes"]["endpoints"]), 4)
        self.assertEqual(len(self.trees()), 7)

    def test_all_or_the_largest_part(self):
        self.fails("tree", "batch", "--job", self.job, "--grid", "4x4",
                   words=["communicator ", "RESOURCE_EXHAUSTED"])
        self.assertEqual(self.trees(), [])
        text = self.batch("--grid", "4x4", "--admission", "largest", "--order", "first")
        self.assertEqual(len(self.trees()), 6)
        self.assertEqual(sum(line.startswith("communicator ") for line in text.splitlines()), 2)

    def test_wrong_usage_and_wrong_input(self):
        command = ["tree", "batch", "--job", self.job]
        self.refused(2, *command, words=["--grid or --list"])
        self.refused(2, *command, "--grid", "4x4", "--list", "-", words=["--list"])
        self.refused(2, *command, "--list", "-", "--axes", "0", words=["--axes"])
        self.refused(2, *command, "--grid", "4x4", "--order", "middle", words=["--order"])
        self.refused(2, *command, "--grid", "4x4", "--goal", "hops", words=["--goal"])
        self.fails(*command, "--grid", "4by4", words=["4by4", "256x160"])
        self.fails(*command, "--grid", "4x5", words=["16 ranks"])
        self.fails(*command, "--grid", "4x4", "--axes", "0,0", words=["twice"])
        self.fails(*command, "--list", "/dev/null", words=["/dev/null", "regular file"])
        self.fails(*command, "--list", "-", stdin="", words=["no communicators"])
        self.fails(*command, "--list", "-", stdin="0-3\n4-x\n", words=["-:2: ", "4-x"])
        self.fails(*command, "--list", "-", stdin="3 99\n", words=["communicators[0]", "99"])

    def test_calibration_until_it_is_reset(self):
        text = self.good("calibrate", "-", *FIXED, "--name", "slow", stdin=samples())
        self.assertIn("# CONSTANT", text)
        self.assertIn("not in force", text)
        self.assertIn('name = "slow"', text)
        self.assertIn("profile hdr", self.good("table"))
        tree = ["tree", "create", "--job", self.job, "--type", "1", "--dry-run", "--json"]
        before = json.loads(self.good(*tree))["predicted"]["total_us"]
        fit = json.loads(self.good("calibrate", "-", *FIXED, "--name", "slow", "--apply", "--json",
                                   stdin=samples()))
        self.assertTrue(fit["applied"])
        self.assertEqual(len(fit["residuals_us"]), 54)
        self.assertIn("profile slow", self.good("table"))
        self.assertGreater(json.loads(self.good(*tree))["predicted"]["total_us"], 2 * before)
        self.daemon.end()
        self.daemon.start().wait_until_listening()
        self.good("fabric", "sweep")
        self.assertIn("profile slow", self.good("table"))
        self.assertIn("hdr", self.good("calibrate", "--reset"))
        self.assertIn("profile hdr", self.good("table"))
        events = json.loads(self.good("events", "--kind", "profile.", "--json"))["events"]
        self.assertEqual([event["kind"] for event in events], ["profile.changed"] * 2)

    def test_samples_that_cannot_be_used(self):
        self.refused(2, "calibrate", words=["--reset"])
        self.fails("calibrate", "/nonexistent", words=["/nonexistent"])
        self.fails("calibrate", "-", stdin=samples(), words=["standard input"])
        self.fails("calibrate", "-", "--fix", "gravity", stdin=samples(), words=["gravity"])
        self.fails("calibrate", "-", "--apply", stdin="operation,bytes\n",
                   words=["standard input", "line 1"])
        self.assertIn("profile hdr", self.good("table"))


if __name__ == "__main__":
    unittest.main()
