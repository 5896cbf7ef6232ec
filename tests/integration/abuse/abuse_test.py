"""Nobody takes the daemon from the others: attacks on a real coppiced, with an honest client beside.

  abuse_test.py COPPICED PROTO_FOLDER COPPICE_AGENT GROUP...

Every attack: the daemon neither ends nor passes 1 GB, its signs of life are in time, the honest client
is answered, as fast as README.md says, and memory returns. COPPICE_TEST_TIER=full: full counts."""

import os
import select
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from attacks import ATTACKS  # noqa: E402
from coppiced_process import PATIENCE_S  # noqa: E402
from agents import Measuring, ThroughAnAgent  # noqa: E402
from scene import ATTACKER_UID, IS_ROOT, Scene  # noqa: E402
from shares import Shares  # noqa: E402
from victim import WATCHDOG_S  # noqa: E402

IS_FULL = os.environ.get("COPPICE_TEST_TIER") == "full"
QUIET_S = 0.7
# Of the issue that asked for these tests; README.md says why.
MOST_RESIDENT = 1_000_000_000
MOST_TIMES_QUIET, ALWAYS_GOOD_MS = 5, 50
MOST_LEFT, LEFT_WITHIN_S = 1.5, 60
# A busy machine is late by itself now and then, an attack that works is late always: in the full tier,
# which a quiet machine runs, the most rounds have to hold, in the short one any.
ROUNDS, MOST_LATE = (3, 1) if IS_FULL else (5, 4)


def p99(times):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0


def added(day, more):
    """Two of the honest one's days as one."""
    return {"times": {kind: times + more["times"][kind] for kind, times in day["times"].items()},
            "slowest": {method: max(longest, more["slowest"].get(method, 0))
                        for method, longest in day["slowest"].items()},
            "failures": day["failures"] + more["failures"]}


def most_left(before):
    """Bytes that may be resident in the end."""
    return before * MOST_LEFT


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


