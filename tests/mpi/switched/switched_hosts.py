"""The hosts and switches of a fabric in namespaces, with a daemon, an agent on each host and a coppice-switch at each
switch."""
import json
import subprocess

from hosts_with_agents import HostsWithAgents
from namespace_hosts import command_on_hosts
from switch_processes import SwitchProcesses
from switched_network import HOSTS, SwitchedNetwork

PORT = 18516


class SwitchedHosts:
    """As NamespaceHosts."""

    def __init__(self, coppice_plan, fabric, lay=None):
        listed = subprocess.run([coppice_plan, "fabric", "links", "--fabric", fabric, "--json"], capture_output=True,
                                text=True, check=True).stdout
        self.network = SwitchedNetwork(json.loads(listed)["links"], lay)
        self.network.connect_launcher()
        self.fabric, self.run, self.names = fabric, self.network.run, list(self.network.hosts)
        self.shell = self.network.write_shell()
        self.close = self.network.close

    def inside(self, number):
        return self.network.hosts[self.names[number]].inside()

    def command(self, mpi, ranks, words, program, environment):
        return command_on_hosts(self.shell, HOSTS, mpi, ranks, words, program, environment)


class SwitchedCoppice:
    """What serves them; `more`: as SwitchProcesses has it."""

    def __init__(self, hosts, coppiced, agent, coppicectl, switch, **more):
        self.nodes = HostsWithAgents(hosts, coppiced, agent, hosts.fabric)
        network = hosts.network
        node = lambda guid: network.switches[network.guids[guid]]
        self.switches = SwitchProcesses(switch, coppicectl, self.nodes.daemon.address, **more,
                                        inside=lambda guid: node(guid).inside(),
                                        listen=lambda guid: f"{node(guid).address}:{PORT}")
        self.socket, self.ask = self.nodes.socket, self.switches.ask

    def stop(self):
        self.switches.stop()
        self.nodes.stop()
