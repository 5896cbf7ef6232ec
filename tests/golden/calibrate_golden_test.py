"""`coppice-plan calibrate` on latencies that the closed forms, computed here anew, give.

calibrate_golden_test.py PROGRAM DATA
"""
import json
import math
import subprocess
import sys
import tomllib
import unittest

from scratch_files import ScratchFiles

NIC = {"forward_us": 0.61, "forward_us_per_byte": 3e-5, "match_us": 0.031,
       "reduce_us_per_byte": 9e-5, "send_us": 0.022}
SWITCH = {"forward_us": 0.27, "forward_us_per_byte": 2e-5, "match_us": 0.004,
          "reduce_us_per_byte": 6e-5, "send_us": 0.003}
INIT_US, LINK_US, MEAN_ROUTE_LINKS = 0.42, 0.17, 4
FIXED = ["link_us=0.17", "nic.send_us=0.022", "switch.send_us=0.003", "port_gbps=0",
         "mean_route_links=4"]


def latency_us(operation, size, members, kind, width):
    """Formulas (1) to (8) of the paper; serialisation is none where ports have no rate."""
    up = size if operation in ("reduce", "allreduce") else 0
    down = size if operation in ("bcast", "allreduce") else 0
    node, links = (NIC, MEAN_ROUTE_LINKS) if kind == "I" else (SWITCH, 1)
    level = (2 * links * LINK_US + 2 * node["forward_us"] + (up + down) * node["forward_us_per_byte"]
             + width * (node["match_us"] + up * node["reduce_us_per_byte"] + node["send_us"]))
    return INIT_US + level * math.log(members) / math.log(width)


def samples():
    return [(operation, size, members, kind, width,
             latency_us(operation, size, members, kind, width))
            for operation in ("barrier", "bcast", "reduce", "allreduce")
            for size in ((0,) if operation == "barrier" else (8, 512, 4096))
            for members in (32, 128, 512) for kind in ("I", "II") for width in (2, 8, 32)]


def csv(rows):
    lines = ["operation,bytes,members,type,width,microseconds"]
    return "\n".join(lines + [",".join(map(str, row)) for row in rows]) + "\n"


class CalibrateGolden(ScratchFiles):
    def run_program(self, *arguments, stdin=""):
        return subprocess.run([PROGRAM, "calibrate", *arguments], capture_output=True, text=True,
                              check=False, timeout=60, input=stdin)

    def fit(self, *arguments, rows=None):
        path = self.file("samples.csv", csv(rows or samples()))
        fixed = [word for constant in FIXED for word in ("--fix", constant)]
        done = self.run_program(path, *fixed, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_known_constants_are_found(self):
        fit = json.loads(self.fit("--json", "--name", "lab"))
        profile = tomllib.loads(fit["profile_toml"])
        self.assertEqual(profile["name"], "lab")
        self.assertEqual(fit["samples"], len(samples()))
        self.assertFalse(fit["applied"])
        for node, truth in (("nic", NIC), ("switch", SWITCH)):
            for name, value in truth.items():
                self.assertAlmostEqual(profile[node][name], value, delta=1e-6 * value, msg=name)
        self.assertAlmostEqual(profile["init_us"], INIT_US, places=6)
        self.assertLess(fit["worst_us"], 1e-6)
        self.assertGreater(fit["r_squared"], 1 - 1e-9)
        states = {constant["name"]: constant["state"] for constant in fit["constants"]}
        self.assertEqual(len(states), 12)
        self.assertEqual({name for name, state in states.items() if state == "fixed"},
                         {"link_us", "nic.send_us", "switch.send_us"})
        self.assertEqual(len(fit["residuals_us"]), len(samples()))
        for row, measured in zip(samples(), fit["measured"], strict=True):
            operation, size, members, kind, width = row[:5]
            self.assertEqual([measured[key] for key in ("operation", "bytes", "members", "type",
                                                        "width")],
                             ["OPERATION_" + operation.upper(), str(size), members,
                              "TREE_TYPE_" + kind, width])

    def test_what_is_printed_is_a_profile(self):
        text = self.fit()
        self.assertIn("# CONSTANT", text)
        self.assertIn("RESIDUAL US", text)
        out = self.dir / "out.toml"
        report = self.fit("--out", str(out))
        self.assertTrue(report.startswith("CONSTANT"))
        self.assertEqual(out.read_text(), text)
        table = subprocess.run([PROGRAM, "table", "--profile", str(out), "--members", "512"],
                               capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn("calibrated", table.stdout)

    def test_an_outlier_is_marked_and_standard_input_read(self):
        rows = samples()
        rows[7] = rows[7][:5] + (rows[7][5] + 40,)
        self.assertEqual(self.fit(rows=rows).count("  outlier\n"), 1)
        done = self.run_program("-", *[w for c in FIXED for w in ("--fix", c)], "--json",
                                stdin=csv(samples()))
        self.assertEqual(done.returncode, 0, done.stderr)
        profile = tomllib.loads(json.loads(done.stdout)["profile_toml"])
        self.assertEqual(profile["name"], "calibrated")

    def refused(self, words, *arguments, text=None):
        path = self.file("bad.csv", csv(samples()) if text is None else text)
        done = self.run_program(path, *arguments)
        self.check_refusal(done)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_refusals_name_what_is_wrong(self):
        self.refused(["bad.csv", "link_us"])  # nothing fixed: not identifiable
        self.refused(["fixed", "gravity"], "--fix", "gravity")
        self.refused(["fixed", "link_us", "far"], "--fix", "link_us=far")
        self.refused(["bad.csv"], text="")
        self.refused(["bad.csv", "line 2", "width"],
                     text="operation,bytes,members,type,width,us\nbcast,8,32,I,1,3\n")
        self.refused(["no-such-profile"], "--profile", "no-such-profile")
        self.refused(["--load", "no effect"], "--load", "x")
        self.refused(["gravity"], "--fix", "gravity", "--json")
        done = self.run_program(str(self.dir / "absent.csv"))
        self.check_refusal(done)
        self.assertIn("absent.csv", done.stderr)


    def test_in_force_for_as_long_as_its_database(self):
        database = str(self.dir / "plan.db")
        fit = json.loads(self.fit("--json", "--name", "lab", "--apply", "--database", database))
        self.assertTrue(fit["applied"])

        def profile():
            done = subprocess.run([PROGRAM, "table", "--members", "16", "--json", "--database",
                                   database], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return json.loads(done.stdout)["profile"]
        self.assertEqual(profile(), "lab")
        self.assertEqual(self.run_program("--reset", "--database", database).returncode, 0)
        self.assertEqual(profile(), "hdr")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    sys.argv.pop(1)
    unittest.main()
