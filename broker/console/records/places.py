"""How many read records at a time."""

from __future__ import annotations

from typing import Final

from barnabas.broker.console.records.pieces import RecordReaders
from barnabas.protocol.errors import ErrorCode, KafkaError

READERS_MOST: Final = 4
"""Requests at a time that read records; one more is refused."""


class Places:
    """The places of one broker's readers of records."""

    def __init__(self) -> None:
        self.readers = RecordReaders()
        self._taken = 0

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
