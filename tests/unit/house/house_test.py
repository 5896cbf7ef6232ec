#!/usr/bin/python3
"""Holds the layout of the project: which folder may include what, and what the top level holds.

Usage: house_test.py SOURCE_DIR
"""
import pathlib
import re
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

# folder: (project folders it may include beside itself, foreign headers it must not)
GRPC, SQLITE, MAD, PROTO = r"^grpc", r"^sqlite3", r"^infiniband/", r"\.pb\.h$|^google/protobuf/"
# What one folder only may know.
OWNED = {"daemon/metrics": r"^prometheus/", "proto/munge": r"^munge\.h$"}
TABLE = {
    # What a text may hold, common to all.
    "proto/text": ([], [GRPC, SQLITE, MAD, PROTO]),
    # Made by clients, read by the daemon.
    "proto/munge": ([], [GRPC, SQLITE, MAD, PROTO]),
    "proto": (["proto/text"], [SQLITE, MAD]),
    "daemon/base": (["proto/text"], [GRPC, SQLITE, MAD, PROTO]),
    "daemon/fabric": (["daemon/base", "proto/text"], [GRPC, SQLITE, MAD, PROTO]),
    "daemon/tree": (["daemon/base", "daemon/fabric", "proto/text"], [GRPC, SQLITE, MAD, PROTO]),
    "daemon/mapping": (["daemon/base", "daemon/fabric", "proto/text"], [GRPC, SQLITE, MAD, PROTO]),
    "daemon/placement": (
        ["daemon/base", "daemon/fabric", "daemon/mapping"], [GRPC, SQLITE, MAD, PROTO]),
    "daemon/simulation": (
        ["daemon/base", "daemon/fabric", "daemon/tree"], [GRPC, SQLITE, MAD, PROTO]),
    "daemon/ib": (["daemon/base", "daemon/fabric"], [GRPC, SQLITE, PROTO]),
    "daemon/manager": (
        ["daemon/base", "daemon/fabric", "daemon/tree", "daemon/mapping", "daemon/placement", "db",
         "proto/text"],
        [GRPC, SQLITE, MAD, PROTO]),
    "daemon/config": (
        ["daemon/base", "daemon/fabric", "daemon/tree", "daemon/placement", "daemon/manager", "proto/text"],
        [GRPC, SQLITE, MAD, PROTO]),
    "daemon/rpc": (
        ["daemon/base", "daemon/fabric", "daemon/tree", "daemon/mapping", "daemon/placement",
         "daemon/manager", "db", "proto", "proto/munge", "proto/text"],
        [SQLITE, MAD]),
    "daemon/service": (
        ["daemon/base", "daemon/fabric", "daemon/tree", "daemon/manager", "daemon/config",
         "daemon/rpc", "proto", "proto/text"],
        [SQLITE, MAD]),
    "daemon/metrics": (
        ["daemon/base", "daemon/fabric", "daemon/manager", "daemon/rpc", "db"],
        [GRPC, SQLITE, MAD, PROTO]),
    "daemon/tools": (
        ["daemon/base", "daemon/fabric", "daemon/tree", "daemon/simulation", "daemon/mapping",
         "proto/text"],
        [GRPC, SQLITE, MAD, PROTO]),
    # The commands of coppicectl, on a daemon in the same process.
    "daemon/plan": (
        ["daemon/base", "daemon/fabric", "daemon/manager", "daemon/rpc", "daemon/tools", "db", "client",
         "client/library", "proto", "proto/text"],
        [SQLITE, MAD]),
    "db": (["daemon/base", "daemon/placement", "daemon/tree", "proto/text"], [GRPC, MAD, PROTO]),
    "client": (["client/library", "proto", "proto/munge", "proto/text"], [SQLITE, MAD]),
    # Shares options, readers and reports with coppice-plan.
    "daemon/search": (["daemon/base", "daemon/fabric", "daemon/mapping", "daemon/tools", "client",
                       "client/library", "proto", "proto/text"],
                      [GRPC, SQLITE, MAD]),
    # Loaded into MPI programs: nothing of gRPC there.
    "agents/mpi": (["agents/links", "client/library", "proto", "proto/text"], [GRPC, SQLITE, MAD]),
    # Frames over TCP, of switches and of MPI programs.
    "agents/links": ([], [GRPC, SQLITE, MAD, PROTO]),
    "agents/switch": (["agents/links", "client", "client/library", "proto", "proto/text"], [SQLITE, MAD]),
    "client/library": (["proto"], [GRPC, SQLITE, MAD]),
    # Measures over verbs by perftest's programs.
    "agents": (["client", "client/library", "proto", "proto/text"], [SQLITE, MAD]),
}
# Interfaces only: a folder may include `db/store.h`, never what is behind it.
# The simulator judges the evaluation and knows of trees what they are, nothing of what they cost.
# Of these files alone; the rest of the folder has what it needs from them.
FILES = {"daemon/search": {"client": {"job_question"}, "client/library": {"job_question"}}}
# What a request says of its tree, and what a placement measures, is one struct, which the store keeps.
ONLY = {"db": {"daemon/tree": {"daemon/tree/tree_spec.h"},
               "daemon/placement": {"daemon/placement/placement_terms.h"}},
        "daemon/manager": {"db": {"db/store.h"}}, "daemon/rpc": {"db": {"db/store.h"}},
        "daemon/simulation": {"daemon/tree": {"daemon/tree/tree.h", "daemon/tree/cost_profile.h",
                                              "daemon/tree/tree_spec.h"}}}
TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md",
             "agents", "client", "daemon", "db", "deploy", "proto", "tests"}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
VARIABLE = re.compile(r'"(COPPICE_[A-Z_]+)"')
# From C++, Lua, Python or a shell.
READ = re.compile(r'(?:getenv|FromEnvironment|reader\.\w+(?:<\w+>)?)\(\s*"(COPPICE_[A-Z_]+)"|'
                  r'\$\{?(COPPICE_[A-Z_]+)|export (COPPICE_[A-Z_]+)=')
EVENT = re.compile(r'"((?:config|daemon|entries|events|group|job|lids|link|node|placement|port|profile|quota|sm|store'
                   r'|sweep|switch|trees)\.[a-z_]+)"')
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def folder_of(path):
    """The row of TABLE that a path belongs to; None for daemon/main.cc and tests."""
    parts = pathlib.PurePath(path).parts
    for depth in (2, 1):
        if "/".join(parts[:depth]) in TABLE:
            return "/".join(parts[:depth])
    return None


def violations(source):
    found = []
    for row, (may, must_not) in TABLE.items():
        for file in sorted((source / row).rglob("*")):
            if file.suffix not in (".h", ".cc", ".c"):
                continue
            name = file.relative_to(source)
            if folder_of(name) != row:
                continue
            for header in INCLUDE.findall(file.read_text(encoding="utf-8")):
                owner = folder_of(header)
                if owner is None and (header.startswith(("daemon/", "tests/"))):
                    found.append(f"{name} includes {header}")
                elif owner and owner != row and owner not in may:
                    found.append(f"{name} includes {header}, but {row} may not use {owner}")
                elif name.stem not in FILES.get(row, {}).get(owner, {name.stem}):
                    may_files = ", ".join(sorted(FILES[row][owner]))
                    found.append(f"{name} includes {header}, but only {may_files} may")
                elif owner in ONLY.get(row, {}) and header not in ONLY[row][owner]:
                    allowed = ", ".join(sorted(ONLY[row][owner]))
                    found.append(f"{name} includes {header}, but only {allowed} is allowed")
                elif not owner and any(re.search(p, header) for p in must_not + [
                        pattern for folder, pattern in OWNED.items() if folder != row]):
                    found.append(f"{name} includes {header}, which {row} must not know")
    return found


# Ways of naming a file by way of a parent folder.
UP = re.compile(r"""(?:\$\{PROJECT_SOURCE_DIR\}|COPPICE_SOURCE_DIR["'\s]*)((?:/\.\.)+)""")
CHAIN = re.compile(r"(?<![\w.])(?:\.\./)+")
PARENTS = re.compile(r"\.parents\[(\d+)\]")
PARENT = re.compile(r"(?:\.parent\b)+")
# The same by parts: "..", os.pardir, or dirname of dirname.
PARTS = re.compile(r"""(?:,\s*(?:['"]\.\.['"]|os\.pardir))+""")
DIRNAMES = re.compile(r"(?:\bdirname\()+")
# Folders of somebody's machine; a program's own places, as /etc and /tmp, are others.
ABSOLUTE = re.compile(r"""(?<![\w.~}/-])/(?:work|home|root|Users)/[\w.]|shared/(?:data|spec|papers)\b""")


def files_of(source):
    """What belongs to the project: no build, and nothing that git hides."""
    for file in sorted(source.rglob("*")):
        parts = file.relative_to(source).parts
        if file.is_file() and parts[0] != "build" and not any(
                p == "__pycache__" or (p.startswith(".") and p != ".ci") for p in parts):
            yield file


