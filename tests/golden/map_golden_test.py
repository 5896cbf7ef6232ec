"""What `coppice-plan map` answers, run on the built program: every algorithm on made-up and on real
inputs, recomputed (map_verifier.py), the files for launchers, and everything that is refused.

map_golden_test.py PROGRAM DATA    DATA is tests/data
"""
import itertools
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import unittest

import map_verifier
from map_verifier import Question
from net_text import Fabric, read_forwarding_tables, two_leaves_a_host, two_level
from scratch_files import WRONG_USAGE, ScratchFiles

# An algorithm may refuse a problem that it was not made for, with one of these codes.
REFUSALS = ("FAILED_PRECONDITION", "RESOURCE_EXHAUSTED")


def errors(done):
    """Lines of standard error but those of progress, which a loaded machine may bring about."""
    return [line for line in done.stderr.splitlines()
            if not re.match(r"coppice-plan: [\d.]+ s of ", line)]


def matrix(ranks, weights):
    return f"{ranks}\n" + "\n".join(
        " ".join(f"{weights.get((u, v), 0)}" for v in range(ranks)) for u in range(ranks)) + "\n"


def random_weights(ranks, seed, share=0.3):
    draw = random.Random(seed)
    return {(u, v): draw.randrange(1, 1000) for u in range(ranks) for v in range(ranks)
            if u != v and draw.random() < share}


