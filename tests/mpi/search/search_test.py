#!/usr/bin/python3
"""coppice-search on real ranks, more of them than cores: equal results however workers are spread,
known optima, one message for what is wrong, and an end where a rank dies or falls silent.

Usage: search_test.py openmpi|mpich COPPICE_SEARCH COPPICE_PLAN QAP_FOLDER
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import exit_status
import mpi_run

MPI, SEARCH, PLAN = sys.argv[1:4]
QAP = pathlib.Path(sys.argv[4])
NESTED27 = QAP / "nested27.dat"
OPTIMUM = 271938  # tests/data/README.md
# A fifth of the presets' individuals, which finds the known optima all the same: the full tier has the presets'.
SMALL = [] if os.environ.get("COPPICE_TEST_TIER") == "full" else ["--option", "population=12"]
# Long enough that a search ends by itself, whatever else the machine does.
ENDS = ["--budget", "10m", "--json"]
# With as many workers in all on 1, 2 and 4 ranks.
METHODS = {
    "annealing": ("workers", 8, ["--algorithm", "parallel-annealing",
                                 "--option", "iterations=600", "--option", "exchange=50"]),
    "ring": ("workers", 4, ["--algorithm", "parallel-genetic", "--option", "generations=30"]),
    "master-slave": ("workers", 4, ["--algorithm", "parallel-genetic",
                                    "--option", "generations=30", "--option", "master-slave=1"]),
    "combined": ("workers", 4, ["--algorithm", "combined", "--option", "iterations=60",
                                "--option", "generations=15"]),
    "memetic": ("islands", 4, ["--algorithm", "memetic", "--option", "population=6",
                               "--option", "sweeps=20", "--option", "epochs=2"]),
}


def search(ranks, arguments, **options):
    return mpi_run.run(MPI, ranks, [SEARCH, *arguments], timeout=600, **options)


def order(ranks, arguments):
    return json.loads(search(ranks, arguments + ENDS).stdout)


def planned(arguments):
    done = subprocess.run([PLAN, "map", *arguments, *ENDS], capture_output=True, text=True,
                          check=True, timeout=600)
    return json.loads(done.stdout)


def complaints(done):
    """Lines of coppice-search itself, not of the launcher."""
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


class Results(unittest.TestCase):
    def test_equal_seeds_and_workers_give_equal_orders_on_any_number_of_ranks(self):
        for name, (option, workers, arguments) in METHODS.items():
            question = ["--qap", str(NESTED27), "--seed", "5", *arguments]
            alone = planned(question + ["--option", f"{option}={workers}", "--threads", "2"])
            for ranks, threads in ((1, 2), (2, 1), (2, 2), (4, 1)):
                with self.subTest(method=name, ranks=ranks, threads=threads):
                    found = order(ranks, question + ["--option", f"{option}={workers // ranks}",
                                                     "--threads", str(threads)])
                    self.assertEqual(found["permutation"], alone["permutation"])
                    self.assertEqual(found["objective"], alone["objective"])
                    self.assertEqual(found["reason"], alone["reason"])

    def test_equal_seeds_give_equal_orders_for_each_number_of_ranks(self):
        for ranks in (1, 2, 4):
            arguments = ["--qap", str(NESTED27), "--seed", "9", "--algorithm", "parallel-annealing",
                         "--option", "iterations=200", "--option", "exchange=20"]
            first, second = order(ranks, arguments), order(ranks, arguments)
            self.assertEqual(first["permutation"], second["permutation"])
            # Workers are counted for each rank.
            self.assertIn(f"{27 * ranks} workers", first["reason"])

    def test_known_optima_are_found(self):
        for instance, optimum in ((NESTED27, OPTIMUM), (QAP / "els19.dat", 17212548),
                                  (QAP / "nug30.dat", 6124)):
            for ranks in (1, 2, 4):
                found = order(ranks, ["--qap", str(instance), *SMALL])
                self.assertEqual(found["objective"]["qap_cost"], optimum)

    def test_a_start_counts_although_only_rank_0_has_it(self):
        # Nothing is better than the optimum: what comes back costs as much.
        found = order(2, ["--qap", str(NESTED27), "--start", "memetic", "--algorithm",
                          "parallel-genetic", "--option", "generations=1"])
        self.assertEqual(found["objective"]["qap_cost"], OPTIMUM)

    def test_a_fabric_is_rank_0s_business(self):
        with tempfile.TemporaryDirectory() as scratch:
            pattern = pathlib.Path(scratch) / "ring.mtx"
            ring = [(r + 1, (r * 3 + 1) % 8 + 1) for r in range(8)]
            pattern.write_text("%%MatrixMarket matrix coordinate real general\n8 8 8\n" + "".join(
                f"{a} {b} 100\n" for a, b in ring))
            question = ["--fabric", "model:fat-tree(leaves=4,hosts-per-leaf=2,spines=2)", "--pattern",
                        str(pattern), "--algorithm", "memetic"]
            found = order(2, question + ["--option", "islands=1"])
            alone = planned(question + ["--objective", "qap"])
            self.assertEqual(found["permutation"], alone["permutation"])
            self.assertEqual(found["objective"], alone["objective"])
            self.assertIsNotNone(found["objective"]["max_congestion"])
            emitted = search(2, question + ["--emit", "machinefile"]).stdout
            self.assertEqual(sum(int(line.partition(":")[2] or 1)
                                 for line in emitted.splitlines()), 8)

    def test_the_others_need_neither_arguments_nor_files(self):
        line = mpi_run.command(MPI, 1, [SEARCH, "--qap", "-", *SMALL, *ENDS]) + [
            ":", "-np", "2", SEARCH]
        done = subprocess.run(line, capture_output=True, text=True, timeout=600,
                              input=NESTED27.read_text())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["objective"]["qap_cost"], OPTIMUM)

    def test_a_budget_ends_the_search_on_all_ranks(self):
        for method in ("annealing", "ring", "combined", "memetic"):
            _, _, arguments = METHODS[method]
            endless = {"annealing": ["iterations=1e12", "patience=1e12"], "ring": ["generations=1e12"],
                       "combined": ["iterations=1e12"], "memetic": ["epochs=1e9"]}[method]
            options = [word for one in endless for word in ("--option", one)]
            done = search(3, ["--qap", str(NESTED27), *arguments, *options, "--json", "--budget",
                              "300ms"])
            self.assertEqual(sorted(json.loads(done.stdout)["permutation"]), list(range(27)))


class Errors(unittest.TestCase):
    def refused(self, status, words, *arguments):
        done = search(3, arguments, check=False)
        expected = status if status == 2 else exit_status.of(done.stderr)
        self.assertEqual(done.returncode, expected, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertEqual(done.stderr.count(word), 1, done.stderr)

    def test_bad_input_is_told_once(self):
        self.refused(1, ["/nowhere/x.dat"], "--qap", "/nowhere/x.dat")
        self.refused(1, ["algorithm auto does not span processes"], "--qap", str(NESTED27),
                     "--algorithm", "auto")
        self.refused(1, ["no mapping algorithm best"], "--qap", str(NESTED27), "--algorithm", "best")
        self.refused(1, ["has no option sweep;"], "--qap", str(NESTED27), "--option", "sweep=1")
        self.refused(1, ["slots, but"], "--hierarchy", "5000", "--distances", "1", "--pattern",
                     str(self.pair_of_ranks()))

    def test_bad_usage_is_told_once(self):
        self.refused(2, ["--pattern or --qap"])
        self.refused(2, ["--no-such-option"], "--qap", str(NESTED27), "--no-such-option")
        self.refused(2, ["only qap"], "--qap", str(NESTED27), "--objective", "congestion")
        self.refused(2, ["--application"], "--qap", str(NESTED27), "--application", "cfd")
        self.refused(2, ["--pattern and --application"], "--job", "1")
        self.refused(2, ["is not a time"], "--qap", str(NESTED27), "--grace", "soon")

    def test_an_error_of_the_search_is_told_once(self):
        done = search(3, ["--qap", str(QAP / "tai60a.dat"), "--algorithm", "combined",
                          "--option", "workers=1024", "--option", "population=100000"],
                      check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(complaints(done)), 1, done.stderr)
        self.assertIn("individuals", complaints(done)[0])

    def test_no_daemon_is_an_error(self):
        done = search(2, ["--job", "1", "--application", "cfd", "--server", "unix:/nowhere.sock"],
                      check=False)
        self.assertEqual(done.returncode, 5)
        self.assertEqual(len(complaints(done)), 1, done.stderr)
        self.assertIn("unix:/nowhere.sock", complaints(done)[0])

    def pair_of_ranks(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        path = pathlib.Path(scratch.name) / "pair.mtx"
        path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 5\n")
        return path


def rank_processes(launcher):
    """{rank: pid} of the ranks under the launcher's process."""
    parents, ranks = {}, []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            environment = (entry / "environ").read_bytes().split(b"\0")
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
        for variable in environment:
            key, _, value = variable.partition(b"=")
            if key in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK") and name.startswith("coppice-search"):
                ranks.append((int(value), int(entry.name)))

    def is_ours(pid):
        while pid > 1 and pid != launcher:
            pid = parents.get(pid, 0)
        return pid == launcher
    return {rank: pid for rank, pid in ranks if is_ours(pid)}  # others search on this machine too


