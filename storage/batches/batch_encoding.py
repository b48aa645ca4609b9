"""A client's batch with its records in the codec of the topic's ``compression.type``.

Rules of this file:

1. It is no work for the loop: an :class:`Inspection` feeds an encoder on a thread, piece by piece.
2. The output is limited twice: a batch by ``max.message.bytes``, and all batches of
   a request by what is left of one :class:`Allowance`.
3. The header is the client's, with the fields that Apache Kafka computes where it compresses a
   batch: the codec, the timestamp type, the largest timestamp, length and checksum. Records stay
   byte for byte, and so does the base timestamp that they count from.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol import compression as codecs
from barnabas.protocol.encoders import Encoder, encoder
from barnabas.protocol.records import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    seal_in_place,
)

REQUEST_BYTES_MAX: Final = 128 * 1024 * 1024
"""Limit of all batches of one request together, in their new codecs."""


class Encoding(NamedTuple):
    """The codec and level of a topic's stored batches, and how large one of them may be."""

    codec: int
    level: int
    limit_bytes: int

    @property
    def name(self) -> str:
        """Name of the codec, as in ``compression.type``."""
        return codecs.NAMES[self.codec] if self.codec else "uncompressed"


class Allowance:
    """Bytes that the batches of one request may still take."""

    __slots__ = ("left_bytes",)

    def __init__(self, left_bytes: int = REQUEST_BYTES_MAX) -> None:
        self.left_bytes = left_bytes


class BatchEncoder:
    """Feed it the expanded records of a batch, then ``finish``."""

    __slots__ = ("_allowance", "_encoder", "_encoding", "_header", "_output", "too_large")

    def __init__(self, header: BatchHeader, encoding: Encoding, allowance: Allowance) -> None:
        """``header`` is that of the client's batch."""
        self._header = header
        self._encoding = encoding
        self._allowance = allowance
        self._encoder: Encoder | None = encoder(encoding.codec, encoding.level)
        self._output = bytearray(HEADER_BYTES)
        self.too_large = ""
        """The limit that the output has met, in words; the rest of the input is dropped then."""

    def feed(self, piece: bytes) -> None:
        """Compress the next piece."""
        if self._encoder is not None:
            self._add(self._encoder.feed(piece))

    def finish(self, newest_ms: int) -> memoryview | None:
        """Return the whole batch, or None if it is too large. ``newest_ms`` goes into its
        header.
        """
        if self._encoder is not None:
            self._add(self._encoder.finish())
        if self.too_large:
            return None
        header = self._header
        attributes = header.attributes & ~(COMPRESSION_MASK | TIMESTAMP_TYPE_BIT)
        written = header._replace(
            attributes=attributes | self._encoding.codec, max_timestamp=newest_ms
        )
        seal_in_place(self._output, written)
        return memoryview(self._output)

    def _add(self, compressed: bytes) -> None:
        encoding, allowance = self._encoding, self._allowance
        size = len(self._output) + len(compressed)
        if size > encoding.limit_bytes:
            self.too_large = (
                f"with compression.type = {encoding.name} the batch is larger than "
                f"max.message.bytes = {encoding.limit_bytes}"
            )
        elif len(compressed) > allowance.left_bytes:
            self.too_large = (
                f"with compression.type = {encoding.name} the batches of the request are larger "
                f"than {REQUEST_BYTES_MAX} bytes; send fewer in one request"
            )
        else:
            allowance.left_bytes -= len(compressed)
            self._output += compressed
            return
        allowance.left_bytes += len(self._output) - HEADER_BYTES
        self._encoder = None
        self._output = bytearray()
