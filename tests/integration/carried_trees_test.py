"""coppice-switch at every switch of a fabric, under a real coppiced: members speak frames over sockets, and their sums
are right; the switches' own bounds are the daemon's; a switch that is killed and a daemon that is killed lose no tree.
Switches refuse nothing that the daemon granted, and everything that it did not.

  carried_trees_test.py COPPICED COPPICECTL COPPICE-SWITCH"""

import json
import os
import queue
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest
from concurrent import futures

import grpc

from coppiced_process import Coppiced
from reflection_client import Reflection, Service, message_class
from simulated_subnet import wait_until

COPPICED, COPPICECTL, SWITCH = (sys.argv.pop(1) for _ in range(3))
HOSTS, ENTRIES, CHILDREN = 16, 3, 6  # of a model with 4 leaf switches of 4 hosts each and 2 spines
HELLO, WELCOME, CONTRIBUTION, RESULT = 1, 2, 4, 5
SUM, INT64, WANTED = 1, 5, 0x40
RANK_VIEW, TYPE_II = 2, 2
# Random grants and releases, and after how many of them, about, a daemon or a switch is killed.
STEPS, KILL_EVERY = (10_000, 150) if os.environ.get("COPPICE_TEST_TIER") == "full" else (400, 50)
SEED = int(os.environ.get("COPPICE_TEST_SEED", "20240220"))


class Member:
    """A rank of a tree that switches carry."""

    def __init__(self, tree, rank):
        carriage = tree.carriage
        self.rank = rank
        self.connect(carriage.parent_address, (int(tree.id), tree.revision, carriage.number_at_parent), carriage.key)

    def connect(self, address, group, key):
        host, _, port = address.rpartition(":")
        self.group = group
        self.link = socket.create_connection((host, int(port)), timeout=60)
        try:
            self.send(HELLO, 0, 0, 1, key)
            self.expect(WELCOME)
        except OSError:
            self.link.close()
            raise

    def send(self, kind, operation, element, sequence, payload):
        self.link.sendall(struct.pack("<4sBBBBQIIQII", b"CPSW", 1, kind, operation, element, *self.group, sequence, 0,
                                      len(payload)) + payload)

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.link.recv(count - len(data))
            if not more:
                raise ConnectionError(f"rank {self.rank}: the switch has gone")
            data += more
        return data

    def expect(self, kind):
        header = self.read(40)
        payload = self.read(struct.unpack_from("<I", header, 36)[0])
        if header[5] != kind:
            raise ConnectionError(f"rank {self.rank}: {payload[4:].decode()}")
        return payload

    def sum(self, sequence, numbers):
        self.send(CONTRIBUTION, SUM | WANTED, INT64, sequence, struct.pack(f"<{len(numbers)}q", *numbers))
        return struct.unpack(f"<{len(numbers)}q", self.expect(RESULT))


class Stranger(Member):
    """Whoever says that he is that child of that tree at that revision, and shows some key."""

    rank = "of a stranger"

    def __init__(self, address, group, key):
        self.connect(address, group, key)
        self.link.close()


class Liar:
    """Speaks to switches in the daemon's place, and installs beyond what they have said that they can."""

    def __init__(self, address, pool):
        self.task, self.message = (message_class(pool, "coppice.v1." + name) for name in ("SwitchTask", "SwitchMessage"))
        self.answers = queue.Queue()  # GUID, what was asked for, error
        self.is_over = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        connect = grpc.stream_stream_rpc_method_handler(self.serve, self.message.FromString,
                                                        self.task.SerializeToString)
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("coppice.v1.Switches", {"Connect": connect}),))
        self.server.add_insecure_port(address)
        self.server.start()

    def stop(self):
        self.is_over.set()
        self.server.stop(None).wait()

    def serve(self, messages, _):
        hello = next(messages).hello
        welcome = self.task()
        welcome.welcome.keep.extend(hello.groups)
        yield welcome
        bogus = 1 << 40
        asked = [("one", bogus + i, 1, 2) for i in range(hello.abilities.entries - len(hello.groups))]
        asked += [("one entry too many", bogus + 1000, 1, 2)]
        known = hello.groups[0] if hello.groups else self.task().remove.__class__(tree=bogus, revision=1)
        asked += [("other content", known.tree, known.revision, 3)]
        asked += [("one child too many", known.tree, known.revision + 1, hello.abilities.children + 1)]
        for number, (what, tree, revision, children) in enumerate(asked, start=1):
            task = self.task()
            task.install.id = number
            entry = task.install.entry
            entry.group.tree, entry.group.revision, entry.key, entry.children = tree, revision, b"k" * 16, children
            entry.segment_bytes, entry.window = 64, 1
            yield task
            answer = next(message for message in messages if message.HasField("installed"))
            self.answers.put((hello.switch_guid, what, answer.installed.error))
        self.answers.put((hello.switch_guid, None, ""))
        self.is_over.wait()


