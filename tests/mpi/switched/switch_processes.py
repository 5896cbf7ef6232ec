"""A coppice-switch for each switch of a fabric."""
import json
import subprocess

from coppice_nodes import wait_until
from coppiced_process import PATIENCE_S


class SwitchProcesses:
    def __init__(self, program, coppicectl, server, entries=64, children=64,
                 inside=lambda guid: [], listen=lambda guid: "127.0.0.1:0"):
        """`entries` of each, with so many `children`; `inside`: what begins the command of the switch of that GUID; `listen`: where it listens. Returns
        when all of them speak."""
        self.coppicectl, self.server = coppicectl, server
        self.command = lambda guid: [*inside(guid), program, "--switch", guid, "--server", server, "--listen",
                                     listen(guid), "--entries", str(entries), "--children", str(children)]
        self.running = {}
        wait_until(lambda: self._control("fabric", "sweep").returncode == 0, "a first sweep")
        self.guids = [one["guid"] for one in self.ask("fabric", "switches")["switches"]]
        for guid in self.guids:
            self.start(guid)
        self.wait()

    def _control(self, *words):
        return subprocess.run([self.coppicectl, "--server", self.server, *words], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    def tell(self, *words):
        done = self._control(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *words):
        return json.loads(self.tell(*words, "--json"))

    def start(self, guid):
        self.running[guid] = subprocess.Popen(self.command(guid), stderr=subprocess.DEVNULL)

    def wait(self):
        wait_until(lambda: len(self.connected()) == len(self.running), "all switches speak")

    def connected(self):
        return [one for one in self.ask("agent", "switches")["switches"] if one.get("connected")]

    def kill(self, guid):
        self.running[guid].kill()
        self.running.pop(guid).wait(PATIENCE_S)

    def stop(self):
        for guid in list(self.running):
            self.kill(guid)
