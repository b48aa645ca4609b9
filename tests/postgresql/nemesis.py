"""Writers on a primary and its standby under every kind of fault: seeded, and judged.

`python -m tests.postgresql.nemesis --rounds 200 --seed 7` runs for longer than the test.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from random import Random

from tests.counterparts.postgresql_servers import Pair
from tests.postgresql.flushing import ALL_ARE_SPARSE, History, Packer, Writer, violations
from tests.seeds import SEED
from tests.waiting import wait_until

WRITERS = 3
PARTITIONS = range(6)
OURS = "FROM pg_stat_activity WHERE application_name = 'barnabas'"
ANSWERS_BETWEEN_FAULTS = 20
PROGRESS_TIMEOUT_S = 120


class Nemesis:
    """The faults of the pair: a method for each kind."""

    def __init__(self, pair, random, history):
        self._pair = pair
        self._random = random
        self._history = history
        self.kinds = [
            self.end_connections,
            self.cancel_statements,
            self.end_waits_for_the_standby,
            self.crash,
            self.fail_over,
            self.split,
            self.fence,
        ]

    def end_connections(self):
        self._pair.primary.execute(f"SELECT pg_terminate_backend(pid) {OURS}")

    def cancel_statements(self):
        self._pair.primary.execute(f"SELECT pg_cancel_backend(pid) {OURS}")

    def end_waits_for_the_standby(self):
        """The flushes that waited become visible, but exist on the primary only."""
        self._pair.cut()
        for how in self._random.sample(["terminate", "cancel"], 2):
            self._wait_for_one_that_waits()
            self._pair.primary.execute(
                f"SELECT pg_{how}_backend(pid) {OURS} AND wait_event = 'SyncRep'"
            )
        self._pair.mend()

    def crash(self):
        self._pair.primary.crash()
        self._pair.primary.start()

    def fail_over(self):
        if self._random.random() < 0.5:
            self._pair.cut()
            self._wait_for_one_that_waits()
        self._pair.fail_over()

    def split(self):
        """Promote the standby; the old primary stays alive, its flushes get no result."""
        self._pair.cut()
        self._wait_for_one_that_waits()
        old = self._pair.split()
        answered = len(self._history.acknowledged())
        for _ in range(self._random.randint(2, 5)):
            old.terminate_waiting()
            time.sleep(self._random.uniform(0.05, 0.3))
        self._wait_for_answers(answered + ANSWERS_BETWEEN_FAULTS)
        self._pair.follow()

    def fence(self):
        sessions = self._pair.primary.execute(
            "SELECT session_id FROM barnabas.sessions WHERE state <> 'fenced'"
        )
        ((session,),) = self._random.sample(sessions, 1)
        self._pair.primary.execute("SELECT barnabas.fence(%s)", session)

    def let_go_on(self):
        self._wait_for_answers(len(self._history.acknowledged()) + ANSWERS_BETWEEN_FAULTS)
        time.sleep(self._random.uniform(0, 0.1))

    def _wait_for_answers(self, count):
        wait_until(
            lambda: self._history.bugs or len(self._history.acknowledged()) >= count,
            lambda: f"{count} flushes committed: {self._history.attempts[-WRITERS:]}",
            seconds=PROGRESS_TIMEOUT_S,
        )

    def _wait_for_one_that_waits(self):
        self._pair.primary.wait_for(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )


def torment(pair, rounds, seed):
    """Run writers and two packers during ``rounds`` faults, each kind in turn.

    Returns their history.
    """
    random, history, stop = Random(seed), History(), threading.Event()
    nemesis = Nemesis(pair, random, history)
    with ExitStack() as stack:
        writers = [Writer(pair.url, each, f"{seed}.{each}", history) for each in range(WRITERS)]
        for partition_id in PARTITIONS:
            writers[0].index.add_partition(partition_id)
        pair.primary.execute(ALL_ARE_SPARSE)
        packers = [Packer(pair.url, history) for _ in range(2)]
        threads = stack.enter_context(ThreadPoolExecutor(WRITERS + len(packers)))
        running = [threads.submit(writer.run, PARTITIONS, stop) for writer in writers]
        running += [threads.submit(packer.run, stop) for packer in packers]
        try:
            nemesis.let_go_on()
            kinds = []
            for _ in range(rounds):
                kinds = kinds or random.sample(nemesis.kinds, len(nemesis.kinds))
                kinds.pop()()
                nemesis.let_go_on()
        finally:
            stop.set()
            for each in (*writers, *packers):
                each.index.close()
        for each in running:
            each.result()
    return history


def main():
    """Torment a pair, and print the outcome."""
    parser = argparse.ArgumentParser(prog="python -m tests.postgresql.nemesis")
    parser.add_argument("--rounds", type=int, default=100, help="how many things happen")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    print(f"SEED={arguments.seed}", flush=True)
    with Pair() as pair:
        history = torment(pair, arguments.rounds, arguments.seed)
        found = violations(pair.primary, history)
    outcomes = Counter(
        each.outcome.name.lower() if each.outcome else "unanswered" for each in history.attempts
    )
    print(", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())))
    print(f"{history.packed} extents packed")
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
