"""coppice-switch at every switch of a fabric, under a real coppiced: members speak frames over sockets, and their sums
are right; the switches' own bounds are the daemon's; a switch that is killed and a daemon that is killed lose no tree.

  carried_trees_test.py COPPICED COPPICECTL COPPICE-SWITCH"""

import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

import grpc

from coppiced_process import Coppiced
from reflection_client import Reflection, Service
from simulated_subnet import wait_until

COPPICED, COPPICECTL, SWITCH = (sys.argv.pop(1) for _ in range(3))
HOSTS, ENTRIES, CHILDREN = 16, 3, 6  # of a model with 4 leaf switches of 4 hosts each and 2 spines
HELLO, WELCOME, CONTRIBUTION, RESULT = 1, 2, 4, 5
SUM, INT64, WANTED = 1, 5, 0x40
RANK_VIEW = 2


class Member:
    """A rank of a tree that switches carry."""

    def __init__(self, tree, rank):
        carriage = tree.carriage
        host, _, port = carriage.parent_address.rpartition(":")
        self.group = (int(tree.id), tree.revision, carriage.number_at_parent)
        self.link = socket.create_connection((host, int(port)), timeout=60)
        self.rank = rank
        self.send(HELLO, 0, 0, 1, carriage.key)
        self.expect(WELCOME)

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


class Switches(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED, entries=0)  # what switches say counts, not what the file says
        self.addCleanup(self.daemon.clean_up)
        self.begin()
        self.switches = {}
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
        pool = Reflection(channel).pool_of("coppice.v1.Trees", "coppice.v1.Switches")
        self.trees, self.agents = (Service(channel, pool, "coppice.v1." + name) for name in ("Trees", "Switches"))
        wait_until(lambda: self.run_program("fabric", "sweep").returncode == 0, "no first sweep")

    def run_program(self, *arguments):
        return subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments], capture_output=True,
                              text=True, timeout=120, check=False)

    def good(self, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def start_switch(self, guid):
        self.switches[guid] = subprocess.Popen(
            [SWITCH, "--switch", guid, "--server", self.daemon.address, "--listen", "127.0.0.1:0",
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


if __name__ == "__main__":
    unittest.main()
