"""Trace files as tests see them: {(sender, receiver): (messages, bytes)}."""
import collections
import pathlib


def read(path):
    """The pairs of a trace file; every promise of the format is held to."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "coppice-trace 1", lines[0]
    assert lines[1].startswith("application "), lines[1]
    assert lines[2].startswith("ranks "), lines[2]
    ranks, pairs, last = int(lines[2].split()[1]), {}, -1
    for line in lines[3:-1]:
        sender, *numbers = map(int, line.split())
        assert last < sender < ranks and len(numbers) % 3 == 0, line
        last, before = sender, -1
        for i in range(0, len(numbers), 3):
            to, messages, size = numbers[i:i + 3]
            assert before < to < ranks and messages > 0, line
            pairs[sender, to], before = (messages, size), to
    assert lines[-1] == f"end {len(pairs)}", lines[-1]
    return pairs


def total(messages):
    """(sender, receiver, bytes) one by one, or with how many they are, as a trace has them."""
    sums = collections.defaultdict(lambda: (0, 0))
    for sender, to, size, *count in messages:
        have = sums[sender, to]
        sums[sender, to] = (have[0] + (count[0] if count else 1), have[1] + size)
    return dict(sums)
