"""A folder of its own for each test, gone when the test ends."""
import pathlib
import tempfile
import unittest


class ScratchFiles(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return str(self.dir / name)
