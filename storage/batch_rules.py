"""What a client's batch must be to enter a log: the rules of the format and of the topic.

Rules of this file:

1. The records of a batch are looked at where nothing else would before they are read: compressed
   ones, a few in a batch, and where a rule of the topic needs them (keys on a compacted topic, the
   age of each record). For the rest it is up to the topic (``LogConfig.validates_records``): in a
   large batch of small records it costs as much as a fifth of the whole Produce (measured).
2. What that would take longer for than the loop may be held, a thread has to have looked into
   before: ``check`` raises TooMuchToLookHere, and takes what was found as ``contents``.
3. Producers' sequences and epochs are not judged here (``storage/producers.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.protocol.record_scan import RecordScan
from barnabas.protocol.records import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    check_batch,
    check_header,
    read_header,
)
from barnabas.protocol.records import InvalidTimestamp as InvalidTimestampType
from barnabas.storage.batch_contents import Contents, look_here
from barnabas.storage.config import LOG_APPEND_TIME, LONG_MAX, LogConfig
from barnabas.storage.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, RecordTooLarge
from barnabas.storage.file_system import Buffer

FEW_RECORDS: Final = 16
"""A batch of so many records is looked into wherever it goes: it costs next to nothing."""


class BatchRules:
    """The rules of one partition as its topic is configured now."""

    __slots__ = ("_config", "_log_name", "_looks_always", "_now_ms", "_plausible_until_ms")

    def __init__(self, log_name: str, config: LogConfig, now_ms: Callable[[], int]) -> None:
        """``log_name`` is for messages."""
        self._log_name = log_name
        self._now_ms = now_ms
        self._config = config
        self._looks_always = (
            config.is_compacted
            or config.validates_records
            or (
                config.timestamp_type != LOG_APPEND_TIME
                and config.timestamp_before_max_ms != LONG_MAX
            )
        )
        self._plausible_until_ms = -1

    def check(self, batch: Buffer, contents: Contents | None = None) -> BatchHeader:
        """Return the header of a batch that may enter; raises a ``Rejected`` otherwise.

        Raises TooMuchToLookHere where ``contents`` must be given, and are not.
        """
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
        if contents is None:
            if self._looks_always or header[5] & COMPRESSION_MASK:
                contents = look_here(header, batch)
            elif header[12] <= FEW_RECORDS:
                self._check_few(header, batch)
        if contents is not None and contents.fault:
            raise InvalidRecord(contents.fault)
        if header.max_timestamp > self._plausible_until_ms:
            self._check_newest(header)
        if contents is not None and self._looks_always:
            self._check_contents(contents)
        return header

    def look_into(self, batch: Buffer) -> Contents | None:
        """What ``check`` will ask about a batch; None if that costs nothing, or it is refused.

        Raises TooMuchToLookHere.
        """
        size = len(batch)
        if not HEADER_BYTES <= size <= self._config.max_message_bytes:
            return None
        header = read_header(batch)
        try:
            check_header(header, size)
        except (CorruptBatch, InvalidBatch):
            return None
        if self._looks_always or header.attributes & COMPRESSION_MASK:
            return look_here(header, batch)
        return None

    def _check_few(self, header: BatchHeader, batch: Buffer) -> None:
        """See that the few records of a batch add up: nothing else is asked about them."""
        try:
            scan = RecordScan(header)
            scan.feed(batch if isinstance(batch, bytes) else bytes(batch), HEADER_BYTES)
            scan.finish()
        except InvalidBatch as invalid:
            raise InvalidRecord(str(invalid)) from invalid

    def _check_newest(self, header: BatchHeader) -> None:
        config = self._config
        if config.timestamp_type == LOG_APPEND_TIME:
            return
        # Time goes on, so what is plausible now needs no look at the clock later.
        self._plausible_until_ms = self._now_ms() + config.timestamp_after_max_ms
        if header.max_timestamp > self._plausible_until_ms:
            raise InvalidTimestamp(
                f"timestamp {header.max_timestamp} is more than "
                f"{config.timestamp_after_max_ms} ms after the broker's clock"
            )

    def _check_contents(self, contents: Contents) -> None:
        """Apply the rules of the topic that ask about every record."""
        config = self._config
        bound_ms = config.timestamp_before_max_ms
        if (
            config.timestamp_type != LOG_APPEND_TIME
            and bound_ms != LONG_MAX
            and contents.oldest_ms < self._now_ms() - bound_ms
        ):
            raise InvalidTimestamp(
                f"timestamp {contents.oldest_ms} is more than "
                f"{bound_ms} ms before the broker's clock"
            )
        if config.is_compacted and contents.keyless:
            raise InvalidRecord("a compacted topic takes no record without a key")
