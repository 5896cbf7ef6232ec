"""Random requests to `coppice-plan tree` on fabrics of many models, each answer verified by
tree_verifier.py, each refusal for a cause that stands in the request.

tree_random_golden_test.py PROGRAM DATA
COPPICE_TEST_SEED chooses the requests, COPPICE_TEST_TIER=full asks more of them.
"""
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import unittest

from net_text import Fabric, two_leaves_a_host
from profile_text import toml
from scratch_files import ScratchFiles
from tree_verifier import Case

MODELS = (
    "fat-tree(leaves=4,spines=2,hosts-per-leaf=4)",
    "fat-tree(leaves=5,spines=3,hosts-per-leaf=2,speeds=hdr/edr)",
    "fat-tree(supernodes=3,leaves=3,spines=2,hosts-per-leaf=3,tops=4)",
    "fat-tree(ports=4,levels=3)",
    "fat-tree(leaves=4,spines=2,hosts-per-leaf=3,ports-per-host=2)",
    "fat-tree(ports=4,levels=2,rails=2)",
    "xgft(m=3x3x2,w=1x2x2)",
    "torus(dims=4x3,hosts=2)",
    "mesh(dims=3x3x2,hosts=1)",
    "hypercube(dims=4,hosts=1)",
    "dragonfly(p=2,a=3,h=1)",
    "dragonfly-plus(p=2,leaves=2,spines=2,h=1)",
    "hyperx(dims=3x3,hosts=2)",
    "percs(supernodes=2,d=1)",
)
CASES = 3000 if os.environ.get("COPPICE_TEST_TIER") == "full" else 90  # 6 on each model, and on two_leaves_a_host


def random_profile(rng):
    def node():
        return {"forward_us": rng.uniform(0, 2), "forward_us_per_byte": rng.choice((0, 1e-4)),
                "match_us": rng.uniform(0, 0.1), "reduce_us_per_byte": rng.choice((0, 1e-4, 1e-3)),
                "send_us": rng.uniform(0, 0.1)}
    return {"init_us": rng.uniform(0, 1), "link_us": rng.uniform(0.01, 1),
            "same_host_us": rng.uniform(0, 0.5), "mtu_bytes": rng.choice((256, 2048, 4096)),
            "nic_degree": 64, "nic": node(), "switch": node()}


def payload(operation, size):
    return {"barrier": (0, 0, 0), "bcast": (0, size, 0), "reduce": (size, 0, size),
            "allreduce": (size, size, size)}[operation]


# What is done to a sound tree -> how; the verifier must see each.
SPOILED = {
    "height": lambda tree: tree.update(height=tree["height"] + 1),
    "radius": lambda tree: tree.update(radius=tree["radius"] + 1),
    "cost": lambda tree: tree.update(switches=tree["switches"] + 1),
    "length of an edge": lambda tree: tree["nodes"][3].update(links=tree["nodes"][3]["links"] + 1),
    "another's endpoint": lambda tree: tree["nodes"][3].update(endpoint="n0001/1"),
    "a rank twice": lambda tree: tree["nodes"].insert(3, tree["nodes"][3]),
    "a rank gone": lambda tree: tree["nodes"].pop(3),
    "two roots": lambda tree: tree["nodes"][3].update(parent=None, links=0),
    "a cycle": lambda tree: tree["nodes"][3].update(parent="rank:3", links=0),
    "another parent": lambda tree: tree["nodes"][3].update(parent="rank:2"),
    "no such parent": lambda tree: tree["nodes"][3].update(parent="rank:99"),
    "a faster tree": lambda tree: tree["alternatives"].append(
        {"type": "TREE_TYPE_I", "builder": "TREE_BUILDER_KARY", "width": 2, "total_us": 0.0, "why_not": "not faster"}),
}


