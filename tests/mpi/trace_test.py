#!/usr/bin/python3
"""What programs of known patterns send, computed by hand, against what their traces say.

Usage: trace_test.py openmpi|mpich LIBRARY KNOWN_PATTERNS FORTRAN_PROGRAM...
"""
import os
import pathlib
import sys
import tempfile
import unittest

import mpi_run
import trace_text

MPI, LIBRARY, PROGRAM = sys.argv[1:4]
FORTRAN = sys.argv[4:]


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
        ring = [(r, (r + 1) % 5, 2**k) for r in range(5) for k in range(10)] + dissemination(5, 8)
        others = [(a, b) for a in range(5) for b in range(5) if a != b]
        self.expect(5, [
            (["ring"], ring),
            (collective("reduce_scatter_block", 10), [(a, b, 10) for a, b in others]),
            (collective("gatherv", 30, 2), [(r, 2, 30 * r) for r in (1, 3, 4)]),
            (collective("scatterv", 30, 2), [(2, r, 90 * r) for r in (1, 3, 4)]),
            # All have 0 + 10 + ... + 40; what the neighbour began with does not go there.
            (collective("allgatherv", 10),
             [(r, (r + 1) % 5, 100 - 10 * ((r + 1) % 5), 4) for r in range(5)]),
            (collective("alltoall", 10), [(a, b, 10) for a, b in others]),
            (collective("alltoall_in_place", 10), [(a, b, 10) for a, b in others]),
            (collective("alltoallv", 10), [(a, b, 30 * b) for a, b in others if b > 0])])
        self.expect(5, [(["ring"], ring)], KNOWN_PATTERNS_THREADS="1")

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
        if MPI == "mpich":
            patterns.append((collective("allreduce_init", 1000),
                             [(a, b, 3000, 3) for a, b in doubling]))
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
        self.assertEqual(2, len(FORTRAN))
        for program in FORTRAN:
            self.assertEqual(trace_text.total(ring + bcast + allreduce + alltoall + grid + others),
                             traced(5, program=program), program)


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
