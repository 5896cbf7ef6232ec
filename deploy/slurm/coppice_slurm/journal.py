"""What an administrator should know: to a file, or to syslog, since slurmctld throws away what its
scripts write."""

import sys
import syslog
import time


class Journal:
    def __init__(self, settings, program, also_stderr=False):
        self.path = settings.log_file
        self.program = program
        self.also_stderr = also_stderr
        if not self.path:
            syslog.openlog(program, syslog.LOG_PID, syslog.LOG_DAEMON)

    def say(self, text, is_warning=False):
        """One line. Never fails: a full disk must not keep a job from its start, nor what its user
        wrote into its comment."""
        text = text.encode("utf-8", "backslashreplace").decode().replace("\n", " ")
        if self.also_stderr:
            print(text, file=sys.stderr, flush=True)
        if not self.path:
            syslog.syslog(syslog.LOG_WARNING if is_warning else syslog.LOG_INFO, text)
            return
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%FT%T')} {self.program}: {text}\n")
        except OSError:
            pass
