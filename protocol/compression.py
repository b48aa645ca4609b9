"""The four compression codecs of record batches, each imported when it is first needed.

Rules of this file:

1. What a batch expands to is bounded by the caller: a decompressor never produces more than
   ``limit_bytes`` plus one piece, so a small batch cannot fill the memory.
2. :func:`expand` yields pieces of ``PIECE_BYTES`` at most, and no other part of the output is in
   memory then. There are two exceptions: a block of Snappy is expanded whole, and Zstandard has a
   window of ``ZSTD_WINDOW_BYTES_MAX`` at most. ``expand`` yields, if only an empty piece, after
   every few microseconds of work that is done in Python.
3. Anything a codec library raises leaves as :class:`CompressionError`.
4. Snappy on the wire is either a bare block or blocks inside the framing of the Java library
   ("xerial"); both occur, and the first bytes distinguish them.

All four libraries release the interpreter while they expand a piece (measured).
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, Protocol, cast

from barnabas.protocol.zstd_frames import ends_with_a_frame

Buffer = bytes | bytearray | memoryview

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Kafka's names of the codecs, by the number in a batch's attributes."""

_GZIP_WINDOW: Final = 31  # zlib: 15 bits of window, plus 16 for the gzip header and trailer
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = struct.Struct(">8sii")  # magic, version, oldest version that can read it
SNAPPY_BLOCK_BYTES: Final = 32 * 1024
"""Size of the blocks that the Java library writes."""
PIECE_BYTES: Final = 64 * 1024
"""The largest piece that :func:`expand` yields."""
ZSTD_WINDOW_BYTES_MAX: Final = 128 * 1024 * 1024
"""Window of Apache Kafka's decoder, and of its producers at their highest level."""
_GIVEN_BYTES: Final = 16 * 1024
"""Size of the pieces that the libraries get: they copy the unread rest of a piece."""
_SNAPPY_RATIO_MAX: Final = 22
"""Maximum expansion of a block of Snappy: three bytes become at most 64."""
_BLOCK_LENGTH: Final = struct.Struct(">i")
_LZ4_FLAGS_AT: Final = 4
_LZ4_INDEPENDENT_BLOCKS: Final = 0x20


class CompressionError(Exception):
    """The data does not fit its codec, or expands beyond the limit."""


class ExpandsTooFar(CompressionError):
    """The data may be all right, but not within the limit."""


def refuse_unreadable(codec: int, data: Buffer) -> None:
    """Raise CompressionError for data that Kafka's Java consumers cannot read.

    They would stop at such a batch forever. Damaged data is left to `expand`.
    """
    if codec == LZ4:
        if len(data) > _LZ4_FLAGS_AT and not data[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT_BLOCKS:
            raise CompressionError("lz4: the frame has linked blocks, Kafka wants independent ones")
    elif codec == ZSTD and not ends_with_a_frame(bytes(data)):
        raise CompressionError("zstd: the data ends within a frame")


def compress(codec: int, data: Buffer) -> bytes:
    """Compress ``data`` the way Kafka's own clients do."""
    if codec == NONE:
        return bytes(data)
    return _CODECS[codec][0](data)


def decompress(codec: int, data: Buffer, limit_bytes: int) -> Buffer:
    """Expand ``data``; raises CompressionError if it is damaged or above ``limit_bytes``."""
    if codec == NONE:
        if len(data) > limit_bytes:
            raise _too_long(limit_bytes)
        return data
    pieces = list(expand(codec, data, limit_bytes))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def expand(codec: int, data: Buffer, limit_bytes: int) -> Iterator[bytes]:
    """Expand ``data`` in pieces; raises CompressionError if it is damaged or too long."""
    if codec == NONE:
        pieces = _cut(data)
    elif codec in _CODECS:
        pieces = _CODECS[codec][1](data, limit_bytes)
    else:
        raise CompressionError(f"unknown compression codec {codec}")
    expanded_bytes = 0
    for piece in pieces:
        expanded_bytes += len(piece)
        if expanded_bytes > limit_bytes:
            raise _too_long(limit_bytes)
        yield piece


def _too_long(limit_bytes: int) -> ExpandsTooFar:
    return ExpandsTooFar(f"expands to more than {limit_bytes} bytes")


def _cut(data: Buffer) -> Iterator[bytes]:
    view = memoryview(data)
    for start in range(0, len(view), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])


def _compress_gzip(data: Buffer) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_WINDOW)
    return compressor.compress(data) + compressor.flush()


def _expand_gzip(data: Buffer, limit_bytes: int) -> Iterator[bytes]:  # noqa: ARG001
    """Yield the content of a gzip stream, which may have several members, in pieces."""
    view = memoryview(data)
    decompressor = zlib.decompressobj(wbits=_GZIP_WINDOW)
    for start in range(0, len(view), _GIVEN_BYTES):
        given: Buffer = view[start : start + _GIVEN_BYTES]
        while len(given):
            if decompressor.eof:
                decompressor = zlib.decompressobj(wbits=_GZIP_WINDOW)
            piece = _inflate(decompressor, given)
            yield piece
            while len(piece) == PIECE_BYTES and not decompressor.unconsumed_tail:
                piece = _inflate(decompressor, b"")
                yield piece
            given = decompressor.unused_data or decompressor.unconsumed_tail
    if view and not decompressor.eof:
        raise CompressionError("gzip: the data ends too early")


