#!/usr/bin/python3
"""Topologies that the preloaded library reorders while the program runs, on several hosts with an agent
each: as many bytes go over the hosts' network as `map` says, before and after.

Usage: reorder_hosts_test.py openmpi|mpich LIBRARY REORDERING COPPICED COPPICE_AGENT COPPICECTL
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import namespace_hosts

namespace_hosts.enter()

import trace_text  # noqa: E402
from hosts_with_agents import HostsWithAgents, on_each  # noqa: E402

MPI, LIBRARY, PROGRAM, COPPICED, AGENT, COPPICECTL = sys.argv[1:7]
HOSTS = [f"n{4 * number:04d}" for number in range(4)]  # one below each leaf switch
RANKS = 8
# Dealt out: neighbours are on different hosts.
PRESENT = [HOSTS[rank % 4] for rank in range(RANKS)]
DEALT_OUT = ["--map-by", "node"] if MPI == "openmpi" else []
# Long messages: what launcher and library say to each other goes over the network, too. MPICH's go
# through memory (namespace_hosts.py): there the trace says what is between hosts.
UNIT = "--bytes=400000" if MPI == "openmpi" else "--bytes=1000"


class ReorderOnHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = namespace_hosts.NamespaceHosts(HOSTS)
        cls.nodes = HostsWithAgents(cls.hosts, COPPICED, AGENT,
                                    "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)")
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "hosts").write_text("\n".join(PRESENT) + "\n", encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.nodes.stop()
        cls.hosts.close()
        cls.folder.cleanup()

    def run_program(self, words, reorder):
        """(order, bytes between hosts by the network or the trace); its trace is kept in the folder."""
        trace = self.path / f"trace{reorder}"
        line = self.hosts.command(
            MPI, RANKS, [*on_each(MPI, HOSTS, 2 if MPI == "openmpi" else 1), *DEALT_OUT],
            [PROGRAM, UNIT, *words],
            {"LD_PRELOAD": LIBRARY, "COPPICE_AGENT": self.nodes.socket, "COPPICE_TRACE": trace,
             "COPPICE_REORDER": reorder, "COPPICE_REORDER_BUDGET_MS": 500,
             "COPPICE_TIMEOUT_MS": 20000, "COPPICE_VERBOSE": 1})
        before = self.hosts.sent_bytes()
        done = subprocess.run(line, capture_output=True, text=True, timeout=120)
        sent = self.hosts.sent_bytes() - before
        self.assertEqual(0, done.returncode, (done.stdout, done.stderr))
        order = next(row for row in done.stdout.splitlines() if row.startswith("order:"))
        if MPI == "mpich":
            sent = sum(size for (a, b), (_, size) in trace_text.read(trace).items()
                       if PRESENT[a] != PRESENT[b])
        return [int(word) for word in order.split()[1:]], sent

    def predicted(self, order):
        """Bytes between hosts by `map`, of the pattern without reordering: as it is, in the order."""
        (self.path / "order").write_text(" ".join(map(str, order)) + "\n", encoding="utf-8")
        done = subprocess.run(
            [COPPICECTL, "--server", self.nodes.daemon.address, "map", "--json", "--pattern",
             self.path / "trace0", "--hosts", self.path / "hosts", "--evaluate",
             self.path / "order"], capture_output=True, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        measures = json.loads(done.stdout)
        return [measures[name]["inter_node_bytes"] for name in ("before", "after")]

    def expect_gain(self, *words):
        stay, sent_before = self.run_program(words, 0)
        self.assertEqual(list(range(RANKS)), stay)
        order, sent_after = self.run_program(words, 1)
        before, after = self.predicted(order)
        self.assertLess(after, before)
        for wanted, sent in ((before, sent_before), (after, sent_after)):
            self.assertLessEqual(wanted, sent)
            self.assertLess(sent, 1.05 * wanted)

    def test_a_stencil(self):
        self.expect_gain("grid", 0, 4, 2)

    # MPI_Dist_graph_create with reorder = true ends Open MPI 4.1 itself on such hosts, without this
    # library: reorder_test.py has it on one machine.
    def test_a_random_sparse_graph(self):
        self.expect_gain("adjacent", 7)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[7:]])
