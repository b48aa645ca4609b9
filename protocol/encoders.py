"""Compression piece by piece, with the levels that Kafka's ``compression.*.level`` choose.

Rules of this file:

1. An encoder keeps the state of its library, and the input of one incomplete block. Zstandard's
   state is the largest: about 90 MB at its highest level, limited by ``_ZSTD_WINDOW_LOG_MAX``. The
   caller limits the number of encoders at a time.
2. Kafka's Java clients can read the output: independent blocks of LZ4, Snappy in the framing of the
   Java library.

All four libraries release the interpreter while they compress a piece.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

from barnabas.protocol.compression import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    SNAPPY_BLOCK_BYTES,
    ZSTD,
    snappy_blocks,
    snappy_header,
)

LZ4_FAST_LEVEL: Final = 9
"""Kafka's default: level 9 is LZ4's fast compressor there, all others are its high compression."""
_LZ4_HIGH_LEVELS: Final = (3, 12)
"""The library's levels of high compression; Kafka takes 1 to 17, whose ends mean the same."""
_ZSTD_WINDOW_LOG_MAX: Final = 22
"""4 MiB: a batch is seldom larger, and the tables of the high levels grow along with it."""
_GZIP_WINDOW: Final = 31  # zlib: 15 bits of window, plus 16 for the gzip header and trailer


class Encoder(Protocol):
    """A compressor of one batch's records."""

    def feed(self, piece: bytes) -> bytes:
        """Compress the next piece; return the available output."""

    def finish(self) -> bytes:
        """Return the rest of the output."""


def encoder(codec: int, level: int) -> Encoder:
    """Return a new encoder; ``level`` is in Kafka's range for ``codec``, or unused."""
    if codec == GZIP:
        return _Gzip(level)
    if codec == SNAPPY:
        return _Snappy()
    if codec == LZ4:
        return _Lz4(level)
    if codec == ZSTD:
        return _Zstd(level)
    assert codec == NONE, codec
    return _Plain()


class _Plain:
    def feed(self, piece: bytes) -> bytes:
        return piece

    def finish(self) -> bytes:
        return b""


class _Gzip:
    def __init__(self, level: int) -> None:
        self._compressor = zlib.compressobj(level, wbits=_GZIP_WINDOW)

    def feed(self, piece: bytes) -> bytes:
        return self._compressor.compress(piece)

    def finish(self) -> bytes:
        return self._compressor.flush()


class _Snappy:
    def __init__(self) -> None:
        self._kept = b""
        self._head = snappy_header()

    def feed(self, piece: bytes) -> bytes:
        data = self._kept + piece
        whole_bytes = len(data) - len(data) % SNAPPY_BLOCK_BYTES
        self._kept = data[whole_bytes:]
        return self._framed(data[:whole_bytes])

    def finish(self) -> bytes:
        return self._framed(self._kept)

    def _framed(self, data: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + snappy_blocks(data)


class _Lz4:
    def __init__(self, level: int) -> None:
        import lz4.frame

        smallest, largest = _LZ4_HIGH_LEVELS
        chosen = 0 if level == LZ4_FAST_LEVEL else min(max(level, smallest), largest)
        # Kafka's Java clients refuse frames whose blocks refer to each other.
        self._compressor = lz4.frame.LZ4FrameCompressor(
            block_linked=False, compression_level=chosen
        )
        self._head: bytes = self._compressor.begin()

    def feed(self, piece: bytes) -> bytes:
        head, self._head = self._head, b""
        compressed: bytes = self._compressor.compress(piece)
        return head + compressed

    def finish(self) -> bytes:
        head, self._head = self._head, b""
        rest: bytes = self._compressor.flush()
        return head + rest


class _Zstd:
    def __init__(self, level: int) -> None:
        import zstandard

        parameters = zstandard.ZstdCompressionParameters.from_level(level)
        if parameters.window_log > _ZSTD_WINDOW_LOG_MAX:
            parameters = zstandard.ZstdCompressionParameters.from_level(
                level,
                window_log=_ZSTD_WINDOW_LOG_MAX,
                hash_log=min(parameters.hash_log, _ZSTD_WINDOW_LOG_MAX),
                chain_log=min(parameters.chain_log, _ZSTD_WINDOW_LOG_MAX + 1),
            )
        compressor = zstandard.ZstdCompressor(compression_params=parameters)
        self._compressor = compressor.compressobj()

    def feed(self, piece: bytes) -> bytes:
        return self._compressor.compress(piece)

    def finish(self) -> bytes:
        return self._compressor.flush()
