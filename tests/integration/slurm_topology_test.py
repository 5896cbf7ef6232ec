"""topology.conf as a real slurmctld reads it: of every model, and kept fresh while the fabric changes
and the daemon comes and goes."""

import os
import re
import signal
import subprocess
import sys
import unittest

import exit_status
from slurm_cluster import PATIENCE_S, SlurmCluster, wait_until
from slurm_site import HOSTS, SlurmSite

COPPICED, COPPICECTL, PLAN, DEPLOY = (sys.argv.pop(1) for _ in range(4))

MODELS = ["fat-tree(supernodes=3,leaves=4,spines=2,hosts-per-leaf=4,tops=4)",
          "fat-tree(ports=4,levels=3,rails=2)", "torus(dims=4x4x4,hosts=2)", "mesh(dims=5x4,hosts=1)",
          "hypercube(dims=5,hosts=1)", "hyperx(dims=4x4x3,hosts=1)", "dragonfly(p=2,a=4,h=2)",
          "dragonfly-plus", "percs(supernodes=4)"]


def switches(text):
    """Nodes and switches below each switch, as topology.conf or scontrol show topology has them."""
    found = {}
    for line in text.splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if line.startswith("SwitchName="):
            found[values["SwitchName"]] = (values.get("Nodes", ""), values.get("Switches", ""))
    return found


class Models(unittest.TestCase):
    """slurmctld alone, told of as many nodes as the model has hosts."""

    def check(self, model):
        cluster = SlurmCluster(["none"])
        self.addCleanup(cluster.end)
        path = cluster.path("topology.conf")
        subprocess.run([PLAN, "fabric", "--fabric", "model:" + model, "--slurm-topology", path],
                       check=True, capture_output=True, timeout=PATIENCE_S)
        with open(path, encoding="utf-8") as file:
            wanted = switches(file.read())
        nodes = ",".join(nodes for nodes, _ in wanted.values() if nodes)
        with open(cluster.configuration, encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("NodeName=")]
        with open(cluster.configuration, "w", encoding="utf-8") as file:
            file.write("".join(lines) + f"NodeName={nodes} NodeAddr=localhost CPUs=1\n")
        cluster.start(with_nodes=False)
        read = switches(cluster.run("scontrol", "show", "topology")[1])
        self.assertEqual(set(read), set(wanted))
        hosts = cluster.names(nodes)
        self.assertEqual(len(hosts), len(set(hosts)))
        below = {name: set(cluster.names(listed[0])) for name, listed in read.items()}
        for name, (own, children) in wanted.items():
            expected = set(cluster.names(own)) if own else set().union(
                *(below[child] for child in cluster.names(children)))
            self.assertEqual(below[name], expected, name)
        self.assertEqual(set().union(*below.values()), set(hosts))
        with open(cluster.path("slurmctld.log"), encoding="utf-8") as log:
            complaints = re.findall(r".*(?:[Ii]nvalid|lack access|no switch can reach).*", log.read())
        self.assertEqual([line for line in complaints if "opology" in line or "switch" in line], [])
        cluster.end()

    def test_every_model_is_read_without_a_complaint(self):
        for model in MODELS:
            with self.subTest(model):
                self.check(model)


class Fresh(unittest.TestCase):
    def setUp(self):
        self.site = SlurmSite(COPPICED, COPPICECTL, PLAN, DEPLOY, topology="tree")
        self.addCleanup(self.site.clean_up)
        self.slurm = self.site.cluster
        self.file = self.slurm.path("topology.conf")

    def leaves(self):
        """Hosts below each leaf switch, as slurmctld has them now."""
        shown = self.slurm.run("scontrol", "show", "topology")[1]
        return sorted(self.slurm.names(nodes) for nodes, children in switches(shown).values()
                      if not children)

    def follow(self):
        self.slurm.launch("export", COPPICECTL, "--server", self.site.daemon.address, "export",
                          "slurm-topology", "--output", self.file, "--follow", "--exec",
                          "scontrol reconfigure")

    def test_slurm_has_the_switches_as_they_are(self):
        text = self.site.good("export", "slurm-topology")
        self.site.good("export", "slurm-topology", "--output", self.file)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        self.slurm.start()
        self.assertEqual(self.leaves(), [HOSTS[:4], HOSTS[4:]])
        unchanged = os.stat(self.file)
        self.follow()
        wait_until(lambda: "unchanged" in self.slurm.said("export"), "the first export")
        self.assertEqual(os.stat(self.file).st_ino, unchanged.st_ino)
        # A host loses its cable.
        self.site.subnet.console(f'Unlink "{HOSTS[7]}"[1]')
        self.site.good("fabric", "sweep")
        wait_until(lambda: self.leaves() == [HOSTS[:4], HOSTS[4:7]],
                   lambda: f"{self.leaves()} {self.slurm.said('export')}")
        # The cable comes back while the daemon is away.
        self.site.stop_daemon()
        self.site.subnet.console(f'ReLink "{HOSTS[7]}"[1]')
        self.site.start_daemon()
        self.site.good("fabric", "sweep")
        wait_until(lambda: self.leaves() == [HOSTS[:4], HOSTS[4:]],
                   lambda: f"{self.leaves()} {self.slurm.said('export')}")
        # Jobs run on what it says: two switches, for a job that asks for one.
        number = self.slurm.submit("hostname", "-N4", "--switches=1@1:00:00")
        self.slurm.wait_for(number, "COMPLETED")
        self.assertIn(self.slurm.nodes_of(number), self.leaves())
        self.slurm.stop("export", signal.SIGTERM)

    def test_what_cannot_be_written_or_run_is_told(self):
        status, _, errors = self.site.ask("export", "slurm-topology", "--output", "/nowhere/file")
        self.assertEqual(status, exit_status.of(errors))
        self.assertIn("/nowhere/file", errors)
        status, out, errors = self.site.ask("export", "slurm-topology", "--output", self.file,
                                            "--exec", "exit 3")
        self.assertEqual((status, "exit status 3" in errors), (exit_status.of(errors), True), errors)
        self.assertIn("written", out)
        # It is run for changes only.
        self.assertEqual(self.site.ask("export", "slurm-topology", "--output", self.file, "--exec",
                                       "exit 3")[0], 0)
        for bad in (["--follow"], ["--exec", "true"]):
            self.assertEqual(self.site.ask("export", "slurm-topology", *bad)[0], 2)
        os.chown(self.file, 1, 2)  # such as slurm's
        os.chmod(self.file, 0o600)
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("# somebody's\n")
        link = self.slurm.path("link")
        os.symlink(self.file, link)
        self.site.good("export", "slurm-topology", "--output", link)
        self.assertTrue(os.path.islink(link))
        held = os.stat(self.file)
        self.assertEqual((held.st_uid, held.st_gid, held.st_mode & 0o777), (1, 2, 0o600))
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.site.good("export", "slurm-topology"))


if __name__ == "__main__":
    unittest.main()
