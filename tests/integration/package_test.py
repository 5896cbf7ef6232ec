"""The Debian packages: what is in them, where, and with which dependencies and scripts; and that what
is in those of an MPI runs there."""

import glob
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import mpi_run

BUILD = sys.argv.pop(1)
MPIS = ("openmpi", "mpich")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
LIBRARIES = {"openmpi": "libopenmpi3", "mpich": "libmpich12"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          cwd=BUILD)
    if done.returncode != 0:
        raise AssertionError(" ".join(command) + "\n" + done.stdout + done.stderr)
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="coppice-package-")
        cls.addClassCleanup(scratch.cleanup)
        run("cpack", "-G", "DEB", "-B", scratch.name)
        (cls.package,) = glob.glob(os.path.join(scratch.name, "coppice_*_*.deb"))
        cls.of_mpi = {}
        for mpi in MPIS:
            (cls.of_mpi[mpi],) = glob.glob(os.path.join(scratch.name, f"coppice-{mpi}_*_*.deb"))
        made = glob.glob(os.path.join(scratch.name, "*.deb"))
        assert len(made) == 1 + len(MPIS), made

    @staticmethod
    def modes_of(package):
        listed = run("dpkg-deb", "--contents", package).splitlines()
        return {line.split(maxsplit=5)[5]: line.split()[0] for line in listed}

    def test_holds_what_a_host_needs(self):
        modes = self.modes_of(self.package)
        for path in ("usr/bin/coppiced", "usr/bin/coppicectl", "usr/bin/coppice-agent",
                     "usr/bin/coppice-switch", "usr/bin/coppice-plan", "usr/lib/coppice/slurm/coppice-slurm",
                     "usr/lib/coppice/slurm/node-prolog", "usr/lib/coppice/slurm/node-epilog",
                     "usr/lib/coppice/slurm/task-prolog"):
            self.assertEqual(modes["./" + path], "-rwxr-xr-x", path)
        for path in ("etc/coppice/coppiced.toml", "usr/lib/systemd/system/coppiced.service",
                     "etc/coppice/agent.toml", "usr/lib/systemd/system/coppice-agent.service",
                     "etc/default/coppice-switch", "usr/lib/systemd/system/coppice-switch.service",
                     "usr/include/coppice/coppice.h", "usr/include/coppice/coppice.hpp",
                     "usr/lib/sysusers.d/coppice.conf", "usr/lib/udev/rules.d/70-coppice.rules",
                     "etc/coppice/slurm.toml", "etc/coppice/slurm-node.conf",
                     "usr/lib/systemd/system/coppice-slurm.service",
                     "usr/lib/systemd/system/coppice-slurm-topology.service",
                     "usr/lib/tmpfiles.d/coppice-slurm.conf",
                     "usr/share/doc/coppice/deploy/slurm/README.md",
                     "usr/share/doc/coppice/deploy/slurm/job_submit.lua",
                     "usr/share/doc/coppice/README.md", "usr/share/doc/coppice/CHANGELOG.md",
                     "usr/share/doc/coppice/deploy/README.md", "usr/share/doc/coppice/copyright",
                     "usr/share/man/man1/coppicectl.1.gz", "usr/share/man/man1/coppice-plan.1.gz",
                     "usr/share/man/man3/libcoppice.3.gz", "usr/share/man/man5/coppiced.toml.5.gz",
                     "usr/share/man/man5/agent.toml.5.gz",
                     "usr/share/man/man8/coppiced.8.gz", "usr/share/man/man8/coppice-agent.8.gz",
                     "usr/share/man/man8/coppice-switch.8.gz",
                     "usr/share/bash-completion/completions/coppicectl"):
            self.assertEqual(modes["./" + path], "-rw-r--r--", path)
        # Where Debian's linker looks, on each architecture.
        (folder,) = {os.path.dirname(path) for path in modes if "/libcoppice.so" in path}
        self.assertRegex(folder, r"^\./usr/lib/[a-z0-9_]+-linux-gnu[a-z0-9]*$")
        for path in modes:
            self.assertNotIn("mpi", os.path.basename(path))  # nor an MPI of theirs among the libraries
        depends = run("dpkg-deb", "--field", self.package, "Depends")
        for library in LIBRARIES.values():
            self.assertNotIn(library, depends)

    def test_clients_in_other_languages_can_be_made_of_it(self):
        with tempfile.TemporaryDirectory() as root:
            run("dpkg-deb", "--extract", self.package, root)
            protos = os.path.join(root, "usr/share/coppice/proto")
            files = [str(path.relative_to(protos)) for path in pathlib.Path(protos).rglob("*.proto")]
            self.assertIn("coppice/v1/trees.proto", files)
            run("protoc", "-I", protos, "--descriptor_set_out", os.path.join(root, "set"), *files)

    def test_manual_pages_are_well_formed_and_say_what_there_is(self):
        with tempfile.TemporaryDirectory() as root:
            run("dpkg-deb", "--extract", self.package, root)
            pages = sorted(pathlib.Path(root, "usr/share/man").rglob("*.[1-8].gz"))
            self.assertEqual(len(pages), 8)
            for page in pages:
                done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True,
                                      text=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
                self.assertEqual(done.stderr, "", page)
                wide = [line for line in re.sub(".\b", "", done.stdout).splitlines() if len(line) > 80]
                self.assertEqual(wide, [], page)
            text = {page.stem: gzip.decompress(page.read_bytes()).decode() for page in pages}
            self.assertIn("coppicectl tree create", text["coppicectl.1"])
            self.assertIn("socket_mode", text["coppiced.toml.5"])
            self.assertIn("measure_listen", text["agent.toml.5"])
            self.assertIn("coppice_tree_create", text["libcoppice.3"])
            # What is named can be found: headers, files, variables, commands.
            (header,) = re.findall(r"#include <(.*)>", text["libcoppice.3"])
            self.assertTrue(pathlib.Path(root, "usr/include", header).exists(), header)
            for name, page in text.items():
                self.assertNotRegex(page, r"\bdeploy/\w+\.toml", name)
            for variable in ("COPPICE_SERVER", "COPPICE_AGENT", "COPPICE_TLS_CA"):
                self.assertRegex(text["coppicectl.1"], rf"(?s)\.SH ENVIRONMENT.*{variable}")
            for file in ("etc/coppice/coppiced.toml", "etc/coppice/agent.toml"):
                self.assertIn("/" + file, text["coppiced.8"] + text["coppice-agent.8"])
            self.assertIn("place is placement advise", text["coppice-plan.1"])

    def test_has_nothing_that_debian_would_refuse(self):
        """But for what deploy/debian/lintian-overrides explains."""
        said = run("lintian", "--fail-on", "none", "--allow-root", self.package,
                   *self.of_mpi.values()).splitlines()
        self.assertEqual([], [line for line in said if not line.startswith("N:")])

    def test_says_that_its_maintainer_is_a_placeholder(self):
        for package in (self.package, *self.of_mpi.values()):
            maintainer = run("dpkg-deb", "--field", package, "Maintainer").strip()
            self.assertRegex(maintainer, r"^\S.* <[^@\s<>]+@[a-z0-9-]+(\.[a-z0-9-]+)+>$")  # no @localhost
            with tempfile.TemporaryDirectory() as root:
                run("dpkg-deb", "--extract", package, root)
                (copyright_file,) = pathlib.Path(root, "usr/share/doc").rglob("copyright")
                is_told = "a placeholder in .example" in copyright_file.read_text(encoding="utf-8")
                self.assertTrue(is_told or not maintainer.endswith(".example>"), package)

    def test_links_of_its_guides_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as root:
            run("dpkg-deb", "--extract", self.package, root)
            guides = sorted(pathlib.Path(root, "usr/share/doc/coppice").rglob("*.md"))
            self.assertGreater(len(guides), 8)
            for guide in guides:
                for link in LINK.findall(guide.read_text(encoding="utf-8")):
                    self.assertTrue((guide.parent / link).exists(), f"{guide}: {link}")

    def test_completion_knows_commands_and_options(self):
        with tempfile.TemporaryDirectory() as root:
            run("dpkg-deb", "--extract", self.package, root)

            def completed(program, *words):
                line = " ".join(f"'{word}'" for word in (program, *words))
                script = f"{root}/usr/share/bash-completion/completions/{program}"
                return run("bash", "-c", f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
                           f"_{program.replace('-', '_')}; echo ${{COMPREPLY[@]}}").split()

            for expected, *line in (
                    (["create"], "coppicectl", "tree", "cr"),
                    (["--job"], "coppicectl", "--server", "x", "tree", "create", "--jo"),
                    (["--server"], "coppicectl", "tree", "create", "--se"),  # of the program itself
                    (["1", "2", "auto"], "coppicectl", "tree", "create", "--type", ""),
                    (["wide"], "coppicectl", "entries", "-o", ""),
                    ([], "coppicectl", "tree", "create", "--job", ""),  # any text
                    (["--fabric"], "coppice-plan", "fabric", "nodes", "--fab"),
                    (["--nodes", "--nodes-per-leaf"], "coppice-plan", "place", "--no"),
                    (["barrier", "bcast"], "coppice-plan", "tree", "--op", "b")):
                with self.subTest(line=line):
                    self.assertEqual(completed(*line), expected)

    def test_what_is_for_an_mpi_needs_and_runs_on_that_one_alone(self):
        for mpi, package in self.of_mpi.items():
            modes = self.modes_of(package)
            program = {"openmpi": "coppice-search", "mpich": "coppice-search-mpich"}[mpi]
            self.assertEqual(modes["./usr/bin/" + program], "-rwxr-xr-x")
            self.assertEqual(modes[f"./usr/share/doc/coppice-{mpi}/copyright"], "-rw-r--r--")
            files = [path for path in modes if not path.endswith("/")]
            self.assertEqual(len(files), {"openmpi": 9, "mpich": 7}[mpi], files)
            self.assertEqual(modes["./usr/share/bash-completion/completions/" + program], "-rw-r--r--")
            depends = run("dpkg-deb", "--field", package, "Depends")
            for other, library in LIBRARIES.items():
                (self.assertIn if other == mpi else self.assertNotIn)(library, depends)
            self.assertEqual(run("dpkg-deb", "--field", package, "Recommends").strip(), "coppice")
            with tempfile.TemporaryDirectory() as root:
                run("dpkg-deb", "--extract", package, root)
                (library,) = glob.glob(f"{root}/usr/lib/**/coppice/libcoppice_mpi_{mpi}.so",
                                       recursive=True)
                trace = os.path.join(root, "trace")
                search = os.path.join(root, "usr/bin", program)
                # Preloaded into a program of that MPI, which is the other of the two files.
                done = mpi_run.run(mpi, 2, [search, "--list"], preload=library,
                                   environment={"COPPICE_TRACE": trace})
                self.assertIn("memetic", done.stdout)
                with open(trace, encoding="utf-8") as file:
                    self.assertIn("ranks 2\n", file.read())

    def test_open_mpi_finds_its_components(self):
        with tempfile.TemporaryDirectory() as root:
            run("dpkg-deb", "--extract", self.of_mpi["openmpi"], root)
            (folder,) = glob.glob(f"{root}/usr/lib/**/coppice/openmpi", recursive=True)
            # One library: the second of two would ask for another job.
            self.assertEqual(os.readlink(f"{folder}/mca_topo_coppice.so"), "mca_coll_coppice.so")
            said = run("env", f"OMPI_MCA_mca_base_component_path={folder}:SYS_DEFAULT", "ompi_info", "--param", "all",
                       "coppice", "--level", "9")
            for word in ("MCA coll: coppice", "MCA topo: coppice", "coll_coppice_trees", "coll_coppice_reorder"):
                self.assertIn(word, said)

    def test_the_scripts_for_slurm_are_whole(self):
        # As they lie in the package, next to each other.
        with tempfile.TemporaryDirectory(prefix="coppice-package-") as root:
            run("dpkg-deb", "--extract", self.package, root)
            scripts = os.path.join(root, "usr/lib/coppice/slurm")
            said = run(os.path.join(scripts, "coppice-slurm"), "--help")
            self.assertIn("PrologSlurmctld", said)
            installed = sorted(os.listdir(os.path.join(scripts, "coppice_slurm")))
            source = os.path.join(os.path.dirname(__file__), "../../deploy/slurm/coppice_slurm")
            wanted = sorted(name for name in os.listdir(source) if name.endswith(".py"))
            self.assertEqual([name for name in installed if name.endswith(".py")], wanted)
            samples = os.path.join(root, "etc/coppice/slurm.toml")
            self.assertIn("patience_s", open(samples, encoding="utf-8").read())

    def test_keeps_the_configuration_and_knows_its_libraries(self):
        self.assertEqual(run("dpkg-deb", "--info", self.package, "conffiles").split(),
                         ["/etc/coppice/coppiced.toml", "/etc/coppice/agent.toml",
                          "/etc/coppice/slurm-node.conf", "/etc/coppice/slurm.toml",
                          "/etc/default/coppice-switch"])
        depends = run("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libgrpc++", "libsqlite3-0", "libibumad3",
                        "libmunge2", "libsystemd0", "libhwloc15", "systemd |", "python3"):
            self.assertIn(library, depends)
        self.assertNotIn("libibverbs", depends)
        self.assertIn("perftest", run("dpkg-deb", "--field", self.package, "Recommends"))
        for script in ("postinst", "prerm", "postrm"):
            self.assertTrue(run("dpkg-deb", "--info", self.package, script).startswith("#!/bin/sh"))


if __name__ == "__main__":
    unittest.main()
