#!/usr/bin/python3
"""Collectives of communicators that find out which way is sooner, against Open MPI's own in turns, on hosts that are
network namespaces. A ratio above 1.05, or a mean above 1.02, fails. Wants root, and two cores that nothing else uses.

Usage: choice_benchmark.py BUILD [HOSTS RANKS_PER_HOST [CABLE_US]]
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
for folder in ("mpi", "mpi/collectives", "mpi/switched", "integration", "../deploy"):
    sys.path.insert(0, str(TESTS / folder))
import switched_network  # noqa: E402

switched_network.enter()

from cables import Cables  # noqa: E402
from hosts_with_agents import HostsWithAgents, on_each  # noqa: E402
from switched_hosts import SwitchedHosts  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
HOSTS, RANKS, CABLE_US = (*map(int, sys.argv[2:]), *[8, 1, 0][len(sys.argv) - 2:])
os.environ["COPPICE_TEST_IDLE_RANKS"] = f"{BUILD}/tests/mpi/libcoppice_idle_ranks.so"
SIZES = [8, 256, 2 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
OPERATIONS = ["allreduce", "bcast", "reduce", "barrier"]
MOST, MOST_MEAN = 1.05, 1.02


def times(size):
    return max(30, min(200, (16 << 20) // size))


def compared(hosts, socket, operation, size):
    """Medians in microseconds: (as chosen, natively)."""
    variables = {"LD_PRELOAD": f"{BUILD}/agents/mpi/libcoppice_mpi_openmpi.so", "COPPICE_TREES": "first-use",
                 "COPPICE_TREES_AFTER": 0, "COPPICE_TIMEOUT_MS": 20000, "COPPICE_AGENT": socket}
    program = [f"{BUILD}/tests/mpi/collectives/coppice_compared_openmpi", operation, size, times(size)]
    words = on_each("openmpi", hosts.names, RANKS)
    line = hosts.command("openmpi", len(hosts.names) * RANKS, words, program, variables)
    done = subprocess.run(line, capture_output=True, text=True, timeout=900, check=True)
    return tuple(map(float, re.search(r"chosen (\S+) us, native (\S+) us", done.stdout).groups()))


def main():
    cables = Cables(f"{BUILD}/tests/mpi/switched/coppice_cables", delay_us=CABLE_US) if CABLE_US else None
    hosts = SwitchedHosts(f"{BUILD}/daemon/plan/coppice-plan",
                          f"model:fat-tree(leaves={HOSTS // 4},spines=2,hosts-per-leaf=4)", cables and cables.lay)
    if cables:
        cables.go()
    coppice = HostsWithAgents(hosts, f"{BUILD}/daemon/coppiced", f"{BUILD}/agents/node/coppice-agent", hosts.fabric)
    ratios = []
    for operation in OPERATIONS:
        for size in SIZES if operation != "barrier" else [8]:
            chosen, native = compared(hosts, coppice.socket, operation, size)
            ratios.append(chosen / native)
            print(f"{operation} {size} B, {HOSTS} hosts, {RANKS} ranks each, cables of {CABLE_US} us: as chosen "
                  f"{chosen:.0f} us, natively {native:.0f} us, ratio {ratios[-1]:.2f}", flush=True)
    print(f"mean {statistics.mean(ratios):.3f}, bound {MOST_MEAN}; greatest {max(ratios):.2f}, bound {MOST}")
    coppice.stop()
    hosts.close()
    if cables:
        cables.close()
    return 0 if statistics.mean(ratios) <= MOST_MEAN and max(ratios) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
