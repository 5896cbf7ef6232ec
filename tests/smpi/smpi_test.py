"""Whether an order that Coppice finds makes programs faster: MPI programs that only communicate, on
simulated networks, in block order, in shuffled ones and in that of `coppice-plan map`.

smpi_test.py PROGRAM PROGRAMS     coppice-plan; the folder of stencil, neighbours and routes

The search minimises congestion in every case, over the forwarding tables of the network, from block
order as the present one, and once more from a shuffled one. Simulated times are exact: what is
asserted of them are results, of the order that a search ends with. COPPICE_TEST_TIER=full runs the
large cases (cases.py). A table is printed.
"""
import os
import pathlib
import random
import subprocess
import sys
from typing import NamedTuple

import cases
import patterns
import simulator
from platforms import FatTree, Network, Torus
from scratch_files import ScratchFiles

IS_FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
CASES = cases.full() if IS_FULL else cases.short()
SEEDS = (1, 2, 3)
EXCHANGE_ROUNDS = 1
ROUNDING = 1.001  # of the simulator: two orders that fill their fullest links alike
# By rounds, so that a busy machine changes nothing.
SEARCH = ["--budget", "10s"] if IS_FULL else ["--budget", "10m", "--option", "rounds=2"]


def shuffled(hosts, seed):
    hosts = list(hosts)
    random.Random(seed).shuffle(hosts)
    return hosts


def percent(new, old):
    return f"{100 * (new / old - 1):+.1f} %"


class Times(NamedTuple):
    block: float
    shuffled: list  # one for each of SEEDS
    auto: float     # block is the present order
    auto_from_shuffled: float  # the first shuffled one is

    def row(self, name):
        mean = sum(self.shuffled) / len(self.shuffled)
        us = [f"{1e6 * time:.1f}"
              for time in (self.block, mean, self.auto, self.auto_from_shuffled)]
        return (f"| {name} | {us[0]} | {us[1]} | {us[2]} | {percent(self.auto, self.block)} | "
                f"{percent(self.auto, mean)} | {us[3]} | "
                f"{percent(self.auto_from_shuffled, self.shuffled[0])} |")


