"""Runs MPI programs on a simulated network (SimGrid's SMPI)."""
import os
import re
import signal
import subprocess

# SimGrid's SMPI network model: flows share links max-min fairly, from their first byte to their
# last, each over its whole route. Of its settings these are not its own:
CONFIGURATION = (
    "network/model:SMPI",
    # Factors of latency and bandwidth by size were measured on Gigabit Ethernet; a network of the
    # rates that the platform states has none.
    "smpi/lat-factor:0:1", "smpi/bw-factor:0:1",
    # Links are full-duplex: nothing that flows back takes of the way forth.
    "network/crosstraffic:0",
    # Time is that of messages alone, and equal in every run.
    "smpi/simulate-computation:no", "smpi/host-speed:1Gf",
    # The programs have no global variables that ranks could share.
    "smpi/privatization:no",
)
LONGEST_RUN_S = 1200


def run(cluster, hosts, folder, command):
    """What `command`, a list, prints with rank r on host number hosts[r]. RuntimeError: it failed.
    subprocess.TimeoutExpired: it took too long."""
    hostfile = folder / "hostfile"
    hostfile.write_text("".join(f"n{host}\n" for host in hosts))
    with subprocess.Popen(
            ["smpirun", "-np", str(len(hosts)), "-platform", str(cluster), "-hostfile",
             str(hostfile), *(f"--cfg={setting}" for setting in CONFIGURATION),
             "--log=root.thres:warning", *map(str, command)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
            start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=LONGEST_RUN_S)
        finally:
            # smpirun is a script; what it started must not outlive it.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {out}{err}")
    return out


def seconds(cluster, hosts, folder, command):
    """The simulated seconds that the command says a round takes."""
    return float(re.search(r"^seconds (\S+)$", run(cluster, hosts, folder, command), re.M)[1])
