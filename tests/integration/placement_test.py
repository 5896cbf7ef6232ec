"""Placements as a scheduler meets them: `coppicectl placement` against a real coppiced, which is
killed, restarted and asked by hundreds at once."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import exit_status
from coppiced_process import PATIENCE_S, Coppiced

COPPICED, COPPICECTL = sys.argv.pop(1), sys.argv.pop(1)


def expand(text):
    """What `scontrol show hostnames` makes of the simple lists that this fabric has."""
    prefix, body = re.fullmatch(r"(\D*?)\[?([\d,-]+)\]?", text).groups()
    names = set()
    for part in body.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            names.add(prefix + str(number).zfill(len(first)))
    return names


class Placement(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED)  # 4 leaf switches of 4 hosts
        self.addCleanup(self.daemon.clean_up)
        self.start()
        fabric = json.loads(self.good("fabric", "nodes", "--json"))
        self.nodes = sorted(node["host"] for node in fabric["nodes"] if node.get("host"))
        self.assertEqual(len(self.nodes), 16)

    def start(self):
        self.daemon.start().wait_until_listening()
        self.good("fabric", "sweep")

    def run_program(self, *arguments, stdin=""):
        done = subprocess.run([COPPICECTL, *arguments], capture_output=True, text=True, timeout=120,
                              check=False, input=stdin,
                              env={**os.environ, "COPPICE_SERVER": self.daemon.address})
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments, **options):
        status, out, errors = self.run_program(*arguments, **options)
        self.assertEqual((status, exit_status.without_waiting(errors)), (0, ""), arguments)
        return out

    def answer(self, *arguments, **options):
        return json.loads(self.good(*arguments, "--json", **options))

    def fails(self, *arguments, words=(), **options):
        exit_status.check_failure(self, self.run_program(*arguments, **options), words)

    def refused(self, expected, *arguments, words=(), **options):
        status, out, errors = self.run_program(*arguments, **options)
        self.assertEqual((status, out), (expected, ""), (arguments, errors))
        for word in words:
            self.assertIn(word, errors, arguments)

    def create(self, *arguments, **options):
        return self.answer("placement", "create", *arguments, **options)

    def held(self):
        return self.answer("placement", "list")["placements"]

    def test_from_request_to_job(self):
        advice = self.answer("placement", "advise", "--nodes", "4")
        self.assertEqual((advice["id"], advice["measures"]["leaf_switches"]), (None, 1))
        self.assertEqual(self.held(), [])
        placement = self.create("--nodes", "4", "--name", "melt", "--ranks-per-node", "2",
                                "--term", "90s")
        self.assertEqual((placement["id"], placement["state"], len(placement["nodes"])),
                         ("1", "PLACEMENT_STATE_HELD", 4))
        self.assertEqual(placement["term"], "90s")
        self.assertTrue(placement["is_optimal"])
        self.assertEqual(expand(placement["node_list"]), set(placement["nodes"]))
        self.assertIn("melt", self.good("placement", "list"))
        self.assertIn(placement["node_list"], self.good("placement", "show", "1"))
        self.good("placement", "renew", "1")
        job = self.answer("placement", "start", "1", "--lease", "1h")
        self.assertEqual((job["display_name"], job["rank_count"], job["lease"]), ("melt", 8, "3600s"))
        self.assertEqual(job["endpoints"], [node + "/1" for node in placement["nodes"]
                                            for _ in range(2)])
        self.assertEqual(self.answer("placement", "start", "1")["id"], job["id"])
        self.assertEqual(self.answer("placement", "show", "1")["job_id"], job["id"])
        self.assertEqual(self.held(), [])
        self.fails("placement", "create", "--nodes", "13", words=["13"])
        matrix = self.answer("placement", "distances", "--job", job["id"])
        self.assertEqual(matrix["nodes"], placement["nodes"])
        self.assertEqual(matrix["hops"], [0 if a == b else 2 for a in range(4) for b in range(4)])
        self.assertIn(placement["nodes"][0], self.good("placement", "distances", "--job", job["id"]))
        self.good("job", "end", job["id"])
        self.assertEqual(len(self.create("--nodes", "16")["nodes"]), 16)
        self.assertEqual(self.answer("status")["placed_nodes"], "16")

    def test_lists_of_nodes(self):
        prefix = os.path.commonprefix(self.nodes)
        numbers = sorted(int(node[len(prefix):]) for node in self.nodes)
        everything = f"{prefix}[{numbers[0]}-{numbers[-1]}]"
        width = {len(node) for node in self.nodes}
        if len(width) == 1:  # padded
            digits = width.pop() - len(prefix)
            everything = f"{prefix}[{numbers[0]:0{digits}}-{numbers[-1]:0{digits}}]"
        first, second = self.nodes[0], self.nodes[1]
        placement = self.create("--nodes", "3", "--candidates", everything, "--include", first,
                                "--avoid", second)
        self.assertIn(first, placement["nodes"])
        self.assertNotIn(second, placement["nodes"])
        rest = sorted(set(self.nodes) - set(placement["nodes"]))
        other = self.create("--nodes", "2", "--candidates", "-", stdin="\n".join(rest[:5]) + "\n")
        self.assertLessEqual(set(other["nodes"]), set(rest[:5]))
        with open(os.path.join(self.daemon.directory, "nodes"), "w", encoding="utf-8") as file:
            file.write(everything + "  # all\n")
        job = self.answer("job", "register", "--endpoints", file.name)
        self.assertEqual(job["rank_count"], 16)
        self.fails("placement", "create", "--nodes", "1", "--candidates", prefix + "[1-",
                   words=["candidates[0]", "letter", "not closed"])
        self.fails("placement", "create", "--nodes", "1", "--candidates", first + "," + first,
                   words=[first, "twice"])
        self.fails("placement", "create", "--nodes", "1", "--candidates", "elsewhere7",
                   words=["elsewhere7"])

    @staticmethod
    def ranks_of(tree):
        return {node["endpoint"] for node in tree["nodes"] if node["kind"] == "rank"}

    def test_lists_of_nodes_wherever_nodes_are_named(self):
        """As a word and in a file, also where the client itself has to know the names."""
        prefix = os.path.commonprefix(self.nodes)
        numbers = [node[len(prefix):] for node in self.nodes]
        everything = prefix + "[" + ",".join(numbers) + "]"
        path = os.path.join(self.daemon.directory, "words")
        with open(path, "w", encoding="utf-8") as file:
            file.write(everything + "/1\n")
        for words in (everything, path):
            job = self.answer("job", "register", "--endpoints", words)
            self.assertEqual(job["endpoints"], [node + "/1" for node in self.nodes])
            tree = self.answer("tree", "create", "--job", job["id"], "--members", words)
            self.assertEqual(len(self.ranks_of(tree)), 16)
            self.good("job", "end", job["id"])
        job = self.answer("job", "register", "--all")["id"]
        some = prefix + "[" + ",".join(numbers[2:6]) + "]"
        tree = self.answer("tree", "create", "--job", job, "--members", some)
        self.assertEqual(self.ranks_of(tree), {node + "/1" for node in self.nodes[2:6]})
        self.fails("tree", "create", "--job", job, "--members", prefix + "[1-",
                   words=["a bracket is not closed"])
        pattern = os.path.join(self.daemon.directory, "pattern")
        with open(pattern, "w", encoding="utf-8") as file:
            file.write("0 9 1 0\n9 0 0 1\n1 0 0 9\n0 1 9 0\n")
        order = self.answer("map", "--hosts", some, "--pattern", pattern, "--budget", "100ms")
        self.assertEqual(sorted(order["permutation"]), [0, 1, 2, 3])
        distances = self.answer("placement", "distances", "--nodes", some)
        self.assertEqual(distances["nodes"], self.nodes[2:6])
        self.fails("distance", "list", "--hosts", some, "--matrix", words=[self.nodes[2]])

    def test_a_batch_of_json(self):
        prefix = os.path.commonprefix(self.nodes)
        everything = prefix + "[" + ",".join(node[len(prefix):] for node in self.nodes) + "]"
        batch = json.dumps({"requests": [
            {"request_id": "a", "display_name": "melt", "term": "90s",
             "placement": {"constraints": {"node_count": 4, "candidates": [everything]}}},
            {"request_id": "b",
             "placement": {"constraints": {"node_count": 6, "min_leaf_switches": 3},
                           "objective": {"leaf_switches": 1, "distance": 2},
                           "traffic": {"ranks_per_node": 2, "trees": 1}}}]})
        advice = self.answer("placement", "batch", "-", "--advise", stdin=batch)["placements"]
        self.assertEqual([len(one["nodes"]) for one in advice], [4, 6])
        self.assertEqual(self.held(), [])
        made = self.answer("placement", "batch", "-", stdin=batch)["placements"]
        self.assertEqual([one["nodes"] for one in made], [one["nodes"] for one in advice])
        self.assertEqual((made[0]["display_name"], made[0]["term"]), ("melt", "90s"))
        self.assertEqual(made[1]["measures"]["leaf_switches"], 3)
        self.assertEqual({one["id"] for one in self.held()}, {one["id"] for one in made})
        again = self.answer("placement", "batch", "-", stdin=batch)["placements"]
        self.assertEqual([one["id"] for one in again], [one["id"] for one in made])
        path = os.path.join(self.daemon.directory, "batch.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"requests": [{"placement": {"constraints": {"node_count": count}}}
                                    for count in (2, 7, 3)]}, file)
        self.fails("placement", "batch", path, words=["requests[1]", "7"])
        self.assertEqual(len(self.held()), 2, "all of them or none")
        status, out, errors = self.run_program("placement", "batch", path, "--advise", "--json")
        self.assertEqual(status, exit_status.of(errors))
        self.assertIn("requests[1]: ", errors)
        advice = json.loads(out)["placements"]
        self.assertEqual([len(one["nodes"]) for one in advice], [2, 0, 3])
        self.assertNotEqual(advice[1]["why_not"], "")
        self.assertIn("LEAF SWITCHES", self.run_program("placement", "batch", path, "--advise")[1])
        for text, words in (("", []), ("[]", []), ("{}", ["requests"]), ("{\"requests\": 7}", []),
                            ("{\"requests\": [{\"nodes\": 4}]}", ["nodes"])):
            self.fails("placement", "batch", "-", words=["-: ", *words], stdin=text)
        self.fails("placement", "batch", "/nonexistent", words=["/nonexistent"])
        self.refused(2, "placement", "batch", words=["FILE"])

    def test_weights(self):
        """Two on one leaf switch are near; by load alone it does not matter where they are."""
        near = self.answer("placement", "advise", "--nodes", "2", "--weights", "distance=3")
        self.assertEqual((near["measures"]["cost"], near["is_optimal"]), (6, True))
        held = self.create("--nodes", "2", "--weights", "leaf-switches=5,pods=0")
        self.assertEqual(held["measures"]["cost"], 5)
        for weights, words in (("hops=1", "leaf-switches, pods"), ("pods=-1", "from 0 up"),
                               ("pods=nan", "from 0 up"), ("pods=1,pods=1", "twice"),
                               ("pods=0", "above 0"), ("pods", "is no weight")):
            self.fails("placement", "create", "--nodes", "2", "--weights", weights,
                       words=["--weights " + weights, words])
        self.assertEqual(len(self.held()), 1)

    def test_wrong_usage_and_refusals(self):
        self.refused(2, "placement", "create", words=["--nodes"])
        self.refused(2, "placement", "distances")
        self.fails("placement", "create", "--nodes", "17", words=["17"])
        self.fails("placement", "create", "--nodes", "2", "--term", "tomorrow",
                   words=["--term tomorrow"])
        self.fails("placement", "create", "--nodes", "2", "--include", self.nodes[0],
                   "--avoid", self.nodes[0], words=[self.nodes[0]])
        self.fails("placement", "show", "9", words=["placement 9"])
        self.fails("placement", "start", "x", words=["placement id"])
        self.fails("placement", "advise", "--nodes", "5", "--same-pod", "--max-leaf-switches", "1")

    def test_held_placements_survive_a_killed_daemon(self):
        kept = self.create("--nodes", "4", "--request-id", "kept", "--exclusive-switches")
        started = self.create("--nodes", "4", "--request-id", "started")
        job = self.answer("placement", "start", started["id"])["id"]
        gone = self.create("--nodes", "4")
        self.good("placement", "release", gone["id"])
        self.daemon.end(signal.SIGKILL)
        self.start()
        self.assertEqual([placement["id"] for placement in self.held()], [kept["id"]])
        again = self.create("--nodes", "4", "--request-id", "kept", "--exclusive-switches")
        self.assertEqual((again["id"], again["nodes"]), (kept["id"], kept["nodes"]))
        self.assertEqual(self.answer("placement", "show", started["id"])["job_id"], job)
        self.fails("placement", "create", "--nodes", "9", words=["9"])
        rest = self.create("--nodes", "8")
        taken = set(kept["nodes"]) | set(started["nodes"])
        self.assertFalse(taken & set(rest["nodes"]))
        self.assertGreater(int(rest["id"]), int(gone["id"]))

    def test_a_scheduler_that_never_releases(self):
        self.create("--nodes", "16", "--term", "1s")
        deadline = time.monotonic() + PATIENCE_S
        while self.held():
            self.assertLess(time.monotonic(), deadline, "its term never ends")
            select.select([], [], [], 0.05)  # between two looks
        self.assertEqual(len(self.create("--nodes", "16")["nodes"]), 16)
        kinds = [event["kind"] for event in self.answer("events")["events"]]
        self.assertIn("placement.expired", kinds)

    def test_many_at_once(self):
        """Each node to one of them; who gets none is told so at once."""
        environment = {**os.environ, "COPPICE_SERVER": self.daemon.address}
        askers = [subprocess.Popen([COPPICECTL, "placement", "create", "--nodes", "2", "--json"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment)
                  for _ in range(40)]
        nodes, refused = [], 0
        for asker in askers:
            out, errors = asker.communicate(timeout=PATIENCE_S)
            if asker.returncode == 0:
                nodes += json.loads(out)["nodes"]
            else:
                self.assertEqual(asker.returncode, 6)
                self.assertTrue("RESOURCE_EXHAUSTED" in errors or "ABORTED" in errors, errors)
                refused += 1
        self.assertEqual(sorted(nodes), self.nodes)
        self.assertEqual(refused, 32)

    def test_keep_renews_the_lease_until_the_job_ends(self):
        placement = self.create("--nodes", "2")
        keeper = subprocess.Popen(
            [COPPICECTL, "placement", "start", placement["id"], "--lease", "1s", "--keep",
             "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "COPPICE_SERVER": self.daemon.address})
        self.addCleanup(keeper.stdout.close)
        self.addCleanup(keeper.kill)
        text = ""
        while not text.endswith("}\n"):
            text += keeper.stdout.readline()
        job = json.loads(text)["id"]
        deadline = time.monotonic() + 3  # three terms of the lease
        while time.monotonic() < deadline:
            self.assertEqual(self.answer("job", "show", job)["state"], "JOB_STATE_ACTIVE")
            select.select([], [], [], 0.1)
        self.good("job", "end", job)
        self.assertEqual(keeper.wait(timeout=PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
