#!/usr/bin/python3
"""What programs of known patterns send, computed by hand, against what their traces say.

Usage: trace_test.py openmpi|mpich LIBRARY KNOWN_PATTERNS FORTRAN_77 FORTRAN_08
                     FORTRAN_COLLECTIVES_77 FORTRAN_COLLECTIVES_08
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import mpi_run
import trace_text

MPI, LIBRARY, PROGRAM = sys.argv[1:4]
FORTRAN, FORTRAN_COLLECTIVES = sys.argv[4:6], sys.argv[6:8]
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "agents" / "mpi"


def traced(ranks, *words, program=PROGRAM, **more):
    """The pairs that known_patterns sends."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trace"
        environment = {"COPPICE_TRACE": file, **more}
        done = mpi_run.run(MPI, ranks, [program, *map(str, words)], LIBRARY, environment)
        assert "coppice:" not in done.stderr, done.stderr
        assert os.listdir(folder) == ["trace"], os.listdir(folder)
        return trace_text.read(file)


def dissemination(ranks, times=1):
    return [(r, (r + d) % ranks, 0) for _ in range(times) for r in range(ranks)
            for d in (1, 2, 4, 8, 16) if d < ranks]


def collective(name, *numbers):
    return ("collective", name, *numbers)


def on_ring(below, above):
    """Of 5 ranks in a ring, each to the one below and to the one above."""
    return [(r, (r + step) % 5, size(r)) for r in range(5) for step, size in ((-1, below), (1, above))]


OTHERS_OF_5 = [(a, b) for a in range(5) for b in range(5) if a != b]
# Parent and child, and how many ranks the subtree of the child holds.
BINOMIAL_5 = [(0, 4, 1), (0, 2, 2), (0, 1, 1), (2, 3, 1)]
DOUBLING_5 = [(0, 1), (1, 0)] + [  # 0 folds into 1; 1 2 3 4 double: 1-2 3-4, then 1-3 2-4
    pair for a, b in ((1, 2), (3, 4), (1, 3), (2, 4)) for pair in ((a, b), (b, a))]


def from_root(root):
    return [((a + root) % 5, (b + root) % 5, ranks) for a, b, ranks in BINOMIAL_5]


# Each collective of 5 ranks: what it is called with besides its bytes (collective_calls.h), and what
# is sent. All of them have a blocking and a nonblocking form, those of MPI 4 a persistent one.
SCANNED_5 = [(a, b) for a in range(5) for b in (a ^ 1, a ^ 2, a ^ 4) if b < 5]
COLLECTIVES_OF_5 = {
    "barrier": (1, 0, dissemination(5)),
    "bcast": (100, 3, [(a, b, 100) for a, b, _ in from_root(3)]),
    "reduce": (200, 2, [(b, a, 200) for a, b, _ in from_root(2)]),
    "allreduce": (300, 0, [(a, b, 300) for a, b in DOUBLING_5]),
    "scan": (10, 0, [(a, b, 10) for a, b in SCANNED_5]),
    "exscan": (11, 0, [(a, b, 11) for a, b in SCANNED_5]),
    "reduce_scatter": (12, 0, [(a, b, 12 * b) for a, b in OTHERS_OF_5 if b > 0]),
    "reduce_scatter_block": (13, 0, [(a, b, 13) for a, b in OTHERS_OF_5]),
    "gather": (30, 1, [(b, a, 30 * ranks) for a, b, ranks in from_root(1)]),
    "gatherv": (31, 2, [(r, 2, 31 * r) for r in (1, 3, 4)]),
    "scatter": (32, 1, [(a, b, 32 * ranks) for a, b, ranks in from_root(1)]),
    "scatterv": (33, 2, [(2, r, 99 * r) for r in (1, 3, 4)]),
    # Bruck: 1 block to the one before, 2 to the one before that, then the one that is left.
    "allgather": (14, 0, [(r, (r - d) % 5, 14 * blocks) for r in range(5)
                          for d, blocks in ((1, 1), (2, 2), (4, 1))]),
    # All have 0 + 15 + ... + 60; what the neighbour began with does not go there.
    "allgatherv": (15, 0, [(r, (r + 1) % 5, 150 - 15 * ((r + 1) % 5), 4) for r in range(5)]),
    "alltoall": (16, 0, [(a, b, 16) for a, b in OTHERS_OF_5]),
    "alltoallv": (17, 0, [(a, b, 51 * b) for a, b in OTHERS_OF_5 if b > 0]),
    # As many elements, which are of two bytes for odd ranks.
    "alltoallw": (18, 0, [(a, b, 54 * b * (1 + b % 2)) for a, b in OTHERS_OF_5 if b > 0]),
}
# The same of neighbours in a ring, on each topology: the first neighbour of a grid is the one below,
# of the graphs the one above.
NEIGHBOURS_OF_5 = {
    "neighbor_allgather": (19, [on_ring(lambda r: 19, lambda r: 19)] * 3),
    "neighbor_allgatherv": (20, [on_ring(*[lambda r: 20 * (r + 1)] * 2)] * 3),
    "neighbor_alltoall": (21, [on_ring(lambda r: 21, lambda r: 21)] * 3),
    "neighbor_alltoallv": (22, [on_ring(lambda r: 22, lambda r: 44)]
                           + [on_ring(lambda r: 44, lambda r: 22)] * 2),
    # Those of the second one are of two bytes.
    "neighbor_alltoallw": (23, [on_ring(lambda r: 23, lambda r: 92)]
                           + [on_ring(lambda r: 92, lambda r: 23)] * 2),
}


