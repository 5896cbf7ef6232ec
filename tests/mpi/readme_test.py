#!/usr/bin/python3
"""The commands of agents/mpi/README.md, as they stand, start the agent and programs of both MPIs.

Usage: readme_test.py BUILD COPPICED COPPICE_AGENT LIBRARY_OPENMPI LIBRARY_MPICH COMPONENT_OPENMPI
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from coppiced_process import Coppiced

BUILD, COPPICED = sys.argv[1:3]
BUILT, COMPONENT = sys.argv[3:6], sys.argv[6]
README = pathlib.Path(__file__).resolve().parents[2] / "agents/mpi/README.md"
TIMEOUT_S = 600
# The programs are compiled when the agent's socket is there, however busy the machine is; idle ranks of MPICH
# sleep (idle_ranks.cc); and the agent ends with the commands.
AROUND = """
mpicc.openmpi() {
  until [ -S $dir/agent.sock ]; do kill -0 %%1 || exit 1; read -t 0.1 _ <> <(:) || true; done
  command mpicc.openmpi "$@"
}
mpirun.mpich() { command mpirun.mpich "${@/%%mpi_mpich.so/mpi_mpich.so:$COPPICE_TEST_IDLE_RANKS}"; }
trap 'kill %%1; wait' EXIT
set -e
%s
"""
# Open MPI may not look for networks or devices; and trees and answers are waited for.
VARIABLES = {"OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_pml": "ob1",
             "COPPICE_TREES_AFTER": "0", "OMPI_MCA_coll_coppice_trees_after": "0", "COPPICE_TIMEOUT_MS": "20000"}


def commands(block=0):
    """Of a block of commands, a line each: the first one, and that of the component."""
    blocks = re.finditer(r"^(    .*\n)+", README.read_text(encoding="utf-8"), re.MULTILINE)
    return [line[4:] for line in list(blocks)[block].group().splitlines()]


class Readme(unittest.TestCase):
    def test_what_it_builds_is_there(self):
        """Where the commands look for it, and no more."""
        build = [line for line in commands() if line.startswith("cmake ")]
        self.assertEqual(1, len(build), build)
        targets = build[0].partition("--target ")[2].split()
        names = {re.sub(r"^lib|\.so$", "", os.path.basename(path)) for path in BUILT}
        self.assertEqual(names, set(targets))
        text = "\n".join(commands())
        self.assertIn("lib=$PWD/build/try/agents/mpi", text)
        for path in BUILT:
            place = os.path.relpath(path, BUILD)
            named = place if "/node/" in place else "$lib/" + os.path.basename(place)
            self.assertIn(named, text)
        text = "\n".join(commands(1))
        self.assertIn("--target coppice_openmpi_component\n", text)
        self.assertIn("$PWD/build/try/" + os.path.dirname(os.path.relpath(COMPONENT, BUILD)) + ":", text)

    def test_the_commands_run(self):
        daemon = Coppiced(COPPICED, entries=64)
        self.addCleanup(daemon.clean_up)
        daemon.start().wait_until_listening()
        text = "\n".join(line for line in commands() + commands(1) if not line.startswith("cmake "))
        for here, there in (("/tmp/coppice-try", daemon.directory), ("$PWD/build/try", BUILD),
                            ("build/try", BUILD)):
            self.assertIn(here, text)
            text = text.replace(here, there)
        done = subprocess.run(["bash", "-c", AROUND % text], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env={**os.environ, **VARIABLES},
                              timeout=TIMEOUT_S, check=False)
        with open(os.path.join(daemon.directory, "agent.log"), encoding="utf-8") as log:
            said = done.stdout + done.stderr + log.read()
        self.assertEqual(0, done.returncode, said)
        self.assertEqual(3, done.stdout.count("the sum of all ranks is 6\n"), said)
        self.assertIn('parameter "coll_coppice_trees"', done.stdout)
        along = re.findall(r"^coppice: trees: .* allreduce=(\d+) ", done.stderr, re.MULTILINE)
        self.assertEqual(3, len(along), said)
        self.assertNotIn("0", along, said)
        self.assertTrue(os.path.exists(os.path.join(daemon.directory, "sums.trace")), said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
