"""Kills of brokers and of a Connect worker, until each has happened often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from random import Random

from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.connect import ConnectWorker
from tests.workload.faults import Cure, Fault, Nemesis

WEIGHTS = {"kill_broker": 1.0, "kill_worker": 1.0}
KILLS = 2
"""The least number of kills of each kind."""
MOST_ROUNDS = 40
BROKER_DOWN_S = (0.0, 3.0)
WORKER_DOWN_S = (0.0, 2.0)
REST_S = (1.0, 4.0)


class ConnectFaults:
    """Kills the brokers and the worker, and starts a worker again that has ended.

    ``work`` is called all the time, between the faults: it writes what the connectors copy.
    """

    def __init__(
        self,
        brokers: Sequence[BrokerProcess],
        worker: ConnectWorker,
        work: Callable[[], object],
    ) -> None:
        self.ended = 0
        """The number of times that the worker ended by itself."""
        self._brokers = brokers
        self._worker = worker
        self._work = work
        self._is_killed = False

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        if kind == "kill_worker":
            if self._is_killed or not self._works():
                return None
            return Fault(kind, chance.uniform(*WORKER_DOWN_S))
        number = chance.randrange(len(self._brokers))
        return None if number in harmed else Fault(kind, chance.uniform(*BROKER_DOWN_S), (number,))

    def begin(self, fault: Fault) -> Cure:
        if fault.kind == "kill_worker":
            self._is_killed = True
            self._worker.kill()
            return self._start_worker
        (number,) = fault.brokers
        self._brokers[number].kill()
        return self._brokers[number].restart

    def supervise(self, harmed: Collection[int]) -> None:
        for number, broker in enumerate(self._brokers):
            assert number in harmed or broker.is_running, f"a broker ended: {broker.output()}"
        if not self._is_killed and not self._worker.is_running:
            # It gives up if its broker does not respond when it starts.
            self.ended += 1
            self._worker.launch()
        self._work()

    def finish(self) -> None:
        """Wait until the worker is ready again."""
        self.supervise(())
        self._worker.wait_until_ready()

    def _start_worker(self) -> None:
        self._is_killed = False
        self._worker.launch()

    def _works(self) -> bool:
        """Return whether all connectors run, so that another kill finds them at work."""
        return self._worker.is_running and self._worker.all_run()


class Kills:
    """Faults in rounds until each kind has happened KILLS times."""

    def __init__(self, nemesis: Nemesis) -> None:
        self._nemesis = nemesis

    @property
    def faults(self) -> Counter[str]:
        return self._nemesis.faults

    def run(self, duration_s: float) -> None:
        """Make faults in rounds of ``duration_s``."""
        for _ in range(MOST_ROUNDS):
            self._nemesis.run(duration_s)
            if all(self.faults[kind] >= KILLS for kind in WEIGHTS):
                return
        raise AssertionError(f"too few faults in {MOST_ROUNDS} rounds: {self.faults}")


def kills(faults: ConnectFaults, seed: int) -> Kills:
    """Return the kills of brokers and of the worker, drawn from a seed."""
    return Kills(Nemesis(faults, WEIGHTS, Random(seed), REST_S, print))
