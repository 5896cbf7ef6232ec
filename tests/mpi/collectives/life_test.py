#!/usr/bin/python3
"""Programs end with the same result with and without Coppice, and when it goes away in the middle.

Usage: life_test.py openmpi|mpich LIBRARY STEADY COPPICED COPPICE_AGENT COPPICECTL COPPICE_PLAN
"""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import mpi_run
from coppice_nodes import CoppiceNodes, counts, wait_until
from packaged_programs import Hpcc, Lammps, NATIVE_SUMS_IN_RANK_ORDER, differences

MPI, LIBRARY, STEADY, COPPICED, AGENT, COPPICECTL, COPPICE_PLAN = sys.argv[1:8]
FABRIC = "model:fat-tree(leaves=2,spines=2,hosts-per-leaf=1)"
RANKS, ROUNDS = 4, 60
TIMEOUT_S = 900


def environment(**more):
    return {"COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1, "COPPICE_TIMEOUT_MS": 5000,
            **mpi_run.TREES_AT_ONCE, **more}


def result(text):
    return re.search(r"result \w+", text).group(0)


class Life(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="coppice-life-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def nodes(self, fabric=FABRIC):
        made = CoppiceNodes(COPPICED, AGENT, 2, fabric)
        self.addCleanup(made.stop)
        return made

    def natively(self, program, **options):
        return mpi_run.run(MPI, RANKS, program, timeout=TIMEOUT_S, **options)

    def in_the_middle(self, nodes, what, *words):
        """Runs the steady program, and does `what` when it is half through; what it wrote."""
        gate = os.path.join(self.folder, "gate")
        line = mpi_run.command(MPI, RANKS, nodes.on_hosts(
            RANKS, [STEADY, str(ROUNDS), gate, *words]), LIBRARY, environment())
        with open(os.path.join(self.folder, "errors"), "w+", encoding="utf-8") as errors:
            with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True) as program:
                try:
                    said = program.stdout.readline()
                    self.assertEqual(said.strip(), "half")
                    what()
                    with open(gate, "w", encoding="utf-8"):
                        pass
                    out = program.communicate(timeout=TIMEOUT_S)[0]
                finally:
                    program.kill()
            errors.seek(0)
            text = errors.read()
        self.assertEqual(program.returncode, 0, text)
        self.assertEqual(result(out), result(self.natively([STEADY, str(ROUNDS)]).stdout))
        return counts(text)

    def test_nothing_happens(self):
        said = self.in_the_middle(self.nodes(), lambda: None)
        self.assertEqual((said["native"], said["gone"]), (0, 0))
        self.assertGreater(said["allreduce"], 0)

    @staticmethod
    def kind_of(what):
        """Of "Bcast of 8 bytes on 4 ranks": its operation, and bits of the length."""
        words = what.split()
        return words[0].lower(), int(words[2]).bit_length()

    @staticmethod
    def soonest_in(database):
        """Of each kind the way that is the soonest, and sooner than the native one by 7 %."""
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            rows = connection.execute("SELECT operation, length_bits, way, us FROM way_time").fetchall()
        times = {}
        for operation, bits, way, us in rows:
            times.setdefault((operation, bits), {})[way] = us
        least = {kind: min(of_kind, key=of_kind.get) for kind, of_kind in times.items()}
        return {kind: way if times[kind][way] < 0.93 * times[kind]["native"] else "native"
                for kind, way in least.items()}

    def test_the_next_run_starts_with_what_this_one_measured(self):
        nodes, until_settled, before_tried_again = self.nodes(), 170, 110

        def ways(rounds=before_tried_again, **more):
            """Of each operation and length: whether its way was known, and which it was."""
            chosen = {"COPPICE_TREES": "first-use", "COPPICE_VERBOSE": 1, "COPPICE_TIMEOUT_MS": 5000,
                      "COPPICE_TREES_AFTER": 0, **more}
            done = mpi_run.run(MPI, RANKS, nodes.on_hosts(RANKS, [STEADY, str(rounds)]), LIBRARY, chosen,
                               timeout=TIMEOUT_S)
            self.assertEqual(result(done.stdout), result(self.natively([STEADY, str(rounds)]).stdout))
            told = re.findall(r"(\w+ of \d+ bytes on 4 ranks) goes by (\w+)(, as in earlier runs)?", done.stderr)
            return {what: (bool(known), way) for what, way, known in told}

        first = ways(until_settled)
        self.assertGreaterEqual(len(first), 8, first)
        self.assertEqual({known for known, _ in first.values()}, {False})
        soonest = self.soonest_in(os.path.join(nodes.daemon.directory, "coppice.db"))
        second = ways()
        self.assertEqual({known for known, _ in second.values()}, {True}, second)
        self.assertEqual({what: way for what, (_, way) in second.items()},
                         {what: soonest[self.kind_of(what)] for what in second})
        # Another one, whatever it is called: it has trees, and they know nothing.
        name = "/../-an other//\u00e9/" + "x/" * 100  # which is cut after a slash
        self.assertEqual({known for known, _ in ways(COPPICE_APPLICATION=name).values()}, {False})
        nodes.daemon.end(signal.SIGKILL)
        nodes.daemon.start().wait_until_listening()
        self.assertEqual(ways(), second)

    def test_the_daemon_is_killed(self):
        nodes = self.nodes()
        said = self.in_the_middle(nodes, lambda: nodes.daemon.end(signal.SIGKILL))
        self.assertGreater(said["granted"], 0)
        self.assertGreater(said["native"], 0)  # communicators that were made afterwards

    def test_the_agents_are_killed(self):
        nodes = self.nodes()

        def kill():
            for number in range(nodes.hosts):
                nodes.kill_agent(number)
        said = self.in_the_middle(nodes, kill)
        self.assertGreater(said["granted"], 0)
        self.assertGreater(said["native"], 0)

    def test_the_agents_say_nothing_any_more(self):
        """Stopped, they take requests and never answer: nobody waits for them more than once."""
        nodes = self.nodes()

        def stop():
            for agent in nodes.agents.values():
                agent.send_signal(signal.SIGSTOP)
        said = self.in_the_middle(nodes, stop)
        self.assertGreater(said["granted"], 0)
        self.assertGreater(said["native"], 0)

    def test_agents_and_daemon_come_back(self):
        nodes = self.nodes()

        def restart():
            nodes.daemon.end(signal.SIGKILL)
            nodes.start_daemon()
            for number in range(nodes.hosts):
                nodes.kill_agent(number)
                nodes.start_agent(number)
            wait_until(lambda: nodes.connections() == nodes.hosts, "agents at the new daemon")
        said = self.in_the_middle(nodes, restart)
        # The world, and two halves at each of three times, the last of them after the restart; each for
        # short messages and for long ones.
        self.assertEqual((said["asked"], said["granted"]), (2 * 7, 2 * 7))
        self.assertEqual((said["native"], said["gone"]), (0, 0))

    def control(self, nodes, *words):
        return subprocess.run([COPPICECTL, "--server", nodes.daemon.address, *words], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT_S).stdout

    def test_an_administrator_releases_the_trees(self):
        nodes = self.nodes()

        def release():
            ids = re.findall(r'"id":\s*"(\d+)"', self.control(nodes, "tree", "list", "--json"))
            self.assertGreater(len(ids), 0)
            for number in ids:
                self.control(nodes, "tree", "release", number)
        said = self.in_the_middle(nodes, release, "news")
        self.assertGreater(said["gone"], 0)
        self.assertGreater(said["native"], 0)

    def test_cables_are_cut(self):
        """A switch goes away, and the trees go another way; then a host, and they are revoked."""
        file = os.path.join(self.folder, "fabric")
        subprocess.run([COPPICE_PLAN, "fabric", "--fabric", FABRIC, "--out", file], check=True,
                       capture_output=True, timeout=TIMEOUT_S)
        with open(file, encoding="utf-8") as whole:
            text = whole.read()

        def without(guid):
            blocks = [block for block in text.split("\n\n") if f'"{guid}"\t\t#' not in block]
            left = "\n\n".join(blocks) if len(blocks) < text.count("\n\n") + 1 else text
            return "\n".join(line for line in left.split("\n") if guid not in line)

        def lose(nodes, *guids):
            for guid in guids:
                with open(file, "w", encoding="utf-8") as cut:
                    cut.write(without(guid))
                self.control(nodes, "fabric", "sweep")
        nodes = self.nodes("file:" + file)
        # One of the two switches at the top carries the trees.
        said = self.in_the_middle(
            nodes, lambda: lose(nodes, "S-0010000000000002", "S-0010000000000003"), "news")
        self.assertEqual(said["gone"], 0)
        self.assertGreater(said["revised"], 0)
        self.assertEqual(said["native"], 0)
        lose(nodes, "none")
        os.unlink(os.path.join(self.folder, "gate"))
        said = self.in_the_middle(nodes, lambda: lose(nodes, "H-0020000000000100"), "news")
        self.assertGreater(said["gone"], 0)
        self.assertGreater(said["native"], 0)

    def test_no_agent(self):
        done = mpi_run.run(MPI, RANKS, [STEADY, str(ROUNDS)], LIBRARY,
                           environment(COPPICE_AGENT=os.path.join(self.folder, "none.sock")),
                           timeout=TIMEOUT_S)
        self.assertEqual(result(done.stdout), result(self.natively([STEADY, str(ROUNDS)]).stdout))

    def test_the_library_alone(self):
        done = mpi_run.run(MPI, RANKS, [STEADY, str(ROUNDS)], LIBRARY, timeout=TIMEOUT_S)
        self.assertEqual(result(done.stdout), result(self.natively([STEADY, str(ROUNDS)]).stdout))
        self.assertEqual(done.stderr, "")


