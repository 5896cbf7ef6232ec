"""What every program has: a version, one form of wrong usage, and a word on variables that nothing reads.

  programs_test.py VERSION PROGRAM..."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

VERSION, *PROGRAMS = sys.argv[1:]
del sys.argv[1:]


def run(program, *arguments, **variables):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **variables})


class Programs(unittest.TestCase):
    def test_each_has_a_version(self):
        self.assertGreaterEqual(len(PROGRAMS), 7)
        for program in PROGRAMS:
            name = pathlib.Path(program).name.replace("-mpich", "")
            done = run(program, "--version")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{name} {VERSION}\n", ""), program)

    def test_wrong_usage_has_one_form(self):
        for program in PROGRAMS:
            done = run(program, "--no-such-option")
            self.assertEqual((done.returncode, done.stdout), (2, ""), program)
            first, second = done.stderr.splitlines()
            self.assertRegex(first, r"^error: .*\[INVALID_ARGUMENT\]$", program)
            self.assertEqual(second, "Run with --help for more information.", program)

    def test_variables_that_nothing_reads_are_told(self):
        for program in PROGRAMS:
            done = run(program, "--version", COPPICE_TYPO="1")
            self.assertEqual(done.returncode, 0, program)
            self.assertTrue(re.search("^COPPICE_TYPO: nothing reads", done.stderr, re.M), program + done.stderr)


if __name__ == "__main__":
    unittest.main()
