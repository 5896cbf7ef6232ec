"""The service units: of daemon, agent and switch, which one host may run all, and of the glue to Slurm."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tomllib
import unittest

UNITS, SLURM = sys.argv.pop(1), sys.argv.pop(1)
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What forbids new privileges to a service that is no root, beside the setting of that name
# (systemd.exec(5)).
IMPLY_NO_NEW_PRIVILEGES = {
    "SystemCallFilter", "SystemCallArchitectures", "SystemCallLog", "RestrictAddressFamilies",
    "RestrictNamespaces", "PrivateDevices", "ProtectKernelTunables", "ProtectKernelModules",
    "ProtectKernelLogs", "ProtectClock", "ProtectHostname", "MemoryDenyWriteExecute",
    "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality", "DynamicUser"}


def settings(path):
    """Value of each setting; the last one counts."""
    with open(path, encoding="utf-8") as unit:
        lines = [line.strip() for line in unit]
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


class Units(unittest.TestCase):
    def setUp(self):
        self.units = {os.path.basename(path): settings(path)
                      for path in glob.glob(os.path.join(UNITS, "*.service"))}
        self.assertEqual(set(self.units), {"coppiced.service", "coppice-agent.service", "coppice-switch.service"})

    def test_stopping_one_leaves_the_socket_of_the_other(self):
        # systemd removes the directory of a unit that stops, whoever else has it.
        for name, unit in self.units.items():
            others = [other for other in self.units if other != name]
            if "RuntimeDirectory" in unit and any(
                    self.units[other].get("RuntimeDirectory") == unit["RuntimeDirectory"] for other in others):
                self.assertEqual(unit.get("RuntimeDirectoryPreserve"), "yes", name)

    def test_the_directories_of_what_is_kept_are_apart(self):
        kept = [unit["StateDirectory"] for unit in self.units.values() if "StateDirectory" in unit]
        self.assertEqual(len(kept), len(set(kept)))

    def test_the_agents_unit_makes_the_folders_of_its_sample(self):
        with open(os.path.join(SOURCES, "deploy/agent.toml"), "rb") as file:
            sample = tomllib.load(file)
        unit = self.units["coppice-agent.service"]
        self.assertEqual("/run/" + unit["RuntimeDirectory"], os.path.dirname(sample["socket"]))
        self.assertEqual("/var/lib/" + unit["StateDirectory"], sample["state_dir"])

    def test_who_shares_a_directory_shares_user_and_mode(self):
        for setting in ("User", "Group", "RuntimeDirectoryMode"):
            self.assertEqual(len({unit[setting] for unit in self.units.values() if "RuntimeDirectory" in unit}), 1,
                             setting)


class Limits(unittest.TestCase):
    """What holds for every unit: one that runs away, or is made to, costs the host's others little."""

    # Most exposed that each may be (0 to 10, systemd-analyze(1)): what it has to do keeps the rest open.
    # The topology's is root with three capabilities.
    EXPOSURE = {"coppiced": 1.8, "coppice-agent": 1.9, "coppice-switch": 1.5, "coppice-slurm": 1.6,
                "coppice-slurm-topology": 2.4}

    def setUp(self):
        paths = [path for folder in (UNITS, SLURM)
                 for path in glob.glob(os.path.join(folder, "*.service"))]
        self.units = {os.path.basename(path)[:-len(".service")]: path for path in paths}
        self.assertEqual(set(self.units), set(self.EXPOSURE))

    def test_memory_and_threads_are_bounded(self):
        for name, path in self.units.items():
            unit = settings(path)
            self.assertRegex(unit.get("MemoryMax", ""), r"^\d+[MG]$", name)
            self.assertEqual(unit.get("MemorySwapMax"), "0", name)
            self.assertRegex(unit.get("TasksMax", ""), r"^\d+$", name)

    def test_only_one_that_falls_at_its_start_is_given_up(self):
        # systemd counts starts: a unit is given up if there were more than Burst in Interval. Who can
        # end a daemon after some seconds must not be able to keep it down.
        def seconds(text):
            return float(re.fullmatch(r"([\d.]+)s", text).group(1))
        for name, path in self.units.items():
            unit = settings(path)
            a_start = seconds(unit["StartLimitIntervalSec"]) / int(unit["StartLimitBurst"])
            lived = a_start - seconds(unit["RestartSec"])
            self.assertGreater(lived, 0, f"{name}: is never given up, and fills the journal")
            self.assertLessEqual(lived, 2, f"{name}: is given up though it lived so many seconds")

    def test_the_agent_refuses_before_its_unit_ends_it(self):
        # Numbers of the program; a frame may be in memory four times while it is passed on.
        def number(path, name):
            with open(os.path.join(SOURCES, path), encoding="utf-8") as header:
                found = re.search(name + r" = size_t{(\d+)} << (\d+);", header.read())
            return int(found.group(1)) << int(found.group(2))
        whole = number("agents/node/local_limits.h", "bytes")
        of_user = number("agents/node/local_limits.h", "bytes_of_user")
        frame = number("client/library/messages.h", "kMaxFrameBytes")
        memory = settings(self.units["coppice-agent"])["MemoryMax"]
        most = int(memory[:-1]) << {"M": 20, "G": 30}[memory[-1]]
        self.assertLessEqual(whole + 4 * frame, most)
        self.assertLessEqual(4 * of_user, whole, "a few users do not take it all")
        self.assertLessEqual(frame, of_user, "the longest request that there is passes")

    def test_they_are_no_more_exposed_than_they_have_to_be(self):
        self.assertIsNotNone(shutil.which("systemd-analyze"), "install the package systemd")
        for name, path in self.units.items():
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", path],
                                  capture_output=True, text=True, timeout=60, check=False)
            found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
            self.assertIsNotNone(found, done.stderr)
            self.assertLessEqual(float(found.group(1)), self.EXPOSURE[name], done.stdout)


if __name__ == "__main__":
    unittest.main()
