"""What `coppice-plan tree` decides in cases whose answers are known, run on the built program.
Every tree is verified (tree_verifier.py) on top of what its case expects.

tree_golden_test.py PROGRAM DATA    DATA is tests/data
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import unittest

from net_text import (Fabric, Net, figure_11, read_forwarding_tables, two_leaves_a_host,
                      two_level)
from profile_text import toml
from scratch_files import WRONG_USAGE, ScratchFiles
from tree_verifier import Case

# 512 single-port hosts, 16 on each of 32 leaf switches (Chen 2024, figures 4 to 6).
PAPER = (32, 16, 16)
# 80 supernodes of 512 ports, pruned above (Chen 2024, 6.2.2).
SUPERNODES = "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)"

# Constants that tell every term of a sum apart.
PLAIN = {"init_us": 0.5, "link_us": 1, "same_host_us": 0.125, "mtu_bytes": 2048,
         "nic": {"forward_us": 10, "forward_us_per_byte": 0, "match_us": 0.5,
                 "reduce_us_per_byte": 0.25, "send_us": 0.25},
         "switch": {"forward_us": 20, "forward_us_per_byte": 0, "match_us": 2,
                    "reduce_us_per_byte": 0, "send_us": 3}}


class TreeGolden(ScratchFiles):
    def run_tree(self, net, members, *arguments):
        return subprocess.run(
            [PROGRAM, "tree", "--fabric", "file:" + self.file("net.txt", net.text()), "--members",
             self.file("members.txt", "\n".join(members)), *arguments],
            capture_output=True, text=True, timeout=600, check=False)

    def tree(self, net, members, *arguments, tables=None):
        done = self.run_tree(net, members, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return self.verified(Fabric(net.text()), done.stdout, members, arguments, tables).tree

    def verified(self, fabric, text, members, arguments, tables=None):
        """The case behind the JSON `text`, once it has stood the verifier."""
        options = dict(zip(arguments[::2], arguments[1::2]))
        ends = {fabric.name(e): e for e in fabric.endpoints}
        full = [s for s in fabric.switches if s[1] in self.full_guids(fabric, options)]
        case = Case(json.loads(text), fabric,
                    [ends[m if "/" in m else f"{m}/1"] for m in members],
                    nic_degree=int(options.get("--nic-degree", 64)),
                    switch_degree=int(options.get("--switch-degree", 64)), full=full,
                    tables=tables and read_forwarding_tables(tables))
        case.verify()
        return case

    def full_guids(self, fabric, options):
        if "--full-switches" not in options:
            return set()
        names = pathlib.Path(options["--full-switches"]).read_text().split()
        return {guid for _, guid in fabric.switches
                if guid in names or f"0x{guid}" in names or fabric.descriptions[guid] in names}

    def refuse(self, status, net, members, *arguments):
        done = self.run_tree(net, members, *arguments)
        if status == WRONG_USAGE:
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            return done.stderr
        return self.check_refusal(done)

    def crossing(self, tree, leaf_of):
        """Packets between leaf switches: in all, into one switch, between one pair."""
        into, pairs = collections.Counter(), collections.Counter()
        for node in tree["nodes"]:
            if node["parent"] is None:
                continue
            a, b = leaf_of(node["rank"]), leaf_of(int(node["parent"].removeprefix("rank:")))
            if a != b:
                into[b] += 1
                pairs[frozenset((a, b))] += 1
        return sum(into.values()), max(into.values()), max(pairs.values())

    def test_packets_between_leaf_switches(self):
        net = two_level(*PAPER)
        members = [f"h{i}" for i in range(512)]
        for builder, want in (("kary", (496, 496, 16)), ("knomial", (271, 31, 16)),
                              ("hierarchical", (31, 31, 1))):
            with self.subTest(builder):
                tree = self.tree(net, members, "--type", "1", "--builder", builder, "--width", "32")
                self.assertEqual((tree["type"], tree["builder"], tree["width"]),
                                 ("TREE_TYPE_I", "TREE_BUILDER_" + builder.upper(), 32))
                self.assertEqual(self.crossing(tree, lambda rank: rank // 16), want)
                if builder == "hierarchical":
                    self.assertEqual(tree["height"], 2)

    def test_figure_7_sends_8_packets_between_halves(self):
        tree = self.tree(two_level(2, 1, 8), [f"h{i}" for i in range(16)], "--type", "1",
                         "--builder", "kary", "--width", "4")
        self.assertEqual(self.crossing(tree, lambda rank: rank // 8)[0], 8)

    def test_knomial_root_of_512_members_has_46_children(self):
        net, members = two_level(*PAPER), [f"h{i}" for i in range(512)]
        ask = ("--type", "1", "--builder", "knomial", "--width", "32", "--nic-degree")
        tree = self.tree(net, members, *ask, "46")
        self.assertEqual(sum(n["parent"] == "rank:0" for n in tree["nodes"]), 46)
        message = self.refuse(1, net, members, *ask, "45")
        self.assertIn("RESOURCE_EXHAUSTED: rank 0 would have 46 children", message)

    def test_least_height_of_groups(self):
        # Ranks on each host -> least height of a hierarchical binomial tree; the paper's greedy
        # finds 3, 3, 4 and 4.
        for groups, height in (((4, 4, 3, 3), 3), ((3, 2, 2), 2), ((3, 5, 4), 3),
                               ((1, 5, 1, 3, 2), 3)):
            members = [f"h{host}" for host, ranks in enumerate(groups) for _ in range(ranks)]
            tree = self.tree(two_level(1, 0, len(groups)), members, "--type", "1", "--builder",
                             "hierarchical", "--width", "2")
            self.assertEqual(tree["height"], height, groups)

    def test_figure_11_takes_4_of_13_switches(self):
        tree = self.tree(figure_11(), [f"h{i}" for i in range(16)], "--type", "2",
                         "--switch-degree", "5", "--root", "s0")
        self.assertEqual((tree["type"], tree["switches"]), ("TREE_TYPE_II", 4))
        children = collections.Counter(n["parent"] for n in tree["nodes"])
        self.assertLessEqual(max(children.values()), 5)
        physical = {v["id"]: v["parent"] for v in tree["physical"]}
        self.assertEqual(len(physical), 16 + 13)
        self.assertEqual({i for i in physical if i.startswith("rank:")},
                         {f"rank:{r}" for r in range(16)})

    def test_full_switches(self):
        net, members = two_level(2, 1, 2), ["h0", "h1", "h2", "h3"]
        full = self.file("full.txt", "s0\n0x0000000000001001\ns2\n")
        message = self.refuse(1, net, members, "--type", "2", "--full-switches", full)
        self.assertIn("RESOURCE_EXHAUSTED", message)
        for i in range(3):
            self.assertIn(net.guid("S", i), message)
        tree = self.tree(net, members, "--full-switches", full)
        self.assertEqual(tree["type"], "TREE_TYPE_I")
        self.assertIn("no type II tree", tree["reason"])
        self.assertIn("TREE_TYPE_II", [other["type"] for other in tree["alternatives"]])

    def test_a_full_switch_still_forwards(self):
        net, members = two_level(2, 1, 2), ["h0", "h1", "h2", "h3"]
        full = self.file("full.txt", "# the leaves\ns0\r\nswitch:0000000000001001\n")
        tree = self.tree(net, members, "--type", "2", "--full-switches", full)
        self.assertEqual((tree["root"], tree["switches"]), ("switch:" + net.guid("S", 2), 1))

    def test_a_full_switch_makes_the_tree_dearer_and_is_named(self):
        # Figure 11 without s1: its three leaves save one packet each, s2 with one of its leaves 5,
        # s3 3, and s0 takes the 5 that are left: 7 switches instead of 4.
        net, full = figure_11(), self.file("full.txt", "s1\n")
        request = [net, [f"h{i}" for i in range(16)], "--type", "2", "--switch-degree", "5",
                   "--full-switches", full]
        tree = self.tree(*request, "--root", "s0")
        self.assertEqual(tree["switches"], 7)
        self.assertIn(f'these are full: {net.guid("S", 1)} "s1"', tree["reason"])
        # A root beside s1 is farther away, and better in both.
        farther = self.tree(*request)
        self.assertEqual(farther["switches"], 4)
        self.assertLess(farther["predicted"]["total_us"], tree["predicted"]["total_us"])

    def test_one_member(self):
        profile = self.file("plain.toml", toml(PLAIN))
        for kind, want in (("auto", "TREE_TYPE_I"), ("1", "TREE_TYPE_I"), ("2", "TREE_TYPE_II")):
            tree = self.tree(two_level(2, 1, 2), ["h0"], "--type", kind, "--profile", profile)
            self.assertEqual((tree["type"], tree["root"], tree["height"], tree["radius"]),
                             (want, "rank:0", 0, 0))
            self.assertEqual(tree["predicted"],
                             {"aggregate_us": 0, "distribute_us": 0, "total_us": 0.5})
            self.assertEqual(tree["nodes"], [{"id": "rank:0", "kind": "rank", "rank": 0,
                                              "endpoint": "h0/1", "parent": None, "links": 0}])
            self.assertEqual(tree.get("physical"),
                             [{"id": "rank:0", "parent": None}] if want == "TREE_TYPE_II" else None)

    def test_two_members(self):
        # Type I: phi 10 + 4 links + theta 0.5 up, c_send 0.25 + phi 10 + 4 links down. Type II at
        # s2: packets at 10 + 2, the second is done at 12 + 2 * theta 2; copies leave at 3 and 6,
        # then phi 20 + 2 links.
        profile, net = self.file("plain.toml", toml(PLAIN)), two_level(2, 1, 2)
        type_1, type_2 = (14.5, 14.25, 29.25), (16, 28, 44.5)
        for kind, want, root in (("1", type_1, "rank:0"), ("auto", type_1, "rank:0"),
                                 ("2", type_2, "switch:" + net.guid("S", 2))):
            tree = self.tree(net, ["h0", "h3"], "--type", kind, "--profile", profile, "--op",
                             "barrier")
            self.assertEqual((tree["height"], tree["root"]), (1, root))
            self.assertEqual(tree["radius"], 4 if root == "rank:0" else 2)
            self.assert_times(tree, want)
            if kind == "auto":
                self.assertEqual([(o["builder"], o["total_us"], o["why_not"]) for o in
                                  tree["alternatives"] if o["type"] == "TREE_TYPE_II"],
                                 [("TREE_BUILDER_MINIMUM_COST", 44.5, "not faster than type I")])

    def test_two_ranks_on_one_port(self):
        # Nothing between them but same_host 0.125, no phi either. Type II: one link to s0 each.
        profile, net = self.file("plain.toml", toml(PLAIN)), two_level(2, 1, 2)
        for kind, radius, want in (("1", 0, (0.625, 0.375, 1.5)), ("2", 1, (15, 27, 42.5))):
            tree = self.tree(net, ["h0", "h0"], "--type", kind, "--profile", profile, "--op",
                             "barrier")
            self.assertEqual((tree["height"], tree["radius"]), (1, radius))
            self.assert_times(tree, want)

    def test_two_ports_of_one_host(self):
        # On two leaf switches they are as far apart as any two, on one switch nothing is between
        # them but same_host 0.125.
        profile, one_leaf = self.file("plain.toml", toml(PLAIN)), Net()
        one_leaf.switch()
        one_leaf.host(0, 0)
        for net, radius, want in ((two_leaves_a_host(2, 1, 2), 4, (14.5, 14.25, 29.25)),
                                  (one_leaf, 0, (0.625, 0.375, 1.5))):
            tree = self.tree(net, ["h0/1", "h0/2"], "--type", "1", "--profile", profile, "--op",
                             "barrier")
            self.assertEqual((tree["height"], tree["radius"]), (1, radius))
            self.assert_times(tree, want)
        tree = self.tree(two_leaves_a_host(2, 1, 2), ["h0/1", "h0/2"], "--type", "2", "--profile",
                         profile, "--op", "barrier", "--root", "s2")
        self.assertEqual(len(tree["physical"]), 5)
        self.assert_times(tree, (16, 28, 44.5))

    def assert_times(self, tree, want):
        for name, value in zip(("aggregate_us", "distribute_us", "total_us"), want):
            self.assertAlmostEqual(tree["predicted"][name], value, 5, name)

    def test_40960_members(self):
        # The root sees one spine of each supernode, and each spine 32 leaves of 16 members. A leaf
        # that serves saves 15 packets, a spine K - 1; the root takes K at most.
        #   K = 256: 40960 - 256 = 80 * 255 + 20304, and 20304 / 15 makes 1354 leaves.
        #   K = 128: 25 leaves of each supernode save 15 each, a 26th no more than 9: 80 spines and
        #            2000 leaves leave 800, so 75 more leaves do.
        net = str(self.dir / "supernodes.txt")
        subprocess.run([PROGRAM, "fabric", "--fabric", SUPERNODES, "--out", net], check=True,
                       capture_output=True, timeout=600)
        members = self.file("all.txt", "\n".join(f"n{i:05}" for i in range(40960)))
        for degree, switches in (("256", 1 + 80 + 1354), ("128", 1 + 80 + 2075)):
            done = subprocess.run([PROGRAM, "tree", "--json", "--fabric", f"file:{net}",
                                   "--members", members, "--type", "2", "--switch-degree", degree],
                                  capture_output=True, text=True, timeout=600, check=True)
            self.assertEqual(json.loads(done.stdout)["switches"], switches)

    def test_members_that_are_not_there(self):
        message = self.refuse(1, two_level(1, 0, 2), ["h0", "nobody"])
        self.assertIn('members.txt: rank 1: no host is named "nobody"', message)
        self.assertIn("no members", self.refuse(1, two_level(1, 0, 2), []))

    def test_members_from_standard_input(self):
        done = subprocess.run([PROGRAM, "tree", "--fabric", "model:fat-tree", "--members", "-"],
                              input="n0000\nn0511\n", capture_output=True, text=True, timeout=600,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  2 ranks, 1 serving switch, height 1, radius 2 links (", done.stdout)
        self.assertEqual(done.stdout.count("\n"), 6)

    def test_what_a_file_holds_cannot_steer_a_terminal(self):
        message = self.refuse(1, two_level(1, 0, 2), ["h0", "\033[31mh1\007"])
        self.assertIn('"\\u001b[31mh1\\u0007"', message)

    def test_absurd_values(self):
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        self.assertIn("width", self.refuse(1, net, members, "--type", "1", "--width", "1"))
        for option in ("--width", "--nic-degree"):
            done = self.run_tree(net, members, option, "1048576")
            said = "--width 1048576 is more than the tree has ranks, 2: no node has so many children\n"
            self.assertEqual((done.returncode, done.stderr), (0, said if option == "--width" else ""))
            for value in ("0", "1048577"):
                self.assertIn(f'{option}: "{value}" is not a whole number from 1 to 1048576',
                              self.refuse(2, net, members, option, value))
        for option in ("--switch-degree", "--entries"):
            self.tree(net, members, option, "4294967295")
        for option in ("--width", "--nic-degree", "--switch-degree", "--entries"):
            for value in ("many", "-1", "4294967296", "2.5", "1e3", " 4", ""):
                self.assertIn(option, self.refuse(2, net, members, option, value))
        for value in ("0", "1"):
            self.assertEqual(self.tree(net, members, "--switch-degree", value)["type"], "TREE_TYPE_I")
            self.refuse(1, net, members, "--type", "2", "--switch-degree", value)
        for option in ("--type", "--builder", "--op"):
            self.refuse(2, net, members, option, "3")
        for option in ("--root", "--profile", "--routes", "--load", "--full-switches"):
            self.assertIn(option, self.refuse(2, net, members, option, ""))
        for sizes in ("-5", "8,", "8,x", "99999999999999999999", ""):
            self.assertIn("8,4K,1M", self.refuse(2, net, members, "--bytes", sizes))

    def test_a_forest_shares_long_messages(self):
        net, members = two_level(4, 4, 8), [f"h{i}" for i in range(32)]
        one = self.tree(net, members, "--bytes", "4M")
        done = self.run_tree(net, members, "--json", "--bytes", "4M", "--trees", "16")
        self.assertEqual(done.returncode, 0, done.stderr)
        tree = json.loads(done.stdout)
        self.assertEqual((tree["type"], tree["builder"]), ("TREE_TYPE_I", "TREE_BUILDER_FOREST"))
        self.assertLess(tree["predicted"]["total_us"], one["predicted"]["total_us"] * 0.7)
        self.assertIn("for one tree", tree["reason"])
        self.assertGreater(len(tree["forest"]), 1)
        self.assertLessEqual(len(tree["forest"]), 16)
        self.assertAlmostEqual(sum(part["share"] for part in tree["forest"]), 1)
        for part in tree["forest"]:
            self.assertEqual(len(part["parents"]), len(members))
            for rank in range(len(members)):
                steps = 0
                while part["parents"][rank] >= 0:
                    rank, steps = part["parents"][rank], steps + 1
                    self.assertLess(steps, len(members))
            self.assertEqual(part["parents"].count(-1), 1)
        self.assertNotIn("forest", one)
        self.assertNotIn("forest", self.tree(net, members, "--bytes", "4M", "--trees", "1"))
        self.assertIn("allreduce", self.refuse(1, net, members, "--trees", "4", "--op", "bcast"))
        self.assertIn("--trees: is of trees of type I,",
                      self.refuse(2, net, members, "--type", "2", "--trees", "4"))
        for value in ("0", "65", "many"):
            self.assertIn("--trees", self.refuse(2, net, members, "--trees", value))

    def test_options_of_the_other_type_are_refused(self):
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        for option, value in (("--width", "4"), ("--nic-degree", "4"), ("--builder", "kary")):
            said = self.refuse(2, net, members, "--type", "2", option, value)
            self.assertIn(option + ": is of trees of type I,", said)
        said = self.refuse(2, net, members, "--type", "1", "--root", "s0")
        self.assertIn("--root: is of trees of type II,", said)
        self.tree(net, members, "--type", "2", "--builder", "auto")

    def test_switches_without_entries_leave_type_1(self):
        net, members = two_level(2, 1, 2), ["h0", "h3"]
        tree = self.tree(net, members, "--entries", "0")
        self.assertEqual(tree["type"], "TREE_TYPE_I")
        self.assertIn("no type II tree", tree["reason"])
        self.assertIn('"s2" (0 entries)', self.refuse(1, net, members, "--type", "2", "--entries",
                                                      "0"))
        self.assertEqual(self.tree(net, members, "--type", "2", "--entries", "1")["switches"], 1)

    def test_wanted_root(self):
        net, members = two_level(2, 2, 2), ["h0", "h3"]
        for name in ("s3", net.guid("S", 3), "0x" + net.guid("S", 3), "0x1003",
                     "switch:" + net.guid("S", 3)):
            tree = self.tree(net, members, "--type", "2", "--root", name)
            self.assertEqual(tree["root"], "switch:" + net.guid("S", 3))
        self.assertIn('"s9"', self.refuse(1, net, members, "--root", "s9"))

    def test_files_that_are_not_there(self):
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        absent = str(self.dir / "absent")
        for option in ("--load", "--full-switches", "--routes", "--profile"):
            self.assertIn(absent, self.refuse(1, net, members, option, absent))
            self.assertIn(str(self.dir), self.refuse(1, net, members, option, str(self.dir)))

    def test_profile_file(self):
        net, members = two_level(2, 1, 2), ["h0", "h3"]
        for line, key in (("link_us = -1", "link_us"), ("colour = 3", "colour"), ("[nic", "TOML"),
                          ('base = "x"', "base")):
            profile = self.file("bad.toml", "# costs\n" + line)
            message = self.refuse(1, net, members, "--profile", profile)
            self.assertIn("bad.toml:2", message)
            self.assertIn(key, message)

    def test_a_mix_of_sizes_is_their_mean(self):
        # One switch: no two edges share a link but at a parent's port.
        net, members = two_level(1, 1, 4), ["h0", "h1", "h2", "h3"]

        def total(sizes):
            return self.tree(net, members, "--builder", "kary", "--width", "2", "--bytes",
                             sizes)["predicted"]["total_us"]

        self.assertAlmostEqual(total("8,4096"), (total("8") + total("4096")) / 2)

    def test_load_moves_the_root(self):
        net, members = two_level(2, 2, 2), ["h0", "h1", "h2", "h3"]
        for busy, other in ((2, 3), (3, 2)):
            guid = net.guid("S", busy)
            load = self.file("load.txt", f"# busy\n{guid} 1 0.5\n0x{guid} 2 0.5 # too\n")
            tree = self.tree(net, members, "--type", "2", "--load", load)
            self.assertEqual(tree["root"], "switch:" + net.guid("S", other))

    def test_load_costs_time(self):
        # One MTU at 200 Gb/s takes 0.08192 us; u / (2 (1 - u)) is 0.5 for 0.5 and 4.5 for 0.9.
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        profile = self.file("plain.toml", toml(PLAIN))
        load = self.file("load.txt", f"{net.guid('S', 0)} 1 0.5\n{net.guid('H', 0)} 1 0.9\n")
        ask = ("--type", "1", "--profile", profile, "--op", "barrier")
        quiet = self.tree(net, members, *ask)["predicted"]
        busy = self.tree(net, members, *ask, "--load", load)["predicted"]
        self.assertAlmostEqual(busy["aggregate_us"] - quiet["aggregate_us"], 0.08192 * 0.5, 5)
        self.assertAlmostEqual(busy["distribute_us"] - quiet["distribute_us"], 0.08192 * 4.5, 5)
        for bad in ("0000000000001000 1", "0000000000001000 1 1.5", "0000000000001000 9 0.5"):
            load = self.file("load.txt", f"\n{bad}\n")
            self.assertIn("load.txt, line 2", self.refuse(1, net, members, "--load", load))

    def ring(self):
        """s0 - s1 - s2 - s0 with h0, h1, h2, and tables that send everything to lower numbers."""
        net = Net()
        for _ in range(3):
            net.switch()
        for i in range(3):
            net.host(i)
        for a, b in ((0, 1), (1, 2), (2, 0)):
            net.cable(a, b)  # ports 2, 3 of s0 lead to s1, s2; of s1 to s0, s2; of s2 to s1, s0

        def out_port(switch, kind, i):
            if i == switch:
                return 1
            return {0: 3, 1: 2, 2: 2}[switch]  # the only way is 0 -> 2 -> 1 -> 0

        return net, net.forwarding_tables(out_port)

    def test_forwarding_tables_decide_the_route(self):
        net, tables = self.ring()
        routes = self.file("lfts.txt", tables)
        ask = ("--type", "1", "--builder", "kary", "--width", "2")
        tree = self.tree(net, ["h0", "h1", "h2"], *ask)
        self.assertEqual((tree["routes"], [n["links"] for n in tree["nodes"]]),
                         ("ROUTE_KIND_SHORTEST_PATH", [0, 3, 3]))
        tree = self.tree(net, ["h0", "h1", "h2"], *ask, "--routes", routes, tables=tables)
        self.assertEqual((tree["routes"], [n["links"] for n in tree["nodes"]]),
                         ("ROUTE_KIND_FORWARDING_TABLES", [0, 3, 4]))
        tree = self.tree(net, ["h0", "h1", "h2"], "--type", "2", "--root", "s0", "--routes", routes,
                         tables=tables)
        up = {v["id"]: v["parent"] for v in tree["physical"]}
        self.assertEqual(up["switch:" + net.guid("S", 2)], "switch:" + net.guid("S", 1))
        bad = self.file("bad.txt", tables.replace(" 003 :", " 099 :", 1))
        self.assertIn("bad.txt", self.refuse(1, net, ["h0", "h1"], "--routes", bad))

    def test_a_directory_of_tables_is_as_good_as_one_file(self):
        net, tables = self.ring()
        members = self.file("members.txt", "h0\nh1\nh2\n")
        fabric = "file:" + self.file("net.txt", net.text())
        single = re.split(r"(?m)^(?=Unicast lids )", tables)[1:]
        self.assertGreater(len(single), 2)
        directory = self.dir / "routes"
        directory.mkdir()
        for number, text in enumerate(single):
            (directory / f"switch{number}").write_text(
                text + "ibroute: iberror: failed: dump tables\n" * (number == 1))
        (directory / ".hidden").write_text("no table")

        def plan(routes):
            return subprocess.run([PROGRAM, "tree", "--json", "--fabric", fabric, "--members", members,
                                   "--type", "1", "--routes", routes], capture_output=True, text=True,
                                  timeout=600, check=False)
        whole, parts = plan(self.file("lfts.txt", tables)), plan(str(directory))
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        self.assertEqual((parts.returncode, parts.stdout), (0, whole.stdout), parts.stderr)
        self.assertRegex(parts.stderr, r"routes: passed over 1 line in .*iberror")
        (directory / "switch0").write_text(single[0].replace(" 001 :", " 099 :", 1))
        bad = plan(str(directory))
        self.check_refusal(bad)
        self.assertIn("routes/switch0: forwarding tables, line ", bad.stderr)
        empty = self.dir / "empty"
        empty.mkdir()
        self.assertIn("has no file", plan(str(empty)).stderr)

    def test_dimension_order(self):
        # A 3 x 3 torus, root at (1,1): every switch is one step from it in each dimension, and goes
        # along the first one first.
        text = self.dir / "torus.txt"
        subprocess.run([PROGRAM, "fabric", "--fabric", "model:torus(dims=3x3)", "--out", str(text)],
                       check=True, capture_output=True, timeout=600)
        at = {f"switch:{guid}": tuple(map(int, re.findall(r"(\d),(\d)", name)[0]))
              for guid, name in Fabric(text.read_text()).descriptions.items() if name[:2] == "sw"}
        root = next(switch for switch, place in at.items() if place == (1, 1))
        members = self.file("members.txt", "\n".join(f"n{i:04}" for i in range(9)))
        done = subprocess.run([PROGRAM, "tree", "--json", "--fabric", "model:torus(dims=3x3)",
                               "--members", members, "--type", "2", "--root", root, "--routes",
                               "dimension-order"], capture_output=True, text=True, timeout=600,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        tree = json.loads(done.stdout)
        self.assertEqual((tree["routes"], tree["radius"]), ("ROUTE_KIND_DIMENSION_ORDER", 3))
        for vertex in tree["physical"]:
            if vertex["id"] in at and vertex["id"] != root:
                x, y = at[vertex["id"]]
                self.assertEqual(at[vertex["parent"]], (1, y) if x != 1 else (1, 1))
        self.assertIn('"s0": its description names no position',
                      self.refuse(1, two_level(1, 0, 2), ["h0", "h1"], "--routes",
                                  "dimension-order"))

    def test_a_real_cluster_with_its_tables(self):
        # PlaFRIM: links of 8, 16 and 32 Gb/s, and tables that its subnet manager made.
        text, tables = self.dir / "plafrim.txt", (DATA / "plafrim/ibroute.txt").read_text()
        subprocess.run([PROGRAM, "fabric", "--fabric", f"file:{DATA}/plafrim/ibnetdiscover.txt",
                        "--out", str(text)], check=True, capture_output=True, timeout=600)
        fabric = Fabric(text.read_text())
        members = sorted(fabric.name(e) for e in fabric.endpoints)
        self.assertEqual(len(members), 125)
        busy = fabric.switches[0]
        load = {(busy, port): 0.25 for vertex, port in fabric.cables if vertex == busy}
        lines = [f"{busy[1]} {port} 0.25" for _, port in load]
        arguments = ["--profile", self.file("plain.toml", toml(PLAIN)), "--bytes", "4096", "--load",
                     self.file("load.txt", "\n".join(lines)), "--routes",
                     str(DATA / "plafrim/ibroute.txt")]
        for kind in ("1", "2"):
            done = subprocess.run([PROGRAM, "tree", "--json", "--fabric", f"file:{text}",
                                   "--members", self.file("members.txt", "\n".join(members)),
                                   "--type", kind, *arguments],
                                  capture_output=True, text=True, timeout=600, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            case = self.verified(fabric, done.stdout, members, arguments, tables)
            self.assertEqual(case.tree["routes"], "ROUTE_KIND_FORWARDING_TABLES")
            case.verify_times(PLAIN, [(4096, 4096, 4096)], load)

    def test_drawing_for_people(self):
        done = self.run_tree(two_level(1, 0, 3), ["h0", "h1", "h2"], "--type", "1", "--builder",
                             "kary", "--width", "2", "--tree")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\nrank 0\n  ranks 1-2\n", done.stdout)


if __name__ == "__main__":
    PROGRAM, DATA = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
