"""The nodes and links of a fabric as network namespaces of this machine, for trying what switches carry: each host and
each switch is a namespace, each link is a pair of interfaces, and packets go along shortest paths. Hosts have a host
name, and a folder at one path of which each sees its own, for sockets.

    host n0003: eth0 10.88.0.4 ---- p4 :switch L1: 10.89.0.2 : p5 ---- p2 :switch S0: 10.89.0.5

Everything lives in namespaces that enter() makes, so that nothing is left when its process ends, however it ends.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

MARK = "COPPICE_TEST_IN_NAMESPACE"
HOSTS, SWITCHES, ALL = "10.88.0.0/16", "10.89.0.0/16", "10.88.0.0/15"
LAUNCHER, LAUNCHER_ADDRESS = "launcher", "10.88.255.254"
HOLD = "mount -t tmpfs run {run} && hostname {name} && ip link set lo up && echo ready && exec cat"


def enter():
    """Starts the program anew in namespaces of its own, and returns inside of these only. PermissionError: the kernel
    does not let this user make any."""
    if os.environ.get(MARK) == "1":
        return
    words = ["unshare", "--net", "--mount", "--uts"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise PermissionError("network namespaces cannot be made here: it takes root, and a kernel that lets it")
    os.environ[MARK] = "1"
    os.execvp("unshare", [*words, sys.executable, *sys.argv])


def openmpi_by_shell(shell, network, variables):
    """The beginning of a line of Open MPI's launcher that reaches hosts by `shell` as by ssh, and sends over TCP of that
    network alone; `variables` are those of all ranks."""
    line = ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(shell),
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "oob_tcp_if_include", network,
            "--mca", "btl_tcp_if_include", network]
    for name, value in variables.items():
        line += ["-x", f"{name}={value}"]
    return line


def _run(words, **options):
    subprocess.run(words, check=True, **options)


class Node:
    """A namespace; it is there until close()."""

    def __init__(self, name, address, run):
        self.name, self.address = name, address
        self.ports = {}  # name of the neighbour: interface
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "sh", "-c",
             HOLD.format(run=run, name=re.sub("[^A-Za-z0-9-]", "-", name))],  # as host names may be
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)  # no Ctrl-C ends it
        assert self.holder.stdout.readline() == "ready\n", name
        self.pid = self.holder.pid
        self.net = os.readlink(f"/proc/{self.pid}/ns/net")

    def inside(self):
        """The beginning of a command that runs there."""
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-u"]

    def ip(self, lines):
        _run([*self.inside(), "ip", "-batch", "-"], input="\n".join(lines), text=True)

    def sent(self):
        """{interface: (bytes, packets)} since the node is there."""
        links = json.loads(subprocess.run([*self.inside(), "ip", "-json", "-stats", "link"], capture_output=True,
                                          text=True, check=True).stdout)
        return {link["ifname"]: (link["stats64"]["tx"]["bytes"], link["stats64"]["tx"]["packets"]) for link in links}

    def close(self):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait(30)


def _end_processes(nets):
    """All that are in these network namespaces, and those that they begin meanwhile."""
    while True:
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended
                if os.readlink(f"/proc/{process}/ns/net") in nets:
                    os.kill(int(process), signal.SIGKILL)
                    found.append(process)
        if not found:
            return


class SwitchedNetwork:
    def __init__(self, links, lay=None):
        """`links`: of `coppicectl fabric links --json`. `lay(near, near_port, far, far_port)` lays one between two
        nodes; unset: it is a veth."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="coppice-network-"))
        self.run = self.folder / "run"
        self.run.mkdir()
        self.lay = lay or self._lay_veth
        ends = sorted({(end["is_switch"], end["name"], end["guid"]) for link in links for end in (link["a"], link["b"])})
        self.guids = {guid: name for is_switch, name, guid in ends if is_switch}
        self.hosts, self.switches = {}, {}
        self._write_names([name for is_switch, name, _ in ends if not is_switch])
        for is_switch, name, _ in ends:
            nodes, net = (self.switches, 89) if is_switch else (self.hosts, 88)
            number = len(nodes) + 1
            nodes[name] = Node(name, f"10.{net}.{number // 256}.{number % 256}", self.run)
        self.nodes = {**self.hosts, **self.switches}
        for link in links:
            self._connect(link["a"], link["b"])
        self._route()

    def _write_names(self, names):
        """/etc/hosts for all nodes, as the mount namespace shows it."""
        file = self.folder / "hosts"
        lines = ["127.0.0.1 localhost", f"{LAUNCHER_ADDRESS} {LAUNCHER}"]
        lines += [f"10.88.{number // 256}.{number % 256} {name}" for number, name in enumerate(names, 1)]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        _run(["mount", "--bind", str(file), "/etc/hosts"])
        _run(["hostname", LAUNCHER])

    def _lay_veth(self, near, near_port, far, far_port):
        _run(["ip", "link", "add", near_port, "netns", str(near.pid), "type", "veth", "peer", "name", far_port, "netns",
              str(far.pid)])

    def _connect(self, a, b):
        near, far = self.nodes[a["name"]], self.nodes[b["name"]]
        if far.name in near.ports:
            return  # a second cable between two nodes carries nothing here
        near.ports[far.name] = f"p{a['port']}" if a["is_switch"] else "eth0"
        far.ports[near.name] = f"p{b['port']}" if b["is_switch"] else "eth0"
        self.lay(near, near.ports[far.name], far, far.ports[near.name])

    def _next_hops(self, target):
        """{node: its neighbour on the way to the target}; a switch's lowest name where there are several."""
        hops, queue = {target: None}, collections.deque([target])
        while queue:
            node = queue.popleft()
            for neighbour in sorted(self.nodes[node].ports):
                if neighbour not in hops:
                    hops[neighbour] = node
                    if neighbour in self.switches:
                        queue.append(neighbour)
        return hops

    def _route(self):
        self.lines = lines = {name: [] for name in self.nodes}
        for name, node in self.nodes.items():
            own = [f"address add {node.address}/16 dev eth0 noprefixroute" if name in self.hosts
                   else f"address add {node.address}/32 dev lo"]
            lines[name] = [f"link set {port} up" for port in node.ports.values()] + own
        for target, there in self.nodes.items():
            for name, hop in self._next_hops(target).items():
                if hop is None or (name in self.hosts and hop != target):
                    continue
                way = f"dev {self.nodes[name].ports[hop]}"
                lines[name].append(f"route add {there.address} " + (way if hop == target else
                                                                    f"via {self.nodes[hop].address} {way} onlink"))
        for name, node in self.hosts.items():
            switch, port = next(iter(node.ports.items()))
            lines[name].append(f"route add {ALL} via {self.switches[switch].address} dev {port} onlink")
        for name, node in self.nodes.items():
            node.ip(lines[name])
            if name in self.switches:
                _run([*node.inside(), "sh", "-c", "cd /proc/sys/net/ipv4 && echo 1 >ip_forward && "
                      "echo 0 >conf/all/rp_filter && echo 0 >conf/all/send_redirects"])

    def write_shell(self):
        """A program `HOST COMMAND...` that runs it there, as ssh would, for launchers of MPI; its path."""
        cases = "\n".join(f"  {name}|{node.address}) pid={node.pid} ;;" for name, node in self.hosts.items())
        shell = self.folder / "shell"
        shell.write_text("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
                         f"case $1 in\n{cases}\n  *) echo \"no host $1\" >&2; exit 255 ;;\nesac\n"
                         "shift\nexec nsenter -t $pid -n -m -u sh -c \"$*\"\n", encoding="utf-8")
        shell.chmod(0o755)
        return shell

    def connect_launcher(self):
        """Puts this process's own namespace beside the first host's switch, so that ranks find their launcher."""
        switch = self.switches[next(iter(next(iter(self.hosts.values())).ports))]
        _run(["ip", "link", "set", "lo", "up"])
        _run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "launcher", "netns", str(switch.pid)])
        for line in (f"address add {LAUNCHER_ADDRESS}/16 dev eth0 noprefixroute", "link set eth0 up",
                     f"route add {switch.address} dev eth0", f"route add {ALL} via {switch.address} dev eth0 onlink"):
            _run(["ip", *line.split()])
        switch.ip(["link set launcher up", f"route add {LAUNCHER_ADDRESS} dev launcher"])
        for name, node in self.switches.items():
            hop = self._next_hops(switch.name)[name]
            if hop is not None:
                self.lines[name].append(
                    f"route add {LAUNCHER_ADDRESS} via {self.nodes[hop].address} dev {node.ports[hop]} onlink")
                node.ip(self.lines[name][-1:])

    def cut(self, name, other):
        self.nodes[name].ip([f"link set {self.nodes[name].ports[other]} down"])

    def mend(self, name, other):
        port = self.nodes[name].ports[other]
        # With the interface went the routes.
        self.nodes[name].ip([f"link set {port} up", *(line for line in self.lines[name]
                                                      if line.startswith("route") and f"dev {port}" in line)])

    def sent(self):
        """{(from, to): (bytes, packets)} of every link and direction."""
        counters = {name: node.sent() for name, node in self.nodes.items()}
        return {(name, other): counters[name][port] for name, node in self.nodes.items()
                for other, port in node.ports.items()}

    def close(self):
        """Also ends what still runs on the nodes, such as a launcher's daemons that have not heard of its end."""
        _end_processes({node.net for node in self.nodes.values()})
        for node in self.nodes.values():
            node.close()
        _run(["umount", "/etc/hosts"])
        self.run.rmdir()
        for file in self.folder.iterdir():
            file.unlink()
        self.folder.rmdir()
