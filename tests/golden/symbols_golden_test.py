#!/usr/bin/python3
"""The symbols of libcoppice.so.1 and their versions: programs that were linked with an earlier one
find each where it was. A new symbol goes into a version of its own (client/library/coppice.map) and
into library/symbols.txt; none ever leaves that file.

Usage: symbols_golden_test.py LIBRARY
"""
import pathlib
import subprocess
import sys
import unittest

LIBRARY = sys.argv[1]
KNOWN = pathlib.Path(__file__).parent / "library" / "symbols.txt"


class Symbols(unittest.TestCase):
    def test_symbols_and_versions(self):
        shown = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", LIBRARY],
                               capture_output=True, text=True, check=True).stdout
        rows = [line.split()[1:] for line in shown.splitlines()]
        # The versions themselves are symbols, too.
        symbols = sorted(name for kind, name in rows if kind != "A")
        self.assertEqual(KNOWN.read_text(encoding="utf-8").splitlines(), symbols)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
