"""Coppice's accounts as Slurm's associations are: read from slurmdbd by sacctmgr once in a while, in a
thread, as slurmdbd may let one wait.

Two answers are handed on as one: who is in which account, and whose default which is. `coppicectl
account import` does nothing if the daemon has them like that, and refuses what may not be the whole: no
account at all, a last line without its end, parents or users' accounts that no line tells, users of the
second answer that the first has not, and what lacks more than half of the accounts or users that there
are. So nothing that sacctmgr says empties the accounts."""

from coppice_slurm.daemon import Away, Daemon, Refused
from coppice_slurm.slurm import Failed, Slurm

RETRY_S = 15  # after a failure, unless the period is shorter


def on_account(slurm, facts):
    """Options of coppicectl: the account of a job, where Slurm lets nobody name another's."""
    account = facts["Account"]
    if account in ("", "(null)", "N/A") or not slurm.checks_accounts():
        return []
    return [f"--account={account}"]


class AccountsImport:
    def __init__(self, slurm, daemon, journal):
        self.slurm = slurm
        self.daemon = daemon
        self.journal = journal
        self.told = ""  # why the last import failed

    def round(self):
        """Whether the daemon's accounts are Slurm's now. Why not is told once."""
        try:
            cluster = self.slurm.cluster()
            self.daemon.ask("account", "import", "-", "--cluster", cluster,
                            stdin=self.slurm.associations(cluster))
        except Away:
            return False  # that is told once for all
        except Exception as error:  # whatever it is, the next round is tried
            is_known = isinstance(error, (Failed, Refused))
            what = str(error) if is_known else f"{type(error).__name__}: {error}"
            if what != self.told:
                self.journal.say(f"accounts stay as they are, not imported: {what}", is_warning=True)
            self.told = what
            return False
        if self.told:
            self.journal.say("accounts are imported again")
        self.told = ""
        return True


def keep_accounts(settings, journal, over):
    """Until `over` is set."""
    accounts = AccountsImport(Slurm(settings), Daemon(settings, journal), journal)
    while not over.is_set():
        is_fresh = accounts.round()
        over.wait(settings.accounts_s if is_fresh else min(settings.accounts_s, RETRY_S))
