"""How many read records at a time: one search of each viewer, and four in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.broker.console.records.pieces import RecordReaders
from barnabas.broker.console.spark_ledger import SparkLedger
from barnabas.protocol.errors import ErrorCode, KafkaError

READERS_MOST: Final = 4
"""Requests at a time that read records; one more is refused."""

Viewing = tuple[str, str, str]
"""User, address, and what the page calls itself."""


class Places:
    """The places of one broker's readers of records."""

    def __init__(self) -> None:
        self.readers = RecordReaders()
        self.ledger = SparkLedger(self.readers)
        """Read in small pieces by one at a time, so it takes no place."""
        self._taken = 0
        self._searches: dict[Viewing, Callable[[], None]] = {}

    def __enter__(self) -> RecordReaders:
        """Take a place; raises KafkaError where none is left."""
        if self._taken >= READERS_MOST:
            words = f"{READERS_MOST} others read records: try again in a few seconds"
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words)
        self._taken += 1
        return self.readers

    def __exit__(self, *_: object) -> None:
        """Give the place back."""
        self._taken -= 1

    def replace_search(self, viewing: Viewing, end: Callable[[], None]) -> None:
        """End the search that a viewer has under way; ``end`` ends the new one."""
        before = self._searches.pop(viewing, None)
        if before is not None:
            before()
        self._searches[viewing] = end

    def forget_search(self, viewing: Viewing, end: Callable[[], None]) -> None:
        """Take note that a search is over."""
        if self._searches.get(viewing) is end:
            del self._searches[viewing]