class Trouble(unittest.TestCase):
    def trouble(self, rank, what, *arguments):
        """Sends `what` to a rank of three while they search; the run's exit status and stderr."""
        line = mpi_run.command(MPI, 3, [SEARCH, "--qap", str(NESTED27), "--option", "epochs=1e9",
                                        "--json", *arguments])
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, start_new_session=True) as run:
            ranks = {}
            try:
                # Rank 0 tells how the search goes: all are in the midst of it.
                told = run.stderr.readline()
                while "coppice-search: " not in told:
                    self.assertNotEqual(told, "", "the search has ended early")
                    told = run.stderr.readline()
                ranks = rank_processes(run.pid)
                self.assertEqual(sorted(ranks), [0, 1, 2])
                os.kill(ranks[rank], what)
                out, err = run.communicate(timeout=120)
            finally:
                for pid in ranks.values():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                if run.poll() is None:
                    run.kill()
        self.assertNotIn("permutation", out)
        return run.returncode, err

    def test_a_rank_that_dies_ends_the_run(self):
        for rank in (2, 0):
            status, _ = self.trouble(rank, signal.SIGKILL, "--budget", "1h")
            self.assertNotEqual(status, 0)

    def test_a_rank_that_falls_silent_is_given_up(self):
        status, err = self.trouble(1, signal.SIGSTOP, "--budget", "6s", "--grace", "1s")
        self.assertNotEqual(status, 0)
        self.assertIn("has waited in vain for the others", err)
        self.assertEqual(err.count("has waited in vain"), 1, err)

    def test_a_rank_that_falls_silent_before_the_search_is_given_up(self):
        with tempfile.TemporaryDirectory() as scratch:
            pipe = os.path.join(scratch, "pipe.dat")
            os.mkfifo(pipe)
            line = mpi_run.command(MPI, 2, [SEARCH, "--qap", pipe, "--grace", "1s"])
            with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True) as run:
                ranks = {}
                try:
                    with open(pipe, "w", encoding="utf-8") as question:  # rank 0 begins to read
                        ranks = rank_processes(run.pid)
                        os.kill(ranks[1], signal.SIGSTOP)
                        question.write(NESTED27.read_text(encoding="utf-8"))
                    out, err = run.communicate(timeout=120)
                finally:
                    for pid in ranks.values():
                        try:
                            os.kill(pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                    if run.poll() is None:
                        run.kill()
        self.assertNotEqual(run.returncode, 0, out)
        self.assertEqual(err.count("has waited in vain"), 1, err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