class Smpi(ScratchFiles):
    def network(self, platform):
        return Network(platform, PLAN, self.dir / "network")

    def mapped(self, network, present, pattern):
        """The host of each rank in the order that is found; `present` is the same before."""
        hosts = self.file("hosts", "".join(f"n{host:04}\n" for host in present))
        done = subprocess.run(
            [PLAN, "map", "--fabric", f"file:{network.net}", "--routes", network.tables_file,
             "--hosts", hosts, "--pattern", pattern, "--objective", "congestion", *SEARCH,
             "--emit", "hostfile"],
            capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(host[1:]) for host in done.stdout.split()]

    def times(self, case):
        """Simulated seconds of a round in each order."""
        network, pattern = self.network(case.platform), self.dir / "pattern.mtx"
        command, block = case.traffic.command(PROGRAMS, pattern, EXCHANGE_ROUNDS), case.block
        shuffles = [shuffled(block, seed) for seed in SEEDS]

        def time(hosts, *more):
            return simulator.seconds(network.cluster, hosts, self.dir, [*command, *more])

        if case.traffic.is_stencil:
            in_block = time(block, pattern)
        else:
            pattern.write_text(patterns.matrix_market(len(block), case.traffic.weights))
            in_block = time(block)
        return Times(in_block, [time(hosts) for hosts in shuffles],
                     time(self.mapped(network, block, pattern)),
                     time(self.mapped(network, shuffles[0], pattern)))

    def test_an_order_of_ours_is_faster_than_shuffled_and_never_slower_than_block(self):
        print("| network, traffic | block, us | shuffled | auto | to block | to shuffled "
              "| auto from shuffled | to shuffled |", "|" + "---|" * 8, sep="\n", flush=True)
        for case in CASES:
            with self.subTest(case.name):
                times = self.times(case)
                print(times.row(case.name), flush=True)
                self.assertLessEqual(times.auto, ROUNDING * times.block)
                if case.traffic.is_stencil:
                    self.assertLessEqual(times.auto, 0.9 * min(times.shuffled))
                    self.assertLessEqual(times.auto_from_shuffled, 0.9 * times.shuffled[0])
                    self.assertLessEqual(times.auto_from_shuffled, ROUNDING * times.block)

    # What the comparison rests on.

    def test_both_know_the_same_network(self):
        """SimGrid's links and Coppice's channels are the same, one to one, on every route."""
        platforms = {case.platform.name: case.platform for case in CASES}
        for odd in (Torus([5, 4, 3]), FatTree([3, 5, 2], [1, 2, 3])):
            platforms[odd.name] = odd
        for platform in platforms.values():
            with self.subTest(platform.name):
                self.compare_routes(self.network(platform), 1 if platform.hosts < 100 else 17)

    def compare_routes(self, network, stride):
        printed = subprocess.run([PROGRAMS / "routes", network.cluster, str(stride)], text=True,
                                 capture_output=True, check=True, timeout=120).stdout
        channel_of, link_of = {}, {}
        for line in printed.splitlines():
            first, last, *links = line.split()
            ends = [network.endpoint(int(name[1:])) for name in (first, last)]
            channels = network.fabric.by_tables(network.tables, *ends)
            if network.platform.free_hosts:
                channels = channels[1:-1]
            self.assertEqual(len(links), len(channels), line)
            for link, channel in zip(links, channels):
                self.assertEqual(channel_of.setdefault(link, channel), channel, line)
                self.assertEqual(link_of.setdefault(channel, link), link, line)
        self.assertGreater(len(link_of), network.platform.hosts)

    def test_a_stencil_says_what_it_sends(self):
        network, pattern = self.network(FatTree([2, 3], [1, 2])), self.dir / "p.mtx"
        simulator.run(network.cluster, range(6), self.dir,
                      [PROGRAMS / "stencil", "3x2", 9, 10, 1, pattern])
        weights = {}
        for u in range(6):
            for v in range(6):
                apart = abs(u % 3 - v % 3), abs(u // 3 - v // 3)
                if u != v and max(apart) == 1:
                    weights[u, v] = 8 if apart == (1, 1) else 80
        lines = pattern.read_text().splitlines()
        self.assertEqual(lines[0], "%%MatrixMarket matrix coordinate integer general")
        self.assertEqual(sorted(lines[2:]), sorted(
            f"{u + 1} {v + 1} {w}" for (u, v), w in weights.items()))

    def test_simulated_times_are_those_of_the_links_between_the_hosts_named(self):
        """1 MiB at 25 GB/s over links, or at 50 GB/s within a host; the same again."""
        network, pattern = self.network(FatTree([4, 4], [1, 2])), self.dir / "p.mtx"
        for receiver, expected in ((1, 2**20 / 25e9),   # from host 2 to host 9, over 4 links
                                   (2, 2**20 / 25e9),   # to host 3, over 2
                                   (3, 2**20 / 50e9)):  # stays on host 2
            pattern.write_text(patterns.matrix_market(4, {(0, receiver): 1 << 20}))
            found = {simulator.seconds(network.cluster, (2, 9, 3, 2), self.dir,
                                       [PROGRAMS / "neighbours", pattern, 1]) for _ in range(2)}
            self.assertEqual(len(found), 1)
            self.assertAlmostEqual(found.pop(), expected, delta=5e-8)

    def test_flows_share_a_link_equally_however_long_their_routes_are(self):
        """Rank 3's port has the most to take, 4 MiB, and is never idle. If shares went by the
        lengths of routes, near flows would end early and leave far ones behind: 196 us."""
        network, pattern = self.network(FatTree([4, 4, 4], [1, 4, 4])), self.dir / "p.mtx"
        mib = {(0, 1): 1, (1, 2): 1, (1, 3): 2, (2, 1): 1, (2, 3): 2, (3, 0): 1}
        pattern.write_text(patterns.matrix_market(
            4, {pair: size << 20 for pair, size in mib.items()}))
        found = simulator.seconds(network.cluster, (17, 34, 33, 5), self.dir,
                                  [PROGRAMS / "neighbours", pattern, 1])
        self.assertAlmostEqual(found, 4 * 2**20 / 25e9, delta=5e-8)

    def test_programs_refuse_other_numbers_of_ranks(self):
        network, pattern = self.network(FatTree([4, 4], [1, 2])), self.dir / "p.mtx"
        pattern.write_text(patterns.matrix_market(5, {(0, 4): 1}))
        for command in (["stencil", "3x3", 5, 8, 1], ["stencil", "4x2", 6, 8, 1],
                        ["neighbours", pattern, 1]):
            with self.assertRaisesRegex(RuntimeError, "as many|6 points"):
                simulator.run(network.cluster, range(8), self.dir,
                              [PROGRAMS / command[0], *command[1:]])


if __name__ == "__main__":
    PLAN, PROGRAMS = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    import unittest
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
