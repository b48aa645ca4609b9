"""Zig-zag varints for whole columns of numbers: the lengths and deltas inside a record batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Zigzags = npt.NDArray[np.uint64]

_BITS = 7
_MORE = np.uint8(0x80)
_LOW = np.uint64(0x7F)


def zigzag(numbers: Numbers) -> Zigzags:
    """Fold the sign into the lowest bit, so that small numbers of either sign stay short."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def sizes(zigzags: Zigzags) -> Numbers:
    """Return the number of bytes of each number."""
    result = np.ones(len(zigzags), dtype=np.int64)
    longest = int(zigzags.max(initial=0))
    bits = _BITS
    while longest >> bits:
        result += zigzags >= np.uint64(1 << bits)
        bits += _BITS
    return result


def pack(fields: Sequence[Zigzags]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Write one number of each field per row, row after row.

    Return the start of each row and the end of the last one, and the bytes.
    """
    widths = [sizes(field) for field in fields]
    offsets = np.zeros(len(fields[0]) + 1, dtype=np.int64)
    np.cumsum(np.sum(widths, axis=0), out=offsets[1:])
    output = np.empty(int(offsets[-1]), dtype=np.uint8)
    position = offsets[:-1]
    for field, width in zip(fields, widths, strict=True):
        _write(output, position, field)
        position = position + width
    return offsets.astype(np.int32), output


def _write(output: npt.NDArray[np.uint8], position: Numbers, remaining: Zigzags) -> None:
    """Write the lowest seven bits of every number, then the next of those that have more."""
    while True:
        last = remaining <= _LOW
        low = (remaining & _LOW).astype(np.uint8)
        if last.all():
            output[position] = low
            return
        output[position] = np.where(last, low, low | _MORE)
        longer = np.flatnonzero(~last)
        position = position[longer] + 1
        remaining = remaining[longer] >> np.uint64(_BITS)
