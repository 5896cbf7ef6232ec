#!/usr/bin/python3
"""Parameters of Open MPI's component that are not the same at all ranks: rank 0's word holds for all that ask for
anything; where some ask for nothing, or the component is not the first of all, nothing goes along trees. Nobody waits
for ever, and all results are right.

Usage: component_test.py openmpi COMPONENT CONFORMANCE COPPICED COPPICE_AGENT
"""
import os
import re
import subprocess
import sys
import unittest

import mpi_run
from coppice_node import CoppiceNode, host

COMPONENT, CONFORMANCE, COPPICED, AGENT = sys.argv[2:6]
TIMEOUT_S = 900
TREES, REORDER = {"trees": "first-use"}, {"reorder": 1}


class Parameters(unittest.TestCase):
    def setUp(self):
        self.node = CoppiceNode(COPPICED, AGENT)
        self.addCleanup(self.node.stop)

    def along_trees(self, *of_ranks):
        """Collectives of the program, whose ranks have these parameters."""
        everywhere = {**mpi_run.variables_of_ranks({}), "COPPICE_AGENT": self.node.socket, "COPPICE_TIMEOUT_MS": 20000,
                      "OMPI_MCA_mca_base_component_path": os.path.dirname(COMPONENT) + ":SYS_DEFAULT",
                      "OMPI_MCA_coll_coppice_trees_after": 0, "OMPI_MCA_coll_coppice_start_timeout_ms": 3000}
        line = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
        for number, parameters in enumerate(of_ranks):
            variables = {**everywhere, "COPPICE_HOST": host(4 * number),
                         **{f"OMPI_MCA_coll_coppice_{name}": value for name, value in parameters.items()}}
            line += [":"] * (number > 0) + ["-n", "1"]
            line += [word for name, value in variables.items() for word in ("-x", f"{name}={value}")] + [CONFORMANCE]
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-2000:] + done.stderr[-2000:])
        return int(re.search(r"differ 0, along trees (\d+)", done.stdout).group(1))

    def test_rank_0_asks_for_more(self):
        self.assertGreater(self.along_trees({**TREES, **REORDER}, REORDER), 0)

    def test_rank_0_asks_for_less(self):
        self.assertEqual(0, self.along_trees(REORDER, TREES))

    def test_some_ask_for_nothing(self):
        self.assertEqual(0, self.along_trees(TREES, {}))

    def test_another_component_is_before_it_somewhere(self):
        self.assertEqual(0, self.along_trees(TREES, {**TREES, "priority": 5}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