class Switches(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED, entries=0)  # what switches say counts, not what the file says
        self.addCleanup(self.daemon.clean_up)
        self.begin()
        self.switches, self.ports = {}, {}
        self.addCleanup(lambda: [self.kill(guid) for guid in list(self.switches)])
        listed = json.loads(self.good("fabric", "switches", "--json"))["switches"]
        self.names = {switch["guid"]: switch["description"] for switch in listed}
        self.spines = {switch["guid"] for switch in listed if switch["endpoint_count"] == 0}
        for guid in self.names:
            self.start_switch(guid)
        self.wait_for_switches(len(self.names))

    def begin(self):
        self.daemon.start().wait_until_listening()
        # Not the connection of a channel before, whose daemon was killed.
        channel = grpc.insecure_channel(self.daemon.address, [("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        self.pool = Reflection(channel).pool_of("coppice.v1.Trees", "coppice.v1.Switches")
        self.trees, self.agents = (Service(channel, self.pool, "coppice.v1." + name) for name in ("Trees", "Switches"))
        wait_until(lambda: self.run_program("fabric", "sweep").returncode == 0, "no first sweep")

    def run_program(self, *arguments):
        return subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments], capture_output=True,
                              text=True, timeout=120, check=False)

    def good(self, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def start_switch(self, guid, port=0):
        self.switches[guid] = subprocess.Popen(
            [SWITCH, "--switch", guid, "--server", self.daemon.address, "--listen", f"127.0.0.1:{port}",
             "--entries", str(ENTRIES), "--children", str(CHILDREN)], stderr=subprocess.DEVNULL)

    def kill(self, guid):
        process = self.switches.pop(guid)
        process.kill()
        process.wait()

    def wait_for_switches(self, count):
        connected = lambda: sum(agent.connected for agent in self.agents.ListSwitchAgents().switches)
        wait_until(lambda: connected() == count, f"{count} switches do not speak")

    def register(self):
        return json.loads(self.good("job", "register", "--all", "--lease", "1h", "--json"))["id"]

    def create(self, job):
        return json.loads(self.good("tree", "create", "--job", job, "--type", "2", "--json"))["id"]

    def members(self, tree):
        views = [self.trees.GetTree(id=tree, view=RANK_VIEW, rank=rank) for rank in range(HOSTS)]
        members = [Member(view, rank) for rank, view in enumerate(views)]
        for member in members:
            self.addCleanup(member.link.close)
        return members

    def check_sums(self, members, sequences):
        answers = {}

        def run(member):
            for sequence in sequences:
                numbers = [member.rank * sequence, -member.rank, 1 << 40]
                answers[member.rank, sequence] = member.sum(sequence, numbers)
        threads = [threading.Thread(target=run, args=(member,)) for member in members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        ranks = sum(range(HOSTS))
        expected = {(rank, sequence): (ranks * sequence, -ranks, HOSTS << 40)
                    for rank in range(HOSTS) for sequence in sequences}
        self.assertEqual(answers, expected)

    def serving(self, tree):
        """GUIDs of the switches that serve in the tree."""
        return {f"{guid:016x}" for guid in self.trees.GetTree(id=tree).nodes.switches}

    def test_what_is_granted_carries_sums(self):
        job = self.register()
        tree = self.create(job)
        members = self.members(tree)
        self.check_sums(members, range(1, 200))
        self.check_listing(tree)
        # One member that is told all learns of each switch what each of its members does.
        whole = self.trees.GetTree(id=tree)
        parent = [whole.nodes.parents[rank] - HOSTS for rank in range(HOSTS)]
        views = [self.trees.GetTree(id=tree, view=RANK_VIEW, rank=rank).carriage for rank in range(HOSTS)]
        self.assertEqual([whole.carriage.switch_addresses[switch] for switch in parent],
                         [view.parent_address for view in views])
        self.assertEqual([parent[:rank].count(parent[rank]) for rank in range(HOSTS)],
                         [view.number_at_parent for view in views])
        self.good("tree", "release", tree)
        # The entry is gone, and its members are told.
        with self.assertRaises(ConnectionError):
            members[0].sum(1000, [1])

    def check_listing(self, tree):
        serving = self.serving(tree)
        lines = [line.split() for line in self.good("agent", "switches").splitlines()[1:]]
        self.assertEqual({line[0] for line in lines if line[1] == "connected"}, set(self.names))
        # Reports come every 10 s: what the switch has, and what it has done.
        wait_until(lambda: all(switch.last_report.entries_used == (switch.hello.switch_guid in serving) and
                               switch.last_report.counters.collectives == 199 * (switch.hello.switch_guid in serving)
                               for switch in self.agents.ListSwitchAgents().switches), "no report of what was done")
        self.check_entries(serving)

    def check_entries(self, serving):
        """`entries` tells of each switch what its agent reports."""
        for switch in json.loads(self.good("entries", "--json"))["switches"]:
            agent, serves = switch["agent"], switch["guid"] in serving
            self.assertEqual((agent["connected"], switch["entries_taken"]), (True, int(serves)))
            counters = agent["last_report"]["counters"]
            self.assertEqual(counters["collectives"], str(199 * serves))
            for word in ("segments_up", "segments_down", "bytes_up", "bytes_down"):
                self.assertEqual(int(counters[word]) > 0, serves, word)
        rows = [line.split() for line in self.good("entries").splitlines()]
        self.assertEqual(rows[0][4:7], ["SPEAKS", "COLLECTIVES", "REFUSED"])
        self.assertEqual({row[0]: row[4:6] for row in rows[1:]},
                         {guid: ["yes", str(199 * (guid in serving))] for guid in self.names})
        # A child may say hello before its parent has the tree: then it is refused, and tries again.
        self.assertEqual({row[6] for row in rows[1:] if row[0] not in serving}, {"0"})
        self.assertIn("BYTES UP", self.good("entries", "-o", "wide"))

    def test_the_switches_own_bounds_are_the_daemons(self):
        job = self.register()
        trees = []
        while (done := self.run_program("tree", "create", "--job", job, "--type", "2", "--json")).returncode == 0:
            trees.append(json.loads(done.stdout)["id"])
            self.assertLessEqual(len(trees), ENTRIES * len(self.switches))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("RESOURCE_EXHAUSTED", done.stderr)
        self.assertTrue(any(name in done.stderr for name in self.names.values()), done.stderr)
        self.assertGreaterEqual(len(trees), ENTRIES)
        for tree in trees:
            self.check_sums(self.members(tree), range(1, 4))
        events = self.good("events", "--kind", "switch.refused")
        self.assertNotIn("switch.refused", events)  # the ledgers agree

    def test_trees_go_round_a_switch_that_is_killed(self):
        tree = self.create(self.register())
        self.check_sums(self.members(tree), range(1, 10))
        spines = sorted(self.serving(tree) & self.spines)
        self.assertTrue(spines, "the root is a spine: no leaf reaches all hosts")
        self.kill(spines[0])
        wait_until(lambda: self.trees.GetTree(id=tree).revision > 1, "the tree is not planned anew")
        self.assertNotIn(spines[0], self.serving(tree))
        self.check_sums(self.members(tree), range(1, 10))
        self.start_switch(spines[0])
        self.wait_for_switches(len(self.names))

    def test_a_daemon_that_is_killed_finds_its_trees_carried(self):
        tree = self.create(self.register())
        members = self.members(tree)
        self.check_sums(members, range(1, 10))
        self.daemon.end(signal.SIGKILL)
        self.check_sums(members, range(10, 20))  # switches need no daemon for what they have
        self.begin()
        self.wait_for_switches(len(self.names))
        self.check_sums(members, range(20, 30))
        self.assertEqual(self.trees.GetTree(id=tree).revision, 1)
        self.good("tree", "release", tree)
        with self.assertRaises(ConnectionError):
            members[0].sum(1000, [1])

    def test_switches_refuse_what_was_not_granted_and_nothing_else(self):
        print(f"COPPICE_TEST_SEED={SEED}", flush=True)
        self.random = random.Random(SEED)
        self.job = self.register()
        self.held = {}  # tree: ranks
        self.ports = {agent.hello.switch_guid: agent.hello.address.rpartition(":")[2]
                      for agent in self.agents.ListSwitchAgents().switches}
        counts = {"granted": 0, "full": 0, "daemon": 0, "switch": 0}
        for step in range(1, STEPS + 1):
            if step % KILL_EVERY == 0:
                counts[self.kill_somebody()] += 1
            elif self.held and self.random.random() < 0.45:
                self.release_one()
            else:
                counts[self.grant_one()] += 1
            if self.held and self.random.random() < 0.1:
                self.check_strangers(self.random.choice(list(self.held)))
        self.assertTrue(all(counts.values()), counts)
        self.assertNotIn("switch.refused", self.good("events", "--kind", "switch.refused"))
        self.check_liar()
        for tree, ranks in self.held.items():
            # One that lost a switch while nobody used it is planned anew once somebody does.
            wait_until(lambda t=tree, r=ranks: self.has_carried(t, r), f"tree {tree} does not carry")

    def has_carried(self, tree, ranks):
        members = []
        try:
            for rank in range(ranks):
                members.append(Member(self.trees.GetTree(id=tree, view=RANK_VIEW, rank=rank), rank))
            with futures.ThreadPoolExecutor(ranks) as pool:
                sums = set(pool.map(lambda member: member.sum(1, [member.rank, -member.rank]), members))
        except ConnectionError:
            return False
        finally:
            for member in members:
                member.link.close()
        total = sum(range(ranks))
        self.assertEqual(sums, {(total, -total)})
        return True

    def grant_one(self):
        ranks = sorted(self.random.sample(range(HOSTS), self.random.randrange(2, HOSTS + 1)))
        try:
            tree = self.trees.CreateTree(job_id=self.job, type=TYPE_II, ranks=ranks)
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error)
            return "full"
        self.assertTrue(tree.carriage.key, tree.reason)
        self.held[tree.id] = len(ranks)
        return "granted"

    def release_one(self):
        tree = self.random.choice(list(self.held))
        view = self.trees.GetTree(id=tree, view=RANK_VIEW, rank=0)
        self.trees.ReleaseTree(id=tree)
        del self.held[tree]
        if self.random.random() < 0.1:  # its switches read that after the answer
            carriage = view.carriage
            group = (int(tree), view.revision, carriage.number_at_parent)
            wait_until(lambda: self.is_refused(carriage.parent_address, group, carriage.key), "a released tree stays")

    def kill_somebody(self):
        if self.random.random() < 0.4:
            self.daemon.end(signal.SIGKILL)
            self.begin()
            self.wait_for_switches(len(self.names))
            return "daemon"
        guid = self.random.choice(sorted(self.names))
        self.kill(guid)
        self.wait_for_switches(len(self.names) - 1)
        self.start_switch(guid, self.ports[guid])
        self.wait_for_switches(len(self.names))
        return "switch"

    def is_refused(self, address, group, key):
        try:
            Stranger(address, group, key)
        except ConnectionError:
            return True
        return False

    def check_strangers(self, tree):
        view = self.trees.GetTree(id=tree, view=RANK_VIEW, rank=0)
        carriage = view.carriage
        number, revision, child = int(tree), view.revision, carriage.number_at_parent
        wrong = bytes([carriage.key[0] ^ 1]) + carriage.key[1:]
        for group, key in (((number, revision, child), wrong), ((number, revision, child), bytes(16)),
                           ((number + (1 << 40), revision, child), carriage.key),
                           ((number, revision + 1, child), carriage.key),
                           ((number, revision, CHILDREN), carriage.key)):
            self.assertTrue(self.is_refused(carriage.parent_address, group, key), (group, tree))

    def check_liar(self):
        self.daemon.end(signal.SIGKILL)
        liar = Liar(self.daemon.address, self.pool)
        answers, done = {}, set()
        while len(done) < len(self.names):
            guid, what, error = liar.answers.get(timeout=60)
            if what is None:
                done.add(guid)
            else:
                answers.setdefault(what, []).append(error)
        liar.stop()
        self.assertFalse(any(answers.get("one", [])), answers)
        for what, words in (("one entry too many", "entries"), ("one child too many", "children"),
                            ("other content", "other content")):
            self.assertEqual([words in error for error in answers[what]], [True] * len(self.names), answers)
        self.begin()
        self.wait_for_switches(len(self.names))


if __name__ == "__main__":
    unittest.main()
