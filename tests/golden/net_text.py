"""Fabrics as ibnetdiscover prints them: written for tests, and read without the program's code.

A vertex is ("S", switch GUID) or ("H", adapter GUID, port); a channel is (vertex, port that it
leaves by).
"""
import collections
import re

GBPS_PER_LANE = {"SDR": 2, "DDR": 4, "QDR": 8, "EDR": 25, "HDR": 50, "NDR": 100}
DEVICE = re.compile(r"^(HCA|mlx|hfi|qib|ib).*\d$")


class Net:
    """Builds the text: switches by number, hosts named h0, h1, ..."""

    def __init__(self):
        self.switches = []  # per switch: {port: (peer kind, peer, peer port)}
        self.hosts = []     # per host: [(leaf, port of it)] by its own ports, from 1

    def switch(self):
        self.switches.append({})
        return len(self.switches) - 1

    def cable(self, a, b):
        p, q = len(self.switches[a]) + 1, len(self.switches[b]) + 1
        self.switches[a][p], self.switches[b][q] = ("S", b, q), ("S", a, p)

    def host(self, *leaves):
        """One adapter, with a port on each of these switches."""
        cables = []
        for own_port, leaf in enumerate(leaves, 1):
            port = len(self.switches[leaf]) + 1
            self.switches[leaf][port] = ("H", len(self.hosts), own_port)
            cables.append((leaf, port))
        self.hosts.append(cables)

    def guid(self, kind, i):
        return f"{0x1000 + i if kind == 'S' else 0x100000 + 16 * i:016x}"

    def lid(self, kind, i, port=1):
        if kind == "S":
            return i + 1
        return len(self.switches) + i + 1 + (port - 1) * len(self.hosts)

    def text(self):
        lines = []
        for i, ports in enumerate(self.switches):
            lines += [f"switchguid=0x{self.guid('S', i)}",
                      f'Switch\t64 "S-{self.guid("S", i)}"\t\t# "s{i}" base port 0 '
                      f'lid {self.lid("S", i)} lmc 0']
            for port, (kind, peer, peer_port) in ports.items():
                guid, lid = self.guid(kind, peer), self.lid(kind, peer, peer_port)
                if kind == "S":
                    lines.append(f'[{port}]\t"S-{guid}"[{peer_port}]\t\t'
                                 f'# "s{peer}" lid {lid} 4xHDR')
                else:
                    lines.append(f'[{port}]\t"H-{guid}"[{peer_port}]'
                                 f'({int(guid, 16) + peer_port:x}) \t\t'
                                 f'# "h{peer} mlx5_0" lid {lid} 4xHDR')
            lines.append("")
        for i, cables in enumerate(self.hosts):
            guid = self.guid("H", i)
            lines += [f"caguid=0x{guid}", f'Ca\t{len(cables)} "H-{guid}"\t\t# "h{i} mlx5_0"']
            for own_port, (leaf, port) in enumerate(cables, 1):
                lines.append(f'[{own_port}]({int(guid, 16) + own_port:x}) '
                             f'\t"S-{self.guid("S", leaf)}"[{port}]\t\t'
                             f'# lid {self.lid("H", i, own_port)} lmc 0 "s{leaf}" '
                             f'lid {self.lid("S", leaf)} 4xHDR')
            lines.append("")
        return "\n".join(lines)

    def forwarding_tables(self, out_port):
        """dump_lfts text; out_port(switch, kind, i) is the port towards switch or host i."""
        targets = ([("S", i) for i in range(len(self.switches))] +
                   [("H", i) for i in range(len(self.hosts))])
        lines = []
        for s in range(len(self.switches)):
            lines += [f"Unicast lids [0x0-0x{len(targets):x}] of switch Lid {self.lid('S', s)} "
                      f"guid 0x{self.guid('S', s)} (s{s}):",
                      "  Lid  Out   Destination", "       Port     Info "]
            for kind, i in targets:
                port = 0 if (kind, i) == ("S", s) else out_port(s, kind, i)
                lines.append(f"0x{self.lid(kind, i):04x} {port:03} : (somewhere)")
            lines.append(f"{len(targets)} valid lids dumped ")
        return "\n".join(lines) + "\n"


def two_level(leaves, spines, hosts):
    """Leaves s0.. with `hosts` hosts each in order, then spines, each cabled to every leaf."""
    net = Net()
    for _ in range(leaves + spines):
        net.switch()
    for leaf in range(leaves):
        for _ in range(hosts):
            net.host(leaf)
        for spine in range(spines):
            net.cable(leaf, leaves + spine)
    return net


def two_leaves_a_host(leaves, spines, hosts):
    """As two_level, and every host has a second port on the next leaf."""
    net = Net()
    for _ in range(leaves + spines):
        net.switch()
    for leaf in range(leaves):
        for _ in range(hosts):
            net.host(leaf, (leaf + 1) % leaves)
        for spine in range(spines):
            net.cable(leaf, leaves + spine)
    return net


