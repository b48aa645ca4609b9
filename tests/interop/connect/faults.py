"""Faults of brokers and of Connect workers, until each kind has happened often enough.

A worker may be another system's process, too.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random
from typing import Protocol

from barnabas.broker.cli.proving.faults import Cure, Fault
from tests.counterparts.broker_process import BrokerProcess
from tests.workload.nemesis import Nemesis

KILL_BROKER, KILL_WORKER, PAUSE_WORKER = "kill_broker", "kill_worker", "pause_worker"
KILLS = (KILL_BROKER, KILL_WORKER)
FAULTS_EACH = 2
"""The least number of faults of each kind."""
MOST_ROUNDS = 40
ROUND_S = 20.0
BROKER_DOWN_S = (0.0, 3.0)
WORKER_DOWN_S = (0.0, 2.0)
SESSION_MS = 6000
"""The `session.timeout.ms` of workers that are paused: for longer, so that others take over."""
PAUSE_S = (7.0, 10.0)
REST_S = (1.0, 4.0)


class Worker(Protocol):
    """A process that uses the brokers."""

    @property
    def pid(self) -> int: ...

    @property
    def is_running(self) -> bool: ...

    def launch(self) -> None:
        """Start the process, and return before it is ready."""

    def kill(self) -> None:
        """Kill -9 the process, and wait until it has ended."""

    def is_at_work(self) -> bool:
        """Return whether it does all of its work, so that a fault interrupts it."""

    def wait_until_ready(self) -> None:
        """Wait until the process accepts requests."""


class ConnectFaults:
    """Harms the brokers, and one worker at a time; starts a worker again that has ended.

    ``work`` is called all the time, between the faults: it writes what the connectors copy.
    """

    def __init__(
        self,
        brokers: Sequence[BrokerProcess],
        workers: Sequence[Worker],
        work: Callable[[], object],
    ) -> None:
        self.ended = 0
        """The number of times that a worker ended by itself."""
        self._brokers = brokers
        self._workers = workers
        self._work = work
        self._kills: Counter[int] = Counter()
        """The number of kills of each broker."""
        self._harmed: Worker | None = None

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        if kind == KILL_BROKER:
            # Of several brokers the one with the fewest kills: none is left out.
            numbers = chance.sample(range(len(self._brokers)), len(self._brokers))
            number = min(numbers, key=lambda each: self._kills[each])
            down_s = chance.uniform(*BROKER_DOWN_S)
            return None if number in harmed else Fault(kind, down_s, (number,))
        worker = chance.randrange(len(self._workers))
        if not self._all_work():
            return None
        seconds = chance.uniform(*(PAUSE_S if kind == PAUSE_WORKER else WORKER_DOWN_S))
        return Fault(kind, seconds, client=str(worker))

    def begin(self, fault: Fault) -> Cure:
        if fault.kind == KILL_BROKER:
            (number,) = fault.brokers
            self._kills[number] += 1
            self._brokers[number].kill()
            return self._brokers[number].restart
        worker = self._harmed = self._workers[int(fault.client)]
        if fault.kind == PAUSE_WORKER:
            os.kill(worker.pid, signal.SIGSTOP)
            return lambda: self._cure(partial(os.kill, worker.pid, signal.SIGCONT))
        worker.kill()
        return lambda: self._cure(worker.launch)

    def supervise(self, harmed: Collection[int]) -> None:
        for number, broker in enumerate(self._brokers):
            assert number in harmed or broker.is_running, f"a broker ended: {broker.output()}"
        for worker in self._workers:
            if worker is not self._harmed and not worker.is_running:
                # It gives up if its broker does not respond when it starts.
                self.ended += 1
                worker.launch()
        self._work()

    def finish(self) -> None:
        """Wait until the workers are ready again."""
        self.supervise(())
        for worker in self._workers:
            worker.wait_until_ready()

    def _cure(self, cure: Callable[[], object]) -> None:
        self._harmed = None
        cure()

    def _all_work(self) -> bool:
        return self._harmed is None and all(
            each.is_running and each.is_at_work() for each in self._workers
        )


class Rounds:
    """Faults in rounds, until each kind has happened FAULTS_EACH times."""

    def __init__(self, faults: ConnectFaults, seed: int, kinds: Sequence[str] = KILLS) -> None:
        self._kinds = kinds
        self._nemesis = Nemesis(faults, dict.fromkeys(kinds, 1.0), Random(seed), REST_S, print)

    @property
    def faults(self) -> Counter[str]:
        return self._nemesis.faults

    def run(self, duration_s: float = ROUND_S) -> None:
        """Make faults in rounds of ``duration_s``."""
        for _ in range(MOST_ROUNDS):
            self._nemesis.run(duration_s)
            if all(self.faults[kind] >= FAULTS_EACH for kind in self._kinds):
                return
        raise AssertionError(f"too few faults in {MOST_ROUNDS} rounds: {self.faults}")
