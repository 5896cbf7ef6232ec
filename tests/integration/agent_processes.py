"""coppice-agents of a model fabric's hosts beside a coppiced, all on this machine, and coppicectl."""

import json
import os
import select
import subprocess
import time

from coppiced_process import Coppiced, PATIENCE_S


def host(number):
    """Name of a host of a model fabric, from 0."""
    return f"n{number:04d}"


class AgentProcesses:
    def __init__(self, coppiced, coppicectl, agent, fabric):
        self.daemon = Coppiced(coppiced, fabric=fabric).start().wait_until_listening()
        self.coppicectl = coppicectl
        self.agent = agent
        self.processes = {}

    def add(self, name, address=None, prefix=(), options=()):
        """Starts the agent of a host. `address`: where others reach it to measure, else a port of
        this machine. `prefix`: a command that takes it to another namespace. `options`: more of
        the agent's."""
        folder = os.path.join(self.daemon.directory, name)
        os.makedirs(folder, exist_ok=True)
        command = [*prefix, self.agent, "--server", self.daemon.address, "--host", name,
                   "--socket", os.path.join(folder, "agent.sock"), "--state-dir", folder,
                   "--measure-listen", address or "127.0.0.1:0", *options]
        if address is not None:
            command += ["--measure-address", address]
        with open(os.path.join(folder, "log"), "a", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(command, stderr=log)

    def said(self, name):
        with open(os.path.join(self.daemon.directory, name, "log"), encoding="utf-8") as log:
            return log.read()

    def end(self, name):
        process = self.processes.pop(name)
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)

    def clean_up(self):
        for name in list(self.processes):
            self.end(name)
        self.daemon.clean_up()

    def run(self, *arguments, stdin=""):
        done = subprocess.run([self.coppicectl, "--server", self.daemon.address, *arguments],
                              capture_output=True, text=True, timeout=300, check=False, input=stdin)
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments, **options):
        status, out, errors = self.run(*arguments, **options)
        assert status == 0, (arguments, out, errors)
        return out

    def of_json(self, *arguments, **options):
        return json.loads(self.good(*arguments, "--json", **options))

    def connected(self):
        agents = self.of_json("agent", "list")["agents"]
        return sorted(agent["hello"]["host"] for agent in agents if agent["connected"])

    def wait_until_connected(self, names):
        deadline = time.monotonic() + PATIENCE_S
        while self.connected() != sorted(names):
            assert time.monotonic() < deadline, [self.connected()] + [
                self.said(name) for name in self.processes]
            select.select([], [], [], 0.02)  # between two looks