class Withstands(unittest.TestCase):
    """Everything that is looked at is told, then what is wrong."""

    def withstand(self, attack):
        self.scene = Scene(COPPICED, PROTO, fabric=attack.fabric, config=attack.config, tls=attack.tls,
                           descriptors=attack.descriptors[IS_FULL], entries=attack.entries)
        self.addCleanup(self.scene.clean_up)
        if attack.before:
            self.scene.administrator.do(attack.before[0], **attack.before[1 + IS_FULL])
        honest = self.scene.honest(is_certified=attack.tls)
        in_time = 0
        for number in range(ROUNDS):
            wrong, is_only_slow = self.look(attack, honest)
            in_time += not wrong
            if in_time == ROUNDS - MOST_LATE or wrong and not is_only_slow:
                break
            print(f"  round {number + 1}: {wrong or 'holds'}", flush=True)
        else:
            wrong = wrong or [f"held in {in_time} of {ROUNDS} rounds only"]
        self.assertEqual(wrong, [], f"attack {attack.letter}, {attack.name}")

    def look(self, attack, honest):
        """One round: what is wrong, and whether it is only that the honest one was answered late."""
        victim = self.scene.victim
        quiet = honest.do("day", seconds=QUIET_S, bulk=attack.bulk)
        before = victim.resident()
        victim.forget_peak()
        counts = {**attack.short, **(attack.full if IS_FULL else {})}
        attacker = self.scene.attacker(self.scene.tcp_address, attack.certified)
        begun = time.monotonic()
        attacker.begin_attack(attack.deed, **counts)
        loud = honest.do("day", seconds=attack.seconds[IS_FULL], bulk=attack.bulk)
        while not attacker.has_done() and time.monotonic() - begun < PATIENCE_S:
            loud = added(loud, honest.do("day", seconds=QUIET_S, bulk=attack.bulk))
        was_attack = attacker.has_done()
        told = attacker.stop()
        if attack.holds and IS_ROOT and not victim.has_ended():  # what its quotas let it have
            self.scene.administrator.do("end_jobs_of", owner=str(ATTACKER_UID))
        left = self.memory_left(before, honest)
        late, peak = victim.latest_sign(begun), victim.peak()  # what was begun may have gone on
        has_ended = victim.has_ended()
        wrong, slow = [], []
        if has_ended:
            how = "ended by MemoryMax" if victim.was_ended else f"status {victim.process.returncode}"
            wrong.append(f"the daemon has ended: {how}: {victim.said()[-300:]}")
        if peak > MOST_RESIDENT:
            wrong.append(f"resident: {megabytes(peak)}")
        if left > most_left(before):
            wrong.append(f"memory kept: {megabytes(left)} of {megabytes(before)} before")
        if late > WATCHDOG_S:
            wrong.append(f"no sign of life for {late:.1f} s")
        if not was_attack and not has_ended:
            wrong.append(f"this was no attack: {told}")
        figures = []
        if IS_ROOT:
            unanswered = [failure for failure in loud["failures"] if "DEADLINE_EXCEEDED" in failure]
            refused = [failure for failure in loud["failures"] if failure not in unanswered]
            if refused:
                wrong.append(f"the honest one was refused {len(refused)} times: {refused[:2]}")
            if unanswered:
                slow.append(f"the honest one had no answer in time {len(unanswered)} times: {unanswered[:2]}")
            for kind in loud["times"]:
                was, now = p99(quiet["times"][kind]), p99(loud["times"][kind])
                figures.append(f"{kind} {was:.1f} -> {now:.1f} ms of {len(loud['times'][kind])}")
                if kind != "bulk" and now > max(MOST_TIMES_QUIET * was, ALWAYS_GOOD_MS):
                    slow.append(f"the honest one's {kind}: p99 {was:.1f} -> {now:.1f} ms; slowest: "
                                f"{loud['slowest']}")
        print(f"\n  {attack.letter} {attack.name}: resident {megabytes(before)} -> {megabytes(peak)} -> "
              f"{megabytes(left)}; sign after {late:.1f} s; {'; '.join(figures)}; "
              f"{told}", flush=True)
        return wrong + slow, not wrong

    def memory_left(self, before, honest):
        """Bytes that stay resident; of a daemon that keeps some, after calls of the honest one, as they are
        what has the allocator look for memory to give back."""
        left = self.scene.victim.await_memory(most_left(before), LEFT_WITHIN_S / 2)
        if left > most_left(before):
            left = self.scene.victim.await_memory(most_left(before), LEFT_WITHIN_S / 2,
                                                  meanwhile=lambda: honest.do("day", seconds=0.1))
        return left

    def contain(self, attack):
        """For what is bounded by nothing but the unit's MemoryMax: who may not connect cannot do it;
        after who may, the daemon is there, or is when it was started again, with all that it had
        granted."""
        self.scene = Scene(COPPICED, PROTO, memory_limit=attack.memory_limit[IS_FULL], tls=attack.tls)
        self.addCleanup(self.scene.clean_up)
        victim = self.scene.victim
        if IS_ROOT:
            self.assertEqual(self.scene.stranger().do("connect_only"), "PermissionError")
        honest = self.scene.honest()
        before = victim.resident()
        attacker = self.scene.attacker(self.scene.tcp_address, attack.certified)
        attacker.begin_attack(attack.deed, **{**attack.short, **(attack.full if IS_FULL else {})})
        attacker.await_attack()
        end = time.monotonic() + attack.seconds[IS_FULL]
        while not victim.has_ended() and time.monotonic() < end:
            select.select([], [], [], 0.02)  # between two looks
        told = attacker.stop()
        left = self.memory_left(before, honest)
        was_ended = victim.has_ended()
        print(f"\n  {attack.letter} {attack.name}: resident {megabytes(before)} -> "
              f"{megabytes(victim.peak_seen)} -> {megabytes(left)}; "
              f"{'ended at its limit and started again' if was_ended else 'lives'}; {told}",
              flush=True)
        if was_ended:
            self.assertTrue(victim.was_ended, victim.said())
            victim.start()  # at another port, if it is over TCP; the honest one comes by the socket
            self.scene.administrator.do("sweep")
        else:
            self.assertLessEqual(left, most_left(before))
        honest.do("find_tree")
        self.assertEqual(honest.do("day", seconds=QUIET_S)["failures"], [])


def group_of(name):
    """The class of tests of a group of the table."""
    def test_of(attack):
        if attack.memory_limit[True] == attack.memory_limit[False]:
            return lambda self: self.withstand(attack)
        return lambda self: self.contain(attack)
    return type(name, (Withstands,), {f"test_{attack.letter.lower()}_{attack.name}": test_of(attack)
                                      for attack in ATTACKS
                                      if attack.group == name})


if __name__ == "__main__":
    COPPICED, PROTO, AGENT = (os.path.abspath(path) for path in sys.argv[1:4])
    for group in sorted({attack.group for attack in ATTACKS}):
        globals()[group] = group_of(group)
    shares = type("shares", (Shares,), {"coppiced": COPPICED, "proto": PROTO})
    parts = {"coppiced": COPPICED, "proto": PROTO, "agent": AGENT}
    measuring = type("measuring", (Measuring,), parts)
    agent = type("agent", (ThroughAnAgent,), parts)
    del Shares, Measuring, ThroughAnAgent  # which are no tests by themselves
    if not IS_ROOT:
        print("not root: every person is the daemon's own user; nothing is said about the honest one's "
              "times and about limits of users", flush=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
