"""One user cannot have all there is: what is left for the honest one after another has taken what it
could, and whose names are whose. Rows F, G, H and J of README.md."""

import unittest

import http2
from scene import HONEST_UID, IS_ROOT, Scene

FABRIC = "model:fat-tree(leaves=8,spines=4,hosts-per-leaf=8)"
HOSTS = 64


class Shares(unittest.TestCase):
    coppiced = proto = None

    def begin(self, config="", **options):
        if not IS_ROOT:
            self.skipTest("not root: one user only, and an administrator, who has no limits")
        self.scene = Scene(self.coppiced, self.proto, fabric=FABRIC, config=config, **options)
        self.addCleanup(self.scene.clean_up)
        return self.scene.attacker(), self.scene.person(HONEST_UID)

    def assert_refused(self, told, granted):
        """By a limit of the user's, after at least so many were granted."""
        self.assertEqual(told["code"], "RESOURCE_EXHAUSTED", told)
        self.assertGreaterEqual(told["granted"], granted, told)

    def test_j_entries(self):
        attacker, honest = self.begin(entries=16)
        self.assert_refused(attacker.do("take_all_entries", most=100), granted=1)
        self.assertEqual(honest.do("take_all_entries", most=1)["code"], "OK")

    def test_j_jobs(self):
        attacker, honest = self.begin("[quotas]\njobs = 100\n")
        self.assert_refused(attacker.do("take_all_jobs", most=300), granted=100)
        self.assertEqual(honest.do("take_all_jobs", most=1)["code"], "OK")

    def test_j_nodes(self):
        attacker, honest = self.begin()
        told = attacker.do("take_all_nodes", most=1, nodes=HOSTS - 1)
        self.assertEqual(told["code"], "RESOURCE_EXHAUSTED", told)
        self.assert_refused(attacker.do("take_all_nodes", most=HOSTS, nodes=1), granted=1)
        self.assertEqual(honest.do("take_all_nodes", most=1, nodes=HOSTS // 8)["code"], "OK")

    def test_j_pattern_bytes(self):
        attacker, honest = self.begin("[mapping]\nstored_pattern_bytes = 2000000\n")
        self.assert_refused(attacker.do("take_all_pattern_bytes", most=200, ranks=128), granted=1)
        self.assertEqual(honest.do("take_all_pattern_bytes", most=1, ranks=128)["code"], "OK")

    def test_j_events_of_others_are_not_washed_out(self):
        attacker, honest = self.begin("[limits]\nevents = 1000\nevents_per_user = 200\n")
        job = honest.do("register", request_id="kept")["id"]
        events = self.scene.administrator.do("events_of", object_name="job:" + job)
        self.assertGreater(events, 0)
        attacker.do("end_jobs", many=700, ranks=1)  # two events each
        self.assertEqual(self.scene.administrator.do("events_of", object_name="job:" + job), events)

    def test_j_names_are_their_owners(self):
        attacker, honest = self.begin()
        taken = attacker.do("register", request_id="slurm-7")
        mine = honest.do("register", request_id="slurm-7")
        self.assertNotEqual(taken["id"], mine["id"])
        self.assertNotEqual(taken["owner"], mine["owner"])
        self.assertEqual(honest.do("register", request_id="slurm-7"), mine)  # sent again
        self.assertEqual(attacker.do("put_pattern", name="lammps/melt", ranks=8), 8)
        self.assertEqual(honest.do("put_pattern", name="lammps/melt", ranks=16), 16)

    def test_f_who_connects_and_calls_nothing_is_cut_off(self):
        attacker, honest = self.begin('[limits]\nlongest_silence = "1s"\n')
        honest.do("begin")
        attacker.do("await_closed", many=10)
        attacker.do("await_closed", many=10, said=(http2.PREFACE + http2.settings(65535)).hex())
        self.assertEqual(honest.do("day", seconds=0.1)["failures"], [])

    def test_g_jobs_that_are_ended_at_once_fill_no_disk(self):
        attacker, _ = self.begin("[quotas]\nkept_bytes = 2000000\n")
        few, ranks = 4, 100_000  # 1.9 MB each
        attacker.do("end_jobs", many=few, ranks=ranks)
        kept = self.scene.victim.kept_bytes()
        attacker.do("end_jobs", many=5 * few, ranks=ranks)
        self.assertLess(self.scene.victim.kept_bytes(), 2 * kept)

    def test_h_searches_take_turns_by_user(self):
        attacker, honest = self.begin('[mapping]\nmax_budget = "2s"\n')
        attacker.begin_attack("map_ranks", ranks=32, in_flight=18, seconds=2)
        attacker.await_attack()
        before = attacker.told[-1]["counts"].get("OK", 0)
        self.assertNotEqual(honest.do("search", ranks=32, milliseconds=100), "")
        # The one that ran and perhaps one that was next; not all that waited.
        self.assertLessEqual(attacker.stop().get("OK", 0) - before, 3)
