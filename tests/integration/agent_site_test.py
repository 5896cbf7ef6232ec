"""A node's agent as sites have it: TLS to the daemon, a subnet whose manager starts anew elsewhere, a
/proc that shows nobody another's processes. Runs as root, for other users and mounts."""

import json
import os
import signal
import subprocess
import sys
import unittest

import libcoppice
from coppiced_process import Coppiced
from node_agent import Agent, start_holder
from simulated_subnet import PATIENCE_S, SimulatedSubnet, few_files, wait_until

COPPICED, COPPICECTL, PLAN, AGENT, LIBRARY = (sys.argv.pop(1) for _ in range(5))
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"
RANKS = ["n0000", "n0001", "n0005", "n0009", "n0014"]
NOBODY, OTHER = 65534, 54321


class SiteTest(unittest.TestCase):
    def ctl(self, *arguments):
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments, "--json"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return json.loads(done.stdout)

    def jobs(self):
        return {job["id"]: job for job in self.ctl("job", "list").get("jobs", [])}

    def holder(self, agent, user):
        program, job = start_holder(LIBRARY, agent.socket, RANKS, user=user, group=user)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertNotEqual(job, "", agent.logged())
        return program, job

    def create_tree(self, program):
        program.stdin.write("tree\n")
        program.stdin.flush()
        return program.stdout.readline().strip()

    def lease_is_renewed(self, job):
        """It has more left than before, which time alone does not do."""
        left = [float("inf")]

        def longer():
            left.append(float(self.jobs()[job]["lease_left"].rstrip("s")))
            return left[-1] > left[-2]
        wait_until(longer, "the lease of job " + job + " is renewed")

    def ends_with_its_process(self, program, job):
        program.kill()
        program.wait()
        wait_until(lambda: job not in self.jobs(), "job " + job + " is ended")


class Tls(SiteTest):
    """The settings come from agent.toml."""

    def setUp(self):
        self.daemon = Coppiced(COPPICED)
        self.addCleanup(self.daemon.clean_up)
        for authority in ("authority", "stranger"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                         "-nodes", "-days", "2", "-subj", "/CN=" + authority, "-keyout",
                         authority + ".key", "-out", authority + ".pem")
        for name in ("server", "agent-n0001", "agent-n0002", "alice"):
            self.make_certificate(name)
        with open(self.daemon.config, "a", encoding="utf-8") as config:
            config.write('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
                         'client_ca = "authority.pem"\n'
                         '[agents]\ncertificates = ["agent-{host}"]\n')
        log = os.path.join(self.daemon.directory, "log")
        self.daemon.command += ["--listen", "127.0.0.1:0"]
        with open(log, "wb") as file:
            self.daemon.process = subprocess.Popen(self.daemon.command, stderr=file)
        self.daemon.wait_until_listening()
        self.ctl("fabric", "sweep")
        with open(log, encoding="utf-8") as file:
            (line,) = [line for line in file if "listening on" in line]
        self.port = line[line.index("127.0.0.1:"):].split()[0].rstrip(",;")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.daemon.directory, check=True,
                       capture_output=True, timeout=PATIENCE_S)

    def make_certificate(self, name):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
        with open(os.path.join(self.daemon.directory, "ext"), "w", encoding="utf-8") as file:
            file.write("subjectAltName=IP:127.0.0.1\n")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "authority.pem", "-CAkey",
                     "authority.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out",
                     name + ".pem")

    def agent(self, authority, name):
        agent = Agent(AGENT, None, "n0001")
        self.addCleanup(agent.clean_up)
        config = os.path.join(agent.directory, "agent.toml")
        folder = self.daemon.directory
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'server = "{self.port}"\ntls_ca = "{folder}/{authority}.pem"\n'
                       f'tls_certificate = "{folder}/{name}.pem"\ntls_key = "{folder}/{name}.key"\n')
        agent.command += ["--config", config]
        return agent.start()

    def refused(self, agent, status, word):
        """The agent's log and its processes hear why."""
        wait_until(lambda: "does not take this agent" in agent.logged(), "a word in the log")
        (line,) = [line for line in agent.logged().splitlines() if "does not take" in line]
        self.assertIn(word, line)
        client = libcoppice.Client(LIBRARY, agent.socket)
        self.addCleanup(client.close)
        with self.assertRaises(libcoppice.Failed) as caught:
            client.register(RANKS)
        self.assertEqual(caught.exception.status, status, caught.exception.message)
        self.assertEqual(self.jobs(), {})
        self.assertEqual(agent.end(), 0)

    def test_users_come_through_an_agent_that_is_no_administrator(self):
        agent = self.agent("authority", "agent-n0001")
        wait_until(lambda: "takes this agent for n0001" in agent.logged(), "the welcome")
        (known,) = self.ctl("agent", "list")["agents"]
        self.assertEqual((known["hello"]["host"], known["connected"]), ("n0001", True))
        program, job = self.holder(agent, NOBODY)
        self.assertEqual(self.jobs()[job]["owner"], "nobody")
        self.assertNotEqual(self.create_tree(program), "")
        self.lease_is_renewed(job)
        self.ends_with_its_process(program, job)
        # Its node's root is a user as others are.
        program, job = self.holder(agent, 0)
        self.assertEqual(self.jobs()[job]["owner"], "root@n0001")
        self.ends_with_its_process(program, job)

    def test_an_agent_is_not_the_agent_of_another_host(self):
        agent = self.agent("authority", "agent-n0002")
        wait_until(lambda: "does not take this agent" in agent.logged(), "a word in the log")
        self.assertIn("agent of", agent.logged())
        self.assertEqual(self.ctl("agent", "list").get("agents", []), [])

    def test_a_daemon_of_another_authority_is_not_believed(self):
        self.refused(self.agent("stranger", "agent-n0001"), libcoppice.UNAVAILABLE,
                     "certificate verify failed")

    def test_a_users_certificate_makes_no_agent(self):
        self.refused(self.agent("authority", "alice"), libcoppice.PERMISSION_DENIED, "tls:alice")


