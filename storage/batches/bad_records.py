"""The records of a refused batch that break a rule of its topic, each with the reason (KIP-467).

Rules of this file:

1. It is no work for the loop: :class:`BadRecords` goes in steps of a few KB, on a thread.
2. Nothing here decides whether a batch is refused. A scan has done that before, and only a refused
   batch is walked through again, ``WALKED_RECORDS_MAX`` of its records at most.
3. Order and wording are those of Apache Kafka's LogValidator: producers show them to their users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.protocol import compression as codecs
from barnabas.protocol.compression import CompressionError
from barnabas.protocol.record_decoding import read_varint
from barnabas.protocol.records import HEADER_BYTES, InvalidBatch, read_header
from barnabas.storage.batches.batch_contents import DECOMPRESSED_BYTES_MAX
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.record_rule import RecordRule

LISTED_RECORDS_MAX: Final = 1000
"""Limit of the records that the response to one request names. Apache Kafka has none."""
WALKED_RECORDS_MAX: Final = 200_000
"""Limit of the walk through one batch; records after it are not named."""
STEP_BYTES: Final = 8 * 1024
_MAX_VARLONG_BYTES: Final = 10


class BadRecord(NamedTuple):
    """A record by its position in the batch, and why it is bad."""

    batch_index: int
    reason: str
    is_out_of_time: bool
    """Whether the reason is its timestamp."""


class NamingRoom:
    """Number of bad records that the response to a request may still name."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = LISTED_RECORDS_MAX


class BadRecords:
    """Examines a batch of any size, a few KB in each step."""

    encoding = None
    """An inspector asks its tasks: this one changes no codec."""

    def __init__(self, batch: Buffer, rule: RecordRule, room: NamingRoom) -> None:
        """``batch`` is at least a header long, and of the length that this says."""
        self._header = read_header(batch)
        self._rule = rule
        self._room = room
        self._body = memoryview(batch)[HEADER_BYTES:]
        self._pieces: Iterator[bytes] | None = None
        self._index = 0
        self._kept = b""
        self._skip_bytes = 0
        self._found: list[BadRecord] = []

    def step(self) -> list[BadRecord] | None:
        """Examine a few KB, and return the bad records found so far, or None before the end.

        The examination ends at a limit. In a batch with wrong lengths no record is named.
        """
        if self._pieces is None:
            self._pieces = self._small_pieces()
        try:
            piece = next(self._pieces, None)
            if piece is None:
                return self._found
            self._walk(piece)
        except (CompressionError, InvalidBatch):
            return []
        is_over = not self._room.left or self._index >= WALKED_RECORDS_MAX
        return self._found if is_over else None

    def _small_pieces(self) -> Iterator[bytes]:
        codec = self._header.compression
        for piece in codecs.expand(codec, self._body, DECOMPRESSED_BYTES_MAX):
            for start in range(0, len(piece), STEP_BYTES):
                yield piece[start : start + STEP_BYTES]

    def _walk(self, piece: bytes) -> None:
        """Read the heads of the records that begin in ``piece``."""
        position = min(self._skip_bytes, len(piece))
        self._skip_bytes -= position
        if self._skip_bytes:
            return
        data = self._kept + piece[position:]
        self._kept = b""
        position = 0
        while position < len(data) and self._index < self._header.record_count:
            begun = position
            try:
                length, position = read_varint(data, position)
                end = position + length
                delta, position = read_varint(data, position + 1, _MAX_VARLONG_BYTES)
                _, position = read_varint(data, position)
                key_length, _ = read_varint(data, position)
            except IndexError:
                self._kept = data[begun:]
                return
            if length < 0:
                raise InvalidBatch("a record of negative length")
            self._judge(self._header.base_timestamp + delta, has_key=key_length >= 0)
            position = end
        self._skip_bytes = max(position - len(data), 0)

    def _judge(self, timestamp_ms: int, *, has_key: bool) -> None:
        index, rule = self._index, self._rule
        self._index += 1
        lacks_key = rule.lacks_key(has_key=has_key)
        if not self._room.left or not (lacks_key or rule.is_out_of_time(timestamp_ms)):
            return
        self._room.left -= 1
        if lacks_key:
            topic = f"topic partition {rule.log_name}"
            reason = f"Compacted topic cannot accept message without key in {topic}"
        else:
            reason = (
                f"Timestamp {timestamp_ms} of message with offset {index} is out of range. The "
                f"timestamp should be within [{rule.earliest_ms}, {rule.latest_ms}]"
            )
        self._found.append(BadRecord(index, reason, not lacks_key))
