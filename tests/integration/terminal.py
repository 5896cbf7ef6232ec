"""A program as it is met on a terminal, of 80 columns."""

import os
import pty
import re
import subprocess


def run_on_a_terminal(command):
    """Its exit status, the lines that people see, and what it wrote to stderr."""
    terminal, its_end = pty.openpty()
    with subprocess.Popen(command, stdout=its_end, stderr=subprocess.PIPE) as program:
        os.close(its_end)
        shown = b""
        try:
            while more := os.read(terminal, 4096):
                shown += more
        except OSError:  # the other end is closed
            pass
        told = program.stderr.read().decode()
        status = program.wait(60)
    os.close(terminal)
    return status, re.sub(r"\033\[[\d;]*m", "", shown.decode()).splitlines(), told
