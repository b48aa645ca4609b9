"""Rules that a client's batch must meet to enter a log: those of the format and of the topic.

Rules of this file:

1. The records of a batch are inspected if nothing else would inspect them before they are read.
   That is so for compressed records, for a batch of few records, and for a rule of the topic that
   needs them (keys on a compacted topic, the age of each record). For other batches the topic
   decides (``LogConfig.validates_records``): in a large batch of small records it costs as much as
   a fifth of the whole Produce (measured).
2. A thread must inspect a batch in advance if that takes longer than the loop may be blocked:
   ``check`` raises TooMuchToLookHere, and takes the thread's result as ``contents``. The same holds
   for a batch in another codec than the topic's (``compression.type``): ``check`` gets the batch as
   the thread has encoded it.
3. The broker computes a header's largest timestamp and timestamp type (docs/batch-header.md), since
   retention and look-ups by time use them: ``check`` returns a corrected header.
4. Producers' sequences and epochs are not judged here (``storage/log/producers.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.protocol.record_scan import RecordScan
from barnabas.protocol.records import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    check_batch,
    check_header,
    corrected,
    read_header,
)
from barnabas.storage.batches.batch_contents import Contents, TooMuchToLookHere, inspect_on_loop
from barnabas.storage.batches.batch_encoding import Encoding
from barnabas.storage.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    RecordTooLarge,
    Rejected,
)
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.log.config import LOG_APPEND_TIME, LONG_MAX, LogConfig
from barnabas.storage.record_rule import RecordRule

FEW_RECORDS: Final = 16
"""Number of records up to which every batch is inspected: it costs next to nothing."""


class BatchRules:
    """The rules of one partition as its topic is configured now."""

    __slots__ = (
        "_config",
        "_log_name",
        "_looks_always",
        "_now_ms",
        "_plausible_until_ms",
        "_stamps",
        "encoding",
    )

    def __init__(self, log_name: str, config: LogConfig, now_ms: Callable[[], int]) -> None:
        """``log_name`` is for messages."""
        self._log_name = log_name
        self._now_ms = now_ms
        self._config = config
        self._stamps = config.timestamp_type == LOG_APPEND_TIME
        self._looks_always = (
            config.is_compacted
            or config.validates_records
            or (not self._stamps and config.timestamp_before_max_ms != LONG_MAX)
        )
        self.encoding = config.encoding
        """The codec of all stored batches, or None if each keeps its own."""
        if self.encoding is not None and self.encoding.codec:
            self._looks_always = True  # Uncompressed batches are compressed.
        self._plausible_until_ms = -1

    def check(self, batch: Buffer, contents: Contents | None = None) -> BatchHeader:
        """Return the header of a valid batch; raises a ``Rejected`` otherwise.

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
        except InvalidBatch as invalid:
            raise InvalidRecord(str(invalid)) from invalid
        newest_ms = header[8]
        if contents is None:
            if self._must_look(header):
                contents = self._contents_here(header, batch)
            elif header[12] <= FEW_RECORDS:
                newest_ms = self._newest_of_few(header, batch)
        if contents is not None:
            if contents.fault:
                raise InvalidRecord(contents.fault)
            if contents.too_large:
                raise RecordTooLarge(f"{self._log_name}: {contents.too_large}")
            newest_ms = contents.newest_ms
        if self._stamps:
            pass  # The log stamps the batch where it places it.
        elif newest_ms != header[8] or header[5] & TIMESTAMP_TYPE_BIT:
            header = corrected(header, newest_ms)
        if newest_ms > self._plausible_until_ms:
            self._check_newest(newest_ms)
        if contents is not None and self._looks_always:
            self._check_contents(contents)
        return header

    def inspect(self, batch: Buffer, *, always: bool = False) -> Contents | None:
        """Return the contents for ``check``, or None if they cost nothing or it will refuse.

        ``always``: the client's software is not a known writer. Raises TooMuchToLookHere.
        """
        header = self._plausible_header(batch)
        if header is not None and (always or self._must_look(header)):
            return self._contents_here(header, batch)
        return None

    def encoding_of(self, batch: Buffer) -> Encoding | None:
        """Return the codec that a batch must get before ``check``, or None if it has the right one.

        None also for a batch that ``check`` refuses by its header.
        """
        encoding = self.encoding
        if encoding is None:
            return None
        header = self._plausible_header(batch)
        if header is None or header.compression == encoding.codec:
            return None
        return encoding

    def _plausible_header(self, batch: Buffer) -> BatchHeader | None:
        """Return a batch's header, or None if ``check`` refuses it without a look at its
        records.
        """
        size = len(batch)
        if not HEADER_BYTES <= size <= self._config.max_message_bytes:
            return None
        header = read_header(batch)
        try:
            check_header(header, size)
        except (CorruptBatch, InvalidBatch):
            return None
        return header

    def _contents_here(self, header: BatchHeader, batch: Buffer) -> Contents:
        encoding = self.encoding
        if encoding is not None and encoding.codec != header.attributes & COMPRESSION_MASK:
            raise TooMuchToLookHere
        return inspect_on_loop(header, batch)

    def _must_look(self, header: BatchHeader) -> bool:
        return (
            self._looks_always
            or bool(header[5] & COMPRESSION_MASK)
            # The first record alone is newer than that.
            or (header[8] < header[7] and not self._stamps)
        )

    def _newest_of_few(self, header: BatchHeader, batch: Buffer) -> int:
        """Verify a batch of few records; return their largest timestamp."""
        try:
            scan = RecordScan(header)
            scan.feed(batch if isinstance(batch, bytes) else bytes(batch), HEADER_BYTES)
            scan.finish()
        except InvalidBatch as invalid:
            raise InvalidRecord(str(invalid)) from invalid
        return scan.newest_ms

    def _check_newest(self, newest_ms: int) -> None:
        config = self._config
        if self._stamps:
            return
        # Time only increases, so a plausible timestamp needs no clock later.
        now_ms = self._now_ms()
        self._plausible_until_ms = now_ms + config.timestamp_after_max_ms
        if newest_ms > self._plausible_until_ms:
            raise self._refusal(
                InvalidTimestamp(
                    f"timestamp {newest_ms} is more than "
                    f"{config.timestamp_after_max_ms} ms after the broker's clock"
                ),
                now_ms,
            )

    def _check_contents(self, contents: Contents) -> None:
        """Apply the topic's rules for each record."""
        config = self._config
        bound_ms = config.timestamp_before_max_ms
        now_ms = self._now_ms()
        if not self._stamps and bound_ms != LONG_MAX and contents.oldest_ms < now_ms - bound_ms:
            raise self._refusal(
                InvalidTimestamp(
                    f"timestamp {contents.oldest_ms} is more than "
                    f"{bound_ms} ms before the broker's clock"
                ),
                now_ms,
            )
        if config.is_compacted and contents.keyless:
            refused = InvalidRecord("a compacted topic takes no record without a key")
            refused.keyless = contents.keyless
            raise self._refusal(refused, now_ms)

    def _refusal(self, refused: Rejected, now_ms: int) -> Rejected:
        """Return a refusal with the rule that names the bad records."""
        config = self._config
        refused.rule = RecordRule(
            self._log_name,
            config.is_compacted,
            now_ms - config.timestamp_before_max_ms,
            now_ms + config.timestamp_after_max_ms,
            self._stamps,
        )
        return refused
