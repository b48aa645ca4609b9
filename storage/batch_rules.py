"""What a client's batch must be to enter a log: the rules of the format and of the topic.

Rules of this file:

1. Records themselves are looked at only where a rule needs them (keys on a compacted topic, the age
   of each record): they may have to be decompressed for it, within a bound.
2. Producers' sequences and epochs are not judged here (``storage/producers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from protocol.records import (
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    Record,
    check_batch,
    iterate_records,
)
from protocol.records import InvalidTimestamp as InvalidTimestampType
from storage.config import LOG_APPEND_TIME, LONG_MAX, LogConfig
from storage.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, RecordTooLarge
from storage.io import Buffer

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Bound for decompressing one batch where a rule needs its records."""


class BatchRules:
    """The rules of one partition as its topic is configured now."""

    __slots__ = ("_config", "_log_name", "_looks_closer", "_now_ms", "_plausible_until_ms")

    def __init__(self, log_name: str, config: LogConfig, now_ms: Callable[[], int]) -> None:
        """``log_name`` is for messages."""
        self._log_name = log_name
        self._now_ms = now_ms
        self._config = config
        self._looks_closer = config.is_compacted or (
            config.timestamp_type != LOG_APPEND_TIME and config.timestamp_before_max_ms != LONG_MAX
        )
        self._plausible_until_ms = -1

    def check(self, batch: Buffer) -> BatchHeader:
        """Return the header of a batch that may enter; raises a ``Refused`` otherwise."""
        config = self._config
        if len(batch) > config.max_message_bytes:
            raise RecordTooLarge(
                f"{self._log_name}: the batch of {len(batch)} bytes is larger than "
                f"max.message.bytes = {config.max_message_bytes}"
            )
        try:
            header = check_batch(batch)
        except CorruptBatch as corrupt:
            raise CorruptMessage(str(corrupt)) from corrupt
        except InvalidTimestampType as unknown_type:
            raise InvalidTimestamp(str(unknown_type)) from unknown_type
        except InvalidBatch as invalid:
            raise InvalidRecord(str(invalid)) from invalid
        if self._looks_closer or header.max_timestamp > self._plausible_until_ms:
            self._look_closer(batch, header)
        return header

    def _look_closer(self, batch: Buffer, header: BatchHeader) -> None:
        """Apply the rules of the topic that most batches meet without being looked at."""
        if self._config.timestamp_type != LOG_APPEND_TIME:
            self._check_timestamps(batch, header)
        if self._config.is_compacted:
            self._check_keys(batch)

    def _check_timestamps(self, batch: Buffer, header: BatchHeader) -> None:
        config = self._config
        now_ms = self._now_ms()
        # Time goes on, so what is plausible now needs no look at the clock later.
        self._plausible_until_ms = now_ms + config.timestamp_after_max_ms
        if header.max_timestamp > self._plausible_until_ms:
            raise InvalidTimestamp(
                f"timestamp {header.max_timestamp} is more than "
                f"{config.timestamp_after_max_ms} ms after the broker's clock"
            )
        if config.timestamp_before_max_ms == LONG_MAX:
            return
        oldest = now_ms - config.timestamp_before_max_ms
        for record in self._records(batch):
            if 0 <= record.timestamp < oldest:
                raise InvalidTimestamp(
                    f"timestamp {record.timestamp} is more than "
                    f"{config.timestamp_before_max_ms} ms before the broker's clock"
                )

    def _check_keys(self, batch: Buffer) -> None:
        for record in self._records(batch):
            if record.key is None:
                raise InvalidRecord("a compacted topic takes no record without a key")

    def _records(self, batch: Buffer) -> Iterator[Record]:
        try:
            yield from iterate_records(batch, limit_bytes=DECOMPRESSED_BYTES_MAX)
        except InvalidBatch as invalid:
            raise InvalidRecord(str(invalid)) from invalid
        except CorruptBatch as corrupt:
            raise CorruptMessage(str(corrupt)) from corrupt
