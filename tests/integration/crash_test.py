"""What was answered survives kill -9 at any instant, and nothing else does.

Workers create and release trees without a pause; the daemon is killed after a random number of
answers and started again on the same database. Then, round after round:
  - every tree whose grant was answered, and no release of it was sent, is there;
  - no tree whose release was answered is there;
  - a creation in flight is resolved by sending it again with its request_id: it was carried out
    once or not at all; a release in flight likewise;
  - every switch's entries are exactly those of the trees that are there, in the answers and, counted
    in SQL, in the database; those of an answered tree are the ones that its answer named. The file is
    read as the kill left it, too, before a restart can mend anything;
  - of a batch all trees are there, or none, and all if one of them was answered.
200 rounds in the full tier, 20 in the short one. COPPICE_TEST_SEED repeats a run.
"""

import collections
import contextlib
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import unittest

import grpc

from coppiced_process import Coppiced
from reflection_client import Reflection, Service

PROGRAM = sys.argv.pop(1)
ROUNDS = 200 if os.environ.get("COPPICE_TEST_TIER") == "full" else 20
SEED = int(os.environ.get("COPPICE_TEST_SEED", "20240220"))
WORKERS = 6
MOST_HELD = 6       # trees that a worker holds before it releases one
MOST_ANSWERS = 120  # before a kill
BATCH = 60          # communicators of a batch
NAMES = ["coppice.v1.Jobs", "coppice.v1.Trees", "coppice.v1.Fabric"]


class Client:
    def __init__(self, address, pool=None):
        self.channel = grpc.insecure_channel(address)
        self.pool = pool or Reflection(self.channel).pool_of(*NAMES)
        self.jobs, self.trees, self.fabric = (Service(self.channel, self.pool, n) for n in NAMES)


class Worker:
    """What one client believes: trees that it holds, and the calls that were cut off."""

    def __init__(self, number):
        self.number = number
        self.random = random.Random(SEED * 1000 + number)
        self.sent = 0
        self.held = {}           # request_id -> tree id
        self.switches = {}       # tree id -> switches that its answer named
        self.released = set()    # tree ids
        self.creating = None     # (request_id, fields) in flight
        self.releasing = None    # (request_id, tree id) in flight

    def create(self, client):
        if self.creating is None:
            self.sent += 1
            request_id = "w%d-%d" % (self.number, self.sent)
            ranks = self.random.sample(range(16), self.random.randint(2, 16))
            kind = self.random.choice(["TREE_TYPE_UNSPECIFIED", "TREE_TYPE_I", "TREE_TYPE_II"])
            self.creating = request_id, {"ranks": ranks, "type": kind}
        request_id, fields = self.creating
        try:
            tree = client.trees.CreateTree(job_id=client.job, request_id=request_id, **fields)
            self.held[request_id] = tree.id
            self.switches[int(tree.id)] = sorted(tree.nodes.switches)
        except grpc.RpcError as error:
            # Full switches: type II is refused. Anything else but the kill is a failure.
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
        self.creating = None

    def release(self, client):
        if self.releasing is None:
            request_id = self.random.choice(sorted(self.held))
            self.releasing = request_id, self.held.pop(request_id)
        _, tree = self.releasing
        try:
            client.trees.ReleaseTree(id=tree)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        self.released.add(tree)
        self.releasing = None

    def work(self, client, answered, failures):
        try:
            while True:
                if len(self.held) < self.random.randint(1, MOST_HELD):
                    self.create(client)
                else:
                    self.release(client)
                answered.release()
        except grpc.RpcError as error:
            answered.release()
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                failures.append(error)


