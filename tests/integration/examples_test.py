"""deploy/try, and on what it leaves running the commands of the READMEs, as they stand there.

  examples_test.py SOURCE_FOLDER BUILD_FOLDER"""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE, BUILD = (pathlib.Path(path).resolve() for path in (sys.argv.pop(1), sys.argv.pop(1)))
USUAL = "/tmp/coppice-try"  # where deploy/try runs if nobody says otherwise
PATIENCE_S = 300


def commands_of(readme, heading=None):
    """The indented lines of a README, or of what is below one of its headings."""
    text = (SOURCE / readme).read_text(encoding="utf-8")
    if heading is not None:
        text = text[text.index(heading):]
        end = "\n## " if heading.startswith("#") else "\n**"
        text = (text + end)[:(text + end).index(end, len(heading))]
    return textwrap.dedent("".join(line for line in text.splitlines(True) if line.startswith("    ")))


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="coppice-examples-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = scratch.name
        cls.addClassCleanup(lambda: cls.run_try("stop"))
        cls.begun = cls.run_try()

    @classmethod
    def run_try(cls, *arguments):
        done = subprocess.run([SOURCE / "deploy/try", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False, cwd=SOURCE,
                              env={**os.environ, "COPPICE_TRY_DIR": cls.folder,
                                   "COPPICE_TRY_BUILD": str(BUILD)})
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def run_commands(self, commands):
        """What they print, together; each has to succeed."""
        self.assertGreater(commands.count("\n"), 3)
        script = commands.replace(USUAL, self.folder).replace("$PWD/build/try", str(BUILD))
        done = subprocess.run(["bash", "-euxo", "pipefail", "-c", script], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False, cwd=SOURCE)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        return done.stdout

    def test_they_run_as_they_stand(self):
        """One after the other; last the session, which cuts a cable: a search that is under way when the
        fabric changes is to be asked for again."""
        self.assertIn("tree 1 of job 1", self.begun)
        self.assertIn("tree 2 of job 1", self.begun)
        self.assertIn("tree 2 of job 1", self.run_try())  # it goes on, and they are the same
        for readme, headings, wanted in (
                ("README.md", ["## Six commands"], ("HEALTH_", "optimal")),
                ("client/README.md", ["**Many communicators at once.**", "**Order the ranks of a job.**"],
                 ("COMMUNICATORS", "examples/ring")),
                ("client/README.md", ["## coppice-plan"],
                 ("served by S3", "PLACEMENT", "TOTAL", "271938")),
                ("deploy/README.md", ["## The cost profile"], ('name = "lab"', "lab", "hdr")),
                ("deploy/examples/README.md", [None],
                 ("link.down", "placement 1 is released", "shape        fat tree", 'name = "lab"'))):
            out = self.run_commands("".join(commands_of(readme, heading) for heading in headings))
            for words in wanted:
                self.assertIn(words, out, readme)
        ranks = pathlib.Path(self.folder, "ranks").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(ranks), 512)


if __name__ == "__main__":
    unittest.main()