def ways_out(source):
    """Paths that lead out of the repository, where nothing is that users have, as file: text."""
    found = []
    for file in files_of(source):
        name = file.relative_to(source)
        if name.parts[:2] == ("tests", "data"):
            continue
        folders = len(name.parts) - 1
        text = file.read_text(encoding="utf-8")
        found += [f"{name}: {m.group()}" for m in ABSOLUTE.finditer(text)]
        found += [f"{name}: {m.group()}" for m in UP.finditer(text)]
        found += [f"{name}: {m.group()}" for m in CHAIN.finditer(text)
                  if m.group().count("../") > folders]
        if file.suffix == ".py":
            found += [f"{name}: {m.group()}" for m in PARENTS.finditer(text)
                      if int(m.group(1)) > folders]
            found += [f"{name}: {m.group()}" for m in PARENT.finditer(text)
                      if m.group().count(".parent") > folders + 1]
            found += [f"{name}: {m.group()}" for m in PARTS.finditer(text)
                      if m.group().count(",") > folders]
            found += [f"{name}: {m.group()}" for m in DIRNAMES.finditer(text)
                      if m.group().count("(") > folders + 1]
    return found


def twice_named(source):
    """Classes of one name in one namespace: a program that links both has one of them for both."""
    found = {}
    for file in files_of(source):
        name = file.relative_to(source)
        if file.suffix not in (".h", ".cc") or name.parts[0] == "tests":
            continue
        text = file.read_text(encoding="utf-8")
        spaces = re.findall(r"^namespace ([\w:]+) \{$", text, re.M)
        text = re.sub(r"^namespace \{\n.*?^\}  // namespace$", "", text, flags=re.S | re.M)
        for kind in re.findall(r"^(?:class|struct|enum class) (\w+)(?: final)?(?: :[^;{]*)?\s*\{", text, re.M):
            found.setdefault(("::".join(spaces), kind), []).append(str(name))
    return [f"{kind}: {', '.join(files)}" for (_, kind), files in found.items() if len(files) > 1]


