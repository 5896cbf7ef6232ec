#!/usr/bin/python3
"""Real jobs on several hosts in the order that a stored pattern asks for: every rank runs where the
mapping puts it, and as many bytes go between hosts as it says, on Open MPI by the counters of their
network.

Usage: launch_test.py openmpi|mpich LIBRARY KNOWN_PATTERNS WHERE COPPICED COPPICE_AGENT COPPICECTL
       COPPICE_PLAN
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import namespace_hosts

namespace_hosts.enter()

import mpi_run  # noqa: E402
import trace_text  # noqa: E402
from coppice_node import CoppiceNode, FABRIC, host  # noqa: E402

MPI, LIBRARY, PATTERNS, WHERE, COPPICED, AGENT, COPPICECTL, PLAN = sys.argv[1:9]
HOSTS = [host(4 * i) for i in range(4)]
RANKS = 8
# Dealt out: neighbours in the pattern are on different hosts.
PRESENT = [HOSTS[rank % 4] for rank in range(RANKS)]
# Long messages: the launcher's own words go over the network, too.
PROGRAM = [PATTERNS, "stencil", 4, 2, 2000000 if MPI == "openmpi" else 10000]


class Launch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = CoppiceNode(COPPICED, AGENT)
        cls.hosts = namespace_hosts.NamespaceHosts(HOSTS)
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "hosts").write_text("\n".join(PRESENT) + "\n", encoding="utf-8")
        # The run that is traced: kept at the daemon, and as a file.
        mpi_run.run(MPI, RANKS, PROGRAM, LIBRARY,
                    {"COPPICE_AGENT": cls.node.socket, "COPPICE_TRACE_PUT": 1,
                     "COPPICE_TRACE": cls.path / "trace", "COPPICE_APPLICATION": "stencil",
                     "COPPICE_TIMEOUT_MS": 20000})

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()
        cls.node.stop()
        cls.folder.cleanup()

    def run_command(self, *command):
        """What it prints."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def map(self, *words):
        """What coppicectl prints of the stored pattern on the hosts."""
        return self.run_command(COPPICECTL, "--server", self.node.daemon.address, "map",
                                "--application", "stencil", "--hosts", self.path / "hosts", *words)

    def evaluate(self, order):
        """Measures of the stored pattern, before and after it goes to `order`."""
        file = self.path / "order"
        file.write_text(" ".join(map(str, order)) + "\n", encoding="utf-8")
        return json.loads(self.map("--json", "--evaluate", file))

    def launch(self, words, program, environment=None):
        """Its standard output, started through the hosts' shell."""
        line = self.hosts.command(MPI, RANKS, words, program, environment or {})
        done = subprocess.run(line, capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(0, done.returncode, (done.stdout, done.stderr))
        return done.stdout

    def sent_by(self, words, environment):
        """The bytes that hosts send on the network while the program runs there."""
        before = self.hosts.sent_bytes()
        self.launch(words, PROGRAM, environment)
        return self.hosts.sent_bytes() - before

    def expect_bytes(self, predicted, sent):
        """What goes over the network is what was predicted, and less than 5 % more for its headers,
        its acknowledgements and the launcher. Not on MPICH (namespace_hosts.py)."""
        if MPI == "mpich":
            return
        self.assertLess(predicted, sent)
        self.assertLess(sent, 1.05 * predicted)

    def expect_order(self, emit, words, hosts_of, present=None):
        """`words` of the launcher name the FILE; hosts_of(its lines): the host of each rank.
        `present`: what FILE holds where ranks stay as they are."""
        text = self.map("--budget", "300ms", "--emit", emit)
        file = self.path / emit
        file.write_text(text, encoding="utf-8")
        wanted = hosts_of(text.splitlines())
        self.assertEqual(sorted(PRESENT), sorted(wanted))
        self.assertNotEqual(PRESENT, wanted)
        words = [str(word).replace("FILE", str(file)) for word in words]
        in_present_order = None
        if present is not None:
            file = self.path / "present"
            file.write_text(present, encoding="utf-8")
            in_present_order = [word.replace(str(self.path / emit), str(file)) for word in words]
        lines = self.launch(words, [WHERE]).splitlines()
        self.assertEqual([f"rank {r} host {wanted[r]}" for r in range(RANKS)], lines)
        free = [(name, position) for position, name in enumerate(PRESENT)]
        order = []
        for name in wanted:
            slot = next(one for one in free if one[0] == name)
            free.remove(slot)
            order.append(slot[1])
        answer = self.evaluate(order)
        # The program itself, where its ranks are now.
        trace = self.path / "again"
        sent = self.sent_by(words, {"LD_PRELOAD": LIBRARY, "COPPICE_TRACE": trace})
        pairs = trace_text.read(trace)
        self.assertEqual(trace_text.read(self.path / "trace"), pairs)
        for name, position_of in (("before", list(range(RANKS))), ("after", order)):
            between = sum(size for (a, b), (_, size) in pairs.items()
                          if PRESENT[position_of[a]] != PRESENT[position_of[b]])
            self.assertEqual(answer[name]["inter_node_bytes"], between, name)
        self.assertLess(answer["after"]["inter_node_bytes"], answer["before"]["inter_node_bytes"])
        self.expect_bytes(answer["after"]["inter_node_bytes"], sent)
        if in_present_order:
            self.expect_bytes(answer["before"]["inter_node_bytes"],
                              self.sent_by(in_present_order, {}))

    def test_the_engine_alone_reads_the_trace(self):
        answer = json.loads(self.run_command(
            PLAN, "map", "--json", "--fabric", FABRIC, "--pattern", self.path / "trace",
            "--hosts", self.path / "hosts"))
        stored = self.evaluate(range(RANKS))
        self.assertEqual(stored["before"]["inter_node_bytes"],
                         answer["before"]["inter_node_bytes"])

    # Each MPI has files of its own.
    if MPI == "openmpi":
        def test_rankfile(self):
            self.expect_order("rankfile", ["--host", ",".join(f"{name}:2" for name in HOSTS),
                                           "--rankfile", "FILE"],
                              lambda lines: [line.split("=")[1].split()[0] for line in lines])

        def test_hostfile(self):
            self.expect_order("hostfile", ["--hostfile", "FILE", "--map-by", "seq", "--bind-to",
                                           "none"], list, "".join(f"{name}\n" for name in PRESENT))
    else:
        def test_machinefile(self):
            self.expect_order("machinefile", ["-f", "FILE"], lambda lines: [
                line.split(":")[0] for line in lines for _ in range(int(line.split(":")[1]))])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
