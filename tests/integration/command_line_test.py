"""coppicectl as a user and a script meet it: exit statuses, where messages go, tables and JSON."""

import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import grpc

import exit_status
from coppiced_process import Coppiced
from reflection_client import Reflection
from simulated_subnet import wait_until
from terminal import run_on_a_terminal

COPPICED, COPPICECTL = sys.argv.pop(1), sys.argv.pop(1)
MEASUREMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/examples/measurements.csv")
FIXED = [word for constant in ("link_us=0.15", "nic.send_us=0.3", "switch", "port_gbps=0", "mean_route_links=4")
         for word in ("--fix", constant)]
ENDPOINTS = 1400  # more than a page of a listing
FABRIC = "model:fat-tree(leaves=70,spines=2,hosts-per-leaf=20)"


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Coppiced(COPPICED, fabric=FABRIC, entries=1)
        cls.addClassCleanup(cls.daemon.clean_up)
        cls.daemon.start().wait_until_listening()
        # Answers once a fabric is known; a busy machine may take longer than one call waits.
        wait_until(lambda: cls.run_program(cls, "fabric", "sweep")[0] == 0, "no first sweep")

    def run_program(self, *arguments, server=None, stdin=""):
        done = subprocess.run([COPPICECTL, *arguments], capture_output=True, text=True, timeout=120,
                              check=False, input=stdin,
                              env={**os.environ, "COPPICE_SERVER": server or self.daemon.address})
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments, **options):
        status, out, errors = self.run_program(*arguments, **options)
        self.assertEqual((status, exit_status.without_waiting(errors)), (0, ""), arguments)
        return out

    def fails(self, *arguments, words=(), **options):
        exit_status.check_failure(self, self.run_program(*arguments, **options), words)

    def refused(self, expected, *arguments, words=(), **options):
        status, out, errors = self.run_program(*arguments, **options)
        self.assertEqual((status, out), (expected, ""), (arguments, errors))
        for word in words:
            self.assertIn(word, errors, arguments)

    def test_a_refusal_is_json_where_answers_are(self):
        status, out, errors = self.run_program("tree", "show", "999", "--json")
        self.assertEqual((status, out), (3, ""))
        self.assertEqual(json.loads(errors)["error"]["code"], "NOT_FOUND")
        self.assertIn("999", json.loads(errors)["error"]["message"])
        status, _, errors = self.run_program("job", "register", "--endpoints",
                                             os.fsdecode(b"/absent/\xff"), "--json")
        self.assertEqual((status, json.loads(errors)["error"]["code"]), (3, "NOT_FOUND"))

    def test_wrong_usage_is_json_where_answers_are(self):
        for arguments, words in ((["frob", "--json"], '"frob": no such command'),
                                 (["tree", "list", "--json", "--frob"], "--frob"),
                                 (["job", "show", "--json"], "JOB"),
                                 (["fabric", "links", "3", "--lonks", "--json"], '"3": no such'),
                                 (["tree", "create", "--job", "1", "--bytes", "8X", "--json"], "8,4K,1M"),
                                 (["tree", "create", "--job", "1", "--type", "3", "--json"], "--type"),
                                 (["job", "register", "--all", "--lease", "10q", "--json"], "10q"),
                                 (["entries", "-o", "wide", "--json"], "--json")):
            with self.subTest(arguments=arguments):
                status, out, errors = self.run_program(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertEqual(json.loads(errors)["error"]["code"], "INVALID_ARGUMENT")
                self.assertIn(words, json.loads(errors)["error"]["message"])

    def test_what_nobody_knows_is_null(self):
        self.assertEqual(self.of_json("status")["fabric"]["down_links"], {"links": []})
        links = self.of_json("fabric", "links")["links"]
        for name in "load_time", "utilisation_ab", "peak_ba":
            self.assertEqual({link[name] for link in links}, {None})

    def test_a_variable_that_nobody_reads_is_told(self):
        done = subprocess.run([COPPICECTL, "fabric", "show"], capture_output=True, text=True,
                              timeout=120, check=True,
                              env={**os.environ, "COPPICE_SERVER": self.daemon.address,
                                   "COPPICE_TLS_CERTIFICATE": "x"})
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("COPPICE_TLS_CERTIFICATE", done.stderr)

    def of_json(self, *arguments, **options):
        return json.loads(self.good(*arguments, "--json", **options))

    def register(self, *arguments, lines=None):
        which = ["--all"] if lines is None else ["--endpoints", "-"]
        job = self.of_json("job", "register", *which, *arguments, stdin="\n".join(lines or []))
        return job["id"]

    def test_wrong_usage_is_2(self):
        self.refused(2)
        self.refused(2, "frob", words=["frob"])
        self.refused(2, "fabric", "frob", words=["frob"])
        self.refused(2, "status", "--frob", words=["--frob"])
        self.refused(2, "status", server="nowhere", words=["nowhere", "HOST:PORT"])
        self.refused(2, "--server", "", "status", words=["HOST:PORT"])
        self.refused(2, "fabric", "route", "n0000", words=["B"])
        self.refused(2, "fabric", "counters", words=["SWITCH"])
        self.refused(2, "fabric", "history", "S0", words=["PORT"])
        self.refused(2, "fabric", "history", "S0", "one", words=["PORT"])
        self.refused(2, "fabric", "history", "S0", "1", "--resolution", "day",
                     words=["--resolution"])
        self.refused(2, "job", "register", words=["--endpoints", "--all"])
        self.refused(2, "tree", "create", words=["--job"])
        self.refused(2, "tree", "create", "--job", "1", "--bytes", "-3", words=["--bytes", "-3"])
        self.refused(2, "tree", "create", "--job", "1", "--width", "0", words=["--width"])
        self.refused(2, "tree", "create", "--job", "1", "--type", "3", words=["--type"])
        self.refused(2, "events", "--severity", "bad", words=["--severity"])
        for size in ("0", "8,16", "5G", "many"):
            self.refused(2, "distance", "measure", "--bandwidth-bytes", size, words=["--bandwidth-bytes", size])
        here = ("map", "--hosts", "n0000", "--pattern", "p")
        self.refused(2, "map", "--hosts", "-", "--pattern", "-", words=["--hosts", "--pattern"])
        self.refused(2, *here, "--objective", "speed", words=['"speed" is not congestion'])
        self.refused(2, *here, "--budget", "5", words=["such as 500ms, 1s or 2m"])
        self.refused(2, *here, "--option", "x", words=['"x" is not NAME=VALUE'])

    def test_numbers_out_of_range_are_told_in_a_line(self):
        for arguments in (("--timeout", "0", "status"), ("--timeout", "x", "status"),
                          ("events", "--follow", "--after", "x"), ("fabric", "links", "--top", "0"),
                          ("distance", "measure", "--latency-samples", "-1")):
            status, out, errors = self.run_program(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertLess(max(map(len, errors.splitlines())), 100, errors)

    def test_options_that_map_has_no_use_for(self):
        here = ("--hosts", "n[0000-0001]", "--pattern", "-")
        for arguments, word in (((*here, "--emit", "rankfile", "--json"), "--json"),
                                (("--list", "--job", "1"), "--job"),
                                ((*here, "--emit", "slurm", "--out", "-", "--json"), "--json"),
                                (("--list", "--budget", "2s"), "--budget"),
                                (("--stored", "--job", "1", "--pattern", "p"), "--pattern"),
                                ((*here, "--evaluate", "x", "--seed", "3"), "--seed"),
                                ((*here, "--ranks-per-host", "0"), "--ranks-per-host"),
                                ((*here, "--algorithm", ""), "the value is empty")):
            self.refused(2, "map", *arguments, words=[word])

    def test_an_order_goes_to_a_file_and_the_report_to_people(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hosts")
            here = ("map", "--hosts", "n[0000-0001]", "--pattern", "-", "--emit", "hostfile")
            answer = self.of_json(*here, "--out", path, stdin="0 1\n1 0\n")
            with open(path, encoding="ascii") as file:
                hosts = file.read()
            self.assertEqual(hosts.split(), [f"n{host:04}" for host in answer["permutation"]])
            self.assertEqual(self.good(*here, stdin="0 1\n1 0\n"), hosts)

    def test_exit_statuses_tell_why(self):
        self.refused(3, "job", "show", "999999", words=["NOT_FOUND"])
        self.refused(2, "job", "register", "--all", "--lease", "10q", words=["10q"])
        self.refused(5, "job", "list", server="unix:/nonexistent/s", words=["/nonexistent/s"])
        self.refused(4, "--as", "nobody", "fabric", "sweep", words=["administrators"])
        job = self.register()
        self.good("job", "end", job)
        self.refused(6, "job", "keepalive", job, words=["ended"])

    def test_a_format_that_no_launcher_reads_is_wrong_usage(self):
        self.refused(2, "map", "--hosts", "n[0000-0001]", "--pattern", "-", "--emit", "foo",
                     words=["--emit", "foo", "rankfile"], stdin="0 1\n1 0\n")

    def on_a_terminal(self, *arguments):
        """The lines that people see."""
        status, shown, told = run_on_a_terminal([COPPICECTL, "--server", self.daemon.address, *arguments])
        self.assertEqual((status, exit_status.without_waiting(told)), (0, ""), arguments)
        return shown

    def test_tables_fit_a_terminal(self):
        self.good("pattern", "put", "an/application/of-some-length", "-", stdin="0 1\n1 0\n")
        placement = json.loads(self.good("placement", "create", "--nodes", "40", "--name",
                                         "of-some-length", "--json"))["id"]
        advised = self.on_a_terminal("placement", "advise", "--nodes", "40")  # while hosts are free
        self.assertLessEqual(max(map(len, advised)), 80, "\n".join(advised))
        job = self.register("--name", "a-job-of-some-length", "--lease", "24h")
        tree = self.of_json("tree", "create", "--job", job)["id"]
        for arguments in (["events"], ["audit", "--method", "Placements."], ["tree", "list"], ["pattern", "list"],
                          ["placement", "list"], ["pattern", "show", "an/application/of-some-length"],
                          ["placement", "show", placement], ["job", "list"], ["job", "show", job],
                          ["fabric", "links"], ["entries"]):
            with self.subTest(arguments=arguments):
                shown = self.on_a_terminal(*arguments)
                self.assertLessEqual(max(map(len, shown)), 80, "\n".join(shown))
                wide = self.on_a_terminal(*arguments, "-o", "wide")
                self.assertGreater(len(wide[0].split()), len(shown[0].split()))
                self.assertGreater(max(map(len, wide)), 80)
        # These have nothing to leave out, or little.
        for arguments in (["fabric", "nodes"], ["fabric", "switches"], ["fabric", "route", "n0000", "n1399"],
                          ["table"], ["map", "--list"], ["placement", "distances", "--nodes", "n[0000-0015]"],
                          ["status"], ["fabric", "show"],
                          ["tree", "create", "--job", job, "--dry-run", "--bytes", "8,64K,4M"],
                          ["tree", "create", "--job", job, "--dry-run", "--type", "1", "--tradeoffs"],
                          ["tree", "advise", "--job", job, "--policy", "latency=1,entries=0.5,link=0"],
                          ["tree", "explain", tree], ["calibrate", MEASUREMENTS, *FIXED]):
            with self.subTest(arguments=arguments):
                shown = self.on_a_terminal(*arguments)
                self.assertGreater(len(shown), 3)
                self.assertLessEqual(max(map(len, shown)), 80, "\n".join(shown))
        # What does not fit goes on below, and nothing of it is lost.
        said = self.good("events", "--kind", "placement.created").splitlines()[-1]
        shown = self.on_a_terminal("events", "--kind", "placement.created")
        self.assertIn(" ".join(said.split()), " ".join(" ".join(shown).split()))
        self.good("placement", "release", placement)
        self.good("job", "end", job)

    def test_what_cannot_be_written_is_told(self):
        for arguments in (["fabric", "nodes"], ["fabric", "nodes", "--json"],
                          ["export", "slurm-topology"],
                          ["map", "--hosts", "n[0000-0001]", "--pattern", "-", "--emit", "rankfile"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([COPPICECTL, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      input="0 1\n1 0\n", text=True, timeout=120, check=False,
                                      env={**os.environ, "COPPICE_SERVER": self.daemon.address})
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(done.stderr.count("standard output could not be written"), 1)
            self.assertEqual(done.stderr.count("error"), 1)
        self.refused(1, "map", "--hosts", "n[0000-0001]", "--pattern", "-", "--emit", "rankfile", "--out", "/dev/full",
                     words=["cannot write all of /dev/full", "[DATA_LOSS]"], stdin="0 1\n1 0\n")

    def test_a_hyphen_is_standard_output(self):
        text = self.good("export", "slurm-topology")
        self.assertEqual(self.good("export", "slurm-topology", "--output", "-"), text)
        self.assertFalse(os.path.exists("-"))

    def test_what_is_no_regular_file_is_not_exported_to(self):
        folder = tempfile.mkdtemp(prefix="coppice-export-")
        self.addCleanup(shutil.rmtree, folder)
        pipe, sparse = os.path.join(folder, "pipe"), os.path.join(folder, "sparse")
        os.mkfifo(pipe)
        # /dev/zero never ends, a pipe that nobody opens never begins.
        for path in ("/dev/full", "/dev/zero", pipe, folder):
            self.refused(2, "export", "slurm-topology", "--output", path, words=[path, "not a regular file"])
        self.refused(3, "export", "slurm-topology", "--output", folder + "/absent/file", words=["absent"])
        with open(sparse, "wb") as file:
            file.truncate(1 << 40)
        text = self.good("export", "slurm-topology")
        # AddressSanitizer takes more than any bound.
        bounded = [] if "ASAN_OPTIONS" in os.environ else ["prlimit", f"--as={2 << 30}"]
        told = subprocess.run([*bounded, COPPICECTL, "--server", self.daemon.address,
                               "export", "slurm-topology", "--output", sparse],
                              capture_output=True, text=True, timeout=120, check=True).stdout
        self.assertIn("written", told)
        with open(sparse, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        self.assertIn("unchanged", self.good("export", "slurm-topology", "--output", sparse))
        with open(sparse, "r+", encoding="utf-8") as file:  # as long, and other
            file.write("#" if text[0] != "#" else "!")
        self.assertIn("written", self.good("export", "slurm-topology", "--output", sparse))

    def test_a_request_that_fails_names_the_object(self):
        self.fails("status", server="unix:/nonexistent/s", words=["/nonexistent/s"])
        self.fails("fabric", "route", "n0000", "nope", words=["nope"])
        self.fails("fabric", "counters", "nope", words=["nope", "fabric switches"])
        self.fails("fabric", "counters", "00000000deadbeef", words=["deadbeef"])
        self.fails("fabric", "history", "nope", "1", words=["nope"])
        self.fails("fabric", "history", "00000000deadbeef", "1", words=["deadbeef"])
        self.fails("fabric", "history", "S0", "250", words=["250"])
        for since in ("soon", "-1h", "0s"):
            self.fails("fabric", "history", "S0", "1", "--since=" + since,
                       words=["--since", since])
        self.fails("job", "show", "999999", words=["999999"])
        self.fails("job", "end", "999999", words=["999999"])
        self.fails("job", "keepalive", "999999", words=["999999"])
        self.fails("job", "register", "--endpoints", "/nonexistent", words=["/nonexistent"])
        self.fails("job", "register", "--endpoints", "/dev/null", words=["/dev/null"])
        self.fails("job", "register", "--endpoints", "-", stdin="zork", words=["zork"])
        self.fails("tree", "create", "--job", "999999", words=["999999"])
        pair = ("map", "--hosts", "n[0000-0001]", "--pattern", "-")
        self.fails(*pair, "--objective", "congestion=0", stdin="0 1\n1 0\n",
                   words=["weighs nothing"])
        self.fails(*pair, "--budget", "20h", stdin="0 1\n1 0\n",
                   words=["give 1ms to 10m, or raise mapping.max_budget"])
        for action in ("show", "explain", "release"):
            self.fails("tree", action, "999999", words=["999999"])

    def test_server_by_environment_and_option(self):
        self.good("status")
        self.good("--server", self.daemon.address, "status", server="unix:/nonexistent/s")
        self.good("status", "--server", self.daemon.address, server="unix:/nonexistent/s")

    def test_listings_are_whole_beyond_a_page(self):
        nodes = self.of_json("fabric", "nodes")["nodes"]
        self.assertEqual(len({node["port_guid"] for node in nodes}), ENDPOINTS)
        links = self.of_json("fabric", "links")["links"]
        self.assertEqual(len(links), ENDPOINTS + 140)
        self.assertEqual(len(self.of_json("fabric", "switches")["switches"]), 72)
        self.assertEqual(len(self.good("fabric", "nodes").splitlines()), ENDPOINTS + 1)

    def test_links_of_a_switch_and_the_busiest(self):
        links = self.of_json("fabric", "links")["links"]
        guid = links[0]["b" if links[0]["b"]["is_switch"] else "a"]["guid"]
        mine = [link for link in links if guid in (link["a"]["guid"], link["b"]["guid"])]
        name = next(s["description"] for s in self.of_json("fabric", "switches")["switches"]
                    if s["guid"] == guid)
        for switch in (guid, name):
            self.assertEqual(self.of_json("fabric", "links", "--switch", switch)["links"], mine)
        job = self.register("--name", "busy", lines=["n0000", "n0511"])
        tree = self.of_json("tree", "create", "--job", job, "--type", "1", "--bytes", "1M")["id"]
        links = self.of_json("fabric", "links")["links"]
        load = [max(link["promised_" + way] + (link["utilisation_" + way] or 0) for way in ("ab", "ba"))
                for link in links]
        top = self.of_json("fabric", "links", "--top", "3")["links"]
        self.assertGreater(max(load), 0)
        self.assertEqual([max(link["promised_" + way] + (link["utilisation_" + way] or 0)
                              for way in ("ab", "ba")) for link in top],
                         sorted(load, reverse=True)[:3])
        self.good("tree", "release", tree)
        self.good("job", "end", job)
        self.fails("fabric", "links", "--switch", "nowhere", words=["nowhere", "fabric switches"])
        self.fails("fabric", "links", "--down", "--switch", "nowhere", words=["nowhere"])
        self.assertEqual(len(self.good("fabric", "links", "--down", "--switch", name).splitlines()), 1)
        self.refused(2, "fabric", "links", "--down", "-o", "wide", words=["--down"])
        self.refused(2, "fabric", "links", "--top", "0", words=["--top"])
        self.refused(2, "fabric", "links", "--top", "1", "--down", words=["--down", "--top"])

    def test_tables_fit_a_terminal_unless_all_is_wanted(self):
        job = self.register("--name", "narrow", lines=["n0000", "n0001", "n0002", "n0003"])
        self.good("tree", "create", "--job", job, "--type", "2")
        for command in (["status"], ["entries"], ["tree", "list"], ["fabric", "links"]):
            narrow, wide = self.good(*command), self.good(*command, "-o", "wide")
            self.assertGreater(len(wide), len(narrow), command)
            if command != ["status"]:
                self.assertLessEqual(max(map(len, narrow.splitlines())), 80, command)
            self.refused(2, *command, "-o", "tall", words=["tall"])
            self.refused(2, *command, "-o", "wide", "--json", words=["--json"])
        self.assertEqual(len(self.good("status").splitlines()), 10)
        self.good("job", "end", job)

    def test_a_tree_is_told_in_six_lines_and_drawn_on_demand(self):
        job = self.register("--name", "six", lines=["n0000", "n0001", "n0511"])
        create = ("tree", "create", "--job", job, "--type", "2", "--bytes", "8,4K", "--dry-run")
        lines = self.good(*create).splitlines()
        self.assertEqual(len(lines), 6, lines)
        self.assertIn("8 B and 4096 B", lines[2])
        self.assertRegex(lines[4], r"^  served by \S+")
        self.assertNotIn("switch:", "\n".join(lines))
        drawn = self.good(*create, "--tree").splitlines()
        self.assertEqual(drawn[:6], lines)
        self.assertIn("rank", "\n".join(drawn[6:]))
        self.good("job", "end", job)

    def test_nodes_go_by_one_name(self):
        job = self.of_json("job", "register", "--nodes", "n[0000-0003]")["id"]
        tree = self.of_json("tree", "advise", "--job", job, "--nodes", "n[0002-0003]")
        self.assertEqual([n["endpoint"] for n in tree["nodes"] if n["kind"] == "rank"], ["n0002/1", "n0003/1"])
        self.fails("distance", "list", "--matrix", "--nodes", "n[0000-0001]", words=["n0000", "not measured"])
        self.assertEqual(self.good("placement", "advise", "--count", "3"),
                         self.good("placement", "advise", "--nodes", "3"))
        self.good("job", "end", job)

    def test_options_without_effect_are_refused(self):
        for option, value in (("--width", "4"), ("--nic-degree", "4"), ("--builder", "kary")):
            self.refused(2, "tree", "advise", "--job", "1", "--type", "2", option, value,
                         words=[option, "--type 2"])
        self.refused(2, "tree", "advise", "--job", "1", "--type", "1", "--root", "0" * 16,
                     words=["--root", "--type 1"])
        for command in ("advise", "create"):
            self.refused(2, "tree", command, "--job", "1", "--type", "1", "--carried",
                         words=["--carried", "--type 1", "trees of type II"])
        advise, create = ("tree", "advise", "--job", "1"), ("tree", "create", "--job", "1")
        batch = ("tree", "batch", "--job", "1", "--grid", "2x2")
        for line, option, other in (
                ((*advise, "--op", "barrier", "--bytes", "8K"), "--bytes", "--op barrier"),
                ((*batch, "--op", "barrier", "--bytes", "8K"), "--bytes", "--op barrier"),
                ((*advise, "--tree", "--json"), "--tree", "--json"),
                ((*create, "--dry-run", "--request-id", "a"), "--request-id", "--dry-run"),
                ((*batch, "--dry-run", "--request-id", "a"), "--request-id", "--dry-run"),
                ((*create, "--tradeoffs"), "--tradeoffs", "--dry-run"),
                (("job", "show", "1", "--endpoints", "--json"), "--endpoints", "--json"),
                (("job", "show", "1", "--endpoints", "-o", "wide"), "--endpoints", "--output"),
                (("distance", "list", "--matrix", "--json"), "--matrix", "--json"),
                (("distance", "list", "--matrix", "-o", "wide"), "--matrix", "--output"),
                (("placement", "advise", "--nodes", "2", "--budget", "5s"), "--budget", "--pattern"),
                (("placement", "create", "--count", "2", "--budget", "5s"), "--budget", "--pattern"),
                (("export", "slurm-topology", "--output", "-", "--exec", "true"), "--exec", "--output -")):
            with self.subTest(line=line):
                self.refused(2, *line, words=[option, other])
        # What an option is by default asks for nothing.
        job = self.register("--name", "defaults", lines=["n0000", "n0001"])
        self.good("tree", "advise", "--job", job, "--type", "2", "--builder", "auto")
        barrier = self.good("tree", "advise", "--job", job, "--op", "barrier", "--bytes", "8")
        self.assertIn("  barrier: ", barrier)
        self.good("job", "end", job)
        for sizes in ("", "8,", "4KB", "-8", "1025T"):
            self.refused(2, "tree", "advise", "--job", "1", "--bytes", sizes, words=["8,4K,1M"])

    def test_tables_are_aligned_and_plain_without_a_terminal(self):
        for command in (["fabric", "switches"], ["entries"], ["fabric", "links"], ["table"]):
            lines = self.good(*command).splitlines()
            self.assertNotIn("\033", "".join(lines))
        lines = self.good("entries").splitlines()
        column = lines[0].index("DESCRIPTION")
        for line in lines[1:]:
            self.assertEqual(line[column - 2:column], "  ", line)
            self.assertNotEqual(line[column], " ", line)

    def test_a_model_tells_no_partitions(self):
        self.assertIn("no port tells its partitions", self.good("fabric", "partitions"))
        self.assertEqual(self.of_json("fabric", "partitions"), {"partitions": []})
        self.refused(3, "fabric", "partitions", "0x0001", words=["partition 0x0001: nobody is a member"])
        for words in (["fabric", "partitions"], ["job", "register", "--all", "--partition"],
                      ["placement", "create", "--nodes", "2", "--partition"],
                      ["distance", "measure", "--partition"]):
            for number in ("0x8000", "0", "0x10000", "red"):
                self.refused(2, *words, number, words=["a partition, 0x0001 to 0x7fff"])
        self.fails("job", "register", "--all", "--partition", "0x8001",
                   words=["partition 0x0001: no port of this fabric tells its partitions"])

    def test_json_has_the_names_of_the_proto(self):
        channel = grpc.insecure_channel(self.daemon.address)
        self.addCleanup(channel.close)
        pool = Reflection(channel).pool_of("coppice.v1.Jobs", "coppice.v1.Trees",
                                           "coppice.v1.Fabric", "coppice.v1.Admin",
                                           "coppice.v1.Agents", "coppice.v1.Switches")
        job = self.register("--name", "names")
        self.good("tree", "create", "--job", job)
        for message, command in (
                ("DaemonStatus", "status"), ("FabricSummary", "fabric show"),
                ("ListSwitchesResponse", "fabric switches"),
                ("ListLinksResponse", "fabric links"), ("ListNodesResponse", "fabric nodes"),
                ("Route", "fabric route n0000 n1399"), ("ListSwitchesResponse", "entries"),
                ("TypeTable", "table"), ("ListEventsResponse", "events"),
                ("ListPortCountersResponse", "fabric counters S0"),
                ("PortHistory", "fabric history S0 1"),
                ("ListAgentsResponse", "agent list"), ("ListSwitchAgentsResponse", "agent switches"),
                ("ListDistancesResponse", "distance list"),
                ("ListJobsResponse", "job list"), ("Job", "job show " + job),
                ("KeepAliveResponse", "job keepalive " + job), ("ListTreesResponse", "tree list")):
            with self.subTest(command=command):
                self.assert_fields(pool.FindMessageTypeByName("coppice.v1." + message),
                                   self.of_json(*command.split()))
        self.good("job", "end", job)

    def assert_fields(self, descriptor, document):
        self.assertTrue(document)
        for name, value in document.items():
            self.assertIn(name, descriptor.fields_by_name, descriptor.full_name)
            field = descriptor.fields_by_name[name]
            if field.message_type is None or not field.message_type.full_name.startswith("coppice"):
                continue
            for part in value if isinstance(value, list) else [value] if value else []:
                self.assert_fields(field.message_type, part)

    def test_where_no_switch_speaks_no_tree_is_carried(self):
        self.assertIn("--carried", self.good("tree", "create", "--help"))
        job = self.register(lines=["n0000", "n0001", "n0001", "n0002"])
        before = self.of_json("status")["entries_taken"]
        for command in ("advise", "create"):
            self.fails("tree", command, "--job", job, "--type", "2", "--carried",
                       words=["no type II tree: no switch speaks", "coppicectl agent switches"])
        # Without the option the same tree is granted, over switches that nobody speaks for.
        self.assertEqual(self.of_json("tree", "advise", "--job", job, "--type", "2")["type"], "TREE_TYPE_II")
        tree = self.of_json("tree", "create", "--job", job, "--carried")
        self.assertEqual(tree["type"], "TREE_TYPE_I")
        self.assertIn("what the switches that carry trees take is not measured: coppicectl calibrate", tree["reason"])
        self.assertEqual(self.of_json("status")["entries_taken"], before)
        self.good("job", "end", job)

    def test_entries_tell_of_switches_that_nobody_speaks_for(self):
        self.assertEqual({switch["agent"] for switch in self.of_json("entries")["switches"]}, {None})
        lines = self.good("entries").splitlines()
        self.assertEqual(lines[0].split(), ["GUID", "TOTAL", "TAKEN", "FREE", "SPEAKS", "COLLECTIVES", "REFUSED",
                                            "DESCRIPTION"])
        self.assertEqual({tuple(line.split()[4:7]) for line in lines[1:]}, {("-", "-", "-")})
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_a_tree_from_its_job_to_its_release(self):
        job = self.register(lines=["n0000", "n0001", "n0001", "n0002"])  # one leaf
        tree = self.of_json("tree", "create", "--job", job, "--request-id", "once")
        again = self.of_json("tree", "create", "--job", job, "--request-id", "once")
        self.assertEqual(tree, again)
        self.fails("tree", "create", "--job", job, "--request-id", "once", "--ranks", "0-1",
                   words=["once"])
        self.assertEqual([tree["job_id"], tree["type"]], [job, "TREE_TYPE_II"])
        self.assertEqual([n["endpoint"] for n in tree["nodes"] if n["kind"] == "rank"],
                         ["n0000/1", "n0001/1", "n0001/1", "n0002/1"])
        self.assertEqual(self.of_json("tree", "show", tree["id"]), tree)
        self.assertTrue(self.of_json("tree", "explain", tree["id"])["alternatives"])
        taken = {s["guid"]: s["tree_ids"] for s in self.of_json("entries")["switches"]
                 if s["entries_taken"]}
        served = {n["id"][len("switch:"):] for n in tree["nodes"] if n["kind"] == "switch"}
        self.assertEqual(taken, {guid: [tree["id"]] for guid in served})
        others = []  # at switches that have entries left
        while (made := self.run_program("tree", "create", "--job", job, "--type", "2",
                                        "--json"))[0] == 0:
            others.append(json.loads(made[1])["id"])
        self.assertIn(max(served), made[2])
        fallback = self.of_json("tree", "create", "--job", job, "--dry-run")
        self.assertEqual([fallback["id"], fallback["type"]], [None, "TREE_TYPE_I"])
        for granted in [tree["id"], *others]:
            self.good("tree", "release", granted)
        self.fails("tree", "release", tree["id"], words=[tree["id"]])
        self.assertEqual(self.of_json("status")["entries_taken"], "0")
        self.good("job", "end", job)
        self.fails("tree", "create", "--job", job, words=["job " + job, "ended"])
        self.fails("job", "keepalive", job, words=["job " + job, "ended"])

    def test_members_by_name_port_and_guid(self):
        guid = self.of_json("fabric", "nodes")["nodes"][3]["port_guid"]
        job = self.register(lines=["n0000", "n0001", "n0002", "n0003"])
        tree = self.of_json("tree", "create", "--job", job, "--members", "-", "--type", "1",
                            stdin="n0002\n# not me\n%s\nn0000/1\n" % guid)
        self.assertEqual([n["endpoint"] for n in tree["nodes"]], ["n0002/1", "n0003/1", "n0000/1"])
        self.fails("tree", "create", "--job", job, "--members", "-", stdin="n0004\n",
                   words=["n0004", "job " + job])
        self.fails("tree", "create", "--job", job, "--members", "/dev/null",
                   words=["/dev/null"])
        self.good("job", "end", job)

    def measured(self):
        """A daemon on what an earlier one has measured: port 1 of switch S0, a minute ago."""
        daemon = Coppiced(COPPICED)
        self.addCleanup(daemon.clean_up)
        daemon.start().wait_until_listening()
        self.good("fabric", "sweep", server=daemon.address)
        switches = self.of_json("fabric", "switches", server=daemon.address)["switches"]
        guid = next(s["guid"] for s in switches if s["description"] == "S0")
        daemon.end()
        then = (int(time.time()) - 60) * 10**9
        counts = dict.fromkeys(("received_packets", "sent_wait_ticks", "link_recoveries",
                                "receive_errors", "remote_physical_errors", "relay_errors",
                                "send_constraint_errors", "receive_constraint_errors",
                                "integrity_errors", "buffer_overruns", "vl15_dropped"), 0)
        counts |= {"id": 1, "node_guid": int(guid, 16), "port": 1, "sent_bytes": 5 * 10**9,
                   "received_bytes": 7 * 10**6, "sent_packets": 40, "symbol_errors": 3,
                   "link_downed": 1, "send_discards": 2, "is_extended": 1,
                   "sent_bytes_per_second": 2.5e6, "received_bytes_per_second": 0.0,
                   "read_ns": then}
        with sqlite3.connect(daemon.database) as database:
            database.execute("INSERT INTO port_counter (%s) VALUES (%s)"
                             % (", ".join(counts), ", ".join(":" + name for name in counts)), counts)
            for slot in (1, 2, 3):  # nothing moved in the second
                database.execute("INSERT INTO history_slot VALUES (1, ?, ?, ?)",
                                 (slot, then + slot * 10**10, 10**10))
            for slot, sent in ((1, 20 * 10**6), (3, 40 * 10**6)):
                database.execute("INSERT INTO reading_history VALUES (?, 10000, ?, 0, 9000000, "
                                 "NULL, 4)", (slot << 24 | 1, sent))
        database.close()
        daemon.start().wait_until_listening()
        self.good("fabric", "sweep", server=daemon.address)
        return daemon, guid

    def test_counters_and_history_of_a_port(self):
        daemon, guid = self.measured()
        at = {"server": daemon.address}
        for name in ("S0", guid, "0x" + guid):
            ports = self.of_json("fabric", "counters", name, **at)["ports"]
            self.assertEqual([(p["port"], p["sent_bytes"], p["link_downed"]) for p in ports],
                             [(1, "5000000000", "1")], name)
        cells = dict(zip(*(re.split(r"\s{2,}", line.strip()) for line in self.good(
            "fabric", "counters", "S0", "-o", "wide", **at).splitlines())))
        for title, value in (("PORT", "1"), ("PEER", "L0"), ("SENT MB", "5000.000"),
                             ("RECEIVED MB", "7.000"), ("SENT MB/s", "2.500"), ("SYMBOL", "3"),
                             ("DOWNED", "1"), ("DISCARDS", "2"), ("ALL ERRORS", "6")):
            self.assertEqual(cells[title], value, title)
        for command in (("counters", "S0"), ("history", "S0", "1", "--since", "10m")):
            shown, wide = (self.good("fabric", *command, *option, **at).splitlines()
                           for option in ((), ("-o", "wide")))
            self.assertLessEqual(max(map(len, shown)), 80, shown)
            self.assertGreater(max(map(len, wide)), 80, wide)
        points = self.of_json("fabric", "history", "S0", "1", "--since", "10m",
                              **at)["points"]
        self.assertEqual([p["sent_bytes_per_second"] for p in points], [2e6, 0, 4e6])
        self.assertEqual([p["peak_sent_bytes_per_second"] for p in points], [9e6, 0, 9e6])
        self.assertEqual([p["errors"] for p in points], ["4", "0", "4"])
        self.assertEqual(sorted(p["start_time"] for p in points), [p["start_time"] for p in points])
        lines = self.good("fabric", "history", guid, "1", "--resolution", "reading", **at).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("4.000", lines[3])
        # Nothing is known of other ports, other resolutions and earlier times.
        for arguments in (("S0", "2"), ("S0", "1", "--resolution", "hour"),
                          ("S0", "1", "--since", "5s")):
            self.assertEqual(len(self.good("fabric", "history", *arguments, **at).splitlines()), 1)
        self.assertEqual(len(self.good("fabric", "counters", "S1", **at).splitlines()), 1)

    def test_events_are_followed(self):
        job = self.register("--name", "followed")
        with subprocess.Popen([COPPICECTL, "--server", self.daemon.address, "events", "--follow",
                               "--json", "--object", "job:" + job],
                              stdout=subprocess.PIPE, text=True) as program:
            self.assertEqual(json.loads(program.stdout.readline())["kind"], "job.registered")
            self.good("job", "end", job)
            self.assertEqual(json.loads(program.stdout.readline())["kind"], "job.ended")
            program.send_signal(signal.SIGINT)

    def test_the_fabric_is_watched(self):
        daemon = Coppiced(COPPICED)
        self.addCleanup(daemon.clean_up)
        net = os.path.join(daemon.directory, "net")
        switch = 'Switch 4 "S-0000000000000001" # "s" base port 0 lid 1 lmc 0\n'
        cable = '[%d] "H-000000000000001%d"[1] # "h%d" lid 0 4xHDR\n'

        def write(hosts):
            with open(net, "w", encoding="utf-8") as file:
                file.write(switch + "".join(cable % (h, h, h) for h in range(1, hosts + 1)) + "".join(
                    '\nCa 1 "H-000000000000001%d" # "h%d"\n[1](2%d) "S-0000000000000001"[%d]'
                    ' # lid 0 lmc 0 "s" lid 0 4xHDR\n' % (h, h, h, h) for h in range(1, hosts + 1)))

        write(2)
        daemon.command[daemon.command.index("--fabric") + 1] = "file:" + net
        daemon.start().wait_until_listening()
        self.good("fabric", "sweep", server=daemon.address)
        with subprocess.Popen([COPPICECTL, "--server", daemon.address, "fabric", "watch", "--json"],
                              stdout=subprocess.PIPE, text=True) as program:
            self.assertIn("2 endpoints", json.loads(program.stdout.readline())["message"])
            write(3)
            self.good("fabric", "sweep", server=daemon.address)
            change = {"kind": ""}
            while change["kind"] != "sweep.done":  # what came with it may be told first
                change = json.loads(program.stdout.readline())
            self.assertEqual(change["object"], "fabric")
            self.assertIn("3 endpoints", change["message"])
            program.send_signal(signal.SIGINT)

    def interrupt_a_search(self, *arguments):
        """Standard output of `map` after Ctrl-C, once it has told twice how far it is."""
        ranks = 200
        matrix = "\n".join(" ".join(str((a * 7 + b * 13) % 64 if a != b else 0) for b in range(ranks))
                           for a in range(ranks))
        terminal, its_end = pty.openpty()
        with subprocess.Popen(
                [COPPICECTL, "--server", self.daemon.address, "map", "--hosts", "n[0000-0199]",
                 "--pattern", "-", "--objective", "congestion=1,dilation=1", "--budget", "5m", *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=its_end, text=True) as program:
            os.close(its_end)
            program.stdin.write(matrix)
            program.stdin.close()
            told = b""
            while told.count(b"of the present order") < 2:
                told += os.read(terminal, 4096)
            program.send_signal(signal.SIGINT)
            out = program.stdout.read()
            self.assertEqual(program.wait(60), 0, told)
        os.close(terminal)
        return out

    def test_an_interrupted_search_gives_the_best_so_far(self):
        found = json.loads(self.interrupt_a_search("--json"))
        self.assertEqual(sorted(found["permutation"]), list(range(200)))
        self.assertLess(found["score"], 1)
        self.assertIn("Interrupted", found["reason"])
        said = self.interrupt_a_search()
        self.assertIn("CHANGE", said)
        self.assertIsNone(re.search(r"(\d+[ ,]+){20}", said), said)  # the order is for programs
        hosts = self.interrupt_a_search("--emit", "slurm").split()
        self.assertEqual(sorted(hosts), [f"n{host:04}" for host in range(200)])

    def test_a_daemon_that_does_not_answer_is_given_up_with_a_sign_of_life(self):
        daemon = Coppiced(COPPICED)
        self.addCleanup(daemon.clean_up)
        daemon.start().wait_until_listening()
        daemon.process.send_signal(signal.SIGSTOP)
        for command in (["status"], ["job", "keepalive", "1"]):
            self.fails("--timeout", "2", *command, server=daemon.address,
                       words=["waiting for " + daemon.address, "within 2s"])


if __name__ == "__main__":
    unittest.main()
