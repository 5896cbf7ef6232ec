"""Accounts with Slurm, all real: associations of slurmdbd become the daemon's accounts and stay fresh, and a
queue of two accounts gets its trees by their limits."""

import os
import signal
import sys
import unittest

import slurm_accounting
from slurm_cluster import wait_until
from slurm_site import HOSTS, SlurmSite

COPPICED, COPPICECTL, PLAN, DEPLOY = (sys.argv.pop(1) for _ in range(4))

# A batch script that asks for a tree until it gets one, and stays until it is told to go.
WITH_TREE = """\
until {coppicectl} --server {server} tree create --job "$COPPICE_JOB" --type 2 >tree.new-$SLURM_JOB_ID \\
      2>why.new-$SLURM_JOB_ID; do
  mv why.new-$SLURM_JOB_ID why-$SLURM_JOB_ID
  sleep 0.2
done
mv tree.new-$SLURM_JOB_ID tree-$SLURM_JOB_ID
until [ -e go-$SLURM_JOB_ID ]; do sleep 0.2; done
"""


class SlurmAccountsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = SlurmSite(COPPICED, COPPICECTL, PLAN, DEPLOY, slurm_settings=slurm_accounting.SETTINGS)
        cls.addClassCleanup(cls.site.clean_up)
        cls.slurm = cls.site.cluster
        cls.site.install(accounts_s=0.5)
        cls.slurm.start_munged()
        cls.accounting = slurm_accounting.SlurmAccounting(cls.slurm).start()
        for account, parent in ("science", "root"), ("physics", "science"), ("chemistry", "root"):
            cls.accounting.change("add", "account", account, "parent=" + parent)
        for account in "physics", "chemistry":
            cls.accounting.change("add", "user", "nobody", "account=" + account)
        cls.slurm.start()

    def setUp(self):
        self.addCleanup(self.site.wait_until_free)
        self.site.start_steward()
        self.await_accounts(physics="science", chemistry="root")

    def accounts(self):
        return self.site.of_json("account", "list")

    def await_accounts(self, **wanted):
        """Parents of accounts, among others."""
        wait_until(lambda: wanted.items() <= {one["name"]: one["parent"]
                                              for one in self.accounts().get("accounts", [])}.items(),
                   lambda: f"{wanted} in {self.accounts()} {self.site.log()}")

    # --- accounts ---

    def users(self):
        return {(one["user"], one["account"], one["is_default"]) for one in self.accounts()["users"]}

    def test_associations_are_the_daemons_accounts_and_stay_fresh(self):
        self.assertEqual({one["name"] for one in self.accounts()["accounts"]},
                         {"root", "science", "physics", "chemistry"})
        first = {("root", "root", True), ("nobody", "physics", True), ("nobody", "chemistry", False)}
        self.assertEqual(self.users(), first)
        self.site.good("account", "set-tenant", "science", "research")
        self.accounting.change("add", "account", "biology", "parent=science")
        self.accounting.change("modify", "user", "nobody", "set", "defaultaccount=chemistry")
        self.await_accounts(biology="science")
        second = {("root", "root", True), ("nobody", "physics", False), ("nobody", "chemistry", True)}
        wait_until(lambda: self.users() == second, lambda: str(self.users()))
        self.assertIn("research", {one["tenant"] for one in self.accounts()["accounts"]})
        # slurmdbd is away: that is told once, however often it is asked, and everything stays.
        before, told = self.accounts(), "accounts stay as they are"
        self.accounting.cluster.stop("slurmdbd", signal.SIGKILL)
        wait_until(lambda: told in self.site.log(), self.site.log)
        self.assertEqual(self.accounts(), before)
        self.accounting.start_slurmdbd()
        wait_until(lambda: "accounts are imported again" in self.site.log(), self.site.log)
        self.assertEqual(self.site.log().count(told), 1, self.site.log())
        # Back as it was.
        self.accounting.change("modify", "user", "nobody", "set", "defaultaccount=physics")
        wait_until(lambda: self.users() == first, lambda: str(self.users()))
        self.accounting.change("delete", "account", "biology")
        wait_until(lambda: len(self.accounts()["accounts"]) == 4, lambda: str(self.accounts()))

    # --- jobs ---

    def submit(self, account, *options):
        """Slurm's number of a job that has or wants a tree, and Coppice's."""
        script = WITH_TREE.format(coppicectl=COPPICECTL, server=self.site.daemon.address)
        number = self.slurm.submit(script, "-N2", "--account=" + account, *options, user="nobody")
        self.slurm.wait_for(number, "RUNNING")
        wait_until(lambda: self.site.job_of(number), self.site.log)
        job = self.site.of_json("job", "show", self.site.job_of(number))
        self.assertEqual((job["owner"], job["account"]), ("nobody", account), self.site.log())
        return number, job["id"]

    def told(self, kind, number):
        path = self.slurm.path("out", f"{kind}-{number}")
        wait_until(lambda: os.path.exists(path), lambda: f"{path} {self.slurm.show(number)} {self.site.log()}")
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_jobs_get_and_lose_trees_by_their_accounts_limits(self):
        self.site.good("quota", "--account", "science", "--set", "trees=1")
        self.addCleanup(self.site.good, "quota", "--account", "science", "--set", "trees=configured")
        first, job = self.submit("physics")
        self.told("tree", first)
        second, _ = self.submit("physics", "-w", ",".join(HOSTS[6:8]))  # where Slurm chose, not the steward
        self.assertIn("account:science holds 1", self.told("why", second))
        other, _ = self.submit("chemistry")
        self.told("tree", other)
        self.assertFalse(os.path.exists(self.slurm.path("out", "tree-" + second)))
        # The first loses its tree with its end, and the second has it.
        self.slurm.run("scancel", first)
        self.site.wait_until_over(job)
        self.told("tree", second)
        held = {limit["name"]: limit for limit in
                self.site.of_json("quota", "--account", "science")["limits"]}["trees"]
        self.assertEqual(int(held["used"]), 1)
        self.assertEqual(int(held["limit"]), 1)


if __name__ == "__main__":
    unittest.main()
