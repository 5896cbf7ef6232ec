#!/usr/bin/python3
"""What a trace costs: a ping-pong of 1 KiB messages through shared memory, with and without the
preloaded library, in turns, so that both see the same machine. Prints the medians and the median of
the pairs' ratios; more than 5 % is a failure. Wants two cores that nothing else uses.

Usage: trace_benchmark.py openmpi|mpich LIBRARY PING_PONG [PAIRS]
"""
import os
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mpi"))
import mpi_run  # noqa: E402

MPI, LIBRARY, PROGRAM = sys.argv[1:4]
PAIRS = int(sys.argv[4]) if len(sys.argv) > 4 else 15
BYTES, ROUNDS, MOST = 1024, 300000, 1.05


def microseconds(preload, environment):
    done = mpi_run.run(MPI, 2, [PROGRAM, BYTES, ROUNDS], preload, environment)
    return float(done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        traced = {"COPPICE_TRACE": os.path.join(folder, "trace")}
        pairs = []
        for turn in range(PAIRS):
            order = [(None, {}), (LIBRARY, traced)]
            times = {bool(preload): microseconds(preload, variables)
                     for preload, variables in (order if turn % 2 == 0 else order[::-1])}
            pairs.append((times[False], times[True]))
    ratio = statistics.median(after / before for before, after in pairs)
    before, after = (statistics.median(column) for column in zip(*pairs))
    print(f"{MPI}: a round of {BYTES} bytes {before:.3f} us, traced {after:.3f} us, "
          f"ratio {ratio:.3f}")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
