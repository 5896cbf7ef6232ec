#!/usr/bin/python3
"""MPICH's own tests of collectives (test/mpi of its sources) over the switches of a fabric of namespaces, beside the
same programs without Coppice: each has to end as it does there.

The sources are in Debian's package: `apt-get source mpich`, with a line `deb-src` for apt. Built for one MPI:

    configure --with-mpi=/usr --disable-fortran --disable-cxx MPICC=mpicc.openmpi CC=gcc
    make -C util && make -C dtpools && make -C coll

Usage: mpich_suite.py openmpi|mpich LIBRARY COPPICED COPPICE_AGENT COPPICECTL COPPICE_PLAN COPPICE_SWITCH BUILT LISTS
                      [PROGRAM...]
       BUILT: the folder that was built in; LISTS: folders of tests, such as coll,comm; PROGRAM: these alone
"""
import pathlib
import re
import subprocess
import sys
import time

import switched_network

switched_network.enter()

import mpi_run  # noqa: E402
from coppice_nodes import counts  # noqa: E402
from hosts_with_agents import on_each  # noqa: E402
from switched_hosts import SwitchedCoppice, SwitchedHosts  # noqa: E402

MPI, LIBRARY, COPPICED, AGENT, COPPICECTL, PLAN, SWITCH, BUILT, LISTS = sys.argv[1:10]
CHOSEN = sys.argv[10:]
FABRIC, HOSTS, CHILDREN = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 4
TIMEOUT_S = 180
TREES = {"LD_PRELOAD": LIBRARY, "COPPICE_TREES": "creation", "COPPICE_TREES_TYPE": 2, "COPPICE_VERBOSE": 1,
         "COPPICE_TIMEOUT_MS": 20000, **mpi_run.TREES_AT_ONCE}


def programs(folder):
    """(path, ranks, arguments) of each line of its list."""
    listed = next(path for path in (BUILT / folder / "testlist", SOURCES / folder / "testlist.in",
                                    SOURCES / folder / "testlist") if path.exists())
    for line in listed.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2 or not words[1].isdigit():
            continue
        name, ranks, options = words[0], int(words[1]), words[2:]
        if (BUILT / folder / name).exists() and not any(option.startswith("resultTest") for option in options):
            yield (BUILT / folder / name, ranks, [option[4:] for option in options if option.startswith("arg=")])


def ended(hosts, path, ranks, arguments, variables):
    """(how it ended, its errors, seconds)."""
    layout = on_each(MPI, hosts.names, -(-ranks // HOSTS))
    line = hosts.command(MPI, ranks, layout, [path, *arguments], variables)
    began = time.monotonic()
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=path.parent)
        said = "No Errors" in done.stdout or "no errors" in done.stdout
        how = "passes" if done.returncode == 0 and said else f"exit {done.returncode}"
        if done.returncode == 0 and not said:
            found = re.search(r"Found \d+ errors", done.stdout)
            how = found[0] if found else "exit 0"
        words = done.stdout[-1500:] + done.stderr
    except subprocess.TimeoutExpired as late:
        how, words = "hangs", "".join((out or b"").decode(errors="replace") for out in (late.stdout, late.stderr))
    return how, words, time.monotonic() - began


BUILT = pathlib.Path(BUILT).resolve()
SOURCES = pathlib.Path(re.search(r"^abs_top_srcdir = (.*)", (BUILT / "Makefile").read_text(encoding="utf-8"),
                                 re.MULTILINE)[1])
differ = total = 0
hosts = SwitchedHosts(PLAN, FABRIC)
try:
    coppice = SwitchedCoppice(hosts, COPPICED, AGENT, COPPICECTL, SWITCH, children=CHILDREN)
    try:
        for folder in LISTS.split(","):
            for path, ranks, arguments in programs(folder):
                if CHOSEN and path.name not in CHOSEN:
                    continue
                natively, _, took = ended(hosts, path, ranks, arguments, {})
                trees, words, with_trees = ended(hosts, path, ranks, arguments,
                                                 {**TREES, "COPPICE_AGENT": coppice.socket})
                try:
                    carried = counts(words)["over_switches"]
                except (AssertionError, KeyError, IndexError, TypeError):
                    carried = "?"
                total += 1
                mark = " " if natively == trees else "*"
                print(f"{mark} {folder + '/' + path.name:34} {ranks:2} {' '.join(arguments):20} native {natively:12}"
                      f" {took:5.1f} s  coppice {trees:12} {with_trees:5.1f} s  over switches {carried}", flush=True)
                if natively != trees:
                    differ += 1
                    print(words[-3000:], flush=True)
    finally:
        coppice.stop()
finally:
    hosts.close()
print(f"{differ} of {total} end otherwise than natively")
sys.exit(differ != 0)
