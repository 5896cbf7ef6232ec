"""Whether the JSON of `coppice-plan tree` is a tree that the definitions allow on the fabric that
it was planned for, and costs what it says. Shares nothing with the program: it reads the fabric's
text itself and computes distances, least numbers of switches and times on its own.
"""
import collections
import math

INFINITE = float("inf")


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in what))


class Case:
    """A tree with what it was asked for. `members` are endpoints in rank order; `tables` are
    forwarding tables as net_text reads them, None: the routes are shortest paths."""

    def __init__(self, tree, fabric, members, nic_degree=64, switch_degree=64, full=(),
                 tables=None):
        self.tree, self.fabric, self.members = tree, fabric, members
        self.nic_degree, self.switch_degree, self.full = nic_degree, switch_degree, set(full)
        self.tables = tables
        self.nodes = {node["id"]: node for node in tree["nodes"]}
        self.children = collections.defaultdict(list)  # in order of node number
        for node in tree["nodes"]:
            if node["parent"] is not None:
                self.children[node["parent"]].append(node["id"])

    def route(self, a, b):
        """Channels from a to b; of several shortest paths any."""
        if self.tables is None:
            return self.fabric.shortest(a, b)
        return self.fabric.by_tables(self.tables, a, b)

    def place(self, node_id):
        kind, number = node_id.split(":")
        return self.members[int(number)] if kind == "rank" else ("S", number)

    def depth(self, node_id, length):
        """Sum of length(node) from the node up to the root; fails on a cycle."""
        total, steps = 0, 0
        while node_id != self.tree["root"]:
            total += length(self.nodes[node_id])
            node_id = self.nodes[node_id]["parent"]
            steps += 1
            check(node_id is not None and steps <= len(self.nodes), "no way to the root")
        return total

    def verify(self):
        self.verify_nodes()
        self.verify_shape()
        if self.tree["type"] == "TREE_TYPE_I":
            self.verify_type_1()
        else:
            self.verify_physical()
            self.verify_type_2()
        self.verify_alternatives()

    def verify_nodes(self):
        check(len(self.nodes) == len(self.tree["nodes"]), "an ID twice")
        ranks = [node for node in self.tree["nodes"] if node["kind"] == "rank"]
        check([node["rank"] for node in ranks] == list(range(len(self.members))), "ranks")
        for node in ranks:
            check(node["id"] == f"rank:{node['rank']}", node)
            check(node["endpoint"] == self.fabric.name(self.members[node["rank"]]), node)
        switches = self.tree["nodes"][len(ranks):]
        check(len(switches) == self.tree["switches"], "cost is not the number of switches")
        for node in switches:
            check(node["kind"] == "switch" and node["rank"] is None, node)
            check(node["endpoint"] is None and self.place(node["id"]) in self.fabric.switches, node)
            check(self.children[node["id"]], node, "serves nobody")

    def verify_shape(self):
        roots = [node["id"] for node in self.tree["nodes"] if node["parent"] is None]
        check(roots == [self.tree["root"]], "roots", roots)
        for node in self.tree["nodes"]:
            if node["parent"] is None:
                check(node["links"] == 0, node)
            else:
                check(node["parent"] in self.nodes, node)
                route = self.route(self.place(node["id"]), self.place(node["parent"]))
                check(node["links"] == len(route), node, "but its route is", route)
        check(self.tree["height"] == max(self.depth(i, lambda n: 1) for i in self.nodes), "height")
        check(self.tree["radius"] == max(self.depth(i, lambda n: n["links"]) for i in self.nodes),
              "radius")

    def verify_type_1(self):
        check(self.tree["switches"] == 0 and "physical" not in self.tree, "switches in type I")
        for node_id, children in self.children.items():
            check(len(children) <= self.nic_degree, node_id, "has", len(children), "children")
        width = self.tree["width"]
        check(width >= 2 or len(self.members) < 3, "width", width)
        parents = [node["parent"] for node in self.tree["nodes"]]
        ranks = range(len(parents))
        if self.tree["builder"] == "TREE_BUILDER_KARY":
            check(parents == [kary_parent(rank, width) for rank in ranks], "not k-ary")
        elif self.tree["builder"] == "TREE_BUILDER_KNOMIAL":
            check(parents == [knomial_parent(rank, width) for rank in ranks], "not k-nomial")
        elif self.tree["builder"] == "TREE_BUILDER_POSTAL":
            most = max((len(children) for children in self.children.values()), default=0)
            check(width == max(2, most), "width", width, "but a rank has", most, "children")
        else:
            check(self.tree["builder"] == "TREE_BUILDER_HIERARCHICAL", self.tree["builder"])
            self.verify_groups(lambda m: (self.fabric.host(m), self.fabric.leaf(m)))
            self.verify_groups(self.fabric.leaf)

    def verify_groups(self, group_of):
        """Of every group exactly one member is the root or has its parent outside."""
        leaving = collections.Counter()
        for node in self.tree["nodes"]:
            group = group_of(self.members[node["rank"]])
            parent = node["parent"]
            leaving[group] += parent is None or group_of(self.place(parent)) != group
        check(set(leaving.values()) == {1}, "groups are left by", leaving)

    def verify_physical(self):
        self.up = {vertex["id"]: vertex["parent"] for vertex in self.tree["physical"]}
        check(len(self.up) == len(self.tree["physical"]), "a vertex twice in the physical tree")
        lowest = {}
        for rank, member in enumerate(self.members):
            lowest.setdefault(member, f"rank:{rank}")
        self.leaf_of = {f"rank:{r}": lowest[m] for r, m in enumerate(self.members)}
        inner = {parent for parent in self.up.values() if parent is not None}
        check(set(self.up) - inner == set(lowest.values()), "the leaves are not the members")
        self.top = [v for v, parent in self.up.items() if parent is None]
        check(len(self.top) == 1, "roots of the physical tree:", self.top)
        top = self.place(self.top[0])
        for vertex, parent in self.up.items():
            if parent is not None:
                check(self.place(parent) in self.fabric.neighbours[self.place(vertex)],
                      vertex, "is not cabled to", parent)
                check(self.ancestors(vertex)[-1] == self.top[0], vertex, "does not reach the root")
        for member, vertex in lowest.items():
            route = [self.fabric.cables[channel][0] for channel in self.route(member, top)]
            chain = [self.place(ancestor) for ancestor in self.ancestors(vertex)]
            check(len(chain) == len(route), vertex, "is not as near the root as its route")
            check(self.tables is None or chain == route, vertex, "does not follow its route")

    def ancestors(self, vertex):
        chain = []
        while self.up[vertex] is not None and len(chain) <= len(self.up):
            vertex = self.up[vertex]
            chain.append(vertex)
        return chain

    def verify_type_2(self):
        check(self.tree["builder"] == "TREE_BUILDER_MINIMUM_COST" and self.tree["width"] == 0, "builder, width")
        for node in self.tree["nodes"]:
            children = self.children[node["id"]]
            if node["kind"] == "rank":
                check(not children, node, "has children")
            else:
                check(len(children) <= self.switch_degree, node, "has", len(children), "children")
                check(self.place(node["id"]) not in self.full, node, "serves and is full")
            if node["parent"] is not None:
                check(node["parent"] in self.ancestors(self.leaf_of.get(node["id"], node["id"])),
                      node, "does not hang below an ancestor")
        least = self.least_switches()
        check(self.tree["switches"] == least, self.tree["switches"], "switches, least is", least)
        if len(self.members) > 1:
            check(least >= math.ceil((len(self.members) - 1) / (self.switch_degree - 1)), "bound")

    def least_switches(self):
        """out(u, j) = fewest items that leave u's subtree with j serving switches in it."""
        if len(self.members) == 1:
            return 0
        ranks_at = collections.Counter(self.leaf_of.values())
        below = collections.defaultdict(list)
        for vertex, parent in self.up.items():
            below[parent].append(vertex)

        def out(vertex):
            if vertex in ranks_at:
                return [ranks_at[vertex]]
            items = [0]
            for child in below[vertex]:
                items = min_plus(items, out(child))
            if self.place(vertex) in self.full or self.switch_degree < 2:
                return items
            serving = [INFINITE] + [max(1, s - self.switch_degree + 1) for s in items]
            return [min(pair) for pair in zip(items + [INFINITE], serving)]

        items = out(self.top[0])
        return next(j for j in range(1, len(items)) if items[j] == 1)

    def verify_alternatives(self):
        total = self.tree["predicted"]["total_us"]
        for other in self.tree["alternatives"]:
            check(other["type"] in ("TREE_TYPE_I", "TREE_TYPE_II") and other["why_not"], other)
            if other["total_us"] is not None:
                check(other["total_us"] >= total * (1 - 1e-9), other, "is faster than", total)
            elif other["why_not"].startswith("takes at least"):
                check(float(other["why_not"].split()[3]) >= total - 0.006, other)
        check(self.tree["reason"], "no reason")

    def verify_times(self, profile, payloads, load=None):
        """`profile` as the program's TOML, `payloads` = (up, down, reduced) bytes of equal weight,
        `load` = {channel: utilisation}."""
        times = [Walk(self, profile, load or {}).all_packets(*payload) for payload in payloads]
        aggregate, distribute = (sum(column) / len(times) for column in zip(*times))
        want = {"aggregate_us": aggregate, "distribute_us": distribute,
                "total_us": profile["init_us"] + aggregate + distribute}
        got = self.tree["predicted"]
        whole = profile["init_us"] + got["aggregate_us"] + got["distribute_us"]
        check(abs(got["total_us"] - whole) <= 2e-5 * whole + 1e-9, "parts are not the whole", got)
        if any(size > profile["mtu_bytes"] for payload in payloads for size in payload[:2]):
            least = [Walk(self, profile, load or {}).at_least(*payload) for payload in payloads]
            self.verify_long(profile["init_us"] + sum(least) / len(least), want["total_us"])
            return
        if self.shares_links():  # then links' queues may add to it
            check(got["total_us"] >= want["total_us"] * (1 - 2e-5) - 1e-9, got, "below", want)
            return
        for name, value in want.items():
            check(abs(got[name] - value) <= 2e-5 * value + 1e-9, name, "is", got[name],
                  "and not", value)

    def verify_long(self, least, formula):
        """Packets of a long message are followed one by one, which the simulator verifies: here
        that it takes no less than it can, and what the first packet and a slowest stage for each
        other one say to within a half, where links' queues add nothing."""
        total = self.tree["predicted"]["total_us"]
        check(total >= least * (1 - 2e-5) - 1e-9, total, "below", least)
        if not self.shares_links():
            check(formula / 1.5 <= total <= formula * 1.5, total, "is far from", formula)

    def shares_links(self):
        """Whether edges share a channel, but with siblings at their parent's own port."""
        users = collections.defaultdict(set)
        for node_id, children in self.children.items():
            for child in children:
                for down in (False, True):
                    ends = (node_id, child) if down else (child, node_id)
                    path = self.route(self.place(ends[0]), self.place(ends[1]))
                    for hop, channel in enumerate(path):
                        at_parent = hop == (0 if down else len(path) - 1)
                        users[down, channel].add((node_id if at_parent else child, at_parent))
        return any(len(who) > 1 for who in users.values())


