"""Facts about the records inside a client's batch, found once for all rules of a topic.

Rules of this file:

1. The facts depend on the batch's bytes alone, so any thread may collect them before the topic's
   rules are applied, where the batch is appended.
2. The loop inspects a batch only while that takes well under a millisecond: :func:`inspect_on_loop`
   gives up beyond its limits. An :class:`Inspection` has no limit but ``DECOMPRESSED_BYTES_MAX``
   and proceeds in steps of one piece each, so that its caller decides how long it keeps the
   interpreter.
3. A piece that comes out of a decompressor is inspected and dropped: a batch is never expanded as a
   whole. If the topic has a codec of its own (``compression.type``), an :class:`Inspection` also
   passes the pieces to an encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol import compression as codecs
from barnabas.protocol.compression import CompressionError, ExpandsTooFar
from barnabas.protocol.record_scan import RecordScan
from barnabas.protocol.records import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER_BYTES,
    BatchHeader,
    InvalidBatch,
    read_header,
)
from barnabas.storage.batches.batch_encoding import Allowance, BatchEncoder, Encoding
from barnabas.storage.files.file_system import Buffer

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Maximum size to which a batch may expand wherever its records are needed."""

HERE_RECORDS: Final = 4096
HERE_COMPRESSED_BYTES: Final = 32 * 1024
HERE_EXPANDED_BYTES: Final = 256 * 1024
HERE_BYTES: Final = 2 * 1024 * 1024
"""Limits of an inspection on the loop: number of records; bytes of a compressed batch, before and
after it is expanded; bytes of an uncompressed batch, whose values are skipped."""


class TooMuchToLookHere(Exception):
    """Looking into a batch would hold the loop: it is for an :class:`Inspection`."""


class Contents(NamedTuple):
    """Facts about the records of a batch.

    ``fault`` is the reason why the records are inconsistent, or "" if they are consistent.
    ``keyless`` is the number of records without a key. ``oldest_ms`` is their smallest timestamp
    except -1 (2^63-1 if there is none), ``newest_ms`` the largest (-1 if there is none).
    """

    fault: str
    keyless: int
    oldest_ms: int
    newest_ms: int
    expanded_bytes: int
    encoded: Buffer | None = None
    """The batch in the topic's codec, or None if it is stored unchanged."""
    too_large: str = ""
    """Description of the limit that ``encoded`` would exceed, or ""."""


def inspect_on_loop(header: BatchHeader, batch: Buffer) -> Contents:
    """Return the contents of a batch at once; raises :class:`TooMuchToLookHere`."""
    codec = header.attributes & COMPRESSION_MASK
    if header.record_count > HERE_RECORDS:
        raise TooMuchToLookHere
    if len(batch) > (HERE_COMPRESSED_BYTES if codec else HERE_BYTES):
        raise TooMuchToLookHere
    size = 0
    scan = RecordScan(header)
    try:
        if codec:
            body = memoryview(batch)[HEADER_BYTES:]
            codecs.refuse_unreadable(codec, body)
            for piece in codecs.expand(codec, body, HERE_EXPANDED_BYTES):
                size += len(piece)
                scan.feed(piece)
        else:
            size = len(batch) - HEADER_BYTES
            scan.feed(batch if isinstance(batch, bytes) else bytes(batch), HEADER_BYTES)
        scan.finish()
    except InvalidBatch as invalid:
        return _faulty(str(invalid))
    except ExpandsTooFar as too_far:
        raise TooMuchToLookHere from too_far
    except CompressionError as error:
        return _faulty(str(error))
    return Contents("", scan.keyless, scan.oldest_ms, scan.newest_ms, size)


class Inspection:
    """Examines a batch of any size, piece by piece, and may change its codec."""

    def __init__(
        self,
        batch: Buffer,
        encoding: Encoding | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        """``batch`` has at least a header, and the length that the header has.

        ``encoding`` is the codec to store the records in, or None to keep theirs; ``allowance`` is
        that of the request.
        """
        self._batch = batch
        header = self._header = read_header(batch)
        self._scan = RecordScan(header)
        self.encoding = encoding
        self._allowance = allowance
        self._encoder: BatchEncoder | None = None
        self._pieces: Iterator[bytes] | None = None
        self._expanded_bytes = 0

    def step(self) -> Contents | None:
        """Inspect one more piece; return the contents after the last one, None before."""
        try:
            if self._pieces is None:
                self._pieces = self._begin()
                return None
            piece = next(self._pieces, None)
            if piece is None:
                return self._finish()
            self._expanded_bytes += len(piece)
            self._scan.feed(piece)
            if self._encoder is not None:
                self._encoder.feed(piece)
        except (InvalidBatch, CompressionError) as error:
            return _faulty(str(error))
        return None

    def _begin(self) -> Iterator[bytes]:
        header = self._header
        with memoryview(self._batch) as view:
            if crc32c(view[CRC_START:]) != header.crc:
                raise InvalidBatch("the checksum does not match")
        codec = header.attributes & COMPRESSION_MASK
        body = memoryview(self._batch)[HEADER_BYTES:]
        codecs.refuse_unreadable(codec, body)
        if self.encoding is not None:
            self._encoder = BatchEncoder(header, self.encoding, self._allowance or Allowance())
        return codecs.expand(codec, body, DECOMPRESSED_BYTES_MAX)

    def _finish(self) -> Contents:
        scan, size, encoder = self._scan, self._expanded_bytes, self._encoder
        scan.finish()
        encoded, too_large = None, ""
        if encoder is not None:
            encoded = encoder.finish(scan.newest_ms)
            too_large = encoder.too_large
        return Contents("", scan.keyless, scan.oldest_ms, scan.newest_ms, size, encoded, too_large)


def _faulty(reason: str) -> Contents:
    return Contents(reason, 0, 0, 0, 0)
