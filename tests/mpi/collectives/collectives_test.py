#!/usr/bin/python3
"""Collectives along trees come out as the MPI library's own: along type I trees of a real daemon, and
along trees of every shape that are planned anew and revoked all the time.

Usage: collectives_test.py openmpi|mpich LIBRARY SCRIPTED_LIBRARY CONFORMANCE
                           LASTING_COMMUNICATORS PLAYED_SWITCHES ERRORS FORTRAN_77 FORTRAN_08
                           COPPICED COPPICE_AGENT
"""
import os
import re
import sys
import tempfile
import unittest

import mpi_run
from coppice_nodes import CoppiceNodes, counts

(MPI, LIBRARY, SCRIPTED, CONFORMANCE, LASTING, SWITCHES, ERRORS, FORTRAN_77, FORTRAN_08, COPPICED,
 AGENT) = sys.argv[1:12]
FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
# Idle ranks of MPICH spin, and there may be few cores.
RANKS = 12 if FULL else 4 if MPI == "openmpi" else 3
AS_CHOSEN = {"COPPICE_TREES_AFTER": 0}
TIMEOUT_S = 7200 if FULL else 900
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"


class AlongGrantedTrees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = CoppiceNodes(COPPICED, AGENT, 4, FABRIC)

    @classmethod
    def tearDownClass(cls):
        cls.nodes.stop()

    def run_program(self, *words, ranks=RANKS, when="first-use", trees=mpi_run.TREES_AT_ONCE):
        environment = {"COPPICE_TREES": when, "COPPICE_VERBOSE": 1, "COPPICE_TIMEOUT_MS": 20000, **trees}
        return mpi_run.run(MPI, ranks, self.nodes.on_hosts(ranks, [CONFORMANCE, *words]), LIBRARY,
                           environment, timeout=TIMEOUT_S)

    def test_every_collective(self):
        """On four ranks at least: a grid of two by two, halves of two. In the full tier the whole product of
        collectives, operations, types, roots, sizes and communicators; in the short one each operation on
        each type on each communicator, with sizes and roots in turns."""
        before = self.nodes.requests("CreateTree")
        ranks = max(RANKS, 4)
        done = self.run_program("--expect-trees", "--full" if FULL else "--in-turns", ranks=ranks)
        said = counts(done.stderr)
        self.assertIn("differ 0,", done.stdout)
        # On every rank at least some 270 operations on types, in place and not.
        least = 270 * 2 * ranks
        if FULL:  # at each of three sizes, to each root, on the world and five communicators of its size
            self.assertGreater(said["allreduce"], 6 * 3 * least)
            self.assertGreater(said["reduce"], 6 * 3 * least * ranks * 3 // 4)
            self.assertGreater(said["bcast"], 6 * 55 * 3 * ranks * ranks)
        else:  # at three of four sizes, to a root, on communicators as above
            self.assertGreater(said["allreduce"], 6 * least * 3 // 4)
            self.assertGreater(said["reduce"], 6 * least * 3 // 4)
            self.assertGreater(said["bcast"], 6 * 55 * ranks * 3 // 4)
        self.assertEqual(said["asked"], said["granted"])
        self.assertEqual(said["asked"], self.nodes.requests("CreateTree") - before)
        self.assertEqual(said["released"], said["granted"])

    def test_threads(self):
        done = self.run_program("--expect-trees", "--threads", when="creation")
        self.assertIn("differ 0,", done.stdout)

    def test_other_ways_over_the_ranks(self):
        for way in ("chain", "binomial", "exchange", "forest"):
            with self.subTest(way=way):
                words = ["--expect-trees", *(["--full"] if FULL else []), *(["--exchanges"] if way in ("exchange", "forest") else [])]
                done = self.run_program(*words, trees={**mpi_run.TREES_AT_ONCE, "COPPICE_TREES_WAY": way})
                self.assertIn("differ 0,", done.stdout)
                self.assertEqual(way == "forest", bool(re.search(r"has a tree of .* for \d+ trees", done.stderr)))

    @unittest.skipIf("mca_" not in LIBRARY, "the preloaded library leaves nonblocking ones to the MPI library")
    def test_nonblocking_ones_alone(self):
        """The world has trees from MPI_Init on."""
        done = self.run_program("--expect-trees", "--nonblocking", when="creation")
        self.assertIn("differ 0,", done.stdout)
        said = counts(done.stderr)
        self.assertEqual(0, said["inative"])
        self.assertGreater(said["iallreduce"], 0)

    def test_whichever_way_is_sooner(self):
        """Members try all ways, agree and go on, by some thousands of calls."""
        done = self.run_program(trees=AS_CHOSEN)
        self.assertIn("differ 0,", done.stdout)
        said = counts(done.stderr)
        self.assertGreater(said["native"], 500)
        self.assertGreater(said["allreduce"] + said["reduce"] + said["bcast"], 500)


class PlayedSwitches(unittest.TestCase):
    def test_switches_below_switches(self):
        """Of four edges each: trees have several, on one level below another."""
        nodes = CoppiceNodes(COPPICED, AGENT, 1, FABRIC, degree_limit=4)
        self.addCleanup(nodes.stop)
        agent = os.path.join(nodes.daemon.directory, "0.sock")
        for numbers, switches in (((0, 1, 4, 5, 8, 12), 3), ((0, 1, 2, 4, 5, 6, 8, 9, 10), 4)):
            hosts = [f"n{number:04d}" for number in numbers]
            done = mpi_run.run(MPI, len(hosts) + switches + 2, [SWITCHES, agent, *hosts],
                               timeout=TIMEOUT_S)
            self.assertEqual(f"members {len(hosts)} switches {switches} "
                             f"below switches {switches - 1} wrong 0\n", done.stdout)


class AlongChangingTrees(unittest.TestCase):
    def run_program(self, changes, *words, seed=1, shapes="kncsr", **more):
        done = self.run_scripted(RANKS, [CONFORMANCE, *words], changes, seed, shapes, **more)
        self.assertIn("differ 0,", done.stdout)
        return counts(done.stderr)

    def run_scripted(self, ranks, program, changes, seed=1, shapes="kncsr", trees=mpi_run.TREES_AT_ONCE, **more):
        """What it wrote; all trees were given back, those that it had given up, too."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {"COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1, **trees, "COPPICE_TEST_SCRIPT": os.path.join(folder, "script"),
                           "COPPICE_TEST_SCRIPT_SHAPES": shapes,
                           "COPPICE_TEST_SCRIPT_CHANGES": changes, "COPPICE_TEST_SCRIPT_SEED": seed, **more}
            done = mpi_run.run(MPI, ranks, program, SCRIPTED, environment, timeout=TIMEOUT_S)
        self.assertRegex(done.stderr, r"script: granted [1-9]\d* left 0\n")
        return done

    def test_every_shape(self):
        for seed in range(1, 9 if FULL else 2):
            said = self.run_program("", "--expect-trees", seed=seed, shapes="kcsr")
            self.assertEqual((said["revised"], said["gone"]), (0, 0))

    def test_trees_in_rank_order(self):
        """They carry operations that do not commute."""
        self.run_program("", "--expect-trees", "--ordered-trees", shapes="n")
        if FULL:
            for shapes in "cs":
                self.run_program("", "--expect-trees", "--ordered-trees", shapes=shapes)

    def test_more_communicators_than_a_second_one_of_each_leaves(self):
        """MPICH has 2,046 for a process."""
        count = 1500
        done = self.run_scripted(2, [LASTING, count], "", shapes="c")
        self.assertEqual(done.stdout, "wrong 0\n")
        said = counts(done.stderr)
        self.assertEqual((said["asked"], said["granted"]), (2 * count, 2 * count))
        self.assertEqual((said["released"], said["native"]), (2 * count, 0))

    def test_some_members_have_no_memory(self):
        """All go the native way, for as long as the message that needs it."""
        said = self.run_program("revise", "--rounds", "2", COPPICE_TEST_SCRIPT_MEMORY=10**9)
        self.assertGreater(said["native"], 0)
        self.assertGreater(said["allreduce"], 0)
        self.assertGreater(said["bcast"], 0)
        self.assertEqual(said["gone"], 0)

    def test_some_members_have_no_memory_for_the_tree(self):
        done = self.run_scripted(3, [LASTING, 100], "", COPPICE_TEST_SCRIPT_MEMORY=64)
        self.assertEqual(done.stdout, "wrong 0\n")
        said = counts(done.stderr)
        self.assertGreater(said["gone"], 0)
        self.assertGreater(said["released"], 0)
        self.assertEqual(said["gone"] + said["released"], said["granted"])

    def test_errors_are_returned_as_natively(self):
        """To the communicator's own handler, once, whether the message is waited for or there."""
        for where in ("world", "duplicate"):
            for when in ("late", "early"):
                natively = mpi_run.run(MPI, 2, [ERRORS, where, when]).stdout
                self.assertEqual("class truncate handled 1 times\n", natively)
                done = self.run_scripted(2, [ERRORS, where, when], "", shapes="c")
                self.assertEqual(natively, done.stdout, (where, when))
                self.assertEqual(2, counts(done.stderr)["bcast"])

    def test_a_shortage_that_no_other_member_hears_of_is_an_error(self):
        """By the communicator's handler, and nothing was sent."""
        done = self.run_scripted(2, [ERRORS, "duplicate", "starved"], "", shapes="c")
        self.assertEqual("class no memory handled 2 times\n", done.stdout)

    def test_fortran(self):
        for program in (FORTRAN_77, FORTRAN_08):
            said = counts(self.run_scripted(3, [program], "revise", shapes="r").stderr)
            # Of three roots each, one more broadcast, and a sum on the halves, one of which is a single rank.
            self.assertEqual([4 * 3, 3 * 3, 2 * 3 * 3 + 2, 3 * 3, 1],
                             [said[name] for name in ("bcast", "reduce", "allreduce", "barrier",
                                                      "native")])

    def test_trees_that_nobody_can_ask_about(self):
        said = self.run_program("forget", "--threads", "--rounds", "3")
        self.assertGreater(said["gone"], 0)
        self.assertEqual(said["revised"], 0)

    def test_planned_anew_all_the_time(self):
        for seed in range(1, 9 if FULL else 2):
            said = self.run_program("revise", "--threads", "--rounds", "3", seed=seed)
            self.assertGreater(said["revised"], 10)

    def test_forests_that_change(self):
        """Of one to fourteen trees, with unequal shares; some have no element of a short message."""
        forests = {**mpi_run.TREES_AT_ONCE, "COPPICE_TREES_WAY": "forest"}
        for changes in ("", "revise", "revoke"):
            for seed in range(1, 9 if FULL else 2):
                said = self.run_program(changes, "--threads", "--rounds", "2", trees=forests, seed=seed)
                self.assertGreater(said["allreduce"], 0)
        said = self.run_program("revise", "--rounds", "2", trees=forests, COPPICE_TEST_SCRIPT_MEMORY=10**9)
        self.assertGreater(said["native"], 0)
        self.assertGreater(said["allreduce"], 0)

    def test_trials_among_trees_that_change(self):
        for changes in ("revise", "revoke"):
            said = self.run_program(changes, "--threads", "--rounds", "2", trees=AS_CHOSEN)
            self.assertGreater(said["native"], 0)
            self.assertGreater(said["allreduce"], 0)

    def test_revoked(self):
        for seed in range(1, 9 if FULL else 2):
            said = self.run_program("revoke", "--threads", "--rounds", "3", seed=seed)
            self.assertGreater(said["gone"], 0)
            self.assertGreater(said["native"], 0)
            self.assertEqual(said["gone"] + said["released"], said["granted"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[12:]])
