"""What every program has: a version, one form of wrong usage, a word on variables that nothing reads, help that fits a
terminal, and an error where standard output takes no more.

  programs_test.py VERSION PROGRAM..."""

import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

VERSION, *PROGRAMS = sys.argv[1:]
del sys.argv[1:]
PLAN = next(program for program in PROGRAMS if program.endswith("/coppice-plan"))
OURS = [program for program in PROGRAMS if not program.endswith("coppice-slurm")]  # argparse's help is its own


def run(program, *arguments, **variables):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **variables})


def on_a_terminal(*command):
    """The lines that people see."""
    terminal, its_end = pty.openpty()
    with subprocess.Popen(command, stdout=its_end, stderr=subprocess.PIPE) as program:
        os.close(its_end)
        shown = b""
        try:
            while more := os.read(terminal, 4096):
                shown += more
        except OSError:  # the other end is closed
            pass
        assert program.wait(60) == 0, program.stderr.read()
    os.close(terminal)
    return shown.decode().splitlines()


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
            if program in OURS:
                self.assertRegex(first, r'^error: "--no-such-option": no such (command or )?option ', program)

    def check_help(self, *command):
        """Its own, and that of all commands below; returns how many there are."""
        plain = run(*command, "--help").stdout
        shown = on_a_terminal(*command, "--help")
        self.assertLessEqual(max(map(len, shown)), 80, "\n".join([" ".join(command), *shown]))
        self.assertEqual("".join(plain.split()), "".join("".join(shown).split()), command)
        below = plain.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
        names = re.findall(r"^  (\S+)", below, re.M)
        return 1 + sum(self.check_help(*command, name) for name in names)

    def test_help_fits_a_terminal_and_loses_nothing(self):
        counts = {pathlib.Path(program).name: self.check_help(program) for program in OURS}
        self.assertGreater(counts["coppicectl"], 40)
        self.assertGreater(counts["coppice-plan"], 20)

    def test_help_and_version_that_cannot_be_written_are_told(self):
        for program in OURS:
            for option in ("--help", "--version"):
                with open("/dev/full", "w", encoding="ascii") as full:
                    done = subprocess.run([program, option], stdout=full, stderr=subprocess.PIPE, text=True,
                                          timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, "error: standard output could not be written [DATA_LOSS]\n"), program)

    def test_streams_that_are_closed_fail_instead_of_leading_into_files(self):
        for program in OURS:
            done = subprocess.run(["sh", "-c", '"$0" --version >&- <&-', program], stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "error: standard output could not be written [DATA_LOSS]\n"), program)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', PLAN, "job", "register", "--endpoints", "n[0000-0003]",
                                   "--fabric", "model:xgft(m=4x4,w=1x2)", "--database", folder + "/db"],
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stderr, "error: standard output could not be written, but job 1 is registered "
                                          "[DATA_LOSS]\n")
            locks = [path for path in pathlib.Path(folder).iterdir() if "lock" in path.name]
            self.assertEqual(len(locks), 1)
            self.assertRegex(locks[0].read_text(encoding="utf-8"), r"^\d+\n$")  # the process, and no answer

    def test_variables_that_nothing_reads_are_told(self):
        for program in PROGRAMS:
            done = run(program, "--version", COPPICE_TYPO="1")
            self.assertEqual(done.returncode, 0, program)
            self.assertTrue(re.search("^COPPICE_TYPO: nothing reads", done.stderr, re.M), program + done.stderr)


if __name__ == "__main__":
    unittest.main()