class House(unittest.TestCase):
    def test_no_path_leads_out_of_the_repository(self):
        self.assertEqual([], ways_out(SOURCE))

    def test_ways_out_are_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "tests/a").mkdir(parents=True)
            (root / "tests/a/inside.py").write_text(
                "x = HERE.parents[2]\ny = HERE.parent.parent.parent\nz = '../../daemon'\n"
                "a = join(HERE, '..', os.pardir, 'daemon')\nb = dirname(dirname(dirname(HERE)))\n"
                "c = '/tmp/home/x'\n")
            self.assertEqual([], ways_out(root))
            (root / "tests/a/outside.py").write_text(
                "x = HERE.parents[3]\ny = HERE.parent.parent.parent.parent\nz = '../../../x'\n"
                "a = join(HERE, '..', os.pardir, '..')\nb = dirname(dirname(dirname(dirname(HERE))))\n")
            (root / "tests/a/outside.json").write_text('{"path": "/ho' 'me/somebody/x.mat"}\n')
            (root / "tests/CMakeLists.txt").write_text("add(${PROJECT_SOURCE_" "DIR}/../shared)\n")
            (root / "tests/run").write_text('cat "$(dirname "$0")/../../shared"\n')
            self.assertEqual(8, len(ways_out(root)))

    def test_includes_follow_the_table(self):
        self.assertEqual([], violations(SOURCE))

    def test_the_table_catches_a_violation(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "daemon/fabric").mkdir(parents=True)
            (root / "daemon/manager").mkdir(parents=True)
            (root / "daemon/fabric/a.h").write_text(
                '#include <sqlite3.h>\n#include "daemon/tree/tree.h"\n#include <vector>\n')
            (root / "daemon/manager/b.cc").write_text('#include "db/sqlite_store.h"\n')
            (root / "daemon/search").mkdir(parents=True)
            for name in ("job_question.h", "search_run.h"):  # the second may not
                (root / "daemon/search" / name).write_text('#include "client/connection.h"\n')
            self.assertEqual(4, len(violations(root)))

    def test_classes_have_names_of_their_own(self):
        self.assertEqual([], twice_named(SOURCE))

    def test_classes_of_one_name_are_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            one = "namespace coppice {\nclass Rounds {\n};\n}\n"
            for name, text in (("a.h", one), ("b.h", one), ("c.h", one.replace("coppice", "coppice::mpi")),
                               ("d.cc", "namespace coppice {\nnamespace {\n\nclass Rounds {\n};\n\n"
                                        "}  // namespace\n}\n")):
                (root / name).write_text(text)
            self.assertEqual(["Rounds: a.h, b.h"], twice_named(root))

    def test_every_folder_of_ours_is_in_the_table(self):
        guide = (SOURCE / "daemon/README.md").read_text(encoding="utf-8")
        for file in (SOURCE / "daemon").iterdir():
            if file.is_dir():
                self.assertIn(f"daemon/{file.name}", TABLE)
                self.assertIn(f"\n| daemon/{file.name} | ", guide)

    def test_top_level_holds_what_was_agreed(self):
        top = {entry.name for entry in SOURCE.iterdir()
               if not entry.name.startswith(".") and entry.name != "build"}
        self.assertLessEqual(top, TOP_LEVEL)

    def test_readme_is_short_and_its_links_lead_somewhere(self):
        lines = (SOURCE / "README.md").read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 120)
        for file in files_of(SOURCE):
            if file.suffix == ".md":
                text = file.read_text(encoding="utf-8")
                for link in LINK.findall(text):
                    self.assertTrue((file.parent / link).exists(), f"{file.name}: {link}")
                self.assertEqual([], [line for line in text.splitlines()  # but for tables and code
                                      if len(line) > 120 and not line.startswith(("|", "    "))], file)

    def test_files_of_cmake_have_short_lines(self):
        files = [file for file in files_of(SOURCE) if file.name == "CMakeLists.txt"]
        self.assertGreater(len(files), 30)
        self.assertEqual([], [f"{file.relative_to(SOURCE)}:{number}" for file in files for number, line
                              in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if len(line) > 120])

    def test_the_table_has_every_kind_of_event(self):
        table = (SOURCE / "daemon/manager/event_kinds.cc").read_text(encoding="utf-8")
        kinds = {kind for folder in ("manager", "service")
                 for file in (SOURCE / "daemon" / folder).rglob("*.cc")
                 if file.name != "event_kinds.cc"
                 for kind in EVENT.findall(file.read_text(encoding="utf-8"))}
        self.assertGreater(len(kinds), 30)
        self.assertEqual([], sorted(kind for kind in kinds if f'{{"{kind}",' not in table))

    def test_every_variable_that_is_read_is_known(self):
        header = "proto/text/environment.h"
        known = set(VARIABLE.findall((SOURCE / header).read_text(encoding="utf-8")))
        read = {name for folder in ("agents", "client", "daemon", "deploy")
                for file in (SOURCE / folder).rglob("*")
                if file.is_file() and str(file.relative_to(SOURCE)) != header
                if file.suffix not in (".txt", ".md")
                for names in READ.findall(file.read_text(encoding="utf-8", errors="replace"))
                for name in names if name}
        self.assertGreater(len(read), 15)
        known = sorted(name for name in known if not name.endswith("_"))
        self.assertEqual(sorted(read), known)
        # Python has a list of its own.
        settings = (SOURCE / "deploy/slurm/coppice_slurm/settings.py").read_text(encoding="utf-8")
        self.assertEqual(known, sorted(name for name in VARIABLE.findall(settings) if not name.endswith("_")))

    def test_the_guide_of_mpi_names_every_variable_and_both_mpis_packages(self):
        text = (SOURCE / "agents/mpi/README.md").read_text(encoding="utf-8")
        named = set(re.findall(r"\bCOPPICE_[A-Z_]+", text))
        read = {name for file in (SOURCE / "agents/mpi").rglob("*.cc")
                for name in VARIABLE.findall(file.read_text(encoding="utf-8"))}
        self.assertGreater(len(read), 10)
        self.assertEqual([], sorted(read - named))
        wanted = (SOURCE / "deploy/install-packages").read_text(encoding="utf-8").split()
        packages = {word for word in wanted if re.search("openmpi|mpich", word)}
        self.assertEqual(4, len(packages))
        self.assertEqual([], sorted(packages - set(re.findall(r"[\w-]+", text))))

    def test_headers_are_guarded_by_their_path(self):
        for file in SOURCE.rglob("*.h"):
            name = file.relative_to(SOURCE)
            if name.parts[0] in ("build",) or name.parts[0].startswith("."):
                continue
            guard = "COPPICE_" + re.sub(r"[/.\-]", "_", str(name)).upper() + "_"
            self.assertIn(f"#ifndef {guard}", file.read_text(encoding="utf-8"), name)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