class Request:
    """What one call asks for."""

    def __init__(self, rng, fabric):
        ends = fabric.endpoints
        self.members = rng.sample(ends, rng.choice((1, 2, rng.randint(1, len(ends)), len(ends))))
        if rng.random() < 0.4:  # several ranks on one port
            self.members += rng.choices(ends, k=rng.randint(1, 2 * len(ends)))
        self.operation = rng.choice(("barrier", "bcast", "reduce", "allreduce"))
        self.sizes = rng.choice(((8,), (0,), (2048,), (1 << 20,), (8, 4096, 65536)))
        self.type = rng.choice(("auto", "auto", "1", "1", "2", "2"))
        self.builder = (rng.choice(("auto", "kary", "knomial", "hierarchical", "postal"))
                        if self.type == "1" else "auto")
        self.width = rng.choice((None, None, 2, 3, 4, 16, 1 << 20))
        self.nic_degree = rng.choice((None, None, None, 1, 2, 5, 64))
        self.switch_degree = rng.choice((2, 3, 4, 5, 16, 64))
        if self.type == "2":  # which heeds none of these, and is refused with them
            self.builder, self.width, self.nic_degree = "auto", None, None
        self.full = (rng.sample(fabric.switches, rng.randint(1, len(fabric.switches)))
                     if rng.random() < 0.4 else [])
        if self.type == "1":  # and this is of trees of type II
            self.switch_degree, self.full = None, []

    def arguments(self, file):
        arguments = ["--members", file("members.txt", "\n".join(self.names)),
                     "--op", self.operation, "--type", self.type, "--builder", self.builder]
        if self.operation != "barrier":  # which moves none, and is refused with them
            arguments += ["--bytes", ",".join(map(str, self.sizes))]
        if self.full:
            names = "\n".join(guid for _, guid in self.full)
            arguments += ["--full-switches", file("full.txt", names)]
        for option, value in (("--switch-degree", self.switch_degree), ("--width", self.width),
                              ("--nic-degree", self.nic_degree)):
            arguments += [option, str(value)] if value is not None else []
        return arguments


