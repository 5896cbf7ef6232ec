"""What `coppice-plan tree` trades: time, entries and the busiest link, by policy and by limit, run on
the built program. 16 hosts, 4 on each of 4 leaf switches, under 2 spines:

    spine 0   spine 1        one switch that serves: all 16 messages come together there
      |  \\  /   |            the leaves as well: one message on every link between switches

trade_golden_test.py PROGRAM DATA
"""
import json
import subprocess
import sys
import unittest

from net_text import two_level
from scratch_files import WRONG_USAGE, ScratchFiles

FIGURES = ("total_us", "entries", "busiest_link_us")


class TradeGolden(ScratchFiles):
    def run_tree(self, *arguments):
        net = two_level(4, 2, 4)
        return subprocess.run(
            [PROGRAM, "tree", "--fabric", "file:" + self.file("net.txt", net.text()), "--members",
             self.file("members.txt", "\n".join(f"h{i}" for i in range(16))), *arguments],
            capture_output=True, text=True, timeout=600, check=False)

    def tree(self, *arguments):
        done = self.run_tree("--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        return json.loads(done.stdout)

    def refuse(self, status, *arguments):
        done = self.run_tree(*arguments)
        if status == WRONG_USAGE:
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            return done.stderr
        return self.check_refusal(done)

    def test_one_switch_or_all(self):
        cheap = self.tree("--type", "2", "--policy", "entries=1")
        self.assertEqual((cheap["switches"], cheap["busiest_link_packets"]), (1, 4))
        light = self.tree("--type", "2", "--policy", "link=1")
        self.assertEqual((light["switches"], light["busiest_link_packets"]), (5, 1))
        self.assertAlmostEqual(light["busiest_link_us"] * 4, cheap["busiest_link_us"])
        self.assertIn("gives up", light["reason"])

    def test_a_policy_is_asked_for_or_nothing_changes(self):
        plain = self.tree("--type", "2")
        self.assertEqual(plain["switches"], 1)
        self.assertNotIn("tradeoffs", plain)
        listed = self.tree("--type", "2", "--tradeoffs")
        self.assertEqual({k: v for k, v in listed.items() if k != "tradeoffs"}, plain)
        self.assertFalse(any(one["chosen"] for one in listed["tradeoffs"]))

    def test_none_of_the_front_is_beaten_and_each_can_be_had(self):
        front = self.tree("--tradeoffs")["tradeoffs"]
        self.assertGreater(len(front), 1)
        self.assertEqual(front, sorted(front, key=lambda one: one["total_us"]))
        for a in front:
            for b in front:
                self.assertFalse(a is not b and all(a[f] <= b[f] for f in FIGURES), (a, b))
            had = self.tree("--max-entries", str(a["entries"]), "--max-link-us",
                            repr(a["busiest_link_us"]), "--tradeoffs")
            self.assertEqual(had["predicted"]["total_us"], a["total_us"])
            self.assertEqual((had["switches"], had["builder"]), (a["entries"], a["builder"]))
            self.assertEqual([one["chosen"] for one in had["tradeoffs"]],
                             [one is a for one in front])

    def test_pure_weights_take_the_extremes(self):
        front = self.tree("--tradeoffs")["tradeoffs"]
        for word, figure in zip(("latency", "entries", "link"), FIGURES):
            tree = self.tree("--policy", f"{word}=2.5", "--tradeoffs")
            chosen, = (one for one in tree["tradeoffs"] if one["chosen"])
            self.assertEqual(chosen[figure], min(one[figure] for one in front))

    def test_limits_come_first(self):
        self.assertEqual(self.tree("--policy", "link=1", "--max-entries", "0")["type"], "TREE_TYPE_I")
        message = self.refuse(1, "--type", "2", "--max-entries", "0")
        self.assertIn("FAILED_PRECONDITION: policy: no tree takes 0 entries", message)
        self.assertIn("the least is 1", message)
        message = self.refuse(1, "--policy", "entries=1", "--max-link-us", "1e-9")
        self.assertIn("policy: no tree keeps its busiest link to 1e-09", message)
        for limit in ("0", "-1", "nan", "x"):
            self.assertIn(f"{limit} us: every tree keeps a link busy",
                          self.refuse(2, "--policy", "entries=1", f"--max-link-us={limit}"))

    def test_what_is_no_policy(self):
        for policy, why in (("latency=-1", "policy: latency -1 must be 0 or more"),
                            ("entries=nan", "policy: entries nan must be 0 or more"),
                            ("latency=0,link=0", "are all 0")):
            self.assertIn(why, self.refuse(1, "--policy", policy))
        for policy in ("fast", "speed=1", "latency=much", "latency=1=2", ""):
            self.assertNotEqual(self.run_tree("--policy", policy).returncode, 0)

    def test_text_lists_the_front(self):
        done = self.run_tree("--policy", "latency=1,entries=0.5,link=0", "--tradeoffs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trees that none beats:", done.stdout)
        self.assertEqual(sum(line.endswith(" chosen") for line in done.stdout.splitlines()), 1)
        self.assertIn("by the policy (latency 1, entries 0.5, link load 0)", done.stdout)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    sys.argv.pop(1)
    unittest.main()