def figure_11():
    """s0 above s1-s3, each above three of s4-s12, which hold 2 2 2, 2 2 2, 2 1 1 members."""
    net = Net()
    for i in range(13):
        net.switch()
        if i > 0:
            net.cable((i - 1) // 3, i)
    for leaf, hosts in zip(range(4, 13), (2, 2, 2, 2, 2, 2, 2, 1, 1)):
        for _ in range(hosts):
            net.host(leaf)
    return net


class Fabric:
    """What the text says: cables, capacities, LIDs, names; distances by breadth-first search."""

    LINK = re.compile(r'^\[(\d+)\](?:\([0-9a-f]+\))?\s*"([SH])-([0-9a-f]+)"\[(\d+)\]'
                      r'(?:\(([0-9a-f]+)\))?\s*#(.*)$')

    def __init__(self, text):
        self.cables = {}       # channel -> (vertex at the other end, port there)
        self.gbps = {}         # channel -> capacity
        self.descriptions = {}
        self.lids = {}         # vertex -> LID
        self.port_guids = {}   # endpoint -> port GUID
        self.switches = []
        self._hops = {}
        node = None
        for line in text.splitlines():
            header = re.match(r'^(Switch|Ca)\s+\d+ "([SH])-([0-9a-f]+)"\s*# "(.*?)"(.*)$', line)
            link = self.LINK.match(line)
            if header:
                node = header[2], header[3]
                self.descriptions[node[1]] = header[4]
                if node[0] == "S":
                    self.switches.append(node)
                    self.lids[node] = int(re.search(r"lid (\d+)", header[5])[1])
            elif link:
                self._add(node, link)
        self.neighbours = collections.defaultdict(dict)  # vertex -> {vertex: a channel to it}
        for (vertex, port), (peer, _) in sorted(self.cables.items()):
            self.neighbours[vertex].setdefault(peer, (vertex, port))
        self.endpoints = sorted(self.port_guids)
        # True if all links between switches are alike, so that any shortest route costs the same.
        self.even = len({self.gbps[channel] for channel, (peer, _) in self.cables.items()
                         if channel[0][0] == peer[0] == "S"}) < 2

    def _add(self, node, link):
        port, kind, guid, peer_port, port_guid, rest = link.groups()
        peer = ("S", guid) if kind == "S" else ("H", guid, int(peer_port))
        vertex = node if node[0] == "S" else ("H", node[1], int(port))
        self.cables[vertex, int(port)] = (peer, int(peer_port))
        capacity = re.search(r"capacity ([\d.e+]+) Gb/s", rest)
        rate = re.search(r" (\d+)x(\w+)", rest)
        self.gbps[vertex, int(port)] = (float(capacity[1]) if capacity
                                        else int(rate[1]) * GBPS_PER_LANE[rate[2]])
        if peer[0] == "H":
            self.port_guids[peer] = port_guid.zfill(16)
            self.lids[peer] = int(re.search(r"lid (\d+)", rest)[1])

    def host(self, endpoint):
        words = self.descriptions[endpoint[1]].rsplit(" ", 1)
        return words[0] if len(words) == 2 and DEVICE.match(words[1]) else " ".join(words)

    def name(self, endpoint):
        """HOST/PORT, and @DEVICE where another adapter of the host has a port of that number."""
        name = f"{self.host(endpoint)}/{endpoint[2]}"
        is_shared = any(other != endpoint and other[2] == endpoint[2]
                        and self.host(other) == self.host(endpoint) for other in self.port_guids)
        device = self.descriptions[endpoint[1]].rsplit(" ", 1)[-1]
        return f"{name}@{device}" if is_shared else name

    def leaf(self, endpoint):
        return self.cables[endpoint, endpoint[2]][0]

    def hops_to(self, switch):
        """Links from every switch that reaches it."""
        if switch not in self._hops:
            hops, queue = {switch: 0}, collections.deque([switch])
            while queue:
                at = queue.popleft()
                for peer in self.neighbours[at]:
                    if peer[0] == "S" and peer not in hops:
                        hops[peer] = hops[at] + 1
                        queue.append(peer)
            self._hops[switch] = hops
        return self._hops[switch]

    def same_place(self, a, b):
        """Nothing is between them: one vertex, or ports of one host on one switch, or on switches
        that nothing but the host joins."""
        if a == b or not a[0] == b[0] == "H" or self.host(a) != self.host(b):
            return a == b
        return self.leaf(a) == self.leaf(b) or self.leaf(a) not in self.hops_to(self.leaf(b))

    def shortest(self, a, b):
        """Channels of one shortest route; none in one place."""
        if self.same_place(a, b):
            return []
        first, at = ([], a) if a[0] == "S" else ([(a, a[2])], self.leaf(a))
        last, goal = ([], b) if b[0] == "S" else ([self.cables[b, b[2]]], self.leaf(b))
        hops = self.hops_to(goal)
        while at != goal:
            nearer = [p for p in self.neighbours[at] if p[0] == "S" and hops[p] == hops[at] - 1]
            first.append(self.neighbours[at][nearer[0]])
            at = nearer[0]
        return first + last

    def by_tables(self, tables, a, b):
        """Channels that `tables` ({switch GUID: {LID: port}}) send a packet through."""
        if self.same_place(a, b):
            return []
        path, at = ([], a) if a[0] == "S" else ([(a, a[2])], self.leaf(a))
        while at != b:
            path.append((at, tables[at[1]][self.lids[b]]))
            at = self.cables[path[-1]][0]
            assert len(path) < 64, f"forwarding loop from {a} to {b}"
        return path


def read_forwarding_tables(text):
    tables = {}
    for line in text.splitlines():
        header = re.search(r"of switch Lid \d+ guid 0x([0-9a-f]+)", line)
        entry = re.match(r"^0x([0-9a-f]+) (\d+) :", line)
        if header:
            table = tables.setdefault(header[1], {})
        elif entry:
            table[int(entry[1], 16)] = int(entry[2])
    return tables
