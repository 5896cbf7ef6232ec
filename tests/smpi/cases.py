"""Which programs run on which networks: 64 ranks in the short tier, 256 to 1,024 in the full."""
import pathlib
from typing import NamedTuple

import patterns
from platforms import FatTree, Torus, times

GRAPHS = pathlib.Path(__file__).resolve().parents[1] / "data" / "patterns"


class Stencil(NamedTuple):
    grid: tuple
    points: int
    is_stencil = True

    @property
    def name(self):
        return f"{self.points}-point stencil {times(self.grid)}"

    def command(self, programs, _, rounds):
        """Faces of 128 KiB."""
        cells = 16384 if len(self.grid) == 2 else 128
        return [programs / "stencil", times(self.grid), self.points, cells, rounds]


class Exchange(NamedTuple):
    name: str
    weights: dict
    is_stencil = False

    def command(self, programs, pattern_file, rounds):
        return [programs / "neighbours", pattern_file, rounds]


class Case(NamedTuple):
    platform: object
    ranks_per_host: int
    traffic: object

    @property
    def block(self):
        """The host of each rank in block order, which is also the present order that is given."""
        return [host for host in range(self.platform.hosts) for _ in range(self.ranks_per_host)]

    @property
    def name(self):
        per_host = f" x {self.ranks_per_host}" if self.ranks_per_host > 1 else ""
        return f"{self.platform.name}{per_host}, {self.traffic.name}"


def geometric(ranks):
    return Exchange("geometric graph", patterns.geometric(ranks, seed=1))


def graph(name, file):
    return Exchange(name, patterns.read_graph((GRAPHS / file).read_text()))


def short():
    flat, square = FatTree([8, 8], [1, 4]), Stencil((8, 8), 5)
    cube, all_around = Stencil((4, 4, 4), 7), Stencil((4, 4, 4), 27)
    thin, full = FatTree([4, 4, 4], [1, 2, 2]), FatTree([4, 4, 4], [1, 4, 4])
    torus, shared = Torus([4, 4, 4]), FatTree([4, 4], [1, 2])
    pitz = graph("OpenFOAM pitz", "comm_openfoam_pitz64.graph")
    return [
        Case(flat, 1, square), Case(flat, 1, geometric(64)),
        Case(thin, 1, cube), Case(thin, 1, all_around), Case(thin, 1, pitz),
        Case(full, 1, square), Case(full, 1, all_around),
        Case(torus, 1, square), Case(torus, 1, cube), Case(torus, 1, geometric(64)),
        Case(shared, 4, square), Case(shared, 4, cube), Case(shared, 4, pitz),
        Case(Torus([4, 4]), 4, square), Case(Torus([4, 4]), 4, geometric(64)),
    ]


def full():
    wide, cube, around = Stencil((32, 16), 5), Stencil((8, 8, 8), 7), Stencil((8, 8, 8), 27)
    two, thin = FatTree([16, 32], [1, 16]), FatTree([8, 8, 8], [1, 4, 4])
    small, large = FatTree([16, 16], [1, 8]), FatTree([16, 8, 8], [1, 8, 8])
    torus, long = Torus([8, 8, 8]), Torus([16, 8, 8])
    geometric512 = geometric(512)
    copter2 = graph("copter2 in 256 parts", "comm_copter2_k256.graph")
    return [
        Case(two, 1, wide), Case(two, 1, around), Case(two, 1, geometric512),
        Case(small, 1, Stencil((8, 8, 4), 7)), Case(small, 1, copter2),
        Case(thin, 1, wide), Case(thin, 1, cube), Case(thin, 1, around),
        Case(thin, 1, geometric512),
        Case(large, 1, Stencil((16, 8, 8), 7)),
        Case(torus, 1, wide), Case(torus, 1, cube), Case(torus, 1, around),
        Case(torus, 1, geometric512),
        Case(long, 1, Stencil((32, 32), 5)), Case(long, 1, Stencil((16, 8, 8), 7)),
        Case(FatTree([8, 16], [1, 4]), 4, cube), Case(FatTree([8, 16], [1, 4]), 4, geometric512),
        Case(FatTree([8, 8], [1, 4]), 4, copter2),
        Case(Torus([8, 8, 4]), 1, copter2), Case(Torus([8, 8, 4]), 4, Stencil((32, 32), 5)),
    ]
