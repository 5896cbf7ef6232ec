#!/usr/bin/python3
"""Ranks of topologies go where Coppice wants them: what is made is what was asked for, and as many
bytes go between hosts as `map` says.

Usage: reorder_test.py openmpi|mpich LIBRARY REORDERING COPPICED COPPICE_AGENT COPPICECTL
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import mpi_run
import trace_text
from coppice_node import CoppiceNode, host, on_hosts

MPI, LIBRARY, PROGRAM, COPPICED, AGENT, COPPICECTL = sys.argv[1:7]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
RANKS = 16 if FULL else 8
GRID = ("grid", 0, 4, RANKS // 4)
# One host below each leaf switch, as many ranks each, dealt out so that neighbours are apart.
HOSTS = [host(4 * (rank % 4)) for rank in range(RANKS)]


def between_hosts(pairs):
    return sum(size for (a, b), (_, size) in pairs.items() if HOSTS[a] != HOSTS[b])


class Reordering(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = CoppiceNode(COPPICED, AGENT)

    @classmethod
    def tearDownClass(cls):
        cls.node.stop()

    def run_program(self, *words, reorder=True, ranks=RANKS, **more):
        """(order, pairs of the trace, stderr)"""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            environment = {"COPPICE_AGENT": self.node.socket, "COPPICE_TRACE": trace,
                           "COPPICE_REORDER": int(reorder), "COPPICE_REORDER_BUDGET_MS": 500,
                           "COPPICE_TIMEOUT_MS": 20000, "COPPICE_VERBOSE": 1, **more}
            done = mpi_run.run(MPI, ranks, on_hosts(HOSTS[:ranks], [PROGRAM, *words]), LIBRARY,
                               environment)
            orders = [line for line in done.stdout.splitlines() if line.startswith("order:")]
            order = [int(word) for word in orders[0].split()[1:]] if orders else None
            return order, trace_text.read(trace), done.stderr

    def predicted(self, pairs, order):
        """Measures of `map` for the program's pattern: as it is, and in the order."""
        with tempfile.TemporaryDirectory() as folder:
            files = {name: pathlib.Path(folder) / name for name in ("hosts", "trace", "order")}
            files["hosts"].write_text("\n".join(HOSTS) + "\n", encoding="utf-8")
            files["order"].write_text(" ".join(map(str, order)) + "\n", encoding="utf-8")
            rows = [" ".join([str(sender)] + [f"{to} {n} {size}" for (a, to), (n, size)
                                              in sorted(pairs.items()) if a == sender])
                    for sender in sorted({a for a, _ in pairs})]
            files["trace"].write_text(
                "\n".join(["coppice-trace 1", f"ranks {RANKS}", *rows, f"end {len(pairs)}", ""]),
                encoding="utf-8")
            done = subprocess.run(
                [COPPICECTL, "--server", self.node.daemon.address, "map", "--json",
                 "--pattern", files["trace"], "--hosts", files["hosts"],
                 "--evaluate", files["order"]], capture_output=True, text=True, timeout=120)
            self.assertEqual(0, done.returncode, done.stderr)
            return json.loads(done.stdout)

    def expect_gain(self, *words):
        stay, before, _ = self.run_program(*words, reorder=False)
        self.assertEqual(list(range(RANKS)), stay)
        order, after, said = self.run_program(*words)
        self.assertEqual(sorted(order), list(range(RANKS)))
        self.assertIn("the program is job", said)
        measures = self.predicted(before, order)
        measured = [between_hosts(pairs) for pairs in (before, after)]
        for name, bytes_measured in zip(("before", "after"), measured):
            wanted = measures[name]["inter_node_bytes"]
            self.assertLess(abs(bytes_measured - wanted), 0.05 * wanted, (name, measured))
        self.assertLess(measured[1], measured[0], "bytes between hosts")
        # The same program: what node i sent to node j goes between their processes now.
        self.assertEqual({(order[a], order[b]): sums for (a, b), sums in before.items()}, after)

    def test_a_stencil_sends_less_between_hosts(self):
        self.expect_gain(*GRID)
        if FULL:
            self.expect_gain("grid", 1, 8, 2)

    def test_a_random_graph_sends_less_between_hosts(self):
        self.expect_gain("adjacent", 7)
        self.expect_gain("anywhere", 8)

    def test_grids_smaller_than_the_world(self):
        smaller = (("grid", 0, 3, 2, 2), ("grid", 1, 2, 5), ("grid", 0, 13))
        for words in smaller if FULL else [("grid", 1, 2, 3)]:
            order, _, _ = self.run_program(*words)
            nodes = 1
            for size in words[2:]:
                nodes *= size
            self.assertEqual(nodes, len(set(order)))
            self.assertLess(max(order), RANKS)

    def test_random_graphs_are_what_was_asked_for(self):
        for seed in range(1, 5 if FULL else 2):
            self.run_program("adjacent", seed, ranks=RANKS - seed)
            self.run_program("anywhere", seed, ranks=RANKS - seed)

    def test_wrong_arguments_are_the_mpi_librarys(self):
        self.run_program("wrong")


class WithoutCoppice(unittest.TestCase):
    def test_no_agent(self):
        for words in (GRID, ("adjacent", 7), ("anywhere", 8)):
            done = mpi_run.run(MPI, RANKS, on_hosts(HOSTS, [PROGRAM, *words]), LIBRARY,
                               {"COPPICE_REORDER": 1, "COPPICE_VERBOSE": 1,
                                "COPPICE_AGENT": "/nonexistent/agent.sock"})
            self.assertIn("order: " + " ".join(map(str, range(RANKS))) + "\n", done.stdout)
            self.assertIn("the program is no job", done.stderr)

    def test_an_agent_without_a_daemon(self):
        node = CoppiceNode(COPPICED, AGENT)
        node.daemon.end()
        done = mpi_run.run(MPI, RANKS, on_hosts(HOSTS, [PROGRAM, "adjacent", 7]), LIBRARY,
                           {"COPPICE_REORDER": 1, "COPPICE_TIMEOUT_MS": 1000,
                            "COPPICE_AGENT": node.socket})
        node.stop()
        self.assertIn("order: " + " ".join(map(str, range(RANKS))) + "\n", done.stdout)

    def test_nothing_asked_for(self):
        done = mpi_run.run(MPI, RANKS, [PROGRAM, *GRID], LIBRARY,
                           {"COPPICE_VERBOSE": 1})
        self.assertNotIn("coppice", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