class MapGolden(ScratchFiles):
    def run_map(self, *arguments):
        return subprocess.run([PROGRAM, "map", *arguments], capture_output=True, text=True,
                              timeout=600, check=False)

    def map(self, *arguments):
        done = self.run_map("--json", *arguments)
        self.assertEqual((done.returncode, errors(done)), (0, []))
        return json.loads(done.stdout)

    def refuse(self, status, *arguments):
        done = self.run_map(*arguments)
        if status == WRONG_USAGE:
            self.assertEqual((done.returncode, done.stdout), (status, ""), (arguments, done.stderr))
            return done.stderr
        return self.check_refusal(done)

    def algorithms(self):
        return [one["name"] for one in json.loads(self.run_map("--list", "--json").stdout)["algorithms"]]

    def verify_all(self, question, *arguments):
        """Every algorithm's answer, by name."""
        answers = {}
        for name in self.algorithms():
            done = self.run_map("--json", "--budget", "200ms", "--algorithm", name, *arguments)
            if done.returncode != 0:
                self.assertRegex(self.check_refusal(done), f"^({'|'.join(REFUSALS)}): ")
                continue
            self.assertEqual((done.returncode, errors(done)), (0, []), name)
            answers[name] = json.loads(done.stdout)
            self.assertEqual(answers[name]["algorithm"], name)
            question.verify(answers[name])
        self.assertEqual(answers["identity"]["permutation"], list(range(question.ranks)))
        self.assertLessEqual(answers["auto"]["score"], answers["identity"]["score"])
        return answers

    def net(self, leaves=4, spines=2, hosts=4):
        text = two_level(leaves, spines, hosts).text()
        return Fabric(text), "file:" + self.file("net.txt", text)

    def hosts(self, names):
        return self.file("hosts.txt", "".join(name + "\n" for name in names))

    def ends(self, fabric, names):
        found = {fabric.host(e): e for e in fabric.endpoints}
        return [found[name] for name in names]

    # Answers.

    def test_shuffled_hosts_of_a_fat_tree(self):
        fabric, net = self.net()
        names = [f"h{i}" for i in range(16)]
        random.Random(1).shuffle(names)
        weights = random_weights(16, 2)
        question = Question(16, weights, self.ends(fabric, names), map_verifier.hops(fabric), fabric)
        answers = self.verify_all(question, "--fabric", net, "--hosts", self.hosts(names),
                                  "--pattern", self.file("p.mat", matrix(16, weights)))
        self.assertGreater(len({tuple(a["permutation"]) for a in answers.values()}), 1)

    def test_all_hosts_of_a_fabric_are_the_default(self):
        fabric, net = self.net()
        pattern = self.file("p.mat", matrix(16, random_weights(16, 14)))
        ends = sorted(fabric.endpoints, key=lambda e: fabric.port_guids[e])
        answers = [self.map("--fabric", net, "--pattern", pattern, "--algorithm", "random", *hosts)
                   for hosts in ((), ("--hosts", self.hosts(map(fabric.host, ends))))]
        for answer in answers:
            del answer["seconds"]
        self.assertEqual(answers[0], answers[1])

    def test_ports_of_one_host_on_two_switches(self):
        text = two_leaves_a_host(3, 2, 1).text()
        fabric, net = Fabric(text), "file:" + self.file("net.txt", text)
        ends = random.Random(1).sample(fabric.endpoints, 6)
        weights = random_weights(6, 15)
        question = Question(6, weights, ends, map_verifier.hops(fabric), fabric)
        self.verify_all(question, "--fabric", net, "--hosts", self.hosts(map(fabric.name, ends)),
                        "--pattern", self.file("p.mat", matrix(6, weights)))

    def test_unequal_hosts_and_fewer_ranks_than_slots(self):
        fabric, net = self.net()
        names = ["h3", "h3", "h9", "h1", "h12", "h3", "h9", "h14"]
        weights = random_weights(13, 3)
        slots = [e for e in self.ends(fabric, names) for _ in range(2)]
        question = Question(13, weights, slots, map_verifier.hops(fabric), fabric)
        self.verify_all(question, "--fabric", net, "--hosts", self.hosts(names),
                        "--ranks-per-host", "2", "--pattern",
                        self.file("p.mat", matrix(13, weights)))

    def test_a_disconnected_pattern_with_loops(self):
        weights = {(0, 1): 5, (1, 0): 5, (2, 2): 9, (3, 5): 1, (5, 4): 2}
        question = Question(8, weights, range(8), map_verifier.levels((2, 4), (1, 7)))
        self.verify_all(question, "--hierarchy", "2:4", "--distances", "1:7", "--pattern",
                        self.file("p.mat", matrix(8, weights)))

    def test_a_qap_instance_with_diagonals(self):
        draw = random.Random(4)
        numbers = [draw.randrange(0, 30) for _ in range(2 * 81)]
        text = "9\n\n" + "\n".join(" ".join(map(str, numbers[i:i + 9])) for i in range(0, 162, 9))
        n, distance, flows = map_verifier.read_qap(text)
        self.verify_all(Question(n, flows, range(n), distance), "--qap", self.file("q.dat", text))

    def test_a_measured_matrix_between_named_hosts(self):
        draw = random.Random(5)
        distances = {(a, b): round(draw.uniform(1, 4), 3) for a in range(4) for b in range(4)
                     if a != b}
        names, weights = ["b", "a", "b", "d", "c", "a"], random_weights(6, 6, 0.6)
        places = [0, 1, 0, 2, 3, 1]
        question = Question(6, weights, places, lambda a, b: distances.get((a, b), 0))
        pattern = self.file("p.mat", matrix(6, weights))
        arguments = ("--distance", self.file("d.txt", matrix(4, distances)), "--hosts",
                     self.hosts(names), "--pattern", pattern)
        answers = self.verify_all(question, *arguments)
        for name, answer in answers.items():
            if name in ("block", "random"):
                done = self.run_map("--algorithm", name, "--emit", "slurm", *arguments)
                self.assertEqual(done.stdout.split(),
                                 [names[slot] for slot in answer["permutation"]])

    def test_traced_runs_on_a_real_fabric_with_its_tables(self):
        plafrim = pathlib.Path(DATA) / "plafrim"
        net = self.dir / "plain.txt"  # ibnetdiscover -p as ibnetdiscover prints it without
        subprocess.run([PROGRAM, "fabric", "--fabric", f"file:{plafrim / 'ibnetdiscover.txt'}",
                        "--out", str(net)], check=True, capture_output=True, timeout=60)
        fabric = Fabric(net.read_text())
        tables = read_forwarding_tables((plafrim / "ibroute.txt").read_text())
        names = sorted({fabric.host(e) for e in fabric.endpoints})
        names = [name for name in names if " " not in name]
        random.Random(7).shuffle(names)
        for run in ("lammps_melt", "lammps_peptide", "openfoam_pitz"):
            pattern = pathlib.Path(DATA) / "patterns" / f"comm_{run}64.bytes.mat"
            hosts = names[:64]
            question = Question(64, map_verifier.read_dense(pattern.read_text()),
                                self.ends(fabric, hosts), map_verifier.hops(fabric), fabric, tables)
            for name in ("identity", "random", "auto"):
                question.verify(self.map(
                    "--fabric", f"file:{plafrim / 'ibnetdiscover.txt'}", "--routes",
                    str(plafrim / "ibroute.txt"), "--hosts", self.hosts(hosts), "--pattern",
                    str(pattern), "--messages", str(pattern).replace("bytes", "msgs"),
                    "--algorithm", name))

    def test_graphs_and_instances_of_others(self):
        graph = pathlib.Path(DATA) / "patterns" / "comm_copter2_k256.graph"
        weights = map_verifier.read_graph(graph.read_text())
        answer = self.map("--pattern", str(graph), "--hierarchy", "4:8:8", "--distances",
                          "1:10:100", "--algorithm", "identity")
        Question(256, weights, range(256), map_verifier.levels((4, 8, 8), (1, 10, 100))
                 ).verify(answer)
        self.assertEqual(answer["before"]["qap_cost"], 1780375)  # recomputed from the file alone
        for name in ("nug30", "bur26a", "tai60a", "nested27"):
            instance = pathlib.Path(DATA) / "qap" / f"{name}.dat"
            n, distance, flows = map_verifier.read_qap(instance.read_text())
            Question(n, flows, range(n), distance).verify(
                self.map("--qap", str(instance), "--algorithm", "random", "--seed", "3"))

    def test_an_interrupted_search_gives_the_best_so_far(self):
        fabric, net = self.net()
        names = [f"h{i}" for i in range(16)]
        weights = random_weights(16, 13)
        search = subprocess.Popen(
            [PROGRAM, "map", "--json", "--pattern", self.file("p.mat", matrix(16, weights)),
             "--fabric", net, "--hosts", self.hosts(names), "--budget", "1h", "--algorithm",
             "threshold-accepting", "--option", "outer-iterations=1e12"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with search:
            try:
                first = search.stderr.readline()
                search.send_signal(signal.SIGINT)
                text, _ = search.communicate(timeout=60)
            finally:
                search.kill()
        self.assertRegex(first, r"^coppice-plan: [\d.]+ s of 1h")
        self.assertEqual(search.returncode, 0)
        answer = json.loads(text)
        Question(16, weights, self.ends(fabric, names), map_verifier.hops(fabric), fabric
                 ).verify(answer)
        self.assertIn("interrupted, the best so far", answer["reason"])

    def test_equal_seeds_give_equal_orders(self):
        weights = random_weights(12, 8)
        arguments = ("--pattern", self.file("p.mat", matrix(12, weights)), "--hierarchy", "3:4",
                     "--distances", "1:5", "--algorithm", "random")
        orders = [self.map(*arguments, "--seed", seed, "--threads", threads)["permutation"]
                  for seed, threads in (("5", "1"), ("5", "2"), ("6", "2"))]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])

    def test_the_same_pattern_from_every_format(self):
        weights = {pair: 2 * w for pair, w in random_weights(9, 9).items()}
        for u, v in list(weights):
            weights[v, u] = weights[u, v]
        edges = [(u, v) for u, v in weights if u > v]
        files = [self.file("p.mat", matrix(9, weights))]
        files.append(self.file("general.mtx", "%%MatrixMarket matrix coordinate integer general\n"
                               f"9 9 {len(weights)}\n" + "".join(
                                   f"{u + 1} {v + 1} {w}\n" for (u, v), w in weights.items())))
        files.append(self.file("symmetric.mtx", "%%MatrixMarket matrix coordinate real symmetric\n"
                               f"% lower\n9 9 {len(edges)}\n" + "".join(
                                   f"{u + 1} {v + 1} {weights[u, v]}.0\n" for u, v in edges)))
        files.append(self.file("array.mtx", "%%MatrixMarket matrix array integer general\n9 9\n" +
                               "".join(f"{weights.get((u, v), 0)}\n" for v in range(9)
                                       for u in range(9))))
        files.append(self.file("p.graph", f"9 {len(edges)} 001\n" + "".join(
            " ".join(f"{v + 1} {2 * weights[u, v]}" for v in range(9) if (u, v) in weights) + "\n"
            for u in range(9))))
        answers = []
        for path in files:
            answer = self.map("--pattern", path, "--hierarchy", "3:3", "--distances", "1:9",
                              "--algorithm", "random")
            answers.append({k: v for k, v in answer.items() if k != "seconds"})
        for answer in answers[1:]:
            self.assertEqual(answer, answers[0])

    def test_what_is_named_twice_adds_up(self):
        """Duplicates of a pair, both triangles of it, and loops, over unequal asymmetric places."""
        entries = [(1, 2, 3), (1, 2, 4), (2, 1, 5), (3, 3, 2), (3, 3, 6), (4, 1, 0), (2, 4, 1),
                   (2, 4, 1), (2, 4, 1)]
        weights = {}
        for u, v, w in entries:
            weights[u - 1, v - 1] = weights.get((u - 1, v - 1), 0) + w
        path = self.file("p.mtx", f"%%MatrixMarket matrix coordinate real general\n5 5 "
                         f"{len(entries)}\n" + "".join(f"{u} {v} {w}\n" for u, v, w in entries))
        distances = {(0, 0): 1, (0, 1): 2, (1, 0): 7, (2, 0): 3, (0, 2): 4, (1, 2): 5, (2, 1): 5}
        question = Question(5, weights, [0, 1, 0, 2, 2, 0], lambda a, b: distances.get((a, b), 0))
        answers = self.verify_all(question, "--pattern", path, "--hosts",
                                  self.hosts(["a", "b", "a", "c", "c", "a"]), "--distance",
                                  self.file("d.txt", matrix(3, distances)))
        least = min(question.measures(list(order))["qap_cost"]
                    for order in itertools.permutations(range(6), 5))
        self.assertAlmostEqual(answers["auto"]["objective"]["qap_cost"], least)

    def test_messages_may_weigh(self):
        weights, counts = random_weights(8, 15), random_weights(8, 16, 0.9)
        arguments = ("--pattern", self.file("p.mat", matrix(8, weights)), "--hierarchy", "2:4",
                     "--distances", "1:5", "--algorithm", "random")
        counted = ("--messages", self.file("m.mat", matrix(8, counts)))
        distance = map_verifier.levels((2, 4), (1, 5))
        plain = self.map(*arguments)
        Question(8, weights, range(8), distance).verify(plain)
        self.assertEqual(plain["objective"], self.map(*arguments, *counted)["objective"])
        self.assertTrue(set(counts) - set(weights))  # messages without bytes weigh, too
        for more, seen in (((), {pair: 1 for pair in weights}), (counted, counts)):
            both = {pair: weights.get(pair, 0) + 2.5 * seen.get(pair, 1)
                    for pair in {*weights, *seen}}
            Question(8, both, range(8), distance).verify(
                self.map(*arguments, *more, "--bytes-per-message", "2.5"))
            self.assertEqual(*(self.map(*arguments, *more, "--bytes-per-message", size)["objective"]
                               for size in ("8192", "8K")))

    def test_nothing_to_gain(self):
        fabric, net = self.net()
        for text, ranks, why in (("1\n7\n", 1, "one rank has nobody to talk to"),
                                 (matrix(5, {}), 5, "no rank sends anything")):
            answer = self.map("--pattern", self.file("p.mat", text), "--fabric", net, "--hosts",
                              self.hosts([f"h{i}" for i in range(5)]), "--algorithm", "random")
            self.assertEqual(answer["permutation"], list(range(ranks)))
            self.assertEqual(answer["score"], 0)
            self.assertIn(why, answer["reason"])
            self.assertEqual(answer["objective"]["hop_bytes"], 0)

    def test_routes_and_traffic_say_what_they_are(self):
        fabric, net = self.net()
        names = [f"h{i}" for i in range(16)]
        weights = random_weights(16, 10)
        arguments = ("--fabric", net, "--hosts", self.hosts(names), "--algorithm", "identity",
                     "--pattern", self.file("p.mat", matrix(16, weights)))
        self.assertEqual(self.map(*arguments)["traffic"], "even shares of all shortest paths")
        self.assertEqual(self.map(*arguments, "--routes", "shortest")["traffic"], "shortest path")
        self.assertEqual(self.map(*arguments, "--traffic", "approximate")["traffic"],
                         "shortest paths, approximately")
        busy = self.file("load.txt", "".join(
            f"0x{guid} {port} 0.5\n" for (vertex, port), _ in fabric.cables.items()
            for guid in [vertex[1]]))
        plain, loaded = self.map(*arguments), self.map(*arguments, "--load", busy)
        self.assertAlmostEqual(loaded["before"]["max_congestion"],
                               2 * plain["before"]["max_congestion"])

    def test_links_are_listed_by_what_they_carry(self):
        fabric, net = self.net()
        busy = self.file("busy.txt", "".join(f"0x{vertex[1]} {port} 0.5\n"
                                             for vertex, port in sorted(fabric.cables)[:9]))
        arguments = ("--fabric", net, "--pattern",
                     self.file("p.mat", matrix(16, random_weights(16, 15))))
        for more in ((), ("--routes", "shortest"), ("--load", busy)):
            answer = self.map(*arguments, *more, "--links", "0")
            links, measures = answer["links"], answer["objective"]
            self.assertAlmostEqual(sum(link["bytes"] for link in links), measures["hop_bytes"], 6)
            self.assertAlmostEqual(links[0]["congestion"], measures["max_congestion"])
            self.assertEqual(links[0]["share"], 1)
            self.assertEqual([link["congestion"] for link in links],
                             sorted((link["congestion"] for link in links), reverse=True))
            for link in links:
                self.assertAlmostEqual(link["bytes"] / link["capacity_gbps"], link["congestion"])
                self.assertAlmostEqual(link["congestion"] / links[0]["congestion"], link["share"])
                self.assertRegex(link["from"] + link["to"], "endpoint h|switch ")
            few = self.map(*arguments, *more, "--algorithm", "identity", "--links", "3")
            self.assertEqual(len(few["links"]), 3)
        self.assertNotIn("links", self.map(*arguments))
        text = self.run_map(*arguments, "--links", "2").stdout.splitlines()
        self.assertRegex(text[-2], r"^ +[\d.e+]+ +100\.0 +\d\S* +\d+  .+ -> .+$")
        self.assertIn("BYTES PER Gb/s", text[-3])

    def test_objectives(self):
        weights = random_weights(6, 11, 0.7)
        fabric, net = self.net(2, 1, 3)
        names = ["h0", "h3", "h1", "h4", "h2", "h5"]
        arguments = ("--fabric", net, "--hosts", self.hosts(names), "--pattern",
                     self.file("p.mat", matrix(6, weights)))
        question = Question(6, weights, self.ends(fabric, names), map_verifier.hops(fabric), fabric)
        found = [question.measures(p) for p in itertools.permutations(range(6))]
        before = question.measures(range(6))
        for objective, parts in (("congestion", {"max_congestion": 1}),
                                 ("dilation", {"hop_bytes": 1}), ("qap", {"qap_cost": 1}),
                                 ("congestion=1,dilation=3", {"max_congestion": 1, "hop_bytes": 3}),
                                 (None, {"max_congestion": 1})):
            def score(measures):
                return (sum(w * measures[name] / before[name] for name, w in parts.items()) /
                        sum(parts.values()))
            for name in ("random", "auto"):
                answer = self.map(*arguments, "--algorithm", name,
                                  *(["--objective", objective] if objective else []))
                question.verify(answer)
                self.assertAlmostEqual(answer["score"], score(answer["objective"]))
                if name == "auto":
                    self.assertAlmostEqual(answer["score"], min(map(score, found)))

    # Output.

    def test_files_for_launchers(self):
        _, net = self.net()
        names = ["h3", "h7", "h3", "h9"]
        weights = random_weights(8, 12)
        arguments = ("--fabric", net, "--hosts", self.hosts(names), "--ranks-per-host", "2",
                     "--pattern", self.file("p.mat", matrix(8, weights)), "--algorithm", "random")
        order = self.map(*arguments)["permutation"]
        host = [names[slot // 2] for slot in order]
        core = {slot: sum(names[s // 2] == names[slot // 2] for s in range(slot))
                for slot in range(8)}
        runs = [(name, len(list(run))) for name, run in itertools.groupby(host)]
        expected = {
            "permutation": "".join(f"{slot}\n" for slot in order),
            "rankfile": "".join(f"rank {rank}={host[rank]} slot={core[slot]}\n"
                                for rank, slot in enumerate(order)),
            "hostfile": "".join(name + "\n" for name in host),
            "machinefile": "".join(f"{name}:{count}\n" for name, count in runs),
            "slurm": "".join(name + "\n" for name in host)}
        for name, text in expected.items():
            done = self.run_map(*arguments, "--emit", name)
            self.assertEqual((done.returncode, errors(done), done.stdout), (0, [], text))
            out = self.dir / f"{name}.out"
            answer = self.map(*arguments, "--emit", name, "--out", str(out))
            self.assertEqual(answer["permutation"], order)
            self.assertEqual(out.read_text(), text)
        message = self.refuse(1, *arguments, "--emit", "slurm", "--out", str(self.dir / "no" / "x"))
        self.assertIn("cannot open", message)

    def test_places_without_names_have_no_launcher(self):
        arguments = ("--pattern", self.file("p.mat", matrix(4, {(0, 1): 1})), "--hierarchy", "4",
                     "--distances", "1", "--algorithm", "block", "--emit")
        self.assertEqual(self.run_map(*arguments, "permutation").stdout, "0\n1\n2\n3\n")
        self.assertIn("--hierarchy excludes --emit rankfile", self.refuse(2, *arguments, "rankfile"))
        odd = self.file("p2.mat", matrix(2, {(0, 1): 1}))
        message = self.refuse(1, "--pattern", odd, "--distance", self.file("d", "2\n0 1\n1 0\n"),
                              "--hosts", self.hosts(["a b", "c"]), "--algorithm", "block", "--emit",
                              "machinefile")
        self.assertIn('host "a b" has a name that no launcher', message)

    def test_text_is_a_table(self):
        _, net = self.net()
        done = self.run_map("--fabric", net, "--hosts", self.hosts(["h0", "h5", "h1"]), "--pattern",
                            self.file("p.mat", matrix(3, {(0, 1): 8, (1, 2): 1})), "--algorithm",
                            "random", "--seed", "4")
        self.assertEqual((done.returncode, errors(done)), (0, []))
        said, table = done.stdout.rstrip("\n").split("\n\n")
        self.assertIn("ranks move, 3 places", said.split("\n")[-1])
        table = table.split("\n")
        self.assertEqual(len({len(line) for line in table}), 1, table)
        self.assertEqual(len(table), 8)

    def test_the_list_names_sources(self):
        done = self.run_map("--list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in self.algorithms():
            self.assertRegex(done.stdout, rf"(?m)^{name} +\S")

    # Refusals.

    def test_wrong_usage(self):
        pattern = self.file("p.mat", matrix(4, {(0, 1): 1}))
        here = ("--pattern", pattern, "--hierarchy", "2:2", "--distances", "1:5")
        for arguments, why in (
                ((), "--pattern or --qap is required"),
                (("--pattern", pattern), "--fabric, --hierarchy or --distance FILE is required"),
                (("--pattern", pattern, "--hierarchy", "2:2"), "--distances beside --hierarchy"),
                ((*here, "--qap", pattern), "--pattern excludes --qap"),
                (("--qap", pattern, "--messages", pattern), "--messages excludes --qap"),
                (("--qap", pattern, "--hosts", pattern), "--qap excludes --hosts"),
                (("--qap", pattern, "--ranks-per-place", "2"), "--qap excludes --ranks-per-place"),
                ((*here, "--fabric", "model:torus()"), "--fabric excludes --hierarchy"),
                (("--qap", pattern, "--bytes-per-message", "1"), "--bytes-per-message excludes --qap"),
                ((*here, "--bytes-per-message", "-1"), "is not a number of bytes from 0 up"),
                ((*here, "--bytes-per-message", "8KK"), "is not a number of bytes from 0 up"),
                ((*here, "--routes", "shortest"), "no --fabric excludes --routes"),
                ((*here, "--load", "x"), "no --fabric excludes --load"),
                ((*here, "--links", "3"), "no --fabric excludes --links"),
                (("--pattern", pattern, "--distance", "hops"), "excludes --distance hops"),
                ((*here, "--distance", "x"), "--hierarchy excludes --distance"),
                ((*here, "--budget", "0"), '"0" is not a duration above 0'),
                ((*here, "--budget", "0s"), '"0s" is not a duration above 0'),
                ((*here, "--budget", "-1s"), "is not a duration above 0"),
                ((*here, "--budget", "inf"), "at most a year"),
                ((*here, "--budget", "5"), "such as 500ms, 1s or 2m"),
                ((*here, "--objective", "speed"), '"speed" is not congestion, dilation, qap'),
                ((*here, "--objective", "qap=x"), '"qap=x" is not congestion'),
                ((*here, "--option", "x"), '"x" is not NAME=VALUE'),
                ((*here, "--threads", "0"), "--threads"),
                ((*here, "--ranks-per-host", "0"), "is not a whole number from 1 to 16777216"),
                (("--list", "--pattern", pattern), "--list excludes --pattern"),
                ((*here, "--seed", "-1"), "--seed"),
                ((*here, "--seed", str(2 ** 64)), "is not a whole number from 0 to 18446744073709551615"),
                (("--pattern", "-", "--distance", "-"), "--pattern - excludes --distance -"),
                (("--qap", "-", "--hosts", "-"), "--qap excludes --hosts"),
                ((*here, "--emit", "pbs"), "--emit"),
                ((*here, "--out", "x"), "--out"),
                ((*here, "--json", "--emit", "permutation"), "--emit without --out excludes --json"),
                ((*here, "--links", "3", "--emit", "permutation"), "--emit without --out excludes --links"),
                ((*here, "--emit", "rankfile"), "--hierarchy excludes --emit rankfile"),
                (("--qap", pattern, "--emit", "slurm"), "--qap excludes --emit slurm"),
                (("--pattern", pattern, "--distance", pattern, "--emit", "hostfile"),
                 "--hosts beside --emit hostfile is required"),
                (("--pattern", "", "--hierarchy", "4"), "the value is empty"),
                (("--pattern", pattern, "--hierarchy", "4:x", "--distances", "1:2"), "such as 4:8:6"),
                (("--pattern", pattern, "--hierarchy", "4", "--distances", "one"), "such as 1:10:100")):
            self.assertIn(why, self.refuse(2, *arguments))

    def test_one_rank_is_no_ranks(self):
        rows = "\n".join(" ".join("0" if a == b else "10" if a // 4 == b // 4 else "4" for b in range(12))
                         for a in range(12))
        said = self.run_map("--pattern", self.file("blocks", rows + "\n"), "--fabric",
                            "model:fat-tree(leaves=12,spines=1,hosts-per-leaf=1,speeds=ndr/hdr)").stdout
        self.assertIn("any 1 rank on 1 host behind one leaf switch exchanges with the others over the 200 Gb/s that join "
                      "it\n", said)

    def test_bad_patterns(self):
        for text, why in (
                ("", "is empty"), ("2\n0 -1\n1 0\n", 'weight "-1" is negative'),
                ("2\n0 nan\n1 0\n", "no number that can be counted with"),
                ("2\n0 inf\n1 0\n", "is infinite"), ("2\n0 1e999\n1 0\n", "more than a double holds"),
                ("2\n0 1e308\n1e308 0\n", "add up to more than a double holds"),
                ("2\n0 1\n", "not square"), ("99999999\n0\n", "give 1 to 16777216"),
                ("%%MatrixMarket matrix coordinate real general\n16777216 16777216 0\n",
                 "16777216 ranks, but only 0 pairs of them talk"),
                ("%%MatrixMarket matrix coordinate real general\n2 3 0\n", "not square"),
                ("%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "begins with \"%%MatrixMarket"),
                ("%%Matrix Market coordinate real general\n2 2 1\n1 2 1\n", "begins with \"%%MatrixMarket"),
                ("%%MatrxMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "begins with \"%%MatrixMarket"),
                ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -1\n", "line 3: "),
                ("3 1 001\n2 5\n1 6\n\n", "line 2: vertex 1 gives its edge to 2 the weight 5")):
            path = self.file("bad", text)
            message = self.refuse(1, "--pattern", path, "--hierarchy", "2:2", "--distances", "1:5",
                                  "--algorithm", "block")
            self.assertIn(f"INVALID_ARGUMENT: {path}", message)
            self.assertIn(why, message)

    def test_what_does_not_fit(self):
        _, net = self.net()
        pattern = self.file("p.mat", matrix(4, {(0, 1): 1}))
        block = ("--pattern", pattern, "--algorithm", "block")
        hosts = self.hosts(["h0", "h1", "h2"])
        two = self.file("d", "2\n0 1\n1 0\n")
        for arguments, why in (
                (("--hierarchy", "3", "--distances", "1"), "4 ranks, but the 3 hosts take 3"),
                (("--fabric", net, "--hosts", hosts), "4 ranks, but the 3 hosts take 3"),
                (("--fabric", net, "--hosts", self.file("h2", "h0\nnobody\n")), 'line 2: no host is '
                                                                               'named "nobody"'),
                (("--fabric", net, "--hosts", self.file("h3", "# none\n")), "no members"),
                (("--fabric", net, "--hosts", hosts, "--ranks-per-host", "9999999"), "give fewer"),
                (("--fabric", net, "--hosts", hosts, "--ranks-per-host", "2", "--distance", two),
                 "distances between 2 places, but there are 3"),
                (("--distance", two, "--ranks-per-place", "2", "--objective", "congestion"),
                 "there is no fabric"),
                (("--distance", two, "--ranks-per-place", "2", "--objective", "qap=0"),
                 "the objective weighs nothing"),
                (("--distance", two, "--ranks-per-place", "2", "--objective", "qap=-1"),
                 "a weight of -1"),
                (("--distance", two, "--ranks-per-place", "2", "--objective", "qap=1e308"),
                 "a weight of 1e+308; give 0, or 1e-100 to 1e+100"),
                (("--distance", self.file("hole", "2\n0 nan\n1 0\n"), "--ranks-per-place", "2"),
                 'row 1, column 2: distance "nan"'),
                (("--distance", self.file("gap", "2\n0 1\n1\n")), "the distance is missing"),
                (("--distance", self.file("dash", "2\n0 -\n1 0\n")), 'row 1, column 2: distance "-"'),
                (("--distance", self.file("neg", "2\n0 1\n-1 0\n")), "row 2, column 1: distance"),
                (("--distance", self.file("inf", "2\n0 inf\n1 0\n")), "row 1, column 2: distance"),
                (("--distance", self.file("wide", "0 1 2\n1 0 2\n")), "not square"),
                (("--distance", self.file("large", "99999\n0\n")), "give 1 to 16384"),
                (("--distance", self.file("far", "2\n0 1e300\n1 0\n"), "--ranks-per-place", "2",
                  "--bytes-per-message", "1e100"),
                 "such as 1e+100 from rank 0 to rank 1, times the distances, such as 1e+300 in row 1, "
                 "column 2"),
                (("--distance", self.file("none", "")), "is empty"),
                (("--hierarchy", "4:0", "--distances", "1:2"), "extent 0"),
                (("--hierarchy", "4:4", "--distances", "1:-2"), "distance -2"),
                (("--hierarchy", "4:4", "--distances", "1"), "2 levels with 1 distances"),
                (("--hierarchy", "4", "--distances", "1", "--option", "speed=1"),
                 "algorithm block has no option speed"),
                (("--hierarchy", "4", "--distances", "1", "--start", "best"),
                 "no mapping algorithm best; choose one of identity"),
                (("--hierarchy", "4", "--distances", "1", "--messages",
                  self.file("m", matrix(3, {}))), "messages of 3 ranks for a pattern of 4"),
                (("--hierarchy", "4", "--distances", "1", "--messages", "/no/file"), "/no/file")):
            self.assertIn(why, self.refuse(1, *block, *arguments))
        self.assertIn("no mapping algorithm best",
                      self.refuse(1, "--pattern", pattern, "--hierarchy", "4", "--distances", "1",
                                  "--algorithm", "best"))
        for text, why in (("2\n0 1 1 0\n0 -1 1 0\n", "is negative"),
                          ("2\n0 nan 1 0\n0 1 1 0\n", "no number"), ("", "is empty"),
                          ("0\n", "1 to 16384"), ("2\n0 1 1 0\n0 1e999 1 0\n", "double holds")):
            self.assertIn(why, self.refuse(1, "--qap", self.file("q", text), "--algorithm",
                                           "block"))
        self.assertIn("is it cut off?", self.refuse(1, "--qap", self.file("q", "3\n0 1 2\n"),
                                                    "--algorithm", "block"))
        self.assertIn("/dev/zero: not a regular file", self.refuse(1, "--qap", "/dev/zero"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    DATA = sys.argv.pop(1)
    unittest.main()
