#!/usr/bin/python3
"""Quality of coppice-search on 1, 2 and 4 ranks, as GraphHunter reports it (Baranov 2022): accuracy
A1 = 100 (f1 - f0) / f0 on Taillard's "e" instances, the mean of three seeds.

Every rank does the same work: on a core of its own it takes the same time, however many ranks there
are. So results do not depend on how busy this machine is; the processor's seconds of a rank are
printed beside them.

With --clock SECONDS every run may take as long by the clock, whatever the ranks: where there are more
ranks than cores, these share them. Times are printed, as starting and ending is not in the budget.

With --wall SECONDS every rank searches for as long as on a core of its own. Ranks share cores here,
with each other and with whatever else runs, so that is counted in the processor's time, without what
starting takes: a run that used more or less is made again with a budget that is shorter or longer,
and the one that came closest counts. A cell is marked if one of its runs missed by over a fifth.

With --accuracy: the shortest such time, of 1/16 s, 1/8 s, ..., after which the best of memetic is
within PERCENT of the best known, the median of the seeds.

Usage: search_benchmark.py COPPICE_SEARCH QAP_FOLDER
         [(--clock | --wall) SECONDS [--method NAME]... | --accuracy PERCENT] [--seeds COUNT]
         [INSTANCE...]
"""
import argparse
import functools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import time

BEST = {"nested27": 271938, "nug30": 6124, "tai27e01": 2558, "tai45e01": 6412, "tai75e01": 14488, "tai125e01": 35426,
        "tai175e01": 57540}
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
          "--mca", "btl", "self,vader", "--mca", "pml", "ob1"]
METHODS = {
    "annealing": ["--algorithm", "parallel-annealing"],
    "ring": ["--algorithm", "parallel-genetic"],
    "master-slave": ["--algorithm", "parallel-genetic", "--option", "master-slave=1"],
    "combined": ["--algorithm", "combined"],
    "memetic": ["--algorithm", "memetic", "--option", "islands=1"],
}
# What goes on until the time is over, for each of METHODS that can.
ENDLESS = {"ring": ["generations=1e12"], "master-slave": ["generations=1e12"],
           "combined": ["generations=1e12", "iterations=100"], "memetic": ["epochs=1e9"]}
RANKS = (1, 2, 4)
CORES = len(os.sched_getaffinity(0))
TIMES = [2 ** i / 16 for i in range(9)]
TRIES, CLOSE, MARKED = 6, 0.1, 0.2


def search(instance, ranks, seed, options):
    """(A1, the processor's seconds of a rank)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        MPIRUN + ["-np", str(ranks), ARGUMENTS.search, "--qap",
                  str(ARGUMENTS.folder / f"{instance}.dat"), "--seed", str(seed),
                  "--threads", "1", "--json", *options],
        capture_output=True, text=True, check=True, timeout=3600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = json.loads(done.stdout)["objective"]["qap_cost"]
    return (100 * (cost - BEST[instance]) / BEST[instance],
            (after.ru_utime - before.ru_utime) / ranks)


@functools.cache
def starting(ranks):
    """The processor's seconds of a rank until there is anything to search, and after."""
    return min(search(ARGUMENTS.instances[0], ranks, 1, ["--algorithm", "parallel-genetic", "--option",
                                             "generations=1", "--option", "population=27",
                                             "--option", "workers=1"])[1] for _ in range(3))


def search_for(instance, ranks, seed, method, seconds):
    """(A1, the share by which it missed that long of a processor for each rank)"""
    options = METHODS[method] + [word for one in ENDLESS[method] for word in ("--option", one)]
    budget, runs = seconds * max(1, ranks / CORES), []
    for _ in range(TRIES):
        accuracy, used = search(instance, ranks, seed, [*options, "--budget", f"{budget * 1000:.0f}ms"])
        used = max(used - starting(ranks), seconds / 10)
        runs.append((abs(used / seconds - 1), accuracy))
        if runs[-1][0] <= CLOSE:
            break
        budget *= seconds / used
    missed, accuracy = min(runs)
    return accuracy, missed


def same_work():
    print("| instance | method |" + "".join(f" A1, {r} ranks | s |" for r in RANKS))
    print("|---|---|" + "--:|--:|" * len(RANKS))
    for instance in ARGUMENTS.instances:
        for method, options in METHODS.items():
            print(f"| {instance} | {method} |", end="")
            for ranks in RANKS:
                results = [search(instance, ranks, seed, [*options, "--budget", "1h"])
                           for seed in SEEDS]
                accuracy, used = [statistics.mean(column) for column in zip(*results)]
                print(f" {accuracy:.2f} % | {used:.2f} |", end="")
            print(flush=True)


def same_clock():
    print(f"{CORES} cores")
    print(f"| instance, {ARGUMENTS.clock} s by the clock | method |"
          + "".join(f" A1, {r} ranks | s |" for r in RANKS))
    print("|---|---|" + "--:|--:|" * len(RANKS))
    for instance in ARGUMENTS.instances:
        for method in ARGUMENTS.method or ENDLESS:
            options = METHODS[method] + [word for one in ENDLESS[method]
                                         for word in ("--option", one)]
            print(f"| {instance} | {method} |", end="")
            for ranks in RANKS:
                begin = time.monotonic()
                accuracies = [search(instance, ranks, seed, [
                    *options, "--budget", f"{ARGUMENTS.clock * 1000:.0f}ms"])[0] for seed in SEEDS]
                taken = (time.monotonic() - begin) / len(SEEDS)
                print(f" {statistics.mean(accuracies):.2f} % | {taken:.2f} |", end="", flush=True)
            print(flush=True)


def same_time():
    print(f"| instance, {ARGUMENTS.wall} s | method |" + "".join(f" A1, {r} ranks |" for r in RANKS))
    print("|---|---|" + "--:|" * len(RANKS))
    for instance in ARGUMENTS.instances:
        for method in ARGUMENTS.method or ENDLESS:
            print(f"| {instance} | {method} |", end="")
            for ranks in RANKS:
                results = [search_for(instance, ranks, seed, method, ARGUMENTS.wall)
                           for seed in SEEDS]
                accuracies, missed = zip(*results)
                mark = " (?)" if max(missed) > MARKED else ""
                print(f" {statistics.mean(accuracies):.2f} %{mark} |", end="", flush=True)
            print(flush=True)


def time_to_accuracy():
    print(f"| instance, within {ARGUMENTS.accuracy} % |" + "".join(f" {r} ranks |" for r in RANKS))
    print("|---|" + "--:|" * len(RANKS))
    for instance in ARGUMENTS.instances:
        print(f"| {instance} |", end="")
        for ranks in RANKS:
            needed = []
            for seed in SEEDS:
                reached = (seconds for seconds in TIMES if search_for(
                    instance, ranks, seed, "memetic", seconds)[0] <= ARGUMENTS.accuracy)
                needed.append(next(reached, float("inf")))
            print(f" {statistics.median(needed):.3g} s |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("search")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("instances", nargs="*",
                        default=["nested27", "nug30"])
    parser.add_argument("--clock", type=float)
    parser.add_argument("--wall", type=float)
    parser.add_argument("--method", action="append", choices=list(ENDLESS))
    parser.add_argument("--accuracy", type=float)
    parser.add_argument("--seeds", type=int, default=3)
    ARGUMENTS = parser.parse_intermixed_args()
    SEEDS = range(1, ARGUMENTS.seeds + 1)
    if ARGUMENTS.clock:
        same_clock()
    elif ARGUMENTS.wall:
        same_time()
    elif ARGUMENTS.accuracy is not None:
        time_to_accuracy()
    else:
        same_work()
