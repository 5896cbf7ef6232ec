#!/usr/bin/python3
"""A search that a node's agent starts before the job's program: on the hosts of the job, which are
network namespaces, for a coppiced on a simulated subnet; and the launcher gets the order.

Usage: agent_test.py openmpi|mpich COPPICE_SEARCH COPPICED COPPICECTL COPPICE_PLAN COPPICE_AGENT
"""
import collections
import json
import os
import subprocess
import sys
import unittest

import namespace_hosts

namespace_hosts.enter()

from coppiced_process import Coppiced  # noqa: E402
from node_agent import Agent  # noqa: E402
from simulated_subnet import PATIENCE_S, SimulatedSubnet, few_files  # noqa: E402

MPI, SEARCH, COPPICED, COPPICECTL, PLAN, AGENT = sys.argv[1:7]
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
HOSTS = ["n0000", "n0004", "n0008", "n0012"]
RANKS = 8
# Dealt out, so that ranks that speak to each other, 2k and 2k+1, are on different leaf switches.
PRESENT = [HOSTS[rank % 4] for rank in range(RANKS)]
HOST_FILE = {"openmpi": ["--hostfile", "{hostfile}", "--map-by", "node"], "mpich": ["-f", "{hostfile}"]}


class AgentSearch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = namespace_hosts.NamespaceHosts(HOSTS)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        self.daemon = Coppiced(COPPICED, fabric="umad")
        self.addCleanup(self.daemon.clean_up)
        net = os.path.join(self.daemon.directory, "net")
        subprocess.run([PLAN, "fabric", "--fabric", FABRIC, "--ibsim", net], check=True,
                       capture_output=True, timeout=PATIENCE_S)
        subnet = SimulatedSubnet(net)
        self.addCleanup(subnet.end)
        subnet.manage()
        with open(os.path.join(self.daemon.directory, "log"), "wb") as log:
            self.daemon.process = subprocess.Popen(
                self.daemon.command, cwd=subnet.directory, env=subnet.environment, stderr=log,
                preexec_fn=few_files)
        self.daemon.wait_until_listening()
        self.control("fabric", "sweep")
        hosts, pattern = (os.path.join(self.daemon.directory, name) for name in ("hosts", "pairs.mtx"))
        with open(hosts, "w", encoding="utf-8") as file:
            file.write("\n".join(PRESENT) + "\n")
        with open(pattern, "w", encoding="utf-8") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n{RANKS} {RANKS} {RANKS}\n" + "".join(
                f"{rank + 1} {(rank ^ 1) + 1} 1000\n" for rank in range(RANKS)))
        self.control("pattern", "put", "pairs", pattern)
        self.job = json.loads(self.control("job", "register", "--endpoints", hosts, "--json"))["id"]
        self.agent = Agent(AGENT, self.daemon.address, HOSTS[0])
        self.addCleanup(self.agent.clean_up)
        config = os.path.join(self.agent.directory, "agent.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("[search]\ncommand = %s\n" % json.dumps(self.command()))
        self.agent.command += ["--config", config]
        self.agent.start()

    def command(self):
        """The launcher's line. Each rank first notes its host."""
        self.seen = os.path.join(self.agent.directory, "seen")
        script = os.path.join(self.agent.directory, "search.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nhostname >>{self.seen}\nexec {SEARCH} "$@"\n')
        os.chmod(script, 0o755)
        search = [script, "--agent", "{agent}", "--job", "{job}", "--application", "{application}",
                  "--budget", "{budget}", "--seed", "{seed}"]
        return self.hosts.command(MPI, len(HOSTS), HOST_FILE[MPI], search, {})

    def ask(self, *arguments):
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**os.environ, "COPPICE_AGENT": self.agent.socket}
                              if hasattr(self, "agent") else None)
        return done.returncode, done.stdout, done.stderr

    def control(self, *arguments):
        status, out, errors = self.ask(*arguments)
        self.assertEqual(status, 0, (arguments, errors))
        return out

    def test_the_order_is_there_for_the_launcher(self):
        found = json.loads(self.control("search", "--job", self.job, "--application", "pairs",
                                        "--budget", "1s", "--json"))
        stored = json.loads(self.control("map", "--job", self.job, "--stored", "--json"))
        self.assertEqual(found["permutation"], stored["permutation"])
        self.assertEqual(found["note"], stored["note"])
        with open(self.seen, encoding="utf-8") as file:
            self.assertEqual(sorted(file.read().split()), HOSTS)
        # The two of each pair are on one host now.
        lines = self.control("map", "--job", self.job, "--stored", "--emit", "rankfile").splitlines()
        host = {int(line.split()[1].split("=")[0]): line.split("=")[1].split()[0]
                for line in lines if line.startswith("rank")}
        self.assertEqual(collections.Counter(host.values()), collections.Counter(PRESENT))
        for rank in range(0, RANKS, 2):
            self.assertEqual(host[rank], host[rank + 1])

    def test_what_the_search_says_comes_to_who_asked(self):
        status, _, errors = self.ask("search", "--job", self.job, "--application", "nobodys")
        self.assertEqual(status, 1)
        self.assertIn("coppice-search: NOT_FOUND", errors)
        self.assertIn("nobodys", errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
