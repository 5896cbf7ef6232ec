"""The service units of daemon and agent, which one host may run both."""

import glob
import os
import sys
import unittest

UNITS = sys.argv.pop(1)
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
        self.assertEqual(set(self.units), {"coppiced.service", "coppice-agent.service"})

    def test_stopping_one_leaves_the_socket_of_the_other(self):
        # systemd removes the directory of a unit that stops, whoever else has it.
        for name, unit in self.units.items():
            others = [other for other in self.units if other != name]
            if any(self.units[other]["RuntimeDirectory"] == unit["RuntimeDirectory"]
                   for other in others):
                self.assertEqual(unit.get("RuntimeDirectoryPreserve"), "yes", name)

    def test_the_directories_of_what_is_kept_are_apart(self):
        kept = [unit["StateDirectory"] for unit in self.units.values()]
        self.assertEqual(len(kept), len(set(kept)))

    def test_who_shares_a_directory_shares_user_and_mode(self):
        for setting in ("User", "Group", "RuntimeDirectoryMode"):
            self.assertEqual(len({unit[setting] for unit in self.units.values()}), 1, setting)

    def test_an_agent_that_starts_searches_as_others_may_run_sudo(self):
        forbids = IMPLY_NO_NEW_PRIVILEGES | {"NoNewPrivileges", "CapabilityBoundingSet"}
        with_search = {**self.units["coppice-agent.service"],
                       **settings(os.path.join(UNITS, "coppice-agent-search.conf"))}
        for name in forbids & set(with_search):
            self.assertIn(with_search[name], ("no", "", "~"), name)


if __name__ == "__main__":
    unittest.main()
