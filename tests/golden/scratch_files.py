"""A folder of its own for each test, gone when the test ends."""
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import exit_status  # noqa: E402

WRONG_USAGE = 2  # also of what the parser of the command line finds


class ScratchFiles(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def check_refusal(self, done):
        """It answered nothing and failed, with the status of the error that it names: "CODE: MESSAGE"."""
        self.assertEqual((done.returncode, done.stdout), (exit_status.of(done.stderr), ""), done.stderr)
        if done.stderr.startswith("{"):
            error = json.loads(done.stderr)["error"]
            return f"{error['code']}: {error['message']}\n"
        error = re.search(r"^error: (.*) \[([A-Z_]+)\]$", done.stderr, re.M | re.S)
        self.assertTrue(error, done.stderr)
        return f"{error.group(2)}: {error.group(1)}\n"

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return str(self.dir / name)
