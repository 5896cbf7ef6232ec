"""How long the lease of a job is: short while the steward renews it, else as long as the job may run.

The steward gives a sign of life, a file of the state directory: "UNTIL SECONDS", it steers jobs until
then, and takes so long at most. job_submit.lua reads it, too."""

import os
import re
import time

from coppice_slurm.daemon import write

FRESH_S = 10    # how long a sign of life counts
DAY_S = 86400   # the longest lease that the daemon grants


def sign_path(settings):
    return os.path.join(settings.state_dir, "steering")


def show_life(settings):
    write(sign_path(settings), f"{time.time() + FRESH_S:.0f} {settings.steer_s:.0f}\n")


def hide_life(settings):
    try:
        os.unlink(sign_path(settings))
    except OSError:
        pass


def is_alive(settings):
    """Whether a steward is there and the daemon answers it."""
    try:
        with open(sign_path(settings), encoding="utf-8") as sign:
            return time.time() <= float(sign.read().split()[0])
    except (OSError, ValueError, IndexError):
        return False


def seconds_of(limit):
    """Of "1-02:03:04", or "30:00" as squeue writes what is less than an hour; a day if it is none."""
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", limit or "", re.A)
    if found is None:
        return DAY_S
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def lease_for(settings, facts, is_renewed):
    """Seconds."""
    if is_renewed:
        return settings.lease_s
    return min(seconds_of(facts.get("TimeLimit")) + settings.lease_s, DAY_S)
