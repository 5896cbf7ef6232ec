#!/usr/bin/python3
"""Writes nested27.dat: a quadratic assignment problem of nested levels, as Drezner, Hahn and Taillard
2005 build theirs, with an optimum that can be proven. 27 places in 9 groups of 3, 3 groups of 9:
distances are 1, 10 and 100 by the level that two places share; flows of a level all lie above those
of the next. So pairing the largest flows with the least distances is both a lower bound of every
order and what the order before shuffling does. The optimum is printed.

make_nested.py >nested27.dat
"""
import random
import sys

N, SIDE = 27, 3
DISTANCE = (1, 10, 100)
FLOW = ((60, 99), (20, 40), (0, 9))


def level(a, b):
    """0: the same group of 3; 1: of 9; 2: neither."""
    return 0 if a // SIDE == b // SIDE else 1 if a // SIDE**2 == b // SIDE**2 else 2


def main():
    draw = random.Random(27)
    distance = [[0] * N for _ in range(N)]
    flow = [[0] * N for _ in range(N)]
    for a in range(N):
        for b in range(a):
            distance[a][b] = distance[b][a] = DISTANCE[level(a, b)]
            flow[a][b] = flow[b][a] = draw.randint(*FLOW[level(a, b)])
    optimum = sum(distance[a][b] * flow[a][b] for a in range(N) for b in range(N))
    order = list(range(N))
    draw.shuffle(order)
    print(N)
    for matrix in (distance, [[flow[a][b] for b in order] for a in order]):
        print()
        for row in matrix:
            print(" ".join(map(str, row)))
    print(f"optimum {optimum}", file=sys.stderr)


main()
