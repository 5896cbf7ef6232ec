"""Golden cases of `coppice-plan fabric`, run on the built program.

fabric_golden_test.py PROGRAM DATA [--update]    DATA is tests/data; --update rewrites tests/golden/fabric
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

GOLDEN = pathlib.Path(__file__).resolve().parent / "fabric"

# Golden file -> SPEC. Files are named relative to DATA.
SUMMARIES = {
    "supernode_fat_tree":
        "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)",
    "standard_fat_tree": "model:fat-tree",
    "full_fat_tree": "model:fat-tree(ports=8,levels=3,speeds=edr/hdr)",
    "xgft": "model:xgft(m=4x4x2,w=1x2x2)",
    "torus": "model:torus(dims=4x3x2,hosts=2)",
    "hypercube": "model:hypercube(dims=4,hosts=1)",
    "dragonfly": "model:dragonfly",
    "dragonfly_plus": "model:dragonfly-plus",
    "percs": "model:percs(supernodes=17)",
    "hyperx": "model:hyperx(dims=4x4,hosts=4)",
    "plafrim": "file:plafrim/ibnetdiscover.txt",
}

# One switch and two hosts; each bad file below spoils it in one place.
SOUND = """\
switchguid=0x10(10)
Switch\t2 "S-0000000000000010"\t\t# "s" base port 0 lid 1 lmc 0
[1]\t"H-0000000000000020"[1](21) \t\t# "a mlx5_0" lid 2 4xHDR
[2]\t"H-0000000000000030"[1](31) \t\t# "b mlx5_0" lid 3 4xHDR

caguid=0x20
Ca\t1 "H-0000000000000020"\t\t# "a mlx5_0"
[1](21) \t"S-0000000000000010"[1]\t\t# lid 2 lmc 0 "s" lid 1 4xHDR

