"""coppicectl quota, account and audit against a real daemon: what they print, what one user cannot take from
the others, and what is still known after a kill. Runs as root, who asks in the names of others as
a scheduler does, or lets them ask."""

import json
import os
import signal
import subprocess
import sys
import unittest

import exit_status
from coppiced_process import PATIENCE_S, Coppiced

PROGRAM, CONTROL = sys.argv.pop(1), sys.argv.pop(1)
QUOTAS = """
[quotas]
jobs = 2
entries = "50%"
nodes = 8
left_to_administrators = 25
"""
ASSOCIATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/slurm/associations.txt")
ACCOUNTS = """\
ACCOUNT      TENANT      USERS, * BY DEFAULT
root         -           root*
  chemistry  -           daemon*, nobody
  science    research
    physics  (research)
      atlas  lhc         nobody*
"""
TABLE = """\
User bin
LIMIT          USED      MOST  WHOSE       USED BY ALL  MOST OF USERS  THERE ARE
entries           1        12  all users'            1             18         24
trees             1     20000  all users'            1              -          -
tree_ranks       16   4194304  all users'           16       12582912   16777216
jobs              1         3  own                   1          15000      20000
ranks            16   4194304  all users'           16              -          -
nodes             0         8  all users'            0             12         16
pattern_bytes     0  67108864  all users'            0      201326592  268435456
searches          0         -  all users'            0              -          -
kept_bytes        -  67108864  all users'            -              -          -
lease_seconds     -     86400  all users'            -              -          -
switch_entries    -         -  all users'            -              -          -
planner_seconds   0         -  all users'            -              -          -
"""


def words(table):
    return [line.split() for line in table.splitlines()]


