"""Cables of a SwitchedNetwork that delay, lose and reorder packets (cables.cc)."""
import subprocess


class Cables:
    def __init__(self, program, delay_us=0, loss=0.0, reordered=0.0, seed=1):
        self.process = subprocess.Popen([program, *map(str, (delay_us, loss, reordered, seed))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def _write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def lay(self, near, near_port, far, far_port):
        """As SwitchedNetwork wants it."""
        self._write(f"{near.pid} {near_port} {far.pid} {far_port}")
        assert self.process.stdout.readline() == "laid\n", (near.name, far.name)

    def go(self):
        self._write("go")

    def close(self):
        self.process.kill()
        self.process.communicate()