class RandomTrees(ScratchFiles):
    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=600,
                              check=False)

    def fabric(self, model):
        path = str(self.dir / "net.txt")
        done = self.run_program("fabric", "--fabric", f"model:{model}", "--out", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Fabric(pathlib.Path(path).read_text()), f"file:{path}"

    def test_answers_and_refusals(self):
        seed = int(os.environ.get("COPPICE_TEST_SEED", "20240220"))
        print(f"COPPICE_TEST_SEED={seed}", file=sys.stderr)
        rng = random.Random(seed)
        fabrics = [(self.fabric(model)[0], f"model:{model}") for model in MODELS]
        text = two_leaves_a_host(4, 2, 2).text()
        fabrics.append((Fabric(text), "file:" + self.file("two_leaves.txt", text)))
        answered = {"TREE_TYPE_I": 0, "TREE_TYPE_II": 0}
        for number in range(CASES):
            fabric, spec = fabrics[number % len(fabrics)]
            request, profile = Request(rng, fabric), random_profile(rng)
            request.names = [fabric.port_guids[m] for m in request.members]
            arguments = ["tree", "--json", "--fabric", spec, "--profile",
                         self.file("profile.toml", toml(profile)), *request.arguments(self.file)]
            with self.subTest(number=number, call=" ".join(arguments), members=request.names,
                              full=request.full):
                done = self.run_program(*arguments)
                if done.returncode == 0:
                    tree = json.loads(done.stdout)
                    answered[tree["type"]] += 1
                    self.verify(tree, fabric, request, profile)
                    self.verify_root(tree, fabric, request, arguments)
                else:
                    self.check_refusal(done)
                    self.justify(done.stderr, fabric, request)
        self.assertGreater(min(answered.values()), CASES // 8, answered)

    def verify(self, tree, fabric, request, profile):
        if request.type != "auto":
            self.assertEqual(tree["type"], "TREE_TYPE_" + "I" * int(request.type))
        if request.builder != "auto":
            self.assertEqual(tree["builder"], "TREE_BUILDER_" + request.builder.upper())
        if tree["type"] == "TREE_TYPE_I" and request.width is not None:
            self.assertLessEqual(tree["width"], request.width)
        case = Case(tree, fabric, request.members, request.nic_degree or 64, request.switch_degree,
                    request.full)
        case.verify()
        if fabric.even:
            case.verify_times(profile, [payload(request.operation, s) for s in request.sizes])

    def verify_root(self, tree, fabric, request, arguments):
        """A root that is not nearest to the members takes no more switches than the nearest need,
        and is sooner than all of those that need no more."""
        if tree["type"] == "TREE_TYPE_I" or len(request.members) == 1:
            return
        roots = [f"switch:{guid}" for _, guid in self.centre(fabric, request.members)]
        if [v["id"] for v in tree["physical"] if v["parent"] is None][0] in roots:
            return
        arguments = list(arguments)
        arguments[arguments.index("--type") + 1] = "2"
        done = [self.run_program(*arguments, "--root", root.split(":")[1]) for root in roots]
        nearest = [json.loads(one.stdout) for one in done if one.returncode == 0]
        least = min((one["switches"] for one in nearest), default=tree["switches"])
        self.assertLessEqual(tree["switches"], least)
        for one in nearest:
            if one["switches"] == least:
                self.assertGreater(one["predicted"]["total_us"],
                                   1.009 * tree["predicted"]["total_us"])

    def centre(self, fabric, members):
        """The switches whose farthest member is nearest."""
        leaves = {fabric.leaf(m) for m in members}
        farthest = {s: max(fabric.hops_to(s).get(leaf, math.inf) for leaf in leaves)
                    for s in fabric.switches}
        least = min(farthest.values())
        return [s for s, hops in farthest.items() if hops == least < math.inf]

    def justify(self, message, fabric, request):
        members = len(request.members)
        centre = self.centre(fabric, request.members)
        if "FAILED_PRECONDITION" in message:
            self.assertEqual(centre, [], message)
            return
        self.assertIn("RESOURCE_EXHAUSTED", message)
        if request.type != "1":
            for switch in fabric.switches:  # one switch alone would do, if it could
                self.assertTrue(switch in request.full or request.switch_degree < members, message)
        if request.type == "2":
            named = [guid for _, guid in fabric.switches if guid in message]
            self.assertTrue(all(("S", guid) in request.full for guid in named), message)
            self.assertTrue(named or "degree limits" in message, message)
            return
        limit, width = request.nic_degree or 64, min(request.width or 2, members)
        most = (min(width, members - 1) if request.builder in ("auto", "kary")  # children of a rank
                else (width - 1) * math.ceil(math.log(members, width) + 1))
        self.assertLess(limit, most, message)

    def test_the_verifier_refuses_spoiled_trees(self):
        fabric, spec = self.fabric("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)")
        path = self.file("members.txt", "\n".join(map(fabric.name, fabric.endpoints)))
        for kind in ("1", "2"):
            done = self.run_program("tree", "--json", "--fabric", spec, "--members", path, "--type",
                                    kind, "--builder", "auto",
                                    *(["--switch-degree", "5"] if kind != "1" else []))
            tree = json.loads(done.stdout)
            Case(tree, fabric, fabric.endpoints, switch_degree=5).verify()
            for name, spoil in SPOILED.items():
                bad = json.loads(done.stdout)
                spoil(bad)
                self.assertNotEqual(bad, tree, name)
                with self.subTest(name=name, kind=kind), self.assertRaises(AssertionError):
                    Case(bad, fabric, fabric.endpoints, switch_degree=5).verify()

    def test_auto_takes_the_best_of_the_four_builders(self):
        rng = random.Random(7)
        for model in ("fat-tree(leaves=6,spines=3,hosts-per-leaf=5)", "torus(dims=5x4,hosts=2)",
                      "dragonfly(p=2,a=4,h=2)"):
            fabric, spec = self.fabric(model)
            for size in ("8", "65536"):
                members = [fabric.port_guids[m] for m in rng.sample(fabric.endpoints, 24)]
                path = self.file("members.txt", "\n".join(members))
                total = {}
                for builder in ("auto", "kary", "knomial", "hierarchical", "postal"):
                    done = self.run_program("tree", "--json", "--fabric", spec, "--members", path,
                                            "--type", "1", "--builder", builder, "--bytes", size)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    total[builder] = json.loads(done.stdout)["predicted"]["total_us"]
                self.assertEqual(total.pop("auto"), min(total.values()), model)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=sys.argv[:1])
