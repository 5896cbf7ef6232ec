"""Programs of Debian's packages, which are built with its Open MPI: hpcc, and LAMMPS with an input of
ours. Each says how it is run in a folder, what of its output must be the same in every run, and how a
run is stopped in the middle until something is done meanwhile."""
import contextlib
import os
import pathlib
import re
import shutil
import signal

from coppice_nodes import wait_until

HERE = pathlib.Path(__file__).parent
# The sum of ranks' numbers in the order of ranks: what a tree does whose root is rank 0 and has all
# others for children. Open MPI's own choice adds them up in another order.
NATIVE_SUMS_IN_RANK_ORDER = {"OMPI_MCA_coll_tuned_use_dynamic_rules": 1,
                             "OMPI_MCA_coll_tuned_allreduce_algorithm": 1}

LAMMPS_LINES = 102  # of two runs of 500 steps, each tenth and the first


class Lammps:
    command = ["lmp", "-in", "in", "-log", "none"]

    def __init__(self, folder, is_stopped=False):
        self.gate = pathlib.Path(folder) / "gate"
        shutil.copy(HERE / "lammps.in", pathlib.Path(folder) / "in")
        if is_stopped:
            os.mkfifo(self.gate)
        else:
            self.gate.touch()

    @contextlib.contextmanager
    def middle(self):
        """While its rank 0 waits at the gate, half of the steps done."""
        gates = []

        def is_there():
            with contextlib.suppress(OSError):  # nobody reads it yet
                gates.append(os.open(self.gate, os.O_WRONLY | os.O_NONBLOCK))
            return gates
        wait_until(is_there, "the middle of LAMMPS")
        try:
            yield
        finally:
            os.close(gates[0])

    @staticmethod
    def results(said):
        """Lines of thermodynamics."""
        tables = re.findall(r"^ *Step.*?(?=^Loop time)", said, re.MULTILINE | re.DOTALL)
        lines = [line for table in tables for line in table.splitlines()[1:]]
        assert len(lines) == LAMMPS_LINES, said[-2000:]
        return lines


class Hpcc:
    # Ranks tell their processes' numbers.
    command = ["sh", "-c", "echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec hpcc"]

    def __init__(self, folder, is_stopped=False):
        del is_stopped
        self.folder = pathlib.Path(folder)
        self.out = self.folder / "hpccoutf.txt"
        shutil.copy(HERE / "hpccinf.txt", self.folder)

    def _text(self):
        return self.out.read_text(encoding="utf-8") if self.out.exists() else ""

    @contextlib.contextmanager
    def middle(self):
        """While its rank 0 is stopped behind PTRANS and before HPL, which makes communicators."""
        wait_until(lambda: "Begin of LatencyBandwidth" in self._text(), "the middle of hpcc")
        chief = int((self.folder / "pid.0").read_text(encoding="utf-8"))
        os.kill(chief, signal.SIGSTOP)
        try:
            assert "Begin of HPL" not in self._text(), "too late"
            yield
        finally:
            os.kill(chief, signal.SIGCONT)

    def results(self, said):
        """What was computed, and not how long that took, as behind "PASSED" of PTRANS, which leaves
        out its line of processor time where that is 0; nor how many of its random updates it found
        lost, which is another number in each native run, too: only whether these were few enough.
        Not from what it said, but from its file."""
        del said
        kept = [re.sub(r"Found \d+ errors", "Found errors",
                       re.sub(r"^(WALL.*) \S+ (PASSED|FAILED).*", r"\1 \2", line))
                for line in self._text().splitlines()
                if re.search(r"PASSED|FAILED|Found \d+ errors|Success=", line)
                and not line.startswith("CPU")]
        assert "Success=1" in kept, kept
        return kept


def differences(one, other):
    """Of lines of numbers: how many lines differ, and the greatest difference of two numbers, as a
    share of the greater one if that is above 1."""
    greatest, lines = 0.0, 0
    for a, b in zip(one, other, strict=True):
        lines += a != b
        for x, y in zip(map(float, a.split()), map(float, b.split()), strict=True):
            greatest = max(greatest, abs(x - y) / max(abs(x), abs(y), 1))
    return lines, greatest
