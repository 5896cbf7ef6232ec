"""A coppiced on a model fabric and a coppice-agent beside it, for MPI programs on this machine: the
one agent stands for those of all hosts, and COPPICE_HOST says where each rank is."""
import atexit
import os
import select
import socket
import subprocess
import time

from coppiced_process import Coppiced, PATIENCE_S

# Four leaf switches of four hosts.
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"


class CoppiceNode:
    def __init__(self, coppiced, agent, fabric=FABRIC):
        self.daemon = Coppiced(coppiced, fabric=fabric, entries=64).start().wait_until_listening()
        self.socket = os.path.join(self.daemon.directory, "agent.sock")
        self.log = os.path.join(self.daemon.directory, "agent.log")
        self.agent = None
        atexit.register(self.stop)
        self.command = [agent, "--server", self.daemon.address, "--socket", self.socket,
                        "--state-dir", self.daemon.directory, "--host", host(0),
                        "--measure-listen", "127.0.0.1:0"]
        self.start_agent()

    def start_agent(self):
        """Returns when its socket answers."""
        with open(self.log, "w", encoding="utf-8") as log:
            self.agent = subprocess.Popen(self.command, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.agent.poll() is None, self.said()
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(self.socket)
                    return
                except OSError:
                    select.select([], [], [], 0.01)  # between two looks
        raise AssertionError("the agent does not listen: " + self.said())

    def said(self):
        """The agent's log."""
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def stop(self):
        """Ends both, in any state."""
        if self.agent is not None and self.agent.poll() is None:
            self.agent.terminate()
            self.agent.wait(PATIENCE_S)
        self.daemon.clean_up()


def host(number):
    """Name of a host of the model fabric, from 0."""
    return f"n{number:04d}"


def on_hosts(hosts, program):
    """A command that runs `program`, rank r on hosts[r]."""
    names = " ".join(hosts)
    script = ('set -- "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" "$@"; at=$1; shift; n=0; '
              f'for COPPICE_HOST in {names}; do [ $n = $at ] && break; n=$((n+1)); done; '
              'export COPPICE_HOST; exec "$@"')
    return ["/bin/sh", "-c", script, "sh"] + [str(word) for word in program]
