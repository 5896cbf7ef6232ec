"""Several hosts on one machine: a network, mount and UTS namespace each, joined by a bridge. Each has
a folder of its own at the same path, `run`, where only its processes find a socket.

Everything lives in a network and mount namespace of the test's own, which enter() makes by starting
the test anew, so that nothing is left when the test ends, however it ends. MPI's launchers reach a
host by the file `shell`, as they would by ssh."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import mpi_run
from switched_network import openmpi_by_shell

MARK = "COPPICE_TEST_IN_NAMESPACE"
NETWORK = "10.88.0"
LAUNCHER = "launcher"


def enter():
    """Returns inside of the namespaces only."""
    if os.environ.get(MARK) == "1":
        return
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--uts", sys.executable, *sys.argv])


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def command_on_hosts(shell, network, mpi, ranks, words, program, environment):
    """A launcher's line that reaches hosts by `shell`, as by ssh; `words` tell it where ranks go."""
    # All have the same loopback address: UCX must not take it for a way to the others. It takes
    # their memory for one, so that MPICH's messages are not seen on the network; told not to,
    # MPICH 4.0 on UCX 1.13 hangs in every other MPI_Finalize, with this library and without.
    variables = mpi_run.variables_of_ranks({"UCX_NET_DEVICES": "eth0", **environment})
    if mpi == "openmpi":
        line = openmpi_by_shell(shell, network, variables)
    else:
        line = ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", shell]
        for name, value in variables.items():
            line += ["-genv", name, value]
    return [str(word) for word in [*line, *words, "-np", ranks, *program]]


class NamespaceHosts:
    def __init__(self, names):
        self.names = list(names)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="coppice-hosts-"))
        self.run = self.folder / "run"
        self.run.mkdir()
        self.holders = []
        subprocess.run(["hostname", LAUNCHER], check=True)
        self._write_names()
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge0", "type", "bridge")
        ip("address", "add", f"{NETWORK}.254/24", "dev", "bridge0")
        ip("link", "set", "bridge0", "up")
        for number, name in enumerate(self.names, 1):
            self._add(number, name)
        self.shell = self._write_shell()

    def _write_names(self):
        """/etc/hosts, for all of them, as the mount namespace shows it."""
        hosts = self.folder / "hosts"
        lines = ["127.0.0.1 localhost", f"{NETWORK}.254 {LAUNCHER}"]
        lines += [f"{NETWORK}.{number} {name}" for number, name in enumerate(self.names, 1)]
        hosts.write_text("\n".join(lines) + "\n", encoding="utf-8")
        subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)

    def _add(self, number, name):
        # Holds the namespaces until its standard input closes, which the end of the test does.
        holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "sh", "-c",
             f"mount -t tmpfs run {self.run} && hostname {name} && echo ready && exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        assert holder.stdout.readline() == "ready\n"
        ip("link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns",
           str(holder.pid))
        ip("link", "set", f"veth{number}", "master", "bridge0", "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                      ["address", "add", f"{NETWORK}.{number}/24", "dev", "eth0"]):
            subprocess.run(["nsenter", "-t", str(holder.pid), "-n", "ip", *words], check=True)

    def _write_shell(self):
        cases = "\n".join(f"  {name}|{NETWORK}.{number}) pid={holder.pid} ;;" for number, (
            name, holder) in enumerate(zip(self.names, self.holders), 1))
        shell = self.folder / "shell"
        shell.write_text("#!/bin/sh\n# HOST COMMAND...: as ssh, options are not looked at.\n"
                         "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
                         f"case $1 in\n{cases}\n  *) echo \"no host $1\" >&2; exit 255 ;;\nesac\n"
                         "shift\nexec nsenter -t $pid -n -m -u sh -c \"$*\"\n", encoding="utf-8")
        shell.chmod(0o755)
        return shell

    def inside(self, number):
        """The beginning of a command that runs on a host."""
        return ["nsenter", "-t", str(self.holders[number].pid), "-n", "-m", "-u"]

    def sent_bytes(self):
        """What all hosts have sent on the network since they are there."""
        total = 0
        for number in range(len(self.names)):
            link = subprocess.run([*self.inside(number), "ip", "-json", "-stats", "link", "show",
                                   "eth0"], capture_output=True, text=True, check=True).stdout
            total += json.loads(link)[0]["stats64"]["tx"]["bytes"]
        return total

    def command(self, mpi, ranks, words, program, environment):
        return command_on_hosts(self.shell, f"{NETWORK}.0/24", mpi, ranks, words, program, environment)

    def close(self):
        """The namespaces go with their last process; the test's own with the test."""
        for holder in self.holders:
            holder.stdin.close()
            holder.stdout.close()
            holder.wait(30)
        subprocess.run(["umount", "/etc/hosts"], check=True)
        self.run.rmdir()
        for file in self.folder.iterdir():
            file.unlink()
        self.folder.rmdir()