def forms(name):
    """(name of the form, how often it is started)."""
    persistent = [(name + "_init", 1 if name == "scatter" else 3)]
    return [(name, 1), ("i" + name, 1)] + (persistent if MPI == "mpich" else [])


def every_form():
    """Patterns of all collectives in all forms, of 5 ranks."""
    patterns = []
    for name, (size, more, sent) in COLLECTIVES_OF_5.items():
        patterns += [(collective(form, size, more), sent * times) for form, times in forms(name)]
    for name, (size, of_topologies) in NEIGHBOURS_OF_5.items():
        patterns += [(collective(form, size, topology), sent * times) for form, times in forms(name)
                     for topology, sent in enumerate(of_topologies)]
    return patterns


BINOMIAL_8 = [(0, 4, 4), (0, 2, 2), (0, 1, 1), (4, 6, 2), (4, 5, 1), (2, 3, 1), (6, 7, 1)]
# Of 6 ranks: the subtree of 4 holds 4 and 5.
BINOMIAL_6 = [(0, 4, 2), (0, 2, 2), (0, 1, 1), (4, 5, 1), (2, 3, 1)]


class Patterns(unittest.TestCase):
    """Each test is one program, which sends one pattern after the other: starting it takes longest.
    If the sum is wrong, the patterns are sent one by one to see which is."""
    maxDiff = None

    def expect(self, ranks, patterns, **more):
        words, messages = [], []
        for pattern, sent in patterns:
            words += ["+"] if words else []
            words += pattern
            messages += sent
        if trace_text.total(messages) == traced(ranks, *words, **more):
            return
        for pattern, sent in patterns:
            with self.subTest(pattern=pattern):
                self.assertEqual(trace_text.total(sent), traced(ranks, *pattern, **more))
        self.fail("each pattern alone is traced right, but not all after each other")

    def test_of_5_ranks(self):
        modes = 13 if MPI == "mpich" else 10  # of MPI 4, and of MPI 3
        ring = [(r, (r + 1) % 5, 2**k) for r in range(5) for k in range(modes)]
        ring += dissemination(5, 8)
        self.expect(5, [(["ring"], ring), (collective("alltoall_in_place", 10),
                                           [(a, b, 10) for a, b in OTHERS_OF_5])])
        self.expect(5, [(["ring"], ring)], KNOWN_PATTERNS_THREADS="1")

    def test_every_collective_in_every_form(self):
        self.expect(5, every_form())

    def test_every_traced_collective_is_called(self):
        """Those that the library stands before, and no other names."""
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.split()
        forms_of_tables = set()
        for table in ("tree/collective_table.h", "calls/collectives.cc"):
            text = (SOURCES / table).read_text(encoding="utf-8")
            for name in re.findall(r"^  X\((\w+), ", text, re.MULTILINE):
                forms_of_tables |= {"MPI_" + name, "MPI_I" + name.lower(), f"MPI_{name}_init"}
        defined = forms_of_tables & set(symbols)  # Open MPI has none of MPI 4
        called = {"MPI_" + pattern[1].capitalize() for pattern, _ in every_form()}
        self.assertEqual(defined, called)

    def test_of_6_ranks(self):
        # 0 and 2 fold into 1 and 3; 1 3 4 5 double: 1-3 4-5, then 1-4 3-5.
        doubling = [(0, 1), (2, 3), (1, 0), (3, 2)] + [
            pair for a, b in ((1, 3), (4, 5), (1, 4), (3, 5)) for pair in ((a, b), (b, a))]
        shifted = [((a + 1) % 6, (b + 1) % 6, n * 30) for a, b, n in BINOMIAL_6]
        patterns = [
            # On a torus.
            (("neighbourhood", 2, 3, 40),
             [(3 * y + x, 3 * ((y + dy) % 2) + (x + dx) % 3, 40) for y in range(2)
              for x in range(3) for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0))
              for _ in range(2)]),
            # Odd ranks downwards are 5 3 1, even ones 4 2 0: turns even, odd, even.
            (["split"], [(4, 2, 100), (5, 3, 100), (4, 2, 100)]),
            # Groups 0 1 2 and 3 4 5. The broadcast enters at 3, whose binomial tree is 3->5, 3->4.
            # The barrier goes to 0 (1, 2) and to 3, across, and back.
            (["inter"], [(0, 3, 10), (1, 4, 10), (2, 5, 10), (0, 3, 50), (3, 5, 50), (3, 4, 50)]
             + [(a, b, 0) for a, b in ((1, 0), (2, 0), (4, 3), (5, 3), (0, 3), (3, 0),
                                       (0, 2), (0, 1), (3, 5), (3, 4))]),
            (collective("barrier", 1), dissemination(6)),
            (collective("bcast", 100, 3),
             [((a + 3) % 6, (b + 3) % 6, 100) for a, b, _ in BINOMIAL_6]),
            (collective("reduce", 70000, 2),
             [((b + 2) % 6, (a + 2) % 6, 70000) for a, b, _ in BINOMIAL_6]),
            # From some length on it goes around twice.
            (collective("allreduce", 60000), [(r, (r + 1) % 6, 100000, 10) for r in range(6)]),
            (collective("scan", 10),
             [(a, b, 10) for a in range(6) for b in (a ^ 1, a ^ 2, a ^ 4) if b < 6]),
            (collective("gather", 30, 1), [(b, a, size) for a, b, size in shifted]),
            (collective("scatter", 30, 1), shifted),
            # Bruck: 1 block to the one before, 2 to the one before that, then the 2 that are left.
            (collective("allgather", 10), [(r, (r - d) % 6, 10 * blocks) for r in range(6)
                                           for d, blocks in ((1, 1), (2, 2), (4, 2))]),
            (collective("allgather", 20000), [(r, (r + 1) % 6, 100000, 5) for r in range(6)])]
        patterns += [(collective(name, 1000), [(a, b, 1000) for a, b in doubling])
                     for name in ("allreduce", "allreduce_in_place", "iallreduce")]
        self.expect(6, patterns)

    def test_of_8_ranks(self):
        self.expect(8, [
            (("alltoall", 500), [(a, b, 500) for a in range(8) for b in range(8) if a != b]),
            (collective("bcast", 100, 0), [(a, b, 100) for a, b, _ in BINOMIAL_8]),
            # A long one scatters, then goes around.
            (collective("bcast", 16000, 5),
             [((a + 5) % 8, (b + 5) % 8, 2000 * n) for a, b, n in BINOMIAL_8]
             + [(r, (r + 1) % 8, 14000, 7) for r in range(8)])])

    def test_of_10_ranks(self):
        # Bruck: of the blocks 0..9, bit 0 is in 5, bit 1 in 2 3 6 7, bit 2 in 4..7, bit 3 in 8 9.
        self.expect(10, [
            (collective(name, 20), [(r, (r + d) % 10, 20 * n) for r in range(10)
                                    for d, n in ((1, 5), (2, 4), (4, 4), (8, 2))])
            for name in ("alltoall", "alltoall_in_place")])

    def test_of_7_ranks(self):
        self.expect(7, [
            # First of all: a message to nobody is like none before.
            (["nobody"], [(r, (r + 1) % 7, 1) for r in range(7)]),
            (["failing"], [(r, (r + 1) % 7, 2, 2) for r in range(7)]),
            # A grid smaller than the world.
            (("stencil", 2, 3, 100),
             [(3 * y + x, 3 * (y + dy) + x + dx, 100) for y in range(2) for x in range(3)
              for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0))
              if 0 <= y + dy < 2 and 0 <= x + dx < 3]),
            (["tree"], [((r - 1) // 2, r, 8 * ((r - 1) // 2 + 1)) for r in range(1, 7)])])

    def test_of_3_ranks_with_threads(self):
        self.expect(3, [
            (("persistent", 7), [(r, (r + 1) % 3, size) for r in range(3)
                                 for size in (8, 16, 32, 64) for _ in range(7)]
             + dissemination(3, 7)),
            (["threads"], [(r, (r + 1) % 3, 8 * 800, 800) for r in range(3)]
             + [(r, r, 8 * 100, 100) for r in range(3)])], KNOWN_PATTERNS_THREADS="1")


class Fortran(unittest.TestCase):
    maxDiff = None

    def test_known_patterns(self):
        ring = [(r, (r + 1) % 5, size) for r in range(5) for size in (40, 80, 120, 120, 120)]
        # From rank 1 the binomial tree of 5 is 1->0, 1->3, 1->2, 3->4.
        bcast = [(a, b, 400) for a, b in ((1, 0), (1, 3), (1, 2), (3, 4))]
        # 0 folds into 1; 1 2 3 4 double: 1-2 3-4, then 1-3 2-4.
        allreduce = [(0, 1, 16), (1, 0, 16)] + [
            (*pair, 16) for a, b in ((1, 2), (3, 4), (1, 3), (2, 4)) for pair in ((a, b), (b, a))]
        alltoall = [(a, b, 24) for a in range(5) for b in range(5) if a != b]
        grid = [(r, (r + step) % 5, 8) for r in range(5) for step in (-1, 1)]
        others = [(0, 1, 4)] * 4 + [(4, 3, 4)]
        for program in FORTRAN:
            self.assertEqual(trace_text.total(ring + bcast + allreduce + alltoall + grid + others),
                             traced(5, program=program), program)

    def test_every_collective(self):
        """Blocking and nonblocking; those of neighbours on a grid, but for the last one."""
        sent = [message for _, _, messages in COLLECTIVES_OF_5.values() for message in messages * 2]
        for name, (_, of_topologies) in NEIGHBOURS_OF_5.items():
            if name != "neighbor_alltoallw":
                sent += of_topologies[0] * 2
        # Which of Open MPI is not traced.
        if MPI == "mpich":
            sent += dissemination(5)  # MPI_BARRIER_INIT
            sent += NEIGHBOURS_OF_5["neighbor_alltoallw"][1][2] * 2
        for program in FORTRAN_COLLECTIVES:
            self.assertEqual(trace_text.total(sent), traced(5, program=program), program)


class Files(unittest.TestCase):
    def test_one_rank_sends_nothing(self):
        self.assertEqual({}, traced(1, "collective", "allreduce", 8))

    def test_a_file_that_cannot_be_written_fails_nothing(self):
        done = mpi_run.run(MPI, 2, [PROGRAM, "split"], LIBRARY,
                           {"COPPICE_TRACE": "/proc/no/such/folder"})
        self.assertIn("trace file /proc/no/such/folder cannot be created", done.stderr)

    def test_an_older_file_is_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace"
            file.write_text("old", encoding="utf-8")
            mpi_run.run(MPI, 2, [PROGRAM, "alltoall", 5], LIBRARY, {"COPPICE_TRACE": file})
            self.assertEqual({(0, 1): (1, 5), (1, 0): (1, 5)}, trace_text.read(file))

    def test_bad_settings_are_said_once(self):
        done = mpi_run.run(MPI, 3, [PROGRAM, "split"], LIBRARY, {"COPPICE_TREES": "oak"})
        self.assertEqual(1, done.stderr.count("COPPICE_TREES=oak"), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
