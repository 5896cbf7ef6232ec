"""A coppiced with metrics and a coppice-agent for each of some simulated hosts, for MPI programs whose
ranks are spread over them in blocks."""
import atexit
import os
import re
import select
import socket
import subprocess
import threading
import time
import urllib.request

import metrics_text
from coppiced_process import Coppiced, PATIENCE_S

# Rank r is on host r / $1, and speaks to that host's agent. Ranks give way to the launcher: Open MPI's
# take it for gone, and it them, if it does not answer their farewell within 2 s.
ON_ITS_HOST = ('n=$(( ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / $1 )); export COPPICE_AGENT=$2/$n.sock; '
               'export COPPICE_HOST=$(printf n%04d $n); shift 2; exec nice -n 10 "$@"')


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "in vain: " + what
        select.select([], [], [], 0.02)  # between two looks


class CoppiceNodes:
    def __init__(self, coppiced, agent, hosts, fabric, entries=64, degree_limit=16, more_config=""):
        self.daemon = Coppiced(coppiced, fabric=fabric, entries=entries, degree_limit=degree_limit)
        with open(self.daemon.config, "a", encoding="utf-8") as config:
            config.write('[metrics]\nlisten = "127.0.0.1:0"\n' + more_config)
        self.metrics = None
        self.start_daemon()
        self.program = agent
        self.hosts = hosts
        self.agents = {}
        atexit.register(self.stop)
        for number in range(hosts):
            self.start_agent(number)

    def start_daemon(self):
        self.daemon.start().wait_until_listening()
        for line in self.daemon.process.stderr:
            found = re.search(r"metrics at (http://\S+)", line)
            if found:
                self.metrics = found.group(1)
                threading.Thread(target=self.daemon.process.stderr.read, daemon=True).start()
                return
        raise AssertionError("coppiced does not say where its metrics are")

    def start_agent(self, number):
        path = os.path.join(self.daemon.directory, f"{number}.sock")
        state = os.path.join(self.daemon.directory, f"state{number}")
        os.makedirs(state, mode=0o700, exist_ok=True)
        with open(os.path.join(state, "log"), "a", encoding="utf-8") as log:
            self.agents[number] = subprocess.Popen(
                [self.program, "--server", self.daemon.address, "--socket", path, "--state-dir",
                 state, "--host", f"n{number:04d}", "--measure-listen", "127.0.0.1:0"], stderr=log)

        def answers():
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                    return True
                except OSError:
                    return False
        wait_until(answers, path)

    def kill_agent(self, number):
        self.agents[number].kill()
        self.agents.pop(number).wait(PATIENCE_S)

    def stop(self):
        for agent in self.agents.values():
            agent.kill()
            agent.wait(PATIENCE_S)
        self.agents = {}
        self.daemon.clean_up()

    def on_hosts(self, ranks, program):
        """A command that runs `program` on all hosts in blocks."""
        per_host = (ranks + self.hosts - 1) // self.hosts
        return ["/bin/sh", "-c", ON_ITS_HOST, "sh", str(per_host), self.daemon.directory, *program]

    def connections(self):
        """Open connections at the daemon's socket."""
        with open("/proc/net/unix", encoding="utf-8") as table:
            rows = [line.split() for line in table]
        return sum(len(row) == 8 and row[7] == self.daemon.socket and row[5] == "03"
                   for row in rows)

    def requests(self, method):
        """How often the method was called, whatever the answer."""
        with urllib.request.urlopen(self.metrics, timeout=PATIENCE_S) as answer:
            families = metrics_text.parse(answer.read().decode("utf-8"))
        family = families.get("coppice_rpc_requests_total")
        return sum(value for _, labels, value in (family.samples if family else [])
                   if labels["method"].endswith(method))


def counts(text):
    """What the preloaded library says at the end of a program (COPPICE_VERBOSE)."""
    found = re.search(r"coppice: trees: (.*)", text)
    assert found, "no counts: " + text[-2000:]
    return {name: int(value) for name, value in
            (word.split("=") for word in found.group(1).split())}
