"""An order of a job's ranks outlives the daemon that took it until its job ends: coppiced is killed
after PutOrder and started again on the same database, and coppicectl asks for the order as a
launcher does."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import unittest

import grpc

import exit_status
from coppiced_process import Coppiced
from reflection_client import Reflection, Service

COPPICED, COPPICECTL = sys.argv.pop(1), sys.argv.pop(1)
ORDER = [3, 1, 2, 0, *range(15, 3, -1)]  # of the 16 ranks on 4 leaf switches of 4 hosts


class Order(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(COPPICED)
        self.addCleanup(self.daemon.clean_up)
        self.start()
        self.job = self.register()

    def start(self):
        self.daemon.start().wait_until_listening()
        self.good("fabric", "sweep")

    def kill_and_start(self):
        self.daemon.end(signal.SIGKILL)
        self.start()

    def run_program(self, *arguments):
        done = subprocess.run([COPPICECTL, *arguments], capture_output=True, text=True, timeout=120,
                              check=False,
                              env={**os.environ, "COPPICE_SERVER": self.daemon.address})
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments):
        status, out, errors = self.run_program(*arguments)
        self.assertEqual((status, exit_status.without_waiting(errors)), (0, ""), arguments)
        return out

    def refused(self, word, *arguments):
        exit_status.check_failure(self, self.run_program(*arguments), [word])

    def register(self):
        return json.loads(self.good("job", "register", "--all", "--lease", "1h", "--json"))["id"]

    def put(self, job, permutation, note="by hand"):
        with grpc.insecure_channel(self.daemon.address) as channel:
            pool = Reflection(channel).pool_of("coppice.v1.Mapping")
            mapping = Service(channel, pool, "coppice.v1.Mapping")
            return mapping.PutOrder(job_id=job, permutation=permutation, note=note)

    def stored(self, job):
        return json.loads(self.good("map", "--job", job, "--stored", "--json"))

    def rows(self, sql="SELECT job_id FROM job_order ORDER BY job_id"):
        with contextlib.closing(sqlite3.connect(self.daemon.database)) as database:
            with database:
                return [str(row[0]) for row in database.execute(sql)]

    def test_it_outlives_the_daemon_until_its_job_ends(self):
        other = self.register()
        self.put(self.job, [1, 0], note="the one before")
        put = self.put(self.job, ORDER)
        self.put(other, [1, 0])
        hosts = self.good("map", "--job", self.job, "--stored", "--emit", "slurm")
        self.kill_and_start()
        stored = self.stored(self.job)
        self.assertEqual((stored["permutation"], stored["note"]), (ORDER, "by hand"))
        self.assertEqual(stored["create_time"], put.create_time.ToJsonString())
        self.assertEqual(self.good("map", "--job", self.job, "--stored", "--emit", "slurm"), hosts)
        self.assertEqual(len(set(hosts.split())), 16)
        self.good("job", "end", self.job)
        self.refused("has ended", "map", "--job", self.job, "--stored")
        self.assertEqual(self.rows(), [other])
        self.kill_and_start()
        self.refused("has ended", "map", "--job", self.job, "--stored")
        self.assertEqual(self.rows(), [other])
        self.assertEqual(self.stored(other)["permutation"], [1, 0])
        self.refused("no order is kept", "map", "--job", self.register(), "--stored")

    def test_a_damaged_row_is_an_error_of_who_asks_for_it(self):
        other = self.register()
        self.put(self.job, ORDER)
        self.put(other, ORDER)
        self.daemon.end(signal.SIGKILL)
        self.rows("UPDATE job_order SET positions = '[0,oops]' WHERE job_id = " + self.job)
        self.start()
        self.refused("wrong character at position 3", "map", "--job", self.job, "--stored")
        self.refused("[DATA_LOSS]", "map", "--job", self.job, "--stored")
        self.assertEqual(self.stored(other)["permutation"], ORDER)
        self.put(self.job, [0])
        self.assertEqual(self.stored(self.job)["permutation"], [0])


if __name__ == "__main__":
    unittest.main()
