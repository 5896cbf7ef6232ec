"""What `coppice-plan tree` decides in cases whose answers are known, run on the built program.

tree_golden_test.py PROGRAM
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

# 512 single-port hosts, 16 on each of 32 leaf switches (Chen 2024, figures 4 to 6).
PAPER = (32, 16, 16)


class Net:
    """Builds ibnetdiscover text: switches by number, hosts named h0, h1, ..."""

    def __init__(self):
        self.switches, self.hosts = [], []  # per switch: {port: (peer kind, peer, peer port)}

    def switch(self):
        self.switches.append({})
        return len(self.switches) - 1

    def cable(self, a, b):
        p, q = len(self.switches[a]) + 1, len(self.switches[b]) + 1
        self.switches[a][p], self.switches[b][q] = ("S", b, q), ("S", a, p)

    def host(self, leaf):
        port = len(self.switches[leaf]) + 1
        self.switches[leaf][port] = ("H", len(self.hosts), 1)
        self.hosts.append((leaf, port))

    def guid(self, kind, i):
        return f"{0x1000 + i if kind == 'S' else 0x100000 + 16 * i:016x}"

    def text(self):
        lines = []
        for i, ports in enumerate(self.switches):
            lines += [f"switchguid=0x{self.guid('S', i)}",
                      f'Switch\t64 "S-{self.guid("S", i)}"\t\t# "s{i}" base port 0 lid {i + 1} lmc 0']
            for port, (kind, peer, peer_port) in ports.items():
                if kind == "S":
                    lines.append(f'[{port}]\t"S-{self.guid("S", peer)}"[{peer_port}]\t\t'
                                 f'# "s{peer}" lid {peer + 1} 4xHDR')
                else:
                    guid = self.guid("H", peer)
                    lines.append(f'[{port}]\t"H-{guid}"[1]({int(guid, 16) + 1:x}) \t\t'
                                 f'# "h{peer} mlx5_0" lid {len(self.switches) + peer + 1} 4xHDR')
            lines.append("")
        for i, (leaf, port) in enumerate(self.hosts):
            guid = self.guid("H", i)
            lines += [f"caguid=0x{guid}", f'Ca\t1 "H-{guid}"\t\t# "h{i} mlx5_0"',
                      f'[1]({int(guid, 16) + 1:x}) \t"S-{self.guid("S", leaf)}"[{port}]\t\t'
                      f'# lid {len(self.switches) + i + 1} lmc 0 "s{leaf}" lid {leaf + 1} 4xHDR',
                      ""]
        return "\n".join(lines)


def two_level(leaves, spines, hosts):
    net = Net()
    for _ in range(leaves + spines):
        net.switch()
    for leaf in range(leaves):
        for _ in range(hosts):
            net.host(leaf)
        for spine in range(spines):
            net.cable(leaf, leaves + spine)
    return net


def figure_11():
    """s0 above s1-s3, each above three of s4-s12, which hold 2 2 2, 2 2 2, 2 1 1 members."""
    net = Net()
    for i in range(13):
        net.switch()
        if i > 0:
            net.cable((i - 1) // 3, i)
    for leaf, hosts in zip(range(4, 13), (2, 2, 2, 2, 2, 2, 2, 1, 1)):
        for _ in range(hosts):
            net.host(leaf)
    return net


class TreeGolden(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return str(self.dir / name)

    def run_tree(self, net, members, *arguments):
        return subprocess.run(
            [PROGRAM, "tree", "--fabric", "file:" + self.file("net.txt", net.text()), "--members",
             self.file("members.txt", "\n".join(members)), *arguments],
            capture_output=True, text=True, timeout=120, check=False)

    def tree(self, net, members, *arguments):
        done = self.run_tree(net, members, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        tree = json.loads(done.stdout)
        ids = {node["id"] for node in tree["nodes"]}
        self.assertEqual([n["id"] for n in tree["nodes"] if n["parent"] is None], [tree["root"]])
        self.assertTrue(all(n["parent"] in ids for n in tree["nodes"] if n["parent"] is not None))
        self.assertEqual(sum(n["kind"] == "switch" for n in tree["nodes"]), tree["switches"])
        return tree

    def refuse(self, status, net, members, *arguments):
        done = self.run_tree(net, members, *arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        return done.stderr

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
                                 ("I", builder, 32))
                self.assertEqual(self.crossing(tree, lambda rank: rank // 16), want)

    def test_hosts_of_3_2_2_ranks_make_height_2(self):
        members = ["h0", "h0", "h0", "h1", "h1", "h2", "h2"]
        tree = self.tree(two_level(1, 0, 3), members, "--builder", "hierarchical", "--width", "2")
        self.assertEqual(tree["height"], 2)

    def test_figure_11_takes_4_of_13_switches(self):
        tree = self.tree(figure_11(), [f"h{i}" for i in range(16)], "--type", "2",
                         "--switch-degree", "5", "--root", "s0")
        self.assertEqual((tree["type"], tree["switches"]), ("II", 4))
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
        self.assertEqual(tree["type"], "I")
        self.assertIn("no type II tree", tree["reason"])
        self.assertIn("II", [other["type"] for other in tree["alternatives"]])

    def test_one_and_two_members(self):
        net = two_level(2, 1, 2)
        self.assertEqual(self.tree(net, ["h0"], "--type", "1")["height"], 0)
        self.assertEqual(self.tree(net, ["h0", "h3"], "--type", "1")["height"], 1)

    def test_members_that_are_not_there(self):
        message = self.refuse(1, two_level(1, 0, 2), ["h0", "nobody"])
        self.assertIn("members.txt, line 2", message)
        self.assertIn("nobody", message)
        self.assertIn("no members", self.refuse(1, two_level(1, 0, 2), []))

    def test_absurd_values(self):
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        for width in ("0", "1"):
            self.assertIn("width", self.refuse(1, net, members, "--type", "1", "--width", width))
        self.tree(net, members, "--type", "1", "--width", "4294967295")
        self.refuse(2, net, members, "--width", "many")
        self.refuse(2, net, members, "--type", "3")
        for sizes in ("-5", "8,", "8,x", "99999999999999999999"):
            self.assertIn("8,1024", self.refuse(2, net, members, "--bytes", sizes))

    def test_a_mix_of_sizes_is_their_mean(self):
        net, members = two_level(2, 1, 2), ["h0", "h1", "h2", "h3"]

        def total(sizes):
            return self.tree(net, members, "--builder", "kary", "--width", "2", "--bytes",
                             sizes)["predicted"]["total_us"]

        self.assertAlmostEqual(total("8,4096"), (total("8") + total("4096")) / 2)

    def test_load_file(self):
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        quiet = self.tree(net, members, "--type", "1")["predicted"]["total_us"]
        load = self.file("load.txt", "# busy\n0000000000001000 1 0.9\n0000000000001000 2 0.9\n")
        busy = self.tree(net, members, "--type", "1", "--load", load)["predicted"]["total_us"]
        self.assertGreater(busy, quiet)
        for bad in ("0000000000001000 1", "0000000000001000 1 1.5", "0000000000001000 9 0.5"):
            load = self.file("load.txt", f"\n{bad}\n")
            self.assertIn("load.txt, line 2", self.refuse(1, net, members, "--load", load))

    def test_routes_from_forwarding_tables(self):
        net, members = two_level(1, 0, 2), ["h0", "h1"]
        table = ("Unicast lids [0x0-0x3] of switch Lid 1 guid 0x0000000000001000 (s0):\n"
                 "  Lid  Out   Destination\n       Port     Info \n"
                 "0x0001 000 : (Switch portguid 0x0000000000001000: 's0')\n"
                 "0x0002 001 : (Channel Adapter portguid 0x0000000000100001: 'h0 mlx5_0')\n"
                 "0x0003 002 : (Channel Adapter portguid 0x0000000000100011: 'h1 mlx5_0')\n"
                 "3 valid lids dumped \n")
        routes = self.file("lfts.txt", table)
        tree = self.tree(net, members, "--type", "1", "--routes", routes)
        self.assertEqual((tree["routes"], tree["radius"]), ("forwarding tables", 2))
        self.assertEqual(self.tree(net, members)["routes"], "shortest path")
        self.assertIn("bad.txt", self.refuse(1, net, members, "--routes",
                                              self.file("bad.txt", table.replace("02 :", "99 :"))))

    def test_drawing_for_people(self):
        done = self.run_tree(two_level(1, 0, 3), ["h0", "h1", "h2"], "--type", "1", "--builder",
                             "kary", "--width", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank:0  h0/1\n  ranks 1-2\n", done.stdout)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=sys.argv[:1])
