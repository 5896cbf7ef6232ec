"""Whether the JSON of `coppice-plan map` is an order of ranks that the definitions allow, and
measures what it says. Shares nothing with the program: weights, distances and fabric are given as
read by the test itself.
"""
import collections
import functools


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in what))


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-9)


class Question:
    """`weights` is {(from, to): bytes}, `slots` the place of every slot in rank order, which may be
    an endpoint of `fabric` (net_text.Fabric) or anything else; `distance(a, b)` is between places;
    `tables` are forwarding tables, None: even shares of all shortest paths."""

    def __init__(self, ranks, weights, slots, distance, fabric=None, tables=None):
        self.ranks, self.weights, self.slots = ranks, weights, slots
        self.distance, self.fabric, self.tables = distance, fabric, tables

    def verify(self, answer):
        order = answer["permutation"]
        check(len(order) == self.ranks, "ranks of", order)
        check(len(set(order)) == len(order), "a slot with two ranks in", order)
        check(all(0 <= slot < len(self.slots) for slot in order), "a slot out of range")
        for name, permutation in (("before", range(self.ranks)), ("objective", order)):
            self.verify_measures(answer[name], self.measures(permutation))
        check(answer["seconds"] >= 0 and answer["reason"], "no time or no reason")

    def verify_measures(self, said, found):
        check(set(said) == set(found), "measures", set(said) ^ set(found))
        for name, value in found.items():
            if value is None or said[name] is None:
                check(value is said[name] is None, name, "is", said[name])
            else:
                check(near(said[name], value), name, "is said to be", said[name], "and is", value)

    def measures(self, permutation):
        places = [self.slots[slot] for slot in permutation]
        found = {"qap_cost": sum(w * self.distance(places[u], places[v])
                                 for (u, v), w in self.weights.items())}
        pairs = [(places[u], places[v], w) for (u, v), w in self.weights.items() if u != v]
        if self.fabric is None:
            found["inter_node_bytes"] = sum(w for a, b, w in pairs if a != b)
            for name in ("max_congestion", "avg_dilation", "hop_bytes", "max_dilation",
                         "inter_switch_bytes"):
                found[name] = None
            return found
        fabric = self.fabric
        found["inter_node_bytes"] = sum(w for a, b, w in pairs if fabric.host(a) != fabric.host(b))
        found["inter_switch_bytes"] = sum(w for a, b, w in pairs if fabric.leaf(a) != fabric.leaf(b))
        traffic, longest = collections.Counter(), 0
        for a, b, w in pairs:
            if w == 0 or fabric.same_place(a, b):
                continue
            shares = self.shares(a, b)
            for channel, share in shares:
                traffic[channel] += w * share
            longest = max(longest, round(sum(share for _, share in shares)))
        found["hop_bytes"] = sum(traffic.values())
        total = sum(w for _, _, w in pairs)
        found["avg_dilation"] = found["hop_bytes"] / total if total else 0
        found["max_dilation"] = longest
        found["max_congestion"] = max((bytes_ / fabric.gbps[channel]
                                       for channel, bytes_ in traffic.items()), default=0)
        return found

    @functools.lru_cache(maxsize=None)
    def shares(self, a, b):
        """(channel, share of the traffic from a to b) on every channel that carries any."""
        fabric = self.fabric
        if self.tables is not None:
            return [(channel, 1) for channel in fabric.by_tables(self.tables, a, b)]
        start, goal = fabric.leaf(a), fabric.leaf(b)
        hops = fabric.hops_to(goal)
        nearer = collections.defaultdict(list)  # switch -> channels one hop nearer to the goal
        for channel, (peer, _) in fabric.cables.items():
            if peer[0] == channel[0][0] == "S" and hops[peer] == hops[channel[0]] - 1:
                nearer[channel[0]].append((channel, peer))

        @functools.lru_cache(maxsize=None)
        def paths(switch):
            return 1 if switch == goal else sum(paths(peer) for _, peer in nearer[switch])

        flow, shares = collections.Counter({start: 1.0}), [((a, a[2]), 1)]
        for switch in sorted(hops, key=lambda s: -hops[s]):
            for channel, peer in nearer[switch] if flow[switch] else ():
                share = flow[switch] * paths(peer) / paths(switch)
                shares.append((channel, share))
                flow[peer] += share
        return shares + [(fabric.cables[b, b[2]], 1)]


def hops(fabric):
    """Distance between endpoints in links."""
    return lambda a, b: 0 if fabric.same_place(a, b) else len(fabric.shortest(a, b))


def levels(extents, distances):
    """Distance between places of a uniform hierarchy, numbered from the innermost level."""
    def distance(a, b):
        result = 0
        for extent, d in zip(extents, distances):
            if a == b:
                break
            result, a, b = d, a // extent, b // extent
        return result
    return distance


# What files hold, read anew.

def read_dense(text):
    rows = [[float(word) for word in line.split()] for line in text.split("\n")[1:] if line]
    return {(u, v): w for u, row in enumerate(rows) for v, w in enumerate(row) if w}


def read_graph(text):
    """Edges with weights (format 001)."""
    weights = collections.Counter()
    for u, line in enumerate(text.split("\n")[1:]):
        words = line.split()
        for v, w in zip(words[::2], words[1::2]):
            weights[u, int(v) - 1] += float(w) / 2
    return weights


def read_qap(text):
    numbers = [float(word) for word in text.split()]
    n = int(numbers[0])
    flows = {divmod(i, n): w for i, w in enumerate(numbers[1 + n * n:]) if w}
    return n, lambda a, b: numbers[1 + a * n + b], flows
