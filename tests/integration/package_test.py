"""The Debian package: what is in it, where, and with which dependencies and scripts."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv.pop(1)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          cwd=BUILD)
    if done.returncode != 0:
        raise AssertionError(" ".join(command) + "\n" + done.stdout + done.stderr)
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="coppice-package-")
        cls.addClassCleanup(scratch.cleanup)
        run("cpack", "-G", "DEB", "-B", scratch.name)
        (cls.package,) = glob.glob(os.path.join(scratch.name, "coppice_*_*.deb"))

    def test_holds_what_a_host_needs(self):
        listed = run("dpkg-deb", "--contents", self.package).splitlines()
        modes = {line.split(maxsplit=5)[5]: line.split()[0] for line in listed}
        for path in ("usr/bin/coppiced", "usr/bin/coppicectl", "usr/bin/coppice-plan"):
            self.assertEqual(modes["./" + path], "-rwxr-xr-x", path)
        for path in ("etc/coppice/coppiced.toml", "usr/lib/systemd/system/coppiced.service",
                     "usr/lib/sysusers.d/coppice.conf", "usr/lib/udev/rules.d/70-coppice.rules",
                     "usr/share/doc/coppice/README.md", "usr/share/doc/coppice/copyright"):
            self.assertEqual(modes["./" + path], "-rw-r--r--", path)

    def test_keeps_the_configuration_and_knows_its_libraries(self):
        self.assertEqual(run("dpkg-deb", "--info", self.package, "conffiles").split(),
                         ["/etc/coppice/coppiced.toml"])
        depends = run("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libgrpc++", "libsqlite3-0", "libibumad3", "libsystemd0", "systemd |"):
            self.assertIn(library, depends)
        for script in ("postinst", "prerm", "postrm"):
            self.assertTrue(run("dpkg-deb", "--info", self.package, script).startswith("#!/bin/sh"))


if __name__ == "__main__":
    unittest.main()