def kary_parent(rank, width):
    return None if rank == 0 else f"rank:{(rank - 1) // width}"


def knomial_parent(rank, width):
    if rank == 0:
        return None
    weight = 1
    while rank // weight % width == 0:
        weight *= width
    return f"rank:{rank - rank // weight % width * weight}"


def min_plus(a, b):
    result = [INFINITE] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] = min(result[i + j], x + y)
    return result


class Walk:
    """The exact evaluation: packets are served one at a time, by arrival and then by number."""

    def __init__(self, case, profile, load):
        self.case, self.profile, self.load = case, profile, load
        self.number = {node["id"]: i for i, node in enumerate(case.tree["nodes"])}

    def cost(self, node_id):
        return self.profile["nic" if node_id.startswith("rank") else "switch"]

    def forward(self, node_id, size):
        cost = self.cost(node_id)
        return cost["forward_us"] + size * cost["forward_us_per_byte"]

    def route(self, a, b, size):
        """Time on the links with serialisation, and the capacity of the first and last link."""
        path = self.case.route(self.case.place(a), self.case.place(b))
        if not path:
            return None, INFINITE, INFINITE
        time, gbps = 0, [self.case.fabric.gbps[channel] for channel in path]
        for channel, rate in zip(path, gbps):
            busy = min(self.load.get(channel, 0), 0.99)
            time += (self.profile["link_us"] +
                     self.profile["mtu_bytes"] * 8e-3 / rate * busy / (2 * (1 - busy)))
        return time + size * 8e-3 / min(gbps), gbps[0], gbps[-1]

    def edge(self, sender, size, time):
        """From being handed on to arrival; within a host nothing is stored and forwarded."""
        return (self.profile["same_host_us"] if time is None
                else self.forward(sender, size) + time)

    def wire(self, size, gbps):
        return (size + self.profile.get("header_bytes", 26)) * 8e-3 / gbps

    def all_packets(self, up, down, reduced):
        """The first packet's times, and one slowest stage for each after it."""
        mtu = self.profile["mtu_bytes"]
        more_up, more_down = (max(0, -(-size // mtu) - 1) for size in (up, down))
        up, down, reduced = (min(size, mtu) for size in (up, down, reduced))
        aggregate, distribute = self.times(up, down, reduced)
        stages_up, stages_down, ports = self.stages(up, down, reduced)
        if more_up != more_down:
            return aggregate + more_up * stages_up, distribute + more_down * stages_down
        first = max(stages_up, ports)
        return (aggregate + more_up * first,
                distribute + more_up * (max(first, stages_down) - first))

    def at_least(self, up, down, reduced):
        """The first packet, and all that one node or port has to do for the others but the last."""
        mtu = self.profile["mtu_bytes"]
        more_up, more_down = (max(0, -(-size // mtu) - 1) for size in (up, down))
        first = [min(size, mtu) for size in (up, down, reduced)]
        stages_up, stages_down, ports = self.stages(*first)
        if more_up == more_down:
            return max(sum(self.times(*first)), more_up * max(stages_up, stages_down, ports))
        return max(sum(self.times(*first)), more_up * stages_up + more_down * stages_down)

    def stages(self, up, down, reduced):
        busy = collections.defaultdict(float)
        for node_id, children in self.case.children.items():
            cost, is_rank = self.cost(node_id), node_id.startswith("rank")
            work = cost["match_us"] + reduced * cost["reduce_us_per_byte"]
            for child in children:
                there = self.case.route(self.case.place(child), self.case.place(node_id))
                back = self.case.route(self.case.place(node_id), self.case.place(child))
                rates = [[self.case.fabric.gbps[c] for c in way] or [INFINITE]
                         for way in (there, back)]
                enter, leave = self.wire(up, rates[0][-1]), self.wire(down, rates[1][0])
                busy["up", node_id] += max(work, enter)
                busy["down", node_id] += max(cost["send_us"], leave)
                busy["up", "edge", child] = self.wire(up, min(rates[0]))
                busy["down", "edge", child] = self.wire(down, min(rates[1]))
                for end, way in ((node_id, None), (child, there)):
                    if end.startswith("rank") and there:
                        into, out = (enter, leave) if way is None else (
                            self.wire(down, rates[1][-1]), self.wire(up, rates[0][0]))
                        busy["port", "in", end] += into
                        busy["port", "out", end] += out
        return [max([us for what, us in busy.items() if what[0] == kind], default=0.0)
                for kind in ("up", "down", "port")]

    def times(self, up, down, reduced):
        order = [self.case.tree["root"]]
        for node_id in order:
            order.extend(self.case.children[node_id])
        done = {}
        for node_id in reversed(order):
            done[node_id] = self.done(node_id, done, up, reduced)
        has = {self.case.tree["root"]: 0.0}
        for node_id in order:
            self.send(node_id, has, down)
        return done[self.case.tree["root"]], max(has.values())

    def done(self, node_id, done, up, reduced):
        cost = self.cost(node_id)
        work = cost["match_us"] + reduced * cost["reduce_us_per_byte"]
        packets = []
        for child in self.case.children[node_id]:
            time, _, gbps = self.route(child, node_id, up)
            arrival = done[child] + self.edge(child, up, time)
            packets.append((arrival, self.number[child], max(work, self.wire(up, gbps))))
        start, end = -INFINITE, 0.0
        for arrival, _, spacing in sorted(packets):
            start = max(arrival, start + spacing)
            end = start + work
        return end

    def send(self, node_id, has, down):
        start, copy = has[node_id], self.cost(node_id)["send_us"]
        for child in self.case.children[node_id]:
            time, gbps, _ = self.route(node_id, child, down)
            has[child] = start + copy + self.edge(node_id, down, time)
            start += max(copy, self.wire(down, gbps))
