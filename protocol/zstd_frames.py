"""Does Zstandard data end where a frame ends? Walked over block by block, without expanding it.

The stream reader of the zstandard package returns what it has where a frame is cut off, even within
its checksum; zstd-jni, which Java's consumers use, raises there and never gets past it. The layout
is that of RFC 8878, section 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

_FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGIC: Final = b"\x2a\x4d\x18"
"""Bytes 2 to 4 of the magic number; byte 1 is 0x50 to 0x5f."""
_CHECKSUM_BYTES: Final = 4
_RLE_BLOCK: Final = 1


def ends_with_a_frame(data: bytes) -> bool:
    """Return whether the last frame that begins in ``data`` is whole.

    What is no frame is left to the decompressor.
    """
    position: i64 = 0
    size: i64 = len(data)
    while position < size:
        head = data[position : position + 4]
        if head == _FRAME_MAGIC:
            position = _after_frame(data, position + 4)
        elif head[1:] == _SKIPPABLE_MAGIC and head[0] & 0xF0 == 0x50:
            if position + 8 > size:
                return False
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
        else:
            return True
    return position == size


def _after_frame(data: bytes, start: i64) -> i64:
    """Return the end of the frame whose magic ends at ``start``; beyond ``data`` if it is cut."""
    size: i64 = len(data)
    position: i64 = start
    if position >= size:
        return size + 1
    descriptor: i64 = data[position]
    position += 1 + _header_bytes(descriptor)
    while position + 3 <= size:
        low: i64 = data[position]
        middle: i64 = data[position + 1]
        high: i64 = data[position + 2]
        block: i64 = low | middle << 8 | high << 16
        is_repeated = block >> 1 & 3 == _RLE_BLOCK
        position += 3 + (1 if is_repeated else block >> 3)
        if block & 1:
            return position + (_CHECKSUM_BYTES if descriptor & 4 else 0)
    return size + 1


def _header_bytes(descriptor: i64) -> i64:
    """Return the size of window, dictionary id and content size, which follow the descriptor."""
    is_single: i64 = descriptor >> 5 & 1
    dictionary: i64 = descriptor & 3
    content: i64 = descriptor >> 6
    dictionary_bytes: i64 = 4 if dictionary == 3 else dictionary
    content_bytes: i64 = 1 << content if content else is_single
    return 1 - is_single + dictionary_bytes + content_bytes
