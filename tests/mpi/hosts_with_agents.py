"""A daemon, and an agent on each of several hosts of network namespaces (namespace_hosts.py) that only
its own host's ranks reach."""
import pathlib
import subprocess
import tempfile

from coppice_nodes import wait_until
from coppiced_process import Coppiced, PATIENCE_S


class HostsWithAgents:
    def __init__(self, hosts, coppiced, agent, fabric):
        """`hosts`: NamespaceHosts whose names are those of the fabric. Returns when all listen."""
        self.hosts = hosts
        self.program = agent
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.socket = hosts.run / "agent.sock"  # on each host another one
        self.agents = {}
        self.daemon = Coppiced(coppiced, fabric=fabric, entries=64).start().wait_until_listening()
        for number in range(len(hosts.names)):
            self.start_agent(number)

    def start_agent(self, number):
        """Which finds out its host's name, as its ranks do by it."""
        state = self.path / f"state{number}"
        state.mkdir(mode=0o700, exist_ok=True)
        with open(state / "log", "w", encoding="utf-8") as log:
            agent = subprocess.Popen(
                [*self.hosts.inside(number), self.program, "--server", self.daemon.address,
                 "--socket", self.socket, "--state-dir", state, "--measure-listen",
                 "127.0.0.1:0"], stderr=log)
        self.agents[number] = agent

        def listens():
            assert agent.poll() is None, (state / "log").read_text(encoding="utf-8")
            return subprocess.run([*self.hosts.inside(number), "test", "-S", self.socket],
                                  check=False).returncode == 0
        wait_until(listens, f"an agent on {self.hosts.names[number]}")
        assert not self.socket.exists(), "other hosts reach the agent"

    def kill_agent(self, number):
        self.agents[number].kill()
        self.agents.pop(number).wait(PATIENCE_S)
        subprocess.run([*self.hosts.inside(number), "rm", "-f", self.socket], check=True)

    def stop(self):
        for number in list(self.agents):
            self.kill_agent(number)
        self.daemon.clean_up()
        self.folder.cleanup()


def on_each(mpi, names, ranks):
    """A launcher's words for as many ranks on each host."""
    return ["--host" if mpi == "openmpi" else "-hosts",
            ",".join(f"{name}:{ranks}" for name in names)]