class LiveSubnet(SiteTest):
    def setUp(self):
        self.daemon = Coppiced(COPPICED, fabric="umad")
        self.addCleanup(self.daemon.clean_up)
        with open(self.daemon.config, "a", encoding="utf-8") as config:
            config.write('[sweep]\nlight_period = "1s"\n')
        net = os.path.join(self.daemon.directory, "net")
        subprocess.run([PLAN, "fabric", "--fabric", FABRIC, "--ibsim", net], check=True,
                       capture_output=True, timeout=PATIENCE_S)
        self.subnet = SimulatedSubnet(net)
        self.addCleanup(self.subnet.end)

    def start_manager(self, host):
        """A subnet manager that stays. Ports that have LIDs keep them."""
        home = os.path.join(self.subnet.directory, "osm-" + host)
        os.mkdir(home)
        manager = subprocess.Popen(
            ["opensm", "-R", "minhop", "-f", os.path.join(home, "log")],
            cwd=self.subnet.directory, preexec_fn=few_files, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**self.subnet.environment, "SIM_HOST": host, "OSM_CACHE_DIR": home,
                 "OSM_TMP_DIR": home})
        self.addCleanup(manager.wait)
        self.addCleanup(manager.kill)

        # OpenSM writes its log late, but this file whenever it has set up the subnet.
        wait_until(lambda: os.path.exists(os.path.join(home, "opensm-subnet.lst")), "OpenSM")
        self.assertIsNone(manager.poll())
        return manager

    def test_jobs_are_held_while_the_subnets_manager_starts_anew_elsewhere(self):
        first = self.start_manager("n0012")
        with open(os.path.join(self.daemon.directory, "log"), "ab") as log:
            self.daemon.process = subprocess.Popen(
                self.daemon.command, cwd=self.subnet.directory, env=self.subnet.environment,
                stderr=log, preexec_fn=few_files)
        self.daemon.wait_until_listening()
        self.ctl("fabric", "sweep")
        agents = []
        for host in ("n0001", "n0005"):
            agent = Agent(AGENT, self.daemon.address, host)
            self.addCleanup(agent.clean_up)
            agents.append(agent.start())
        held = [self.holder(agent, NOBODY) for agent in agents]
        trees = [self.create_tree(program) for program, _ in held]
        shown = [self.ctl("tree", "show", tree)["nodes"] for tree in trees]

        first.send_signal(signal.SIGKILL)
        first.wait()
        for _, job in held:  # trees and jobs need no subnet manager
            self.lease_is_renewed(job)
        self.start_manager("n0015")
        wait_until(lambda: self.ctl("events", "--kind", "sm.changed")["events"], "its event")
        for (program, job), tree, nodes in zip(held, trees, shown):
            self.lease_is_renewed(job)
            self.assertEqual(self.ctl("tree", "show", tree)["nodes"], nodes)
            self.assertNotEqual(self.create_tree(program), "")
        known = self.ctl("agent", "list")["agents"]
        self.assertEqual([agent["connected"] for agent in known], [True, True])
        for program, job in held:
            self.ends_with_its_process(program, job)


class HiddenProcesses(SiteTest):
    """An agent that is no root, on a node whose /proc is mounted with hidepid."""

    def setUp(self):
        self.daemon = Coppiced(COPPICED)
        self.addCleanup(self.daemon.clean_up)
        with open(self.daemon.config, "r+", encoding="utf-8") as config:
            rules = config.read()
            config.seek(0)
            config.write('admin_group = "nogroup"\nsocket_mode = "0666"\n' + rules)
        os.chmod(self.daemon.directory, 0o755)
        self.daemon.start().wait_until_listening()
        self.ctl("fabric", "sweep")

    def agent(self, options):
        there = ("mount -t proc -o " + options + " proc /proc && exec setpriv --reuid 65534"
                 " --regid 65534 --clear-groups \"$@\"")
        agent = Agent(AGENT, self.daemon.address, "n0001", owner=NOBODY,
                      prefix=("unshare", "--mount", "sh", "-c", there, "sh"))
        self.addCleanup(agent.clean_up)
        return agent.start()

    def test_without_its_group_jobs_cannot_be_held_and_that_is_said(self):
        agent = self.agent("hidepid=2")
        wait_until(lambda: "jobs of other users cannot be held" in agent.logged(), "its warning")
        client = libcoppice.Client(LIBRARY, agent.socket)
        self.addCleanup(client.close)
        with self.assertRaises(libcoppice.Failed) as caught:
            client.register(RANKS, hold=True)
        self.assertIn("hidepid", caught.exception.message)
        self.assertEqual(self.jobs(), {})
        job = client.register(RANKS)  # all else works
        client.release_tree(client.create_tree(job))
        client.end(job)

    def test_with_its_group_they_are_held(self):
        agent = self.agent("hidepid=2,gid=65534")
        program, job = self.holder(agent, OTHER)
        self.lease_is_renewed(job)
        self.assertNotIn("cannot be held", agent.logged())
        self.ends_with_its_process(program, job)


if __name__ == "__main__":
    unittest.main()
