#!/usr/bin/python3
"""Trees are asked for where they are of use, and messages along them are what they should be: how a
program uses its communicators decides.

Usage: uses_test.py openmpi|mpich LIBRARY ODD_USES SCRIPTED_LIBRARY WORLDS
"""
import os
import re
import sys
import tempfile
import unittest

import mpi_run
from coppice_nodes import counts

MPI, _, PROGRAM, SCRIPTED, WORLDS = sys.argv[1:6]
TIMEOUT_S = 120
# Rank r is on host r / 2.
PAIRS_ON_HOSTS = ('export COPPICE_HOST=host$(( ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2 )); '
                  'exec "$@"')
# What the script says when the program's own thread asks it for a tree.
WAITS = "script: the program waits\n"


class Uses(unittest.TestCase):
    def run_program(self, ranks, *words, shell=None, **variables):
        """(stdout, stderr); no result is wrong."""
        program = [PROGRAM, *map(str, words)]
        if shell:
            program = ["/bin/sh", "-c", shell, "sh", *program]
        with tempfile.TemporaryDirectory() as folder:
            environment = {"COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1,
                           "COPPICE_TEST_SCRIPT": os.path.join(folder, "script"),
                           "COPPICE_TEST_SCRIPT_WAITS": 1, **variables}
            done = mpi_run.run(MPI, ranks, program, SCRIPTED, environment, timeout=TIMEOUT_S)
        self.assertIn("wrong 0\n", done.stdout)
        return done.stdout, done.stderr

    def test_communicators_that_do_not_live_cost_no_question(self):
        _, said = self.run_program(3, "lives", 100, 10)
        self.assertNotIn(WAITS, said)
        self.assertEqual((0, 0), (counts(said)["asked"], counts(said)["allreduce"]))
        self.assertEqual(3 * 100 * 10, counts(said)["native"])

    def test_one_that_lives_waits_for_no_answer(self):
        uses = 1100
        _, said = self.run_program(2, "long", uses)
        self.assertNotIn(WAITS, said)
        said = counts(said)
        self.assertEqual((1, 1, 1), (said["asked"], said["granted"], said["released"]))
        self.assertGreaterEqual(said["native"], 2 * 64)  # 32 until it is asked for, and 32 more
        self.assertGreater(said["allreduce"], 0)
        self.assertEqual(2 * uses, said["native"] + said["allreduce"])

    def test_what_was_asked_for_in_vain_is_given_back(self):
        """Freed before the answer is looked for."""
        _, said = self.run_program(3, "lives", 5, 40)
        self.assertNotIn(WAITS, said)
        said, script = counts(said), re.search(r"script: granted (\d+) left 0\n", said)
        self.assertEqual(said["granted"], int(script.group(1)) if script else 0)
        self.assertEqual(said["released"], said["granted"])
        self.assertEqual(3 * 5 * 40, said["native"])

    def test_a_silent_agent_is_not_waited_for(self):
        _, said = self.run_program(2, "lives", 3, 200, COPPICE_TEST_SCRIPT_TREES="silent")
        self.assertNotIn(WAITS, said)
        self.assertEqual(2 * 3 * 200, counts(said)["native"])

    def test_one_that_is_to_wait_does(self):
        _, said = self.run_program(2, "long", 10, **mpi_run.TREES_AT_ONCE)
        self.assertEqual(1, said.count(WAITS), said)
        self.assertEqual(2 * 10, counts(said)["allreduce"])

    def test_ranks_of_one_host_have_no_trees(self):
        _, said = self.run_program(4, "pairs", 10, shell=PAIRS_ON_HOSTS, **mpi_run.TREES_AT_ONCE)
        said = counts(said)
        self.assertEqual((1, 4 * 10, 4 * 10), (said["asked"], said["allreduce"], said["native"]))
        _, said = self.run_program(4, "pairs", 10, COPPICE_HOST="host", **mpi_run.TREES_AT_ONCE)
        self.assertIn("no trees: all ranks are on one host", said)
        self.assertEqual(0, counts(said)["asked"])

    def test_lengths_that_go_along_trees(self):
        """4, 8,188, 8,192, 65,536, 262,144, 262,148 bytes and 1 MiB, twice each at two ranks."""
        at_once = {"COPPICE_TREES_AFTER": 0}
        for most, along in ((8192, 3), (100000, 4), (2**20, 7), (0, 0)):
            said = counts(self.run_program(2, "sizes", COPPICE_TREES_MAX_BYTES=most, **at_once)[1])
            self.assertEqual((4 * along, 4 * (7 - along)), (said["allreduce"], said["native"]), most)
        # Without a limit each is tried both ways, the tree first, which a new tree of the script's begins anew.
        said = counts(self.run_program(2, "sizes", **at_once)[1])
        self.assertEqual(4 * 7, said["allreduce"] + said["native"])
        self.assertGreaterEqual(said["allreduce"], 2 * 7)
        self.assertGreater(said["native"], 0)

    def longest(self, **variables):
        out, _ = self.run_program(2, "segments", 2**20, **variables, **mpi_run.TREES_AT_ONCE)
        return int(re.search(r"longest (\d+)", out).group(1))

    def test_segments_are_sent_at_once(self):
        if MPI == "mpich":
            return self.assertEqual(2**15, self.longest())
        for limit in (65536, 20000):
            longest = self.longest(OMPI_MCA_btl_tcp_eager_limit=limit)
            self.assertLess(longest, limit - 256)  # what Open MPI's header takes, and more
            self.assertGreater(longest, limit // 2)

    def test_tracing_communicators_in_turns_asks_for_few_attributes(self):
        communicators, uses = 16, 100
        with tempfile.TemporaryDirectory() as folder:
            out, _ = self.run_program(2, "turns", communicators, uses, COPPICE_TREES="never",
                                      COPPICE_TRACE=os.path.join(folder, "trace"))
            self.assertTrue(os.path.exists(os.path.join(folder, "trace")))
        asked = int(re.search(r"attributes asked for (\d+)", out).group(1))
        # Once each at least. Two whose handles share a place ask each time: a few pairs may.
        self.assertGreaterEqual(asked, communicators)
        self.assertLess(asked, communicators * uses // 2)

    @unittest.skipIf(MPI == "mpich", "MPICH makes communicators otherwise")
    def test_graphs_after_a_communicator(self):
        """Natively they do not wait for each other (communicator_ranks.h)."""
        for _ in range(6):
            self.run_program(4, "graphs")

    def test_beside_all_else(self):
        for shapes in ("n", "r"):
            for changes in ("", "revise"):
                _, said = self.run_program(4, "beside", COPPICE_TEST_SCRIPT_SHAPES=shapes,
                                           COPPICE_TEST_SCRIPT_CHANGES=changes, **mpi_run.TREES_AT_ONCE)
                self.assertGreater(counts(said)["allreduce"], 100)

    def test_a_thing_is_said_once(self):
        """With a count."""
        _, said = self.run_program(3, "lives", 20, 1, COPPICE_TEST_SCRIPT_TREES="silent",
                                   COPPICE_TIMEOUT_MS=200, **mpi_run.TREES_AT_ONCE)
        away = "no tree for a communicator of 3 ranks: the node's agent is away\n"
        self.assertEqual(1, len(re.findall("^coppice: " + away, said, re.MULTILINE)))
        self.assertRegex(said, r"coppice: \d+ times: " + away)
        self.assertLess(said.count("coppice: "), 10)


class Orders(unittest.TestCase):
    def say_of_order(self, score, moved):
        """What is said of an order that moves both ranks; and so many are moved."""
        with tempfile.TemporaryDirectory() as folder:
            done = mpi_run.run(MPI, 2, [WORLDS, "grids", 1], SCRIPTED,
                               {"COPPICE_REORDER": 1, "COPPICE_VERBOSE": 1,
                                "COPPICE_TEST_SCRIPT": os.path.join(folder, "script"),
                                "COPPICE_TEST_SCRIPT_MAP": f"score {score}"})
        self.assertIn(f"moved {moved} of 2\n", done.stdout, score)
        return done.stderr

    def test_only_for_what_is_worth_it(self):
        stay = "less than 2 % better: ranks stay as they are"
        self.assertIn(stay, self.say_of_order(0.9997, 0))
        self.assertIn(stay, self.say_of_order(0.985, 0))
        self.assertNotIn("stay as they are", self.say_of_order(0.97, 2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
