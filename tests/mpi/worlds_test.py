#!/usr/bin/python3
"""Programs whose processes do not all stand alike end as they would without the library: some without
it, some of another world, an agent that does not answer.

Usage: worlds_test.py openmpi|mpich LIBRARY WORLDS SCRIPTED_LIBRARY
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import mpi_run
import trace_text

MPI, LIBRARY, PROGRAM, SCRIPTED = sys.argv[1:5]
TIMEOUT_S = 120
# Only the ranks of the list have the library.
SOME = ('case " $2 " in *" ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} "*) export LD_PRELOAD=$1;; esac; '
        'shift 2; exec "$@"')


def of_several_commands(*commands):
    """Runs a launcher's line of one rank each of (program, variables)."""
    line = []
    for program, variables in commands:
        whole = mpi_run.command(MPI, 1, program, environment=variables)
        launcher = len(mpi_run.OPENMPI if MPI == "openmpi" else mpi_run.MPICH)
        line += [":"] if line else whole[:launcher]
        line += ["-env" if word == "-genv" else word for word in whole[launcher:]]
    return subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S)


class SomeWithoutTheLibrary(unittest.TestCase):
    def expect(self, *variables):
        done = of_several_commands(*(([PROGRAM, "bcast"], each) for each in variables))
        self.assertEqual(0, done.returncode, done.stderr[-2000:])
        return done.stderr

    def test_nothing_is_asked_for(self):
        preload = {"LD_PRELOAD": LIBRARY}
        for variables in ((preload, {}), ({}, preload), (preload, preload)):
            self.assertNotIn("coppice", self.expect(*variables))

    def test_commands_that_all_ask(self):
        with tempfile.TemporaryDirectory() as folder:
            asking = {"LD_PRELOAD": LIBRARY, "COPPICE_TRACE": pathlib.Path(folder) / "trace"}
            said = self.expect(asking, asking)
            self.assertNotIn("coppice", said)
            if MPI == "mpich":  # Open MPI's end with the launcher of the run that they name
                self.assertEqual(2, said.count("names left 0\n"), said)
            self.assertEqual({(0, 1): (1, 256), (1, 0): (1, 256)},
                             trace_text.read(asking["COPPICE_TRACE"]))

    def test_one_command_asks(self):
        """It waits for the others' word for a while, and says once that there is none."""
        with tempfile.TemporaryDirectory() as folder:
            asking = {"LD_PRELOAD": LIBRARY, "COPPICE_TRACE": pathlib.Path(folder) / "trace",
                      "COPPICE_START_TIMEOUT_MS": 300}
            mute = {"LD_PRELOAD": LIBRARY}
            for variables in ((asking, {}), ({}, asking), (mute, asking), (asking, mute)):
                said = self.expect(*variables)
                self.assertEqual(1, said.count("did not say within 300 ms"), said)
            self.assertEqual([], os.listdir(folder))

    def test_some_ranks_of_one_command_have_it(self):
        """As where a node lacks the file, which the loader only warns of."""
        for when in ("COPPICE_TRACE", "COPPICE_TREES"):
            with tempfile.TemporaryDirectory() as folder:
                value = "first-use" if when == "COPPICE_TREES" else os.path.join(folder, "trace")
                for have_it in ("0 1 2 3", "1 2 3 4", "4", "0"):
                    done = mpi_run.run(MPI, 5, ["/bin/sh", "-c", SOME, "sh", LIBRARY, have_it,
                                                PROGRAM, "bcast"], None,
                                       {when: value, "COPPICE_START_TIMEOUT_MS": 300})
                    said = done.stderr.count("did not say within")
                    # Without rank 0, several may lose patience at about the same time.
                    self.assertIn(said, [1] if "0" in have_it else range(1, 5), done.stderr)
                self.assertEqual([], os.listdir(folder))


