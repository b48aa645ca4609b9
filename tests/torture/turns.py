"""Brokers of a cluster that die one after the other, then stop in turn; clients are left alone.

What is killed is given: brokers in this process, or processes on PostgreSQL. Since nothing happens
to a client, all that its library does not try again by itself is the cluster's doing.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from tests.torture.torture import Cuts, Mortal, Outcome, Say, Torture
from tests.workload.access import Access
from tests.workload.fleet import KINDS, WIRE_KINDS, Fleet
from tests.workload.judge import not_retried
from tests.workload.settings import PATIENT_MS, Kind

EVERY_S = 5.0
OWN_IDS = tuple(
    each._replace(transaction_timeout_ms=PATIENT_MS) for each in KINDS if not each.transactional_id
)
"""The clients of the torture that no other client fences."""
LOOK_S = 0.1


class Brokers(Mortal, Protocol):
    """The brokers of a cluster, by their numbers from 0 on."""

    @property
    def count(self) -> int: ...

    def kill_one(self, number: int) -> None:
        """Kill -9 it."""

    def stop_one(self, number: int) -> None:
        """End it in good order."""

    def start_one(self, number: int) -> None:
        """Start it again."""

    def wait_until_ready(self) -> None:
        """Wait until all of them serve."""

    def failure(self) -> str | None:
        """Return the fault of a broker that should run."""


class NoCuts:
    """A stand-in for a proxy: clients connect to the brokers directly."""

    cuts = 0


class Turns:
    """Kills one broker each time that it is due, then restarts all in order."""

    def __init__(self, brokers: Brokers, fleet: Fleet, every_s: float, say: Say) -> None:
        self.faults: Counter[str] = Counter()
        self._brokers = brokers
        self._fleet = fleet
        self._every_s = every_s
        self._say = say

    def run(self, duration_s: float) -> None:
        """Kill brokers until the time is up; then stop and start each, one at a time."""
        begun_s = time.monotonic()
        for turn in itertools.count(1):
            if turn * self._every_s > duration_s:
                break
            self._wait_until(begun_s + turn * self._every_s)
            number = turn % self._brokers.count
            self._note("kill_broker", number)
            self._brokers.kill_one(number)
            self._brokers.start_one(number)
        self._brokers.wait_until_ready()
        for number in range(self._brokers.count):
            self._note("stop_broker", number)
            self._brokers.stop_one(number)
            self._brokers.start_one(number)
            self._brokers.wait_until_ready()
            self._supervise()

    def _wait_until(self, at_s: float) -> None:
        while time.monotonic() < at_s:
            self._supervise()
            time.sleep(LOOK_S)

    def _note(self, fault: str, number: int) -> None:
        self._say(f"  {fault} {number}")
        self.faults[fault] += 1

    def _supervise(self) -> None:
        failure = self._brokers.failure()
        assert failure is None, failure
        for member in self._fleet.members:
            member.restart_if_ended()


class TurnsTorture(Torture):
    """The torture on a cluster that loses one broker after the other."""

    wire_kinds = tuple(each._replace(transaction_timeout_ms=PATIENT_MS) for each in WIRE_KINDS)

    def __init__(
        self,
        brokers: Brokers,
        directory: Path,
        say: Say,
        kinds: Sequence[Kind] = OWN_IDS,
        every_s: float = EVERY_S,
    ) -> None:
        super().__init__(brokers, Access(brokers.bootstrap_servers), directory, say, kinds)
        self._brokers = brokers
        self._every_s = every_s

    def proxy(self, seed: int) -> AbstractContextManager[Cuts]:
        return nullcontext(NoCuts())

    def nemesis(self, fleet: Fleet, proxy: Cuts, seed: int, *, harms_broker: bool) -> Turns:
        return Turns(self._brokers, fleet, self._every_s, self._say)


def unexpected(outcome: Outcome) -> list[str]:
    """Return the errors that clients did not retry, and the clients that ended by themselves."""
    return [*not_retried(outcome.history), *outcome.ended]


def told(outcome: Outcome) -> str:
    """Return everything for people."""
    missed = not_retried(outcome.history).most_common()
    lines = [f"not retried: {count} times {reason}" for reason, count in missed]
    return "\n".join([*outcome.lines(), *lines])
