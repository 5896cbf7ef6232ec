"""Who sends how much to whom in a sparse neighbourhood exchange, as {(from, to): bytes}: made up,
or read from a graph."""
import math
import random


def geometric(ranks, seed, neighbours=8, bytes_=131072):
    """A random geometric graph: `ranks` points in a square, joined where they are nearer than what
    gives each `neighbours` on average; the nearer, the more bytes. Points are numbered as recursive
    bisection numbers the parts of a mesh, so that neighbours often have near numbers."""
    draw = random.Random(seed)
    points = bisected([(draw.random(), draw.random()) for _ in range(ranks)])
    radius = math.sqrt(neighbours / (math.pi * ranks))
    weights = {}
    for u, p in enumerate(points):
        for v, q in enumerate(points):
            distance = math.dist(p, q)
            if u != v and distance < radius:
                weights[u, v] = 64 + int(bytes_ * (1 - distance / radius))
    return weights


def bisected(points, axis=0):
    if len(points) < 2:
        return points
    points = sorted(points, key=lambda point: point[axis])
    half = len(points) // 2
    return bisected(points[:half], 1 - axis) + bisected(points[half:], 1 - axis)


def read_graph(text, most_bytes=131072):
    """A METIS graph with edge weights (format 001), the heaviest edge `most_bytes` each way."""
    weights = {}
    for u, line in enumerate(text.split("\n")[1:]):
        words = list(map(int, line.split()))
        weights.update({(u, v - 1): w for v, w in zip(words[::2], words[1::2])})
    heaviest = max(weights.values())
    return {pair: max(1, w * most_bytes // heaviest) for pair, w in weights.items()}


def matrix_market(ranks, weights):
    return (f"%%MatrixMarket matrix coordinate integer general\n{ranks} {ranks} {len(weights)}\n" +
            "".join(f"{u + 1} {v + 1} {w}\n" for (u, v), w in sorted(weights.items())))
