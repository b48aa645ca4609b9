"""The four compression codecs of record batches, each imported when it is first needed.

Rules of this file:

1. What a batch expands to is bounded by the caller: a decompressor never produces more than
   ``limit_bytes`` plus one internal buffer, so a small batch cannot fill the memory.
2. Anything a codec library raises leaves as :class:`CompressionError`.
3. Snappy on the wire is either a bare block or blocks inside the framing of the Java library
   ("xerial"); both occur, the first bytes tell them apart.
"""

import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Final, Protocol, cast

Buffer = bytes | bytearray | memoryview

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
ZSTD = 4

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""Kafka's names of the codecs, by the number in a batch's attributes."""

_GZIP_WINDOW = 31  # zlib: 15 bits of window, plus 16 for the gzip header and trailer
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")  # magic, version, oldest version that can read it
_XERIAL_BLOCK_BYTES = 32 * 1024
_PIECE_BYTES: Final = 64 * 1024
_LIKELY_RATIO: Final = 8
_BLOCK_LENGTH = struct.Struct(">i")


class CompressionError(Exception):
    """The data is not what the codec says, or expands beyond the limit."""


def compress(codec: int, data: Buffer) -> bytes:
    """Compress ``data`` the way Kafka's own clients do."""
    if codec == NONE:
        return bytes(data)
    return _CODECS[codec][0](data)


def decompress(codec: int, data: Buffer, limit_bytes: int) -> Buffer:
    """Expand ``data``; CompressionError if it is damaged or longer than ``limit_bytes``."""
    if codec == NONE:
        expanded: Buffer = data
    elif codec in _CODECS:
        expanded = _CODECS[codec][1](data, limit_bytes)
    else:
        raise CompressionError(f"unknown compression codec {codec}")
    if len(expanded) > limit_bytes:
        raise CompressionError(f"expands to more than {limit_bytes} bytes")
    return expanded


def _compress_gzip(data: Buffer) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_WINDOW)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: Buffer, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    room = limit_bytes + 1
    remaining: Buffer = data
    while len(remaining) and room > 0:  # a gzip stream may consist of several members
        decompressor = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            part = decompressor.decompress(remaining, room)
        except zlib.error as error:
            raise CompressionError(f"gzip: {error}") from error
        parts.append(part)
        room -= len(part)
        if room > 0 and not decompressor.eof:
            raise CompressionError("gzip: the data ends too early")
        remaining = decompressor.unused_data
    return b"".join(parts)


class _SnappyBlocks(Protocol):
    """The part of ``cramjam.snappy`` that knows bare blocks."""

    def compress_raw(self, data: Buffer) -> Buffer: ...
    def decompress_raw(self, data: Buffer) -> Buffer: ...
    def decompress_raw_len(self, data: Buffer) -> int: ...


@cache
def _snappy() -> _SnappyBlocks:
    import cramjam

    return cast("_SnappyBlocks", cramjam.snappy)


def _compress_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1)]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(_snappy().compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit_bytes: int) -> bytes:
    view = memoryview(data)
    if bytes(view[:8]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, limit_bytes)
    if len(view) < _XERIAL_HEADER.size:
        raise CompressionError("snappy: the framing ends inside its header")
    parts: list[bytes] = []
    expanded_bytes = 0
    position = _XERIAL_HEADER.size
    while position < len(view):
        if position + 4 > len(view):
            raise CompressionError("snappy: the framing ends inside a block length")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += 4
        if length < 0 or position + length > len(view):
            raise CompressionError(f"snappy: block of {length} bytes does not fit")
        block = _decompress_snappy_block(
            view[position : position + length], limit_bytes, expanded_bytes
        )
        parts.append(block)
        expanded_bytes += len(block)
        position += length
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, limit_bytes: int, expanded_bytes: int = 0) -> bytes:
    import cramjam

    codec = _snappy()
    try:
        # A block begins with its expanded length: no need to expand a bomb to know it.
        if expanded_bytes + codec.decompress_raw_len(block) > limit_bytes:
            raise CompressionError(f"expands to more than {limit_bytes} bytes")
        return bytes(codec.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from error


def _read_in_pieces(read: Callable[[int], bytes], given_bytes: int, limit_bytes: int) -> bytes:
    """Read what expands, one byte above the limit at most, in pieces of a likely size.

    The libraries set aside as much memory as they are asked for, so the limit is not what to ask.
    """
    size = max(_PIECE_BYTES, _LIKELY_RATIO * given_bytes)
    pieces: list[bytes] = []
    missing = limit_bytes + 1
    while missing and (piece := read(min(size, missing))):
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compress_lz4(data: Buffer) -> bytes:
    import lz4.frame

    # Kafka's Java clients refuse frames whose blocks refer to each other.
    return cast("bytes", lz4.frame.compress(data, block_linked=False))


def _decompress_lz4(data: Buffer, limit_bytes: int) -> bytes:
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()

    def read(size: int) -> bytes:
        nonlocal data
        if decompressor.eof:
            return b""
        piece = cast("bytes", decompressor.decompress(data, max_length=size))
        data = b""
        return piece

    try:
        expanded = _read_in_pieces(read, len(data), limit_bytes)
    except (RuntimeError, EOFError) as error:
        raise CompressionError(f"lz4: {error}") from error
    if len(expanded) <= limit_bytes and not decompressor.eof:
        raise CompressionError("lz4: the data ends too early")
    return expanded


def _compress_zstd(data: Buffer) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3).compress(data)


def _decompress_zstd(data: Buffer, limit_bytes: int) -> bytes:
    import zstandard

    # Streaming encoders (Java's) leave the expanded size out of the frame, so it is read as a
    # stream, never more than the limit. A frame that ends early yields what it has: the caller's
    # count of records finds that out.
    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    try:
        return _read_in_pieces(reader.read, len(data), limit_bytes)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: {error}") from error


_Compressor = Callable[[Buffer], bytes]
_Decompressor = Callable[[Buffer, int], bytes]

_CODECS: dict[int, tuple[_Compressor, _Decompressor]] = {
    GZIP: (_compress_gzip, _decompress_gzip),
    SNAPPY: (_compress_snappy, _decompress_snappy),
    LZ4: (_compress_lz4, _decompress_lz4),
    ZSTD: (_compress_zstd, _decompress_zstd),
}
