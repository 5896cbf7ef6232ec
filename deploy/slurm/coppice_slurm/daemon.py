"""coppiced, asked through coppicectl: every question with a time by which it is answered or given up.

Whoever finds the daemon away writes that into a file of the state directory. For some seconds nobody
else asks then, so that a thousand jobs that start meanwhile do not wait one after another; and only
who writes the file anew tells the administrator."""

import json
import os
import subprocess
import time

from coppice_slurm.slurm import Failed

SEARCH_S = 1.0  # what the daemon takes for a search that nobody gave a budget

UNREACHABLE = 5  # exit status of coppicectl: no daemon, or no answer in time


class Away(Exception):
    """Nobody answers, or not in time."""


class Refused(Exception):
    """The daemon's answer is no; says why."""


def reason_of(errors):
    """Why coppicectl --json failed: {"error": ...} ends its standard error, or words of usage do."""
    try:
        error = json.loads(errors.strip().rpartition("\n")[2])["error"]
        return f"{error['message']} [{error['code']}]"
    except (ValueError, TypeError, KeyError):
        return errors.strip()


class Daemon:
    def __init__(self, settings, journal):
        self.settings = settings
        self.journal = journal
        self.note = os.path.join(settings.state_dir, "away")

    def ask(self, *arguments, user=None, deadline=None, stdin="", insist=False):
        """The answer to a command of coppicectl, from its JSON. `user`: in whose name, a uid.
        `deadline`: of time.monotonic(), else the patience that was set. `insist`: also if the daemon was
        away a moment ago. Away, Refused; Failed if coppicectl cannot be run."""
        if not insist:
            self.check_not_noted_away()
        left = self.time_left(deadline)
        try:
            answer = self.call(arguments, user, left, stdin)
        except Away as error:
            self.note_away(str(error))
            raise
        except Refused:
            self.note_back()
            raise
        self.note_back()
        return answer

    def search(self, *arguments, user=None, deadline=None, stdin=""):
        """As ask(), with a command that takes a --budget: SEARCH_S, or a third of the patience. It is given
        up after two, so that there is time left to do without. That says nothing of the daemon, which
        may have many to search for: it is Refused. Away: that was noted before."""
        self.check_not_noted_away()
        left = min(2 / 3 * self.settings.patience_s, self.time_left(deadline))
        try:
            return self.call((*arguments, "--budget", f"{min(SEARCH_S, left / 2):.3f}s"), user, left, stdin)
        except Away as error:
            raise Refused(str(error)) from error

    def time_left(self, deadline):
        if deadline is None:
            return self.settings.patience_s
        left = min(self.settings.patience_s, deadline - time.monotonic())
        if left <= 0:
            raise Away("no time left")
        return left

    def call(self, arguments, user, seconds, stdin):
        command = [self.settings.coppicectl, "--server", self.settings.server,
                   "--timeout", f"{seconds:.3f}"]
        if user is not None:
            command += ["--as", str(user)]
        try:
            done = subprocess.run([*command, *arguments, "--json"], capture_output=True,
                                  encoding="utf-8", errors="replace", timeout=seconds + 0.5,
                                  check=False, input=stdin)
        except OSError as error:  # which says nothing about the daemon
            raise Failed(f"{self.settings.coppicectl}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise Away(f"no answer to coppicectl {' '.join(arguments[:2])} "
                       f"in {seconds:.1f} s") from error
        why = reason_of(done.stderr)
        if done.returncode == 0:
            return json.loads(done.stdout) if done.stdout.strip() else {}
        raise (Away if done.returncode == UNREACHABLE else Refused)(why)

    # --- the file ---

    def check_not_noted_away(self):
        if self.is_noted_away():
            raise Away("the daemon was away a moment ago")

    def is_noted_away(self):
        try:
            with open(self.note, encoding="utf-8") as file:
                return time.time() < float(file.read() or 0)
        except (OSError, ValueError):
            return False

    def note_away(self, why):
        is_news = not os.path.exists(self.note)
        write(self.note, str(time.time() + self.settings.retry_s))
        if is_news:
            self.journal.say(f"coppiced is away, Slurm places jobs by itself: {why}",
                             is_warning=True)

    def note_back(self):
        try:
            os.unlink(self.note)
        except OSError:
            return
        self.journal.say("coppiced is back")


def write(path, text):
    """Replaces a file of the state directory; what cannot be written is not remembered."""
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError:
        pass
