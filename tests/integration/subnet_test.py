"""The daemon on a live subnet that stops and goes on under it, and that is exchanged with it: jobs
and trees outlive both, and stand on what is there."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import unittest

from coppiced_process import Coppiced
from simulated_subnet import PATIENCE_S, SimulatedSubnet, few_files, wait_until
from terminal import run_on_a_terminal

COPPICED, COPPICECTL, PLAN = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
FABRIC = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"


class SubnetTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED, fabric="umad")
        self.addCleanup(self.daemon.clean_up)
        with open(self.daemon.config, "a", encoding="utf-8") as config:
            config.write('[sweep]\nlight_period = "1s"\n')
        self.net = os.path.join(self.daemon.directory, "net")
        subprocess.run([PLAN, "fabric", "--fabric", FABRIC, "--ibsim", self.net], check=True,
                       capture_output=True, timeout=PATIENCE_S)

    def begin(self, *lost):
        """Another subnet, without those cables, and a daemon on it."""
        self.subnet = SimulatedSubnet(self.net)
        self.addCleanup(self.subnet.end)
        for cable in lost:
            self.subnet.console("Unlink " + cable)
        self.subnet.manage()
        with open(os.path.join(self.daemon.directory, "log"), "ab") as log:
            self.daemon.process = subprocess.Popen(
                self.daemon.command, cwd=self.subnet.directory, env=self.subnet.environment,
                stderr=log, preexec_fn=few_files)
        self.daemon.wait_until_listening()
        self.ask("fabric", "sweep")

    def end_both(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait(PATIENCE_S)
        self.subnet.end()

    def ask(self, *arguments):
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, *arguments, "--json"],
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return json.loads(done.stdout)

    def grant(self):
        self.job = self.ask("job", "register", "--all", "--lease", "1h")["id"]
        for kind in ("1", "2"):
            self.ask("tree", "create", "--job", self.job, "--type", kind)
        return self.ask("tree", "list")["trees"]

    def cable_of_the_trees(self):
        """Between switches, as the console names an end of it."""
        database = sqlite3.connect("file:%s?mode=ro" % self.daemon.database, uri=True)
        self.addCleanup(database.close)
        return '"%s"[%d]' % database.execute(
            "SELECT a.description, l.port_a FROM tree, json_each(tree.links) AS crossed"
            " JOIN link AS l ON l.id = crossed.value JOIN node AS a ON a.guid = l.node_a"
            " JOIN node AS b ON b.guid = l.node_b"
            " WHERE a.kind = 'switch' AND b.kind = 'switch' ORDER BY l.id").fetchone()

    def assert_whole(self, trees):
        """Those trees, and as many entries taken as their switches say."""
        now = self.ask("tree", "list")["trees"]
        self.assertEqual([t["id"] for t in now], [t["id"] for t in trees])
        taken = sum(s["entries_taken"] for s in self.ask("entries")["switches"])
        serving = {n["id"] for t in trees for n in self.ask("tree", "show", t["id"])["nodes"]
                   if n["kind"] == "switch"}
        self.assertEqual(taken, len(serving))
        self.assertEqual(self.ask("job", "show", self.job)["state"], "JOB_STATE_ACTIVE")

    def test_a_subnet_that_is_exchanged_with_its_daemon(self):
        self.begin()
        trees = self.grant()
        shown = [self.ask("tree", "show", tree["id"])["nodes"] for tree in trees]
        self.end_both()
        self.begin()
        self.assertEqual([self.ask("tree", "show", tree["id"])["nodes"] for tree in trees], shown)
        self.assert_whole(trees)
        # The next one lacks a cable that they cross.
        cable = self.cable_of_the_trees()
        self.end_both()
        self.begin(cable)
        self.assert_whole(trees)
        links = self.ask("fabric", "show")["link_count"]
        repaired = self.ask("events", "--kind", "trees.repaired")["events"]
        self.assertEqual(len(repaired), 1, repaired)
        self.assertIn("gone", repaired[0]["message"])
        # And the last one has it again: nothing moves for that.
        self.end_both()
        self.begin()
        self.assert_whole(trees)
        self.assertEqual(self.ask("fabric", "show")["link_count"], links + 1)
        self.assertEqual(len(self.ask("events", "--kind", "trees.repaired")["events"]), 1)

    def status(self):
        """What it prints, whatever the health."""
        done = subprocess.run([COPPICECTL, "--server", self.daemon.address, "status"],
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_a_link_that_is_down_is_told_until_it_is_up(self):
        self.begin()
        self.subnet.start_manager("n0005")
        self.ask("fabric", "sweep")
        self.grant()
        self.assertEqual(self.status()[0], "HEALTH_OK")
        self.assertEqual(self.ask("fabric", "links", "--down")["links"], [])
        links = len(self.ask("fabric", "links")["links"])
        cable = self.cable_of_the_trees()
        name, port = cable.strip("]").replace('"', "").split("[")
        self.subnet.console("Unlink " + cable)
        self.ask("fabric", "sweep")
        self.assertRegex(self.status()[0], r"^HEALTH_WARN: 1 link down since \d{4}-.*Z$")
        self.assertEqual(self.status()[1].strip(), "see coppicectl fabric links --down")
        _, shown, _ = run_on_a_terminal([COPPICECTL, "--server", self.daemon.address, "status"])
        self.assertLessEqual(max(map(len, shown)), 80, shown)
        self.assertEqual(shown[:2], self.status()[:2])
        down = self.ask("fabric", "links", "--down")["links"]
        self.assertEqual(len(down), 1)
        self.assertIn((name, int(port)), [(down[0][end]["name"], down[0][end]["port"]) for end in "ab"])
        self.assertEqual(self.ask("fabric", "links", "--down", "--switch", name)["links"], down)
        self.assertEqual(len(self.ask("fabric", "links")["links"]), links - 1)
        self.subnet.console("Relink " + cable)
        self.ask("fabric", "sweep")
        self.assertEqual(self.status()[0], "HEALTH_OK")

    def test_a_subnet_manager_that_ends_is_told_until_one_is_there(self):
        """LIDs and tables stay as they are without it."""
        self.begin()
        for host in ("n0000", "n0005"):  # the daemon's own port, and another
            self.subnet.start_manager(host)
            self.ask("fabric", "sweep")
            said = self.status()
            self.assertEqual(said[0], "HEALTH_OK")
            self.assertIn("; the subnet manager answers", "\n".join(said))
            trees = self.grant()
            self.subnet.end_manager()
            fabric = self.ask("fabric", "sweep")
            self.assertEqual([fabric["has_subnet_manager"], fabric["subnet_manager_silent"]], [True, True])
            said = self.status()
            self.assertRegex(said[0], "^HEALTH_WARN: the subnet manager did not answer")
            self.assertIn("; the subnet manager does not answer", "\n".join(said))
            self.assertIn("does not answer", self.ask("events", "--kind", "sm.lost")["events"][-1]["message"])
            self.assert_whole(trees)
            self.ask("job", "end", self.job)
        self.subnet.start_manager("n0005")
        self.ask("fabric", "sweep")
        self.assertEqual(self.status()[0], "HEALTH_OK")
        self.assertIn("answers at LID", self.ask("events", "--kind", "sm.found")["events"][-1]["message"])

    def test_whoever_watches_sees_a_tree_that_is_rerouted(self):
        self.begin()
        self.grant()
        for ranks in ("0,9", "0,13", "4,8", "4,12"):  # two routes each, over one spine or the other
            self.ask("tree", "create", "--job", self.job, "--type", "1", "--ranks", ranks)
        trees = self.ask("tree", "list")["trees"]
        log = os.path.join(self.daemon.directory, "watch")
        with open(log, "wb") as file:
            watch = subprocess.Popen([COPPICECTL, "--server", self.daemon.address, "tree", "watch"],
                                     stdout=file)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)

        def seen(kind):
            with open(log, encoding="utf-8") as file:
                return [line for line in file if line.startswith(kind)]
        wait_until(lambda: seen("synced"), "all that are there")
        # Other tables over the same cables.
        self.subnet.manage("-R", "dor")
        self.ask("fabric", "sweep")
        wait_until(lambda: self.ask("events", "--kind", "trees.rerouted")["events"], "other routes")
        wait_until(lambda: seen("revised"), "a tree that is rerouted, in tree watch")
        self.assertIn("tree ", seen("revised")[0])
        self.assertEqual(seen("revoked"), [])
        self.assert_whole(trees)

    def test_a_subnet_that_stops_is_told_and_goes_on(self):
        self.begin()
        trees = self.grant()
        self.subnet.freeze()
        wait_until(lambda: self.ask("events", "--kind", "sweep.failed")["events"], "the failure")
        self.assert_whole(trees)  # answered meanwhile
        self.subnet.thaw()
        wait_until(lambda: self.ask("events", "--kind", "sweep.recovered")["events"], "its end")
        self.assert_whole(trees)
        self.ask("fabric", "sweep")
        self.assertEqual(self.daemon.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