class OtherWorlds(unittest.TestCase):
    if MPI == "openmpi":  # Debian's MPICH can start no processes
        def test_a_world_that_was_spawned_has_a_trace_of_its_own(self):
            with tempfile.TemporaryDirectory() as folder:
                trace = pathlib.Path(folder) / "trace"
                done = mpi_run.run(MPI, 3, [PROGRAM, "spawn", "/usr/bin/env",
                                            f"LD_PRELOAD={LIBRARY}", f"COPPICE_TRACE={trace}",
                                            PROGRAM, "child"], LIBRARY,
                                   {"COPPICE_TRACE": trace, "COPPICE_VERBOSE": 1})
                self.assertIn("processes of other worlds, which no trace has", done.stderr)
                names = sorted(os.listdir(folder))
                self.assertEqual(2, len(names), names)
                self.assertEqual("trace", names[0])
                self.assertRegex(names[1], r"^trace\.spawned\..+\.[0-9]+$")
                for name, ranks in zip(names, (3, 2)):
                    file = pathlib.Path(folder) / name
                    self.assertIn((0, 1), trace_text.read(file))
                    self.assertIn(f"\nranks {ranks}\n", file.read_text(encoding="utf-8"))

        def test_a_topology_over_worlds_that_do_not_stand_alike(self):
            with tempfile.TemporaryDirectory() as folder:
                mpi_run.run(MPI, 2, [PROGRAM, "spawn", "/usr/bin/env", "-u", "LD_PRELOAD", PROGRAM,
                                     "child"],
                            SCRIPTED,
                            {"COPPICE_REORDER": 1,
                             "COPPICE_TEST_SCRIPT": pathlib.Path(folder) / "script"}, timeout=TIMEOUT_S)

        def test_trees_over_worlds_that_do_not_stand_alike(self):
            """The children have no library, another agent, which is away, no trees; or all."""
            childrens = (["-u", "LD_PRELOAD"], ["-u", "COPPICE_TREES"], [],
                         [f"LD_PRELOAD={LIBRARY}", "COPPICE_AGENT=/nonexistent"])
            for when in ("first-use", "creation"):
                for variables in childrens:
                    with tempfile.TemporaryDirectory() as folder:
                        done = mpi_run.run(
                            MPI, 2, [PROGRAM, "spawn", "/usr/bin/env", *variables, PROGRAM,
                                     "child"], SCRIPTED,
                            {"COPPICE_TREES": when, "COPPICE_VERBOSE": 1, **mpi_run.TREES_AT_ONCE,
                             "COPPICE_START_TIMEOUT_MS": 5000,
                             "COPPICE_TEST_SCRIPT": pathlib.Path(folder) / "script"}, timeout=TIMEOUT_S)
                        self.assertRegex(done.stderr, r"script: granted [1-9]", (when, variables))

    def test_attributes_are_not_copied(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            done = mpi_run.run(MPI, 3, [PROGRAM, "attributes"], LIBRARY, {"COPPICE_TRACE": trace})
            self.assertNotIn("copied", done.stderr)
            self.assertEqual({}, trace_text.read(trace))


class SilentAgent(unittest.TestCase):
    def test_the_first_silence_is_heard_by_all(self):
        """Whoever leads the next communicator does not wait once more."""
        with tempfile.TemporaryDirectory() as folder:
            done = mpi_run.run(MPI, 3, [PROGRAM, "communicators", 200], SCRIPTED,
                               {"COPPICE_TREES": "first-use", "COPPICE_TIMEOUT_MS": 200, **mpi_run.TREES_AT_ONCE,
                                "COPPICE_TEST_SCRIPT": pathlib.Path(folder) / "script",
                                "COPPICE_TEST_SCRIPT_TREES": "silent"})
        # Once, and not much more often on a machine that is busy for long; not 200 times.
        self.assertIn(done.stderr.count("script: somebody waits in vain"), range(1, 7), done.stderr)

    def test_it_is_asked_once_in_a_while(self):
        with tempfile.TemporaryDirectory() as folder:
            done = mpi_run.run(MPI, 3, [PROGRAM, "grids", 20], SCRIPTED,
                               {"COPPICE_REORDER": 1, "COPPICE_VERBOSE": 1,
                                "COPPICE_TEST_SCRIPT": pathlib.Path(folder) / "script",
                                "COPPICE_TEST_SCRIPT_MAP": "silent"})
        away = "ranks stay as they are: the node's agent is away\n"
        self.assertEqual(1, done.stderr.count("stay as they are: the script has no more to say"))
        self.assertIn("coppice: " + away, done.stderr)
        self.assertIn("coppice: 19 times: " + away, done.stderr)
        self.assertEqual(2, done.stderr.count(away))

    def grids(self, later_ms):
        """What is said of four grids that are asked for one after the other, each answered so long
        after the time that the search for an order may take."""
        with tempfile.TemporaryDirectory() as folder:
            return mpi_run.run(MPI, 2, [PROGRAM, "grids", 4], SCRIPTED,
                               {"COPPICE_REORDER": 1, "COPPICE_VERBOSE": 1,
                                "COPPICE_TIMEOUT_MS": 200, "COPPICE_REORDER_BUDGET_MS": 600,
                                "COPPICE_TEST_SCRIPT": pathlib.Path(folder) / "script",
                                "COPPICE_TEST_SCRIPT_MAP": later_ms}).stderr

    def test_the_time_of_a_search_is_not_waited_in_vain(self):
        """All in all longer than a program waits for its agent."""
        said = self.grids(0)
        self.assertIn("4 times: ranks stay as they are: the script has no more to say", said)

    def test_who_has_waited_enough_says_so(self):
        said = self.grids(1100)
        self.assertEqual(1, said.count("stay as they are: the script has no more to say"), said)
        self.assertIn("3 times: ranks stay as they are: the program has waited for the node's "
                      "agent long enough already", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