def _inflate(decompressor: "zlib._Decompress", given: Buffer) -> bytes:
    try:
        return decompressor.decompress(given, PIECE_BYTES)
    except zlib.error as error:
        raise CompressionError(f"gzip: {error}") from error


class _SnappyBlocks(Protocol):
    """The part of ``cramjam.snappy`` for bare blocks."""

    def compress_raw(self, data: Buffer) -> Buffer: ...
    def decompress_raw(self, data: Buffer) -> Buffer: ...
    def decompress_raw_len(self, data: Buffer) -> int: ...


@cache
def _snappy() -> _SnappyBlocks:
    import cramjam

    return cast("_SnappyBlocks", cramjam.snappy)


def snappy_header() -> bytes:
    """Return the head of the Java library's framing."""
    return _XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1)


def snappy_blocks(data: Buffer) -> bytes:
    """Compress ``data`` to blocks within the framing."""
    view = memoryview(data)
    parts: list[bytes] = []
    for start in range(0, len(view), SNAPPY_BLOCK_BYTES):
        block = bytes(_snappy().compress_raw(view[start : start + SNAPPY_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _compress_snappy(data: Buffer) -> bytes:
    return snappy_header() + snappy_blocks(data)


def _expand_snappy(data: Buffer, limit_bytes: int) -> Iterator[bytes]:
    view = memoryview(data)
    expanded_bytes = 0
    for block in _blocks_within(view):
        expanded = _expand_snappy_block(block, limit_bytes, expanded_bytes)
        expanded_bytes += len(expanded)
        yield from _cut(expanded)


def _blocks_within(view: memoryview) -> Iterator[memoryview]:
    if bytes(view[:8]) != _XERIAL_MAGIC:
        yield view
        return
    if len(view) < _XERIAL_HEADER.size:
        raise CompressionError("snappy: the framing ends inside its header")
    position = _XERIAL_HEADER.size
    while position < len(view):
        if position + 4 > len(view):
            raise CompressionError("snappy: the framing ends inside a block length")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += 4
        if length < 0 or position + length > len(view):
            raise CompressionError(f"snappy: block of {length} bytes does not fit")
        yield view[position : position + length]
        position += length


def _expand_snappy_block(block: memoryview, limit_bytes: int, expanded_bytes: int) -> Buffer:
    import cramjam

    codec = _snappy()
    try:
        # A block begins with its expanded length: no need to expand a bomb to know it, nor a lie.
        size = codec.decompress_raw_len(block)
        if expanded_bytes + size > limit_bytes:
            raise _too_long(limit_bytes)
        if size > _SNAPPY_RATIO_MAX * len(block):
            raise CompressionError(f"snappy: {len(block)} bytes cannot become {size}")
        return memoryview(codec.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from error


def _compress_lz4(data: Buffer) -> bytes:
    import lz4.frame

    # Kafka's Java clients refuse frames whose blocks refer to each other.
    return cast("bytes", lz4.frame.compress(data, block_linked=False))


def _expand_lz4(data: Buffer, limit_bytes: int) -> Iterator[bytes]:  # noqa: ARG001
    """Expand one frame, as Kafka's clients do; later bytes are ignored."""
    import lz4.frame

    view = memoryview(data)
    decompressor = lz4.frame.LZ4FrameDecompressor()
    for start in range(0, len(view), _GIVEN_BYTES):
        given: Buffer = view[start : start + _GIVEN_BYTES]
        while True:
            try:
                piece = decompressor.decompress(given, max_length=PIECE_BYTES)
            except (RuntimeError, EOFError) as error:
                raise CompressionError(f"lz4: {error}") from error
            yield piece
            if decompressor.eof:
                return
            if len(piece) < PIECE_BYTES:
                break
            given = b""
    raise CompressionError("lz4: the data ends too early")


def _compress_zstd(data: Buffer) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3).compress(data)


def _expand_zstd(data: Buffer, limit_bytes: int) -> Iterator[bytes]:  # noqa: ARG001
    import zstandard

    # Streaming encoders (Java's) leave the expanded size out of the frame, so it is read as a
    # stream. A frame that ends early yields what it has: the caller's count of records finds that
    # out.
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
    reader = decompressor.stream_reader(data, read_across_frames=True)
    try:
        while piece := reader.read(PIECE_BYTES):
            yield piece
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: {error}") from error


_Compressor = Callable[[Buffer], bytes]
_Expander = Callable[[Buffer, int], Iterator[bytes]]

_CODECS: dict[int, tuple[_Compressor, _Expander]] = {
    GZIP: (_compress_gzip, _expand_gzip),
    SNAPPY: (_compress_snappy, _expand_snappy),
    LZ4: (_compress_lz4, _expand_lz4),
    ZSTD: (_compress_zstd, _expand_zstd),
}
