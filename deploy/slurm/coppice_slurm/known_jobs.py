"""Which of Coppice's jobs were registered for jobs of Slurm's: a file for each in the state directory,
named by Coppice's number, with the job's name in it. The steward ends no others: a name alone says
nothing, as users may give it to jobs of their own.

Written by whoever registers a job, prolog or steward. What is lost with the directory, at a restart of
the host, the steward adds again for jobs that run (steward.py); others end with their leases."""

import os

from coppice_slurm.daemon import write
from coppice_slurm.slurm import is_number


class KnownJobs:
    def __init__(self, settings):
        self.folder = os.path.join(settings.state_dir, "jobs")

    def add(self, job, name):
        try:
            os.makedirs(self.folder, mode=0o755, exist_ok=True)
        except OSError:
            return
        write(os.path.join(self.folder, job), name)

    def has(self, job, name):
        """Whether that job was registered under that name."""
        try:
            with open(os.path.join(self.folder, job), encoding="utf-8") as file:
                return file.read() == name
        except (OSError, ValueError):
            return False

    def numbers(self):
        try:
            return {name for name in os.listdir(self.folder) if is_number(name)}
        except OSError:
            return set()

    def forget(self, job):
        try:
            os.unlink(os.path.join(self.folder, job))
        except OSError:
            pass