class CrashTest(unittest.TestCase):
    def setUp(self):
        print("COPPICE_TEST_SEED=%d, %d rounds" % (SEED, ROUNDS), flush=True)
        self.daemon = Coppiced(PROGRAM, entries=8)
        self.addCleanup(self.daemon.clean_up)
        self.random = random.Random(SEED)
        self.workers = [Worker(number) for number in range(WORKERS)]
        self.pool = None
        client = self.connect()
        self.pool = client.pool
        self.job = client.jobs.RegisterJob(request_id="crash", all_endpoints=True,
                                           lease={"seconds": 86400}).id

    def connect(self):
        self.daemon.start().wait_until_listening()
        client = Client(self.daemon.address, self.pool)
        client.fabric.Sweep()  # returns once a fabric is known
        return client

    def crash(self, client):
        """Lets the workers work until so many calls were answered, then kills the daemon."""
        answered, failures = threading.Semaphore(0), []
        threads = [threading.Thread(target=worker.work, args=(client, answered, failures))
                   for worker in self.workers]
        for thread in threads:
            thread.start()
        for _ in range(self.random.randint(1, MOST_ANSWERS)):
            self.assertTrue(answered.acquire(timeout=60))
        self.daemon.end(signal.SIGKILL)
        for thread in threads:
            thread.join()
        client.channel.close()
        self.assertEqual(failures, [])

    def trees_there(self, client):
        trees, token = {}, ""
        while True:
            page = client.trees.ListTrees(job_id=self.job, page_size=7, page_token=token)
            for tree in page.trees:
                trees[tree.id] = client.trees.GetTree(id=tree.id)
            token = page.next_page_token
            if not token:
                return trees

    def check_beliefs(self, client):
        there = set(self.trees_there(client))
        held = {tree for worker in self.workers for tree in worker.held.values()}
        released = {tree for worker in self.workers for tree in worker.released}
        self.assertEqual(held - there, set(), "granted, answered, and lost")
        self.assertEqual(released & there, set(), "released, answered, and back")
        in_flight = sum(worker.creating is not None for worker in self.workers)
        releasing = {worker.releasing[1] for worker in self.workers if worker.releasing}
        self.assertLessEqual(len(there - held - releasing), in_flight, "nobody asked for these")

    def resolve(self, client):
        for worker in self.workers:
            if worker.creating is not None:
                worker.create(client)
            if worker.releasing is not None:
                worker.release(client)
        held = {tree for worker in self.workers for tree in worker.held.values()}
        self.assertEqual(set(self.trees_there(client)), held)

    def check_entries(self, client):
        trees = {int(id): sorted(tree.nodes.switches)
                 for id, tree in self.trees_there(client).items()}
        expected = collections.Counter(guid for guids in trees.values() for guid in guids)
        for switch in client.fabric.ListSwitches().switches:
            self.assertEqual(switch.entries_taken, expected[int(switch.guid, 16)], switch)
        self.assertEqual(client.fabric.GetFabric().entries_taken, sum(expected.values()))
        with self.database() as database:
            self.assertEqual(self.trees_in(database), trees)
            self.assertEqual({int(guid, 16): taken for guid, taken in database.execute(
                "SELECT switch, entries_taken FROM entries WHERE entries_taken > 0")}, expected)

    def database(self):
        return contextlib.closing(
            sqlite3.connect("file:%s?mode=ro" % self.daemon.database, uri=True))

    @staticmethod
    def trees_in(database):
        """Tree id -> switches that it takes an entry of. Rows without their tree come as such."""
        trees = {id: [] for id, in database.execute("SELECT id FROM tree")}
        for id, guid in database.execute("SELECT tree_id, guid FROM tree_switch"):
            trees.setdefault("no tree %d" % id if id not in trees else id, []).append(
                guid % 2**64)
        return {id: sorted(guids) for id, guids in trees.items()}

    def check_database(self):
        """The file as the kill left it, with its log."""
        with self.database() as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
            there = self.trees_in(database)
            serving = dict(database.execute(
                "SELECT t.id, count(*) FILTER (WHERE n.value ->> 0 = -1)"
                " FROM tree t, json_each(t.nodes) n GROUP BY t.id"))
        self.assertEqual({id: len(guids) for id, guids in there.items()}, serving)
        for worker in self.workers:
            for tree in worker.held.values():
                self.assertEqual(there.get(int(tree)), worker.switches[int(tree)], tree)
            for tree in worker.released:
                self.assertNotIn(int(tree), there)

    def test_answered_is_kept(self):
        for number in range(ROUNDS):
            with self.subTest(round=number):
                client = self.connect() if number else Client(self.daemon.address, self.pool)
                client.job = self.job
                if number:
                    self.check_beliefs(client)
                    self.resolve(client)
                self.check_entries(client)
                self.crash(client)
                self.check_database()
        client = self.connect()
        client.job = self.job
        self.check_beliefs(client)
        self.resolve(client)
        self.check_entries(client)
        self.assertEqual(self.daemon.end()[0], 0)

    def batch(self, client, request_id):
        """Trees of a batch of BATCH communicators, type I where switches are full."""
        ranks = random.Random(SEED)
        fields = {"job_id": self.job, "request_id": request_id, "accept_type_i": True,
                  "communicators": [{"ranks": ranks.sample(range(16), ranks.randint(2, 16))}
                                    for _ in range(BATCH)]}
        for update in client.trees.BatchCreateTrees(**fields):
            if update.HasField("tree"):
                yield update.tree.tree.id

    def grant_until_killed(self, client, request_id, seconds):
        """Kills the daemon so long after asking for a batch; the trees that were answered."""
        seen = []

        def read():
            try:
                seen.extend(self.batch(client, request_id))
            except grpc.RpcError:
                pass

        reader = threading.Thread(target=read)
        reader.start()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass
        self.daemon.end(signal.SIGKILL)
        reader.join()
        client.channel.close()
        return seen

    def test_a_batch_is_there_whole_or_not_at_all(self):
        self.workers = []
        client = Client(self.daemon.address, self.pool)
        trees, took = [], float("inf")
        for request_id in ("cold", "warm", "warmer"):
            for tree in trees:
                client.trees.ReleaseTree(id=tree)
            began = time.perf_counter()
            answers = self.batch(client, request_id)
            trees = [next(answers)]
            took = min(took, time.perf_counter() - began)  # until it was granted
            trees += answers
        granted = 0
        for number in range(ROUNDS // 2):
            with self.subTest(round=number):
                for tree in trees:
                    client.trees.ReleaseTree(id=tree)
                request_id = "batch%d" % number
                seen = self.grant_until_killed(client, request_id, took * self.random.uniform(0.3, 1.3))
                self.check_database()
                client = self.connect()
                there = self.trees_there(client)
                self.assertIn(len(there), (0, BATCH))
                self.assertEqual(set(seen) - set(there), set(), "answered and lost")
                self.check_entries(client)
                trees = list(self.batch(client, request_id))
                self.assertEqual(len(trees), BATCH)
                if there:
                    granted += 1
                    self.assertEqual(set(trees), set(there))
                self.check_entries(client)
        print("%d of %d batches were granted before the kill" % (granted, ROUNDS // 2), flush=True)
        self.assertEqual(self.daemon.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
