"""The metrics of a running daemon: scraped over HTTP, read by a strict reader of the format, and
compared with what the test made happen and with what `coppicectl status` says."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

import metrics_text
from coppiced_process import Coppiced

COPPICED, COPPICECTL = sys.argv.pop(1), sys.argv.pop(1)

# What an administrator's dashboards and alarms rely on: family, type, label names.
PROMISED = {
    "coppice_build_info": ("gauge", {"version"}),
    "coppice_sweeps_total": ("counter", {"kind", "result"}),
    "coppice_sweep_duration_seconds": ("gauge", {"kind"}),
    "coppice_mads_sent_total": ("counter", set()),
    "coppice_mads_resent_total": ("counter", set()),
    "coppice_mad_timeouts_total": ("counter", set()),
    "coppice_snapshot_age_seconds": ("gauge", set()),
    "coppice_rpc_requests_total": ("counter", {"method", "code"}),
    "coppice_rpc_latency_seconds": ("histogram", {"method"}),
    "coppice_rpc_streams": ("gauge", {"method"}),
    "coppice_trees": ("gauge", set()),
    "coppice_trees_created_total": ("counter", set()),
    "coppice_trees_refused_total": ("counter", set()),
    "coppice_trees_repaired_total": ("counter", set()),
    "coppice_trees_revoked_total": ("counter", set()),
    "coppice_switches_connected": ("gauge", set()),
    "coppice_switch_installs_total": ("counter", set()),
    "coppice_switch_refusals_total": ("counter", set()),
    "coppice_entries": ("gauge", {"state"}),
    "coppice_queue_length": ("gauge", {"queue"}),
    "coppice_store_commit_seconds": ("histogram", set()),
    "coppice_database_bytes": ("gauge", set()),
    "coppice_jobs_active": ("gauge", set()),
    "coppice_placements_held": ("gauge", set()),
    "coppice_placed_nodes": ("gauge", set()),
    "coppice_watchers": ("gauge", {"kind"}),
    "coppice_agents_connected": ("gauge", set()),
    "coppice_measured_distances": ("gauge", set()),
    "process_resident_memory_bytes": ("gauge", set()),
    "process_cpu_seconds_total": ("counter", set()),
    "process_open_fds": ("gauge", set()),
    "process_start_time_seconds": ("gauge", set()),
}


class MetricsTest(unittest.TestCase):
    def daemon(self, listen, **arguments):
        made = Coppiced(COPPICED, **arguments)
        self.addCleanup(made.clean_up)
        with open(made.config, "a", encoding="utf-8") as config:
            config.write('[metrics]\nlisten = "%s"\n' % listen)
        return made

    def started(self, **arguments):
        """A daemon that listens, and where its metrics are."""
        daemon = self.daemon("127.0.0.1:0", **arguments).start().wait_until_listening()
        for line in daemon.process.stderr:
            found = re.search(r"metrics at (http://\S+)", line)
            if found:
                # The pipe must not fill up.
                threading.Thread(target=daemon.process.stderr.read, daemon=True).start()
                return daemon, found.group(1)
        raise AssertionError("it does not say where its metrics are")

    def scrape(self, url):
        with urllib.request.urlopen(url, timeout=60) as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
            families = metrics_text.parse(answer.read().decode("utf-8"))
        # What the library tells of itself is not ours to name.
        return {name: family for name, family in families.items()
                if not name.startswith("exposer_")}

    def ctl(self, daemon, *arguments, status=0):
        done = subprocess.run([COPPICECTL, "--server", daemon.address, *arguments],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, (arguments, done.stderr))
        return json.loads(done.stdout) if done.stdout else None

    def test_a_scrape_is_well_formed_and_holds_what_is_promised(self):
        daemon, url = self.started()
        self.ctl(daemon, "fabric", "sweep", "--json")
        families = self.scrape(url)
        self.assertEqual([], metrics_text.complaints(families))
        for name, (kind, labels) in PROMISED.items():
            with self.subTest(name=name):
                self.assertIn(name, families)
                self.assertEqual(families[name].type, kind)
                self.assertTrue(families[name].samples)
                for _, its, _ in families[name].samples:
                    self.assertEqual(set(its) - {"le"}, labels)

    def test_numbers_are_those_of_what_happened(self):
        daemon, url = self.started(entries=1)
        self.ctl(daemon, "fabric", "sweep", "--json")
        before = self.scrape(url)
        job = self.ctl(daemon, "job", "register", "--all", "--json")["id"]
        trees = []
        while True:  # until the entries are taken
            done = subprocess.run([COPPICECTL, "--server", daemon.address, "tree", "create", "--job",
                                   job, "--type", "2", "--json"], capture_output=True, text=True,
                                  timeout=120, check=False)
            if done.returncode != 0:
                break
            trees.append(json.loads(done.stdout)["id"])
        count = len(trees)
        self.assertGreater(count, 0)
        self.ctl(daemon, "tree", "show", "999999", status=3)
        subprocess.run([COPPICECTL, "--server", daemon.address, "tree", "release", trees[0]],
                       check=True, capture_output=True, timeout=120)
        after = self.scrape(url)

        def rise(name, **labels):
            return (metrics_text.one(after, name, **labels)
                    - metrics_text.one(before, name, **labels))
        self.assertEqual(rise("coppice_trees_created_total"), count)
        self.assertEqual(rise("coppice_trees_refused_total"), 1)
        self.assertEqual(rise("coppice_trees_released_total"), 1)
        self.assertEqual(rise("coppice_trees"), count - 1)
        self.assertEqual(rise("coppice_jobs_active"), 1)
        for method, code, calls in (("Jobs.RegisterJob", "OK", 1), ("Trees.CreateTree", "OK", count),
                                    ("Trees.ReleaseTree", "OK", 1)):
            self.assertEqual(rise("coppice_rpc_requests_total", method=method, code=code), calls)
        self.assertEqual(metrics_text.one(after, "coppice_rpc_requests_total",
                                          method="Trees.GetTree", code="NOT_FOUND"), 1)
        self.assertEqual(metrics_text.one(after, "coppice_rpc_requests_total",
                                          method="Trees.CreateTree", code="RESOURCE_EXHAUSTED"), 1)
        self.assertEqual(rise("coppice_rpc_latency_seconds_count", method="Trees.CreateTree"), count + 1)
        self.assertGreater(rise("coppice_store_commit_seconds_count"), 0)
        self.assertGreater(rise("process_cpu_seconds_total"), -1e-9)
        status = self.ctl(daemon, "status", "--json")
        for name, key in (("coppice_trees", "granted_trees"), ("coppice_jobs_active", "active_jobs"),
                          ("coppice_trees_created_total", "trees_created"),
                          ("coppice_trees_refused_total", "trees_refused"),
                          ("coppice_fabric_version", "fabric_version")):
            self.assertEqual(metrics_text.one(after, name), int(status[key]), name)
        for state in ("total", "taken"):
            self.assertEqual(metrics_text.one(after, "coppice_entries", state=state),
                             int(status["entries_" + state]))
        self.assertEqual(metrics_text.one(after, "coppice_build_info", version=status["version"]), 1)
        calls = {(m["method"], m["code"]): int(m["count"]) for m in status["methods"]}
        self.assertEqual(calls["Trees.CreateTree", "OK"], count)
        self.assertEqual(calls["Trees.CreateTree", "RESOURCE_EXHAUSTED"], 1)

    def test_status_says_what_is_wrong_and_fails(self):
        scratch = tempfile.mkdtemp(prefix="coppice-it-")
        self.addCleanup(shutil.rmtree, scratch)
        net = os.path.join(scratch, "net")
        with open(net, "w", encoding="utf-8") as file:
            file.write('Switch 4 "S-0000000000000001" # "s" base port 0 lid 1 lmc 0\n')
        daemon, url = self.started(fabric="file:" + net)
        self.ctl(daemon, "fabric", "sweep", "--json")
        good = self.ctl(daemon, "status", "--json")
        self.assertEqual(good["full_sweep"]["last_error"], "")
        os.unlink(net)
        self.ctl(daemon, "fabric", "sweep", status=3)
        for arguments in ([], ["--json"]):
            done = subprocess.run([COPPICECTL, "--server", daemon.address, "status", *arguments],
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 7)
            self.assertIn("wrong: full sweep: ", done.stderr)
            self.assertIn(net, done.stderr)
            self.assertTrue(done.stdout)
            self.assertEqual(done.stdout.startswith("HEALTH_ERR\n"), not arguments)
        families = self.scrape(url)
        self.assertGreaterEqual(metrics_text.one(families, "coppice_sweeps_total", kind="full",
                                                 result="failed"), 1)

    def test_a_port_that_is_taken_ends_the_start_and_names_the_address(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            status, errors = self.daemon(address).run()
            self.assertEqual(status, 1)
            self.assertIn(address, errors)
            self.assertIn("metrics", errors)
        bad = self.daemon("localhost:9709")
        status, errors = bad.run()
        self.assertEqual(status, 2)
        self.assertIn(bad.config + ":6: metrics.listen: ", errors)
        self.assertIn("localhost:9709", errors)

    def test_without_an_address_there_are_none(self):
        daemon = self.daemon("").start().wait_until_listening()
        self.ctl(daemon, "fabric", "sweep", "--json")
        _, errors = daemon.end()
        self.assertNotIn("metrics at", errors)


if __name__ == "__main__":
    unittest.main()
