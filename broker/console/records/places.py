"""Places of responses that read records: four at a time, and one search of each viewer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from barnabas.broker.console.pages.spark_ledger import SparkLedger
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.pieces import RecordReaders
from barnabas.broker.http.messages.answer_memory import AnswerMemory
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.http.messages.answer import Answer
    from barnabas.broker.http.messages.answer_memory import Holding
    from barnabas.broker.security.acls.access import Access

READERS_MOST: Final = 4
"""Maximum number of responses at a time that read records or keep read records in memory."""

Viewing = tuple[str, str, str]
"""User, address, and the name that the page sends for itself."""


class Place:
    """The place of one response, until it is written; use ``with`` while the response is built."""

    def __init__(self, readers: RecordReaders, holding: Holding) -> None:
        self.readers = readers
        self.pace = ThreadPace()
        """The pace of the threads that make the response."""
        self._holding = holding
        self._is_answered = False
        self._is_displaced = False

    def hold(self, size_bytes: int) -> None:
        """Count bytes that wait for the client; raises KafkaError if there is no room for them."""
        self._holding.hold(size_bytes)

    def answered(self, answer: Answer) -> Answer:
        """Return the response that keeps the place until it is written."""
        self._is_answered = True
        return replace(answer, holding=self._holding)

    def __enter__(self) -> Self:
        """Begin to make the response, in this task."""
        task = asyncio.current_task()
        assert task is not None
        self._holding.close_response = partial(self._displace, task)
        return self

    def _displace(self, task: asyncio.Task[object]) -> None:
        self._is_displaced = task.cancel()

    def __exit__(self, *_: object) -> None:
        """End the threads, and give the place back unless a response keeps it.

        Raises KafkaError if it was displaced.
        """
        self.pace.end()
        if self._is_answered:
            return
        self._holding.release()
        if self._is_displaced:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            words = "another user needs the memory: read fewer records at a time"
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words) from None


class Places:
    """The places of one broker's readers of records."""

    def __init__(self, memory: AnswerMemory | None = None) -> None:
        self._memory = AnswerMemory() if memory is None else memory
        self.readers = RecordReaders(self._memory)
        self.ledger = SparkLedger(self.readers)
        """Ledger of Spark, which one request at a time reads in small pieces, without a place."""
        self._taken: set[Holding] = set()
        self._searches: dict[Viewing, Callable[[], None]] = {}

    def take(self, access: Access) -> Place:
        """Take a place; raises KafkaError if none is free.

        If other users have more places than this user would have, one of their unread responses is
        closed.
        """
        owner, taken = access.principal, self._taken
        if len(taken) >= READERS_MOST and not self._memory.close_oldest(
            owner, lambda each: int(each in taken), 1
        ):
            words = f"{READERS_MOST} others read records: try again in a few seconds"
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words)
        holding = self._memory.holding(owner)
        taken.add(holding)
        holding.on_release(lambda: taken.discard(holding))
        return Place(self.readers, holding)

    def replace_search(self, viewing: Viewing, end: Callable[[], None]) -> None:
        """End the present search of a viewer; ``end`` ends the new one."""
        before = self._searches.pop(viewing, None)
        if before is not None:
            before()
        self._searches[viewing] = end

    def forget_search(self, viewing: Viewing, end: Callable[[], None]) -> None:
        """Remove a search that has ended."""
        if self._searches.get(viewing) is end:
            del self._searches[viewing]
