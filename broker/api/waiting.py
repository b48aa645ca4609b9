"""Answers that wait: fetches for bytes, produces and responses of coordinators for the disk.

A produce is completed when its commit group is durable or refused, as
``storage/journal/journal.py`` has it, without a coroutine. A fetch that has become due is resumed
after all the logs that a commit group moves, and not inside ``advanced``: it should see all of
them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from barnabas.broker.api.dispatch import DurableAnswer
from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.storage.journal.refusal import Refusal

if TYPE_CHECKING:
    from barnabas.broker.api.waits import GiveUp, Ticket

Response = TypeVar("Response")

logger = logging.getLogger(__name__)


class PendingProduce(DurableAnswer):
    """A Produce whose batches have their offsets and wait to be durable."""

    __slots__ = ("_answer",)

    def __init__(self, answer: ProduceResponse) -> None:
        super().__init__()
        self.requests = 1
        self._answer = answer

    def prepare(self) -> None:
        """Prepare the response, which is sent when its records are on disk."""
        self.complete(self._answer)

    def refused(self, refusal: Refusal) -> None:
        """Complete with errors for the records that did not become durable."""
        self.complete(without_refused(self._answer, refusal))


def without_refused(response: ProduceResponse, refusal: Refusal) -> ProduceResponse:
    """Replace the results of refused batches by errors; durable ones stay (P7)."""
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


def respond_to(respond: Callable[[Response], object], response: Response, topic_name: str) -> None:
    """Call ``respond``; an error in it is logged.

    What was decided is done, and others wait behind this response.
    """
    try:
        respond(response)
    except Exception:
        logger.exception("response failed topic=%s", topic_name)


class PendingResponse(Generic[Response]):
    """A response to send once its commit group is durable, or an error if the group is refused."""

    __slots__ = ("_refuse", "_respond", "_response", "_topic_name")

    def __init__(
        self,
        respond: Callable[[Response], object],
        response: Response,
        refuse: Callable[[ErrorCode], Response],
        topic_name: str,
    ) -> None:
        """``refuse`` makes the response to an error."""
        self._respond = respond
        self._response = response
        self._refuse = refuse
        self._topic_name = topic_name

    def durable(self) -> None:
        """Give the response."""
        respond_to(self._respond, self._response, self._topic_name)

    def refused(self, _refusal: Refusal) -> None:
        """Give the error: the client must look for the coordinator again."""
        respond_to(self._respond, self._refuse(ErrorCode.NOT_COORDINATOR), self._topic_name)


class FetchWaits:
    """The fetches that wait, by the log they wait on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.clock = clock
        self._loop = loop
        self._by_log: dict[Hashable, dict[Watch, None]] = {}
        self._due: list[Watch] = []
        self._scheduled = False

    def advanced(self, log: Hashable, size_bytes: int) -> None:
        """Count ``size_bytes`` that have become readable in ``log`` for the waiting fetches."""
        waiting = self._by_log.get(log)
        if waiting is not None:
            for watch in waiting:
                watch.missing_bytes -= size_bytes
                if watch.missing_bytes <= 0:
                    self.due(watch)

    def wake(self, log: Hashable) -> None:
        """Resume each Fetch that waits on ``log``, which was deleted."""
        for watch in self._by_log.get(log, ()):
            self.due(watch)

    def due(self, watch: Watch) -> None:
        """Resume a fetch in the next turn of the loop."""
        if watch.is_due:
            return
        watch.is_due = True
        self._due.append(watch)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def answer_due(self) -> None:
        """Resume the due fetches now."""
        if not self._due:
            return
        due, self._due = self._due, []
        for watch in due:
            watch.resume()

    def add(self, watch: Watch, logs: Iterable[Hashable]) -> None:
        """Register ``watch`` for ``logs``."""
        for log in logs:
            self._by_log.setdefault(log, {})[watch] = None

    def remove(self, watch: Watch, logs: Iterable[Hashable]) -> None:
        """Unregister ``watch``."""
        for log in logs:
            waiting = self._by_log.get(log)
            if waiting is not None:
                waiting.pop(watch, None)
                if not waiting:
                    del self._by_log[log]

    def __len__(self) -> int:
        """Number of logs with a waiting fetch."""
        return len(self._by_log)

    def _run(self) -> None:
        self._scheduled = False
        self.answer_due()


class Watch:
    """Wait of a fetch, for ``wait_ms`` at most, until its logs have ``missing_bytes`` more;
    awaitable.

    It counts bytes from its construction on, so a fetch misses none that are appended while it
    reads. It can be awaited several times. ``close`` it in the end.
    """

    __slots__ = ("_is_over", "_logs", "_ticket", "_timer", "_waits", "is_due", "missing_bytes")

    ends_early: ClassVar[bool] = True
    is_work: ClassVar[bool] = False

    def __init__(
        self, waits: FetchWaits, logs: Iterable[Any], *, missing_bytes: int, wait_ms: float
    ) -> None:
        self._waits = waits
        self._logs = [*logs]
        self._ticket: Ticket | None = None
        self._is_over = False
        self.missing_bytes = missing_bytes
        self.is_due = False
        self._timer: Timer = waits.clock.call_later(wait_ms, self._time_is_over)
        waits.add(self, self._logs)

    def __await__(self) -> Generator[Any, Any, bool]:
        result: bool = yield self
        return result

    def wait_on(self, logs: list[Any]) -> None:
        """Wait on more logs."""
        self._logs += logs
        self._waits.add(self, logs)

    def wait_for(self, missing_bytes: int) -> None:
        """Wait again, for ``missing_bytes`` from now on."""
        self.missing_bytes = missing_bytes
        self.is_due = False

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """Wait as ``Word`` describes; return True if bytes arrived, False after the timeout."""
        if self._is_over:
            ticket.settle(False)
        elif self.is_due or self.missing_bytes <= 0:
            ticket.settle(True)
        else:
            self._ticket = ticket
        return None

    def resume(self) -> None:
        """Resume the fetch, which is due."""
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            ticket.settle(True)

    def close(self) -> None:
        """Stop waiting."""
        self._ticket = None
        self._timer.cancel()
        self._waits.remove(self, self._logs)

    def _time_is_over(self) -> None:
        self._is_over = True
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            ticket.settle(False)
