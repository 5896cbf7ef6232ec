"""deploy/try switches: what it prints, that it ends without leaving anything, and what it says to those who cannot.

  try_switches_test.py SOURCE_FOLDER BUILD_FOLDER"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(path).resolve() for path in (sys.argv.pop(1), sys.argv.pop(1)))
BYTES, RANKS, TIMES = 2048, 16, 500
PATIENCE_S = 500
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class TrySwitches(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="coppice-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        (self.scratch / "tmp").mkdir()
        self.environment = {**os.environ, "COPPICE_TRY_DIR": f"{self.scratch}/try", "COPPICE_TRY_BUILD": str(BUILD),
                            "TMPDIR": f"{self.scratch}/tmp"}

    def run_try(self, *arguments, user=()):
        return subprocess.run([*user, SOURCE / "deploy/try", "switches", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False, env=self.environment)

    def check_nothing_is_left(self):
        self.assertEqual([], list((self.scratch / "tmp").iterdir()))
        lines = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                lines.append(pathlib.Path("/proc", process, "cmdline").read_bytes())
            except OSError:
                pass  # it has ended
        self.assertEqual([], [line for line in lines if os.fsencode(self.scratch) in line])

    def test_the_tree_and_what_uplinks_carry(self):
        done = self.run_try()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        out = done.stdout
        self.assertRegex(out, r"tree 1 of job 1: type II\b.*\n  16 ranks, 5 serving switches")
        drawn = "".join(f"  L{leaf}  (1 link)\n    ranks {4 * leaf}-{4 * leaf + 3}\n" for leaf in range(4))
        self.assertRegex(out, rf"\nS[01]\n{re.escape(drawn)}")
        self.assertRegex(out, r"over the switches [\d.]+ us, natively [\d.]+ us")
        # All Allreduces and one of the two Reduces: the other is longer.
        self.assertIn(f"\n{RANKS * (TIMES + 1)} of {RANKS * (TIMES + 2)} calls went over the switches", out)
        self.assertEqual([], [line for line in out.splitlines() if len(line) > 80])

        rows = {name: [int(word) for word in words.split()]
                for name, words in re.findall(r"^(L\d - S\d|all) ((?: +\d+){4})$", out, re.M)}
        total = rows.pop("all")
        self.assertEqual([f"L{leaf} - S{spine}" for leaf in range(4) for spine in range(2)], list(rows))
        used = [row for row in rows.values() if max(row[:2]) >= BYTES]
        self.assertEqual(4, len(used), out)  # of each leaf one
        for row in used:
            for count in row[:2]:  # each segment once; besides headers, and some of the launcher's
                self.assertTrue(BYTES <= count < 1.5 * BYTES, out)
        for over, natively in zip(total[:2], total[2:]):
            self.assertLess(over, 0.3 * natively)
        self.check_nothing_is_left()

    def test_an_interruption_leaves_nothing(self):
        with subprocess.Popen([SOURCE / "deploy/try", "switches"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=self.environment) as run:
            while "tree show" not in (line := run.stdout.readline()):
                self.assertTrue(line, "it ended before it showed a tree")
            run.send_signal(signal.SIGTERM)
            errors = run.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual((130, "\nInterrupted: nothing is left running\n"), (run.returncode, errors))
        self.check_nothing_is_left()

    def test_who_may_make_no_namespaces_hears_what_to_do(self):
        done = self.run_try(user=NOBODY)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("namespaces cannot be made here; run it as root", done.stderr)

    def test_a_length_that_is_none(self):
        for bad in ("0", "7", "-8", "2K", "123456789", ""):
            done = self.run_try(bad)
            self.assertEqual((2, ""), (done.returncode, done.stdout), bad)
            self.assertIn("[INVALID_ARGUMENT]", done.stderr)


if __name__ == "__main__":
    unittest.main()