@unittest.skipIf(MPI != "openmpi", "Debian builds these programs with Open MPI")
class PackagedPrograms(unittest.TestCase):
    """On one machine; hosts_test.py has them on several."""

    def results(self, kind, trees=False, **variables):
        """What is the same in every run, and the counts of a run along trees."""
        folder = tempfile.mkdtemp(prefix="coppice-life-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        program = kind(folder)
        if not trees:
            done = mpi_run.run(MPI, RANKS, program.command, environment=variables,
                               timeout=TIMEOUT_S, cwd=folder)
            return program.results(done.stdout)
        nodes = CoppiceNodes(COPPICED, AGENT, 2, FABRIC)
        self.addCleanup(nodes.stop)
        done = mpi_run.run(MPI, RANKS, nodes.on_hosts(RANKS, program.command), LIBRARY,
                           environment(), timeout=TIMEOUT_S, cwd=folder)
        return program.results(done.stdout), counts(done.stderr)

    def test_lammps(self):
        with_trees, said = self.results(Lammps, trees=True)
        self.assertEqual(self.results(Lammps, **NATIVE_SUMS_IN_RANK_ORDER), with_trees)
        self.assertGreater(said["allreduce"], 0)
        self.assertGreater(said["bcast"], 0)
        # Open MPI adds up in an order of its own where it may choose: other in the last bit, which grows
        # with the steps.
        lines, greatest = differences(self.results(Lammps), with_trees)
        self.assertGreater(lines, 0, "the comparison above says nothing of the order of sums")
        self.assertLess(greatest, 1e-4)

    def test_hpcc(self):
        with_trees, said = self.results(Hpcc, trees=True)
        self.assertEqual(self.results(Hpcc), with_trees)
        self.assertGreater(said["allreduce"] + said["reduce"] + said["bcast"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[8:]])
