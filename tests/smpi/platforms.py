"""Networks that are told twice: to Coppice as a model with forwarding tables, and to SimGrid as one
of its own clusters. Both number hosts alike, have links of the same capacity and, which a test
holds, route every pair over the same links.

    host h of Coppice's models is n0007, of SimGrid's clusters n7
    a link carries 200 Gb/s each way, at no latency; a host talks to itself at 400 Gb/s

Links have no latency because SimGrid gives a flow of a link the less, the more latency there is on
its whole route, as TCP does: with 100 ns a link, a flow over six links got a third of what one over
two did. Switches of InfiniBand take packets from all in turn, wherever they come from.
"""
import math
import re
import subprocess

from net_text import Fabric

CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="fabric" prefix="n" radical="0-{last}" suffix="" speed="1Gf" bw="25GBps" lat="0ns"
           sharing_policy="SPLITDUPLEX" loopback_bw="50GBps" loopback_lat="0ns"
           topology="{topology}" topo_parameters="{parameters}"/>
</platform>
"""


class FatTree:
    """XGFT(h; m; w): SimGrid's FAT_TREE without parallel cables, routed by destination modulo
    parents (d-mod-k, E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
    permutations on real life fat trees", 2010)."""

    # Hosts' links are links like others.
    free_hosts = False

    def __init__(self, children, parents):
        self.children, self.parents = children, parents
        self.hosts = math.prod(children)
        self.model = f"xgft(m={times(children)},w={times(parents)},lids=1)"
        self.name = f"fat tree {times(children)}, {times(parents[1:])} up"

    def cluster(self):
        levels = ";".join(",".join(map(str, numbers)) for numbers in (
            self.children, self.parents, [1] * len(self.children)))
        return CLUSTER.format(last=self.hosts - 1, topology="FAT_TREE",
                              parameters=f"{len(self.children)};{levels}")

    def next_towards(self, switch, host):
        """The description of the switch after `switch` on the way to a host, None: the host."""
        level, number = map(int, re.match(r"S(\d+)_(\d+)$", switch).groups())
        width = math.prod(self.parents[:level])
        block, index = divmod(number, width)
        if host // math.prod(self.children[:level]) != block:  # up
            block //= self.children[level]
            up = host // width % self.parents[level]
            return f"S{level + 1}_{block * width * self.parents[level] + up * width + index}"
        if level == 1:
            return None
        width //= self.parents[level - 1]
        block = host // math.prod(self.children[:level - 1])
        return f"S{level - 1}_{block * width + index % width}"


class Torus:
    """SimGrid's TORUS, routed dimension by dimension, upwards if both ways round are as long, but
    downwards from the middle to 0. Its hosts send into all links at once as those of Blue Gene do;
    Coppice's are joined to their switches by links of 1,200 Gb/s, as fast as six."""

    free_hosts = True

    def __init__(self, extents):
        self.extents = extents
        self.hosts = math.prod(extents)
        self.model = f"torus(dims={times(extents)},speeds=12xndr/hdr,lids=1)"
        self.name = f"torus {times(extents)}"

    def cluster(self):
        return CLUSTER.format(last=self.hosts - 1, topology="TORUS",
                              parameters=",".join(map(str, self.extents)))

    def next_towards(self, switch, host):
        at = list(map(int, re.match(r"sw\(([\d,]+);", switch)[1].split(",")))
        for d, extent in enumerate(self.extents):
            goal, host = host % extent, host // extent
            if at[d] != goal:
                upwards = (goal - at[d]) % extent * 2
                is_up = upwards < extent or (upwards == extent and goal != 0)
                at[d] = (at[d] + (1 if is_up else -1)) % extent
                return f"sw({','.join(map(str, at))};{times(self.extents)} torus)"
        return None


def times(numbers):
    return "x".join(map(str, numbers))


class Network:
    """A platform's files in a folder: cluster.xml for SimGrid, net.txt and tables.txt for Coppice,
    whose program writes the first of them."""

    def __init__(self, platform, program, folder):
        self.platform = platform
        folder.mkdir(exist_ok=True)
        self.cluster, self.net = folder / "cluster.xml", folder / "net.txt"
        self.tables_file = folder / "tables.txt"
        self.cluster.write_text(platform.cluster())
        subprocess.run([program, "fabric", "--fabric", f"model:{platform.model}", "--out",
                        str(self.net)], check=True, capture_output=True, timeout=120)
        self.fabric = Fabric(self.net.read_text())
        self.tables = self._tables()
        self.tables_file.write_text(self._dump_lfts())

    def endpoint(self, host):
        """The vertex of host number `host`."""
        return self.fabric.endpoints[host]

    def _tables(self):
        """{switch GUID: {LID of a host: port}}"""
        fabric, towards = self.fabric, self.platform.next_towards
        named = {fabric.descriptions[guid]: ("S", guid) for _, guid in fabric.switches}
        tables = {}
        for switch in fabric.switches:
            description = fabric.descriptions[switch[1]]
            table = tables[switch[1]] = {}
            for host, endpoint in enumerate(fabric.endpoints):
                after = towards(description, host)
                if after is None:
                    channel = fabric.cables[endpoint, endpoint[2]]
                else:
                    channel = fabric.neighbours[switch][named[after]]
                table[fabric.lids[endpoint]] = channel[1]
        return tables

    def _dump_lfts(self):
        lines = []
        for switch in self.fabric.switches:
            table = self.tables[switch[1]]
            lid = self.fabric.lids[switch]
            lines += [f"Unicast lids [0x0-0x{max(table):x}] of switch Lid {lid} "
                      f"guid 0x{switch[1]} ({self.fabric.descriptions[switch[1]]}):",
                      "  Lid  Out   Destination", "       Port     Info "]
            lines += [f"0x{to:04x} {port:03} : (host)" for to, port in sorted(table.items())]
            lines.append(f"{len(table)} valid lids dumped ")
        return "\n".join(lines) + "\n"