caguid=0x30
Ca\t1 "H-0000000000000030"\t\t# "b mlx5_0"
[1](31) \t"S-0000000000000010"[2]\t\t# lid 3 lmc 0 "s" lid 1 4xHDR
"""

# Name -> what to replace in SOUND, by what.
BAD_FILES = {
    "one_sided": ('[2]\t"H-0000000000000030"[1](31) \t\t# "b mlx5_0" lid 3 4xHDR\n', ""),
    "cyclic": ('"S-0000000000000010"[2]\t\t# lid 3 lmc 0 "s" lid 1 4xHDR',
               '"H-0000000000000030"[1]\t\t# lid 3 lmc 0 "b mlx5_0" lid 3 4xHDR'),
    "duplicate_guid": ('caguid=0x30\nCa\t1 "H-0000000000000030"',
                       'caguid=0x20\nCa\t1 "H-0000000000000020"'),
    "duplicate_port": ("[2]\t", "[1]\t"),
    "duplicate_lid": ("lid 3 lmc 0", "lid 2 lmc 0"),
    "truncated_in_a_line": ("lid 3 lmc 0 \"s\" lid 1 4xHDR\n", "lid 3 lm"),
    "truncated_after_a_line": (SOUND[SOUND.index("\ncaguid=0x30"):], ""),
    "empty": (SOUND, ""),
    "no_topology": (SOUND, "#!/bin/sh\necho hello\n"),
}

# Name -> arguments; the golden file holds status and message. {dir} is a scratch directory.
WRONG_CALLS = {
    "no_command": [],
    "no_fabric": ["fabric"],
    "unknown_option": ["fabric", "--fabric", "model:torus", "--colour"],
    "unknown_source": ["fabric", "--fabric", "umad"],
    "unknown_model": ["fabric", "--fabric", "model:moebius"],
    "unknown_argument": ["fabric", "--fabric", "model:torus(sides=4)"],
    "too_large": ["fabric", "--fabric", "model:torus(dims=65536x65536)"],
    "missing_file": ["fabric", "--fabric", "file:{dir}/absent.txt"],
    "directory": ["fabric", "--fabric", "file:{dir}"],
    "unwritable_out": ["fabric", "--fabric", "model:torus", "--out", "{dir}/absent/out.txt"],
}


class FabricGolden(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=DATA, capture_output=True, text=True,
                              timeout=600, check=False)

    def summary(self, spec, *arguments):
        done = self.run_program("fabric", "--json", "--fabric", spec, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def listed(self, what, spec):
        done = self.run_program("fabric", what, "--json", "--fabric", spec)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def compare(self, name, got):
        path = GOLDEN / f"{name}.json"
        if UPDATE:
            path.write_text(json.dumps(got, indent=2) + "\n")
        self.assertEqual(got, json.loads(path.read_text()))

    def test_summaries(self):
        for name, spec in SUMMARIES.items():
            with self.subTest(name):
                self.compare(name, self.summary(spec))

    def test_what_is_written_reads_back_the_same(self):
        for name, spec in SUMMARIES.items():
            with self.subTest(name):
                out, again = f"{self.dir}/{name}.txt", f"{self.dir}/{name}.again.txt"
                net = f"{self.dir}/{name}.net"
                want = self.summary(spec, "--out", out, "--ibsim", net)
                got = self.summary(f"file:{out}", "--out", again)
                self.assertEqual({**got, "source": spec}, want)
                self.assertEqual(pathlib.Path(again).read_bytes(), pathlib.Path(out).read_bytes())
                from_net = self.summary(f"file:{net}")
                for key in ("switch_count", "endpoint_count", "host_count", "link_count",
                            "component_count", "levels", "switch_degrees"):
                    self.assertEqual(from_net[key], want[key], key)

    def test_lists(self):
        for name in ("standard_fat_tree", "plafrim", "torus"):
            with self.subTest(name):
                spec = SUMMARIES[name]
                whole = self.summary(spec)
                nodes = self.listed("nodes", spec)["nodes"]
                switches = self.listed("switches", spec)["switches"]
                self.assertEqual(len(nodes), whole["endpoint_count"])
                self.assertEqual(len({node["endpoint"] for node in nodes}), len(nodes))
                self.assertEqual(len(switches), whole["switch_count"])
                at = collections.Counter(node["switch_guid"] for node in nodes)
                self.assertEqual({s["guid"]: s["endpoint_count"] for s in switches},
                                 {s["guid"]: at[s["guid"]] for s in switches})
                links = sum(link["count"] for link in whole["link_classes"]
                            if link["between"] == "switches")
                self.assertEqual(sum(s["connected_ports"] - s["endpoint_count"] for s in switches),
                                 2 * links)
                for what, listed in (("nodes", nodes), ("switches", switches)):
                    text = self.run_program("fabric", what, "--fabric", spec).stdout.splitlines()
                    self.assertEqual(len(text), len(listed) + 1)
                    first = listed[0].get("endpoint", listed[0].get("guid"))
                    self.assertTrue(text[1].startswith(first + " "), text[1])

    def test_table_for_people(self):
        done = self.run_program("fabric", "--fabric", "model:fat-tree")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compare("table", done.stdout.splitlines())

    def test_help_is_no_error(self):
        done = self.run_program("fabric", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("dragonfly-plus(", done.stdout)

    def test_wrong_calls(self):
        got = {}
        for name, arguments in WRONG_CALLS.items():
            done = self.run_program(*(a.format(dir=self.dir) for a in arguments))
            self.assertEqual(done.stdout, "", name)
            got[name] = {"status": done.returncode,
                         "stderr": done.stderr.replace(self.dir, "{dir}")}
        self.compare("wrong_calls", got)

    def test_bad_files(self):
        path = pathlib.Path(self.dir) / "net.txt"
        path.write_text(SOUND)
        self.assertEqual(self.summary(f"file:{path}")["link_count"], 2)
        got = {}
        for name, (sound, bad) in BAD_FILES.items():
            self.assertIn(sound, SOUND)
            path.write_text(SOUND.replace(sound, bad))
            done = self.run_program("fabric", "--fabric", f"file:{path}")
            self.assertEqual(done.stdout, "", name)
            got[name] = {"status": done.returncode,
                         "stderr": done.stderr.replace(self.dir, "{dir}")}
        self.compare("bad_files", got)


if __name__ == "__main__":
    UPDATE = "--update" in sys.argv
    PROGRAM, DATA = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