class Quotas(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.daemon = Coppiced(PROGRAM)
        self.addCleanup(self.daemon.clean_up)
        with open(self.daemon.config, "r+", encoding="utf-8") as config:
            rules = config.read()
            config.seek(0)
            config.write('socket_mode = "0666"\n' + rules + QUOTAS)
        os.chmod(self.daemon.directory, 0o755)
        self.start()

    def start(self):
        self.daemon.start().wait_until_listening()
        self.ask("fabric", "sweep")

    def ctl(self, *arguments, user=None, stdin=""):
        done = subprocess.run([CONTROL, "--server", self.daemon.address, *arguments], user=user, input=stdin,
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def ask(self, *arguments, user=None):
        status, output, errors = self.ctl(*arguments, user=user)
        self.assertEqual(status, 0, errors)
        return output

    def refused(self, *arguments, user=None, stdin=""):
        status, _, errors = self.ctl(*arguments, user=user, stdin=stdin)
        self.assertEqual(status, exit_status.of(errors), errors)
        return errors

    def register(self, user):
        return json.loads(self.ask("--as", user, "job", "register", "--all", "--json"))["id"]

    def kill_and_start(self):
        self.daemon.end(signal.SIGKILL)
        self.start()

    def test_limits_and_use(self):
        self.ask("quota", "bin", "--set", "jobs=3")
        job = self.register("bin")
        self.ask("--as", "bin", "tree", "create", "--job", job, "--type", "2")
        for _ in range(2):
            self.assertEqual(words(self.ask("quota", "bin", "-o", "wide")), words(TABLE))
            self.assertEqual(words(self.ask("--as", "bin", "quota", "-o", "wide")), words(TABLE))
            for arguments in (["bin"], ["--all"]):
                self.assertLessEqual(max(map(len, self.ask("quota", *arguments).splitlines())), 80)
            self.kill_and_start()
        for _ in range(2):
            self.register("bin")
        self.assertIn("bin holds 3 active jobs of the 3 that an administrator allows",
                      self.refused("--as", "bin", "job", "register", "--all"))
        self.ask("quota", "bin", "--set", "jobs=configured")
        self.assertIn("for administrators",
                      self.refused("--as", "bin", "quota", "bin", "--set", "jobs=none"))
        self.assertEqual(self.ctl("quota", "bin", "--set", "jobs=many")[0], 2)
        self.assertIn(["pattern_bytes", "0", "65536", "own"],
                      [row[:4] for row in words(self.ask("quota", "bin", "--set", "pattern_bytes=64K"))])

    def test_one_user_does_not_take_all_nodes(self):
        create = ["placement", "create", "--nodes"]
        self.assertIn("quotas.nodes", self.refused(*create, "9", user="bin"))
        self.ask(*create, "8", user="bin")
        self.ask(*create, "4", user="daemon")
        self.assertIn("25% are left to administrators", self.refused(*create, "1", user="daemon"))
        self.ask(*create, "2")
        self.ask("--as", "daemon", *create, "2")  # a scheduler's decision

    def test_accounts_are_slurms_associations(self):
        self.assertEqual(self.ask("account", "import", ASSOCIATIONS),
                         "5 accounts, 4 users in them, where there were 0 accounts, 0 users in them\n")
        self.assertEqual(self.ask("account", "set-tenant", "science", "research"),
                         "account science is of tenant research\n")
        self.ask("account", "set-tenant", "atlas", "lhc")
        self.assertEqual([line.rstrip() for line in self.ask("account", "list").splitlines()], ACCOUNTS.splitlines())
        self.assertEqual(self.ask("account", "import", ASSOCIATIONS), "5 accounts, 4 users in them, as before\n")
        # What is not the whole changes nothing.
        with open(ASSOCIATIONS, encoding="utf-8") as file:
            whole = file.read()
        lines = whole.splitlines(keepends=True)
        for text, words in (("", "NOT_FOUND"), (lines[0], "no account is in it"), (whole[:-1], "has no end"),
                            ("".join(lines[:3]), "--replace"), (lines[2], "standard input:1: no heading"),
                            (whole.replace("copse|science||root\n", ""), "standard input:7: account physics")):
            self.assertIn(words, self.refused("account", "import", "-", stdin=text))
        fewer = whole.replace("copse|chemistry|nobody|\n", "")
        self.assertIn("administrators", self.refused("account", "import", "-", user="bin", stdin=fewer))
        self.assertIn("no account of cluster oak", self.refused("account", "import", ASSOCIATIONS, "--cluster", "oak"))
        # An import that changes nothing is no deed.
        told = json.loads(self.ask("audit", "--method", "Admin.ImportAccounts", "--json"))["deeds"]
        self.assertEqual([deed["outcome"] for deed in told], ["OK", "PERMISSION_DENIED"])
        self.kill_and_start()
        self.assertEqual([line.rstrip() for line in self.ask("account", "list", user="bin").splitlines()],
                         ACCOUNTS.splitlines())
        self.ask("account", "set-tenant", "atlas", "none")
        tenants = {one["name"]: one["tenant"] for one in json.loads(self.ask("account", "list", "--json"))["accounts"]}
        self.assertEqual((tenants["atlas"], tenants["science"]), ("", "research"))
        self.assertIn("accounts.changed", self.ask("events", "--kind", "accounts.changed"))
        self.assertEqual(self.ctl("account", "import", "-", "--replace", stdin="".join(lines[:3]))[0], 0)
        self.assertEqual(len(json.loads(self.ask("account", "list", "--json"))["accounts"]), 1)

    def test_accounts_share_their_limits(self):
        self.ask("account", "import", ASSOCIATIONS)
        self.ask("quota", "--account", "science", "--set", "jobs=1")
        job = json.loads(self.ask("--as", "nobody", "job", "register", "--all", "--json"))
        self.assertEqual(job["account"], "atlas")
        self.assertIn("account:science holds 1", self.refused("--as", "nobody", "job", "register", "--all"))
        self.ask("--as", "nobody", "job", "register", "--all", "--account", "chemistry")
        # Users name accounts that they are in; a scheduler is believed before the next import.
        for account, words in (("science", "nobody is not in account science but in atlas, chemistry"),
                               ("biology", "no account is named biology")):
            register = ["job", "register", "--all", "--account", account, "--json"]
            self.assertIn(words, self.refused(*register, user="nobody"))
        self.assertEqual(json.loads(self.ask("--as", "daemon", *register))["account"], "biology")
        create = ["placement", "create", "--nodes", "1", "--candidates", "n0000", "--account", "biology", "--json"]
        self.assertIn("no account is named biology", self.refused(*create, user="daemon"))
        self.assertEqual(json.loads(self.ask("--as", "daemon", *create))["account"], "biology")

    def test_account_of_deeds_outlives_a_kill(self):
        job = self.register("bin")
        self.assertIn("belongs to bin", self.refused("--as", "daemon", "job", "end", job))
        self.ask("job", "end", job)
        self.ask("audit")  # hands over what was denied
        self.register("daemon")
        self.kill_and_start()
        told = [" ".join(line.split()[1:]) for line in self.ask("audit", "-o", "wide").splitlines()]
        self.assertEqual(told[0], "CALLER FOR FROM METHOD OBJECT OUTCOME TIMES")
        for line in (
                "root bin uid:0 Jobs.RegisterJob job:%s OK 1" % job,
                "root daemon uid:0 Jobs.EndJob job:%s PERMISSION_DENIED 1" % job,
                "root root uid:0 Jobs.EndJob job:%s OK 1" % job,
                "root root uid:0 Fabric.Sweep fabric OK 1"):
            self.assertIn(line, told)
        shown = self.ask("audit").splitlines()
        self.assertLessEqual(max(map(len, shown)), 80)
        self.assertIn("root Jobs.EndJob job:%s, PERMISSION_DENIED" % job,
                      [" ".join(line.split()[1:]) for line in shown])
        denied = json.loads(self.ask("audit", "--denied", "--since", "1h", "--json"))["deeds"]
        self.assertEqual([deed["method"] for deed in denied], ["Jobs.EndJob"])
        of_user = json.loads(self.ask("audit", "--user", "daemon", "--method", "Jobs.R",
                                      "--json"))["deeds"]
        self.assertEqual([deed["object"] for deed in of_user], ["job:2"])
        ended = json.loads(self.ask("events", "--kind", "job.ended", "--json"))["events"]
        self.assertEqual([event["actor"] for event in ended], ["root"])
        self.assertIn("administrators", self.refused("--as", "bin", "audit"))


if __name__ == "__main__":
    unittest.main()
