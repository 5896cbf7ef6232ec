"""What `deploy/try switches` runs: an MPI program whose Allreduces go over switches that combine, beside the same
program natively, on 16 hosts and 6 switches that are network namespaces of this machine (switched_network.py).

Usage: try_switches.py BUILD BYTES
"""
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import switched_network

BUILD, DEPLOY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(__file__).resolve().parent
LEAVES, SPINES, BELOW = 4, 2, 4
FABRIC = f"model:fat-tree(leaves={LEAVES},spines={SPINES},hosts-per-leaf={BELOW})"
BYTES = int(sys.argv[2])
TIMES = max(20, min(500, (32 << 20) // BYTES))
PORT = 18516
PATIENCE_S = 120
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Also where this program is killed they end, and the namespaces with them.
BOUND = ["setpriv", "--pdeathsig", "KILL"]
CONFIG = """[[switches]]            # every switch: 64 aggregation entries, at most 64 children a tree
description = "*"
entries = 64
degree_limit = 64
"""


def say(words):
    print(f"\n== {words}", flush=True)


def wait_until(condition, process, log, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{log.read_text(encoding='utf-8')[-2000:]}error: {what} did not happen")
        select.select([], [], [], 0.02)  # between two looks


class Coppice:
    """The network, the daemon, a coppice-switch at each switch and an agent on each host, until `stack` is closed."""

    def __init__(self, stack):
        self.stack = stack
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coppice-try-")))
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)  # of all that is started, too
        self.server = f"unix:{self.folder}/coppiced.sock"
        links = json.loads(subprocess.run(
            [BUILD / "daemon/plan/coppice-plan", "fabric", "links", "--fabric", FABRIC, "--json"],
            capture_output=True, text=True, check=True).stdout)["links"]
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self.network = switched_network.SwitchedNetwork(links)
        stack.callback(self.network.close)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self.network.connect_launcher()
        self.shell = self.network.write_shell()
        (self.folder / "coppiced.toml").write_text(CONFIG, encoding="utf-8")
        daemon = self.start("coppiced", [
            BUILD / "daemon/coppiced", "--config", self.folder / "coppiced.toml", "--fabric", FABRIC, "--database",
            self.folder / "coppice.db", "--listen", self.server])
        wait_until(lambda: self.control("fabric", "sweep").returncode == 0, *daemon, "its first sweep")
        for guid, name in self.network.guids.items():
            node = self.network.switches[name]
            last = self.start(f"switch-{name}", [
                *node.inside(), BUILD / "agents/switch/coppice-switch", "--switch", guid, "--server", self.server,
                "--listen", f"{node.address}:{PORT}", "--children", BELOW])
        wait_until(lambda: self.speaking() == len(self.network.guids), *last, "the greeting of all switches")
        agents = [(node, self.start(f"agent-{name}", [
            *node.inside(), BUILD / "agents/node/coppice-agent", "--server", self.server, "--socket", self.socket(),
            "--state-dir", self.folder / f"state-{name}", "--measure-listen", ""])) for name, node in
            self.network.hosts.items()]
        for node, agent in agents:
            wait_until(lambda: subprocess.run([*node.inside(), "test", "-S", self.socket()], check=False)
                       .returncode == 0, *agent, "its socket")

    def socket(self):
        return self.network.run / "agent.sock"  # on each host another one

    def start(self, name, words):
        """The process, which is ended with the stack, and its log."""
        log = self.folder / f"{name}.log"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen([str(word) for word in [*BOUND, *words]], stdin=subprocess.PIPE, stdout=out,
                                       stderr=subprocess.STDOUT)
        self.stack.callback(self.end, process)
        return process, log

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def control(self, *words):
        return subprocess.run([BUILD / "client/coppicectl", "--server", self.server, *words], capture_output=True,
                              text=True, check=False)

    def speaking(self):
        return sum(bool(one.get("connected")) for one in
                   json.loads(self.control("agent", "switches", "--json").stdout or "{}").get("switches", []))

    def run(self, program, variables, look=lambda said: None):
        """What the program says on all hosts, and {(from, to): bytes} of all links; it waits for look() to end."""
        before = self.network.sent()
        process, log = self.start("mpirun", [
            *switched_network.openmpi_by_shell(self.shell, switched_network.HOSTS,
                                               {"OMPI_MCA_mpi_yield_when_idle": 1, **variables}),
            "--host", ",".join(self.network.hosts), "-np", len(self.network.hosts), program, BYTES, TIMES])
        wait_until(lambda: "median" in log.read_text(encoding="utf-8"), process, log, "a result of the program")
        moved = {way: count - before[way][0] for way, (count, _) in self.network.sent().items()}
        look(log.read_text(encoding="utf-8"))
        process.stdin.close()
        status, text = process.wait(PATIENCE_S), log.read_text(encoding="utf-8")
        if status != 0:
            sys.exit(f"{text[-2000:]}error: the program ended with {status}")
        return text, moved

    def show_trees(self, said):
        trees = json.loads(self.control("tree", "list", "--json").stdout or "{}").get("trees")
        if not trees:
            sys.exit(f"{said[-2000:]}error: the program was granted no tree")
        for tree in trees:
            say(f"coppicectl tree show {tree['id']}, while the program runs")
            print(self.control("tree", "show", tree["id"]).stdout, end="", flush=True)


def report(network, over, natively):
    say(f"One Allreduce of {BYTES} B over {len(network.hosts)} ranks, {TIMES} times")
    medians = [re.search(r"median (\S+) us", text).group(1) for text, _ in (over, natively)]
    print(f"over the switches {medians[0]} us, natively {medians[1]} us (medians; on one machine)")
    counts = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", over[0])}
    print(f"{counts['over_switches']} of {counts['over_switches'] + counts['native']} calls went over the switches")
    say("Bytes on the uplinks for each Allreduce: to the spine, and from it")
    print(f"{'':<14}{'OVER THE SWITCHES':>22}{'NATIVELY':>24}")
    print(f"{'UPLINK':<14}{'UP':>12}{'DOWN':>12}{'UP':>12}{'DOWN':>12}")
    total = [0] * 4
    for leaf, spine in sorted(over[1]):
        if leaf in network.switches and spine in network.switches and leaf[0] == "L":
            row = [moved[way] / TIMES for _, moved in (over, natively) for way in ((leaf, spine), (spine, leaf))]
            total = [sum(pair) for pair in zip(total, row)]
            print(f"{leaf + ' - ' + spine:<14}" + "".join(f"{count:>12.0f}" for count in row))
    print(f"{'all':<14}" + "".join(f"{count:>12.0f}" for count in total))


def interrupt(*_):
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)  # it is ending
    print("\nInterrupted: nothing is left running", file=sys.stderr)
    sys.exit(130)


def main():
    switched_network.enter()
    for one in SIGNALS:
        signal.signal(one, interrupt)
    with contextlib.ExitStack() as stack:
        say(f"Starting {LEAVES * BELOW} hosts with agents, {LEAVES + SPINES} switches with a coppice-switch each")
        coppice = Coppice(stack)
        program = coppice.folder / "allreduce"
        subprocess.run(["mpicc.openmpi", "-O1", "-o", program, DEPLOY / "examples/allreduce.c"], check=True)
        natively = coppice.run(program, {})
        over = coppice.run(program, {
            "LD_PRELOAD": BUILD / "agents/mpi/libcoppice_mpi_openmpi.so", "COPPICE_AGENT": coppice.socket(),
            "COPPICE_TREES": "creation", "COPPICE_TREES_TYPE": 2, "COPPICE_TREES_AFTER": 0,
            "COPPICE_TREES_MAX_BYTES": BYTES, "COPPICE_TIMEOUT_MS": 20000, "COPPICE_VERBOSE": 1}, coppice.show_trees)
        report(coppice.network, over, natively)


if __name__ == "__main__":
    main()
