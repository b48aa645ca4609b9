"""Changes that a connector copies into a topic, and the judgement of the topic at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from barnabas.storage.runtime.clock import counter_ns
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.history import checker
from tests.history.model import COMMITTED, SEND, Operation, Read, Write
from tests.waiting import wait_until
from tests.workload.drivers.confluent import Look
from tests.workload.judge import read_at_the_end, wait_for_ends

COPY_S = 240


class Changes:
    """Numbered changes of one source, in the order in which ``make`` has made them."""

    def __init__(self, topic: str, make: Callable[[Sequence[int]], Sequence[str]]) -> None:
        """``make`` makes changes with these numbers, and returns the values of their records."""
        self.history: list[Operation] = []
        self._place = (topic, 0)
        self._make = make
        self._numbers = itertools.count()

    @property
    def values(self) -> list[str]:
        """The values of all records that the topic must have."""
        return [write.value for each in self.history for write in each.writes]

    def add(self, count: int) -> None:
        """Make some more changes."""
        begun_ns = counter_ns()
        made = self._make(list(itertools.islice(self._numbers, count)))
        writes = tuple(Write(*self._place, value) for value in made)
        operation = Operation(SEND, "source", invoked_ns=begun_ns, writes=writes)
        self.history.append(replace(operation, completed_ns=counter_ns()))

    def judge(
        self,
        broker: BrokerProcess,
        said: Callable[[], object],
        value_of: Callable[[str], str] = str,
    ) -> None:
        """Wait until the topic has all changes; check that it has each once, in order.

        ``value_of`` returns the value of a record's text; ``said`` is for the message of a failure.
        """
        look = Look(broker.bootstrap_servers)

        def missing() -> set[str]:
            ends = look.ends([self._place], COMMITTED)
            found = look.read({self._place: 0}, ends, COMMITTED)
            return {*self.values} - {value_of(each.value) for each in found}

        wait_until(
            lambda: not missing(),
            lambda: f"{len(missing())} changes are missing: {said()}",
            seconds=COPY_S,
        )
        wait_for_ends([(HOST, broker.port)])
        # Connect copies the records of an aborted transaction again.
        committed = [
            replace(each, reads=tuple(_valued(read, value_of) for read in each.reads))
            for each in read_at_the_end(look, "final", [self._place], {})
            if each.isolation == COMMITTED
        ]
        history = [*self.history, *committed]
        report = checker.check(history)
        assert report.violations == [], "\n".join(checker.lines(report, history))
        assert [read.value for each in committed for read in each.reads] == self.values


def _valued(read: Read, value_of: Callable[[str], str]) -> Read:
    return read._replace(value=value_of(read.value))
