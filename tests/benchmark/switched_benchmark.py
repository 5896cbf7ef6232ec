#!/usr/bin/python3
"""Collectives over coppice-switches, on hosts and switches that are network namespaces:

- long cables: a collective of 16 hosts over switches against Open MPI's own;
- the cost model: calibrated to measured latencies of some sizes and shapes, predicted against measured of others;
- a flood: how much slower a tree is while a process that is no member does what it can at one of its switches.

Ratios are printed, with the bounds that they are to keep; a bound that is not kept fails. Wants root, and two cores
that nothing else uses.

Usage: switched_benchmark.py BUILD [cables] [model] [flood]
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
for folder in ("mpi", "mpi/collectives", "mpi/switched", "integration", "../deploy"):
    sys.path.insert(0, str(TESTS / folder))
import switched_network  # noqa: E402

switched_network.enter()

import mpi_run  # noqa: E402
from cables import Cables  # noqa: E402
from hosts_with_agents import on_each  # noqa: E402
from switched_hosts import SwitchedCoppice, SwitchedHosts  # noqa: E402

BUILD, *PARTS = os.path.abspath(sys.argv[1]), *sys.argv[2:]
os.environ["COPPICE_TEST_IDLE_RANKS"] = f"{BUILD}/tests/mpi/libcoppice_idle_ranks.so"
CABLE_US = 2000  # beside which what two processors do for 16 hosts and 5 switches is little
FLOODS = ["garbage", "strangers", "silence"]


class Site:
    """A fabric whose switches have no more children than are below them, and what runs on it."""

    def __init__(self, fabric, children, **cables):
        self.cables = Cables(f"{BUILD}/tests/mpi/switched/coppice_cables", **cables) if cables else None
        self.hosts = SwitchedHosts(f"{BUILD}/daemon/plan/coppice-plan", fabric, self.cables and self.cables.lay)
        if self.cables:
            self.cables.go()
        self.coppice = SwitchedCoppice(self.hosts, f"{BUILD}/daemon/coppiced", f"{BUILD}/agents/node/coppice-agent",
                                       f"{BUILD}/client/coppicectl", f"{BUILD}/agents/switch/coppice-switch",
                                       children=children)

    def median_us(self, operation, size, times, names=None, trees=True):
        names = names or self.hosts.names
        variables = {"LD_PRELOAD": f"{BUILD}/agents/mpi/libcoppice_mpi_openmpi.so", "COPPICE_TREES": "creation",
                     "COPPICE_TREES_TYPE": 2, "COPPICE_TIMEOUT_MS": 20000, "COPPICE_AGENT": self.coppice.socket,
                     **mpi_run.TREES_AT_ONCE} if trees else {}
        program = [f"{BUILD}/tests/mpi/switched/coppice_repeated_openmpi", operation, size, times]
        line = self.hosts.command("openmpi", len(names), on_each("openmpi", names, 1), program, variables)
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
        return float(re.search(r"median (\S+) us, wrong 0", done.stdout).group(1))

    def close(self):
        self.coppice.stop()
        self.hosts.close()
        if self.cables:
            self.cables.close()


def judge(what, value, most):
    print(f"{what}: {value:.2f}, bound {most}", flush=True)
    return value <= most


def cables():
    site = Site("model:fat-tree(leaves=4,spines=1,hosts-per-leaf=4)", 4, delay_us=CABLE_US)
    kept = []
    for operation in ("allreduce", "barrier"):
        over, natively = (site.median_us(operation, 8, 200, trees=trees) for trees in (True, False))
        kept.append(judge(f"{operation} of 16 hosts, cables of {CABLE_US} us, {over:.0f} us over switches, "
                          f"{natively:.0f} us natively: ratio", over / natively, 0.7))
    site.close()
    return all(kept)


def quietest(site, operation, size, members):
    """Of three runs: hosts, switches and cables share the processors of one machine, which cables do not."""
    return min(site.median_us(operation, size, 100, members) for _ in range(3))


def model():
    """One leaf, or all of them, is of the closed forms' shape: those are the samples."""
    site = Site("model:fat-tree(leaves=4,spines=1,hosts-per-leaf=4)", 4, delay_us=CABLE_US)
    names = site.hosts.names
    leaves = [names[first:first + 4] for first in range(0, 16, 4)]
    pairs = [name for leaf in leaves[:2] for name in leaf[:2]]
    rows = ["operation,bytes,members,type,width,microseconds"]
    for members, width in ((leaves[0], 4), (leaves[1][:2], 2), (names, 4), (pairs, 2)):
        for size in (0, 8, 256, 1024, 4096):
            operation = "allreduce" if size else "barrier"
            us = quietest(site, operation, size, members)
            rows.append(f"{operation},{size},{len(members)},II,{width},{us}")
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("\n".join(rows) + "\n")
        file.flush()
        fixed = ["init_us=0", "nic", f"link_us={CABLE_US}", "switch.send_us", "port_gbps=0"]
        print(site.coppice.switches.tell("calibrate", file.name, "--relative", "--apply",
                                         *(word for one in fixed for word in ("--fix", one))), flush=True)
    job = site.coppice.ask("job", "register", "--nodes", ",".join(names), "--lease", "1h")["id"]
    errors = []
    for members in (leaves[2], leaves[2][:3], leaves[0] + leaves[3], leaves[0] + leaves[1] + leaves[2], names):
        for size in (64, 512, 2048):
            us = quietest(site, "allreduce", size, members)
            tree = site.coppice.ask("tree", "create", "--job", job, "--members", ",".join(members), "--dry-run",
                                    "--type", "2", "--op", "allreduce", "--bytes", str(size))
            predicted = tree["predicted"]["total_us"]
            print(f"  {len(members)} hosts, {size} B: predicted {predicted:.0f} us, measured {us:.0f} us", flush=True)
            errors.append(abs(predicted / us - 1))
    site.close()
    return judge("predicted against measured after calibration, median error", statistics.median(errors), 0.1)


def flood():
    site = Site("model:fat-tree(leaves=2,spines=1,hosts-per-leaf=2)", 2)

    def flooded_us(kind, addresses):
        enemy = subprocess.Popen(["nice", "-n", "19", *site.hosts.inside(1), sys.executable,
                                  str(TESTS / "benchmark" / "switch_flood.py"), kind, json.dumps(addresses)])
        try:
            return site.median_us("allreduce", 8, 1000)
        finally:
            enemy.kill()
            enemy.wait()

    kept = []
    switches = [one["hello"]["address"] for one in site.coppice.switches.connected()]
    for kind in FLOODS:
        rounds = [(site.median_us("allreduce", 8, 1000), flooded_us(kind, switches)) for _ in range(5)]
        quiet, flooded = (statistics.median(column) for column in zip(*rounds))
        what = (f"8 B Allreduce of 4 hosts, {quiet:.0f} us; while a process that is no member floods its switches "
                f"({kind}) {flooded:.0f} us: ratio")
        kept.append(judge(what, flooded / quiet, 1.2))
    site.close()
    return all(kept)


if __name__ == "__main__":
    sys.exit(0 if all([{"cables": cables, "model": model, "flood": flood}[part]()
                       for part in PARTS or ["cables", "model", "flood"]]) else 1)
