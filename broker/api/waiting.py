"""Answers that wait: fetches for bytes, produces for the disk.

Both are completed by callback, without a Task or a Future. A produce is told that its journal group
is durable, or that it was refused, as ``storage/journal.py`` has it. A fetch that has become due is
answered behind all the logs that a journal group moves, and not inside ``advanced``: it should see
all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from barnabas.broker.api.dispatch import Deferred, Parked
from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.storage.refusal import Refusal

Response = TypeVar("Response")


class PendingProduce(Deferred[ProduceResponse]):
    """A produce whose batches have their offsets and wait to be durable.

    It waits for the journal group that holds the last of them: groups become durable in order, so
    what the other partitions of the request wrote is durable before it.
    """

    __slots__ = ("_answer",)

    def __init__(self, answer: ProduceResponse) -> None:
        super().__init__()
        self._answer = answer

    def prepare(self) -> None:
        """Make the answer ready, which leaves when what it promises is on disk."""
        self.complete(self._answer)

    def refused(self, refusal: Refusal) -> None:
        """Answer with an error for what is not durable."""
        self.complete(without_refused(self._answer, refusal))


class ParkedProduce:
    """As ``PendingProduce``, where the connection waits already: completes its answer."""

    __slots__ = ("_answer", "_parked")

    def __init__(self, parked: Parked[ProduceResponse], answer: ProduceResponse) -> None:
        self._parked = parked
        self._answer = answer

    def prepare(self) -> None:
        """Make the answer ready, which leaves when what it promises is on disk."""
        self._parked.complete(self._answer)

    def refused(self, refusal: Refusal) -> None:
        """Answer with an error for what is not durable."""
        self._parked.complete(without_refused(self._answer, refusal))


def without_refused(response: ProduceResponse, refusal: Refusal) -> ProduceResponse:
    """Promise nothing of batches that were refused; what was durable before that is (P7)."""
    for topic in response.responses:
        results = topic.partition_responses
        for at, result in enumerate(results):
            if not result.error_code and refusal.takes_back(
                topic.name or topic.topic_id, result.index, result.base_offset
            ):
                results[at] = PartitionProduceResponse(
                    result.index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
                )
    return response


class Durability:
    """A future's result: None once a journal group is durable; KafkaError if it never will be."""

    __slots__ = ("_code", "_future")

    def __init__(self, future: asyncio.Future[None], code: ErrorCode) -> None:
        """``code`` is that of the error."""
        self._future = future
        self._code = code

    def durable(self) -> None:
        """End the wait, unless it was given up."""
        if not self._future.done():
            self._future.set_result(None)

    def refused(self, _refusal: Refusal) -> None:
        """End the wait with the error, unless it was given up."""
        if not self._future.done():
            self._future.set_exception(KafkaError(self._code))


class FetchWaits:
    """The fetches that wait, by the log they wait on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.clock = clock
        self._loop = loop
        self._by_log: dict[Hashable, dict[ParkedFetch[Any], None]] = {}
        self._due: list[ParkedFetch[Any]] = []
        self._scheduled = False

    def advanced(self, log: Hashable, size_bytes: int) -> None:
        """Count ``size_bytes`` that have become readable in ``log`` for those who wait on it."""
        waiting = self._by_log.get(log)
        if waiting is not None:
            for fetch in waiting:
                fetch.missing_bytes -= size_bytes
                if fetch.missing_bytes <= 0:
                    self.due(fetch)

    def wake(self, log: Hashable) -> None:
        """Answer everyone who waits on ``log``: it was deleted, or its start has moved."""
        for fetch in self._by_log.get(log, ()):
            self.due(fetch)

    def due(self, fetch: ParkedFetch[Any]) -> None:
        """Answer a fetch as soon as the loop comes round."""
        if fetch.is_due:
            return
        fetch.is_due = True
        self._due.append(fetch)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def answer_due(self) -> None:
        """Answer now what is due."""
        due, self._due = self._due, []
        for fetch in due:
            fetch.answer_if_enough()

    def add(self, fetch: ParkedFetch[Any], logs: Iterable[Hashable]) -> None:
        """Let ``fetch`` wait on ``logs``."""
        for log in logs:
            self._by_log.setdefault(log, {})[fetch] = None

    def remove(self, fetch: ParkedFetch[Any], logs: Iterable[Hashable]) -> None:
        """Forget that ``fetch`` waits."""
        for log in logs:
            waiting = self._by_log.get(log)
            if waiting is not None:
                waiting.pop(fetch, None)
                if not waiting:
                    del self._by_log[log]

    def __len__(self) -> int:
        """Return how many logs are waited on; 0 when no fetch waits."""
        return len(self._by_log)

    def _run(self) -> None:
        self._scheduled = False
        self.answer_due()


class ParkedFetch(Parked[Response]):
    """A fetch that found less than it asked for.

    It is answered with ``read()`` when ``min_bytes`` more have become readable in one or more of
    ``logs``, when ``wait_ms`` have passed, or when it is completed early; whichever comes first.

    ``read_if_enough``: not every byte that became readable is meant for this reader. It is asked
    instead when the bytes are there, and answers None to wait on.
    """

    __slots__ = (
        "_gone",
        "_logs",
        "_read",
        "_read_if_enough",
        "_timer",
        "_waits",
        "is_due",
        "missing_bytes",
    )

    def __init__(
        self,
        waits: FetchWaits,
        logs: Iterable[Hashable],
        *,
        min_bytes: int,
        wait_ms: float,
        read: Callable[[], Response],
        read_if_enough: Callable[[], Response | None] | None = None,
    ) -> None:
        super().__init__()
        self._waits = waits
        self._logs = [*logs]
        self._read = read
        self._read_if_enough = read_if_enough
        self._gone = False
        self.missing_bytes = min_bytes
        self.is_due = False
        self._timer: Timer = waits.clock.call_later(wait_ms, self.answer)
        waits.add(self, self._logs)

    def wait_on(self, logs: list[Any]) -> None:
        """Wait on more logs, unless the waiting is over."""
        if not self._gone:
            self._logs += logs
            self._waits.add(self, logs)

    def complete_early(self) -> None:
        """Answer at once: another request waits behind this one."""
        self.answer()

    def answer(self) -> None:
        """Answer with what there is, once."""
        self._answer(self._read)

    def answer_if_enough(self) -> None:
        """Answer unless the reader says that what has come is not for it."""
        self._answer(self._read_if_enough or self._read)

    def _answer(self, read: Callable[[], Response | None]) -> None:
        if self._gone:
            return
        try:
            response = read()
        except Exception as error:  # noqa: BLE001  a bug in one fetch must not stop who woke it
            self._leave()
            self.fail(error)
            return
        if response is None:
            self.is_due = False
            self.missing_bytes = 1
            return
        self._leave()
        self.complete(response)

    def abandoned(self) -> None:
        """Stop waiting: the client has gone."""
        self._leave()

    def _leave(self) -> None:
        if not self._gone:
            self._gone = True
            self._timer.cancel()
            self._waits.remove(self, self._logs)
