"""Kafka's hash of keys, for a whole column: the same partitions as with other producers.

The 32-bit MurmurHash2 with the seed of Kafka's clients. Each iteration mixes the n-th
word of all keys that have one, so the longest key decides the number of iterations, not the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)
_WORD_BYTES = 4
_TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)

Hashes = npt.NDArray[np.uint32]


def murmur2(keys: Any) -> Hashes:  # noqa: ANN401 - pyarrow has no types
    """Return the hash of each key of a ``binary`` or ``large_binary`` array; null is empty."""
    words, starts, lengths = _words(keys)
    hashes = np.bitwise_xor(np.uint32(_SEED), lengths.astype(np.uint32))
    whole_words = lengths // _WORD_BYTES
    _mix_words(hashes, words, starts, whole_words)
    _mix_tails(hashes, words, starts + whole_words * _WORD_BYTES, lengths % _WORD_BYTES)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _words(keys: Any) -> tuple[Hashes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:  # noqa: ANN401
    """Return the 32-bit word at each byte of the keys, and the start and length of each key."""
    _, offset_buffer, data_buffer = keys.buffers()
    width = np.int64 if pa.types.is_large_binary(keys.type) else np.int32
    ends = np.frombuffer(offset_buffer, dtype=width)[keys.offset : keys.offset + len(keys) + 1]
    offsets = ends.astype(np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    # The last key's tail is read as a whole word, too.
    padded = np.zeros(end - first + _WORD_BYTES, dtype=np.uint8)
    if end > first:
        padded[: end - first] = np.frombuffer(data_buffer, dtype=np.uint8)[first:end]
    words = np.ndarray(
        shape=(end - first + 1,), dtype=np.dtype("<u4"), buffer=padded.data, strides=(1,)
    )
    lengths: npt.NDArray[np.int64] = np.diff(offsets)
    if keys.null_count:
        # The bytes under a null belong to no value, and there may be some.
        lengths[np.asarray(keys.is_null())] = 0
    return words, offsets[:-1] - first, lengths


def _mix_words(
    hashes: Hashes,
    words: Hashes,
    starts: npt.NDArray[np.int64],
    whole_words: npt.NDArray[np.int64],
) -> None:
    longest = int(whole_words.max(initial=0))
    rows: Any = slice(None)
    for number in range(longest):
        if number == int(whole_words[rows].min()):
            rows = np.flatnonzero(whole_words > number)
        mixed = words[starts[rows] + number * _WORD_BYTES]
        mixed *= _MULTIPLIER
        mixed ^= mixed >> np.uint32(24)
        mixed *= _MULTIPLIER
        hashes[rows] = (hashes[rows] * _MULTIPLIER) ^ mixed


def _mix_tails(
    hashes: Hashes,
    words: Hashes,
    starts: npt.NDArray[np.int64],
    tail_bytes: npt.NDArray[np.int64],
) -> None:
    rows = np.flatnonzero(tail_bytes)
    tails = words[starts[rows]] & _TAIL_MASKS[tail_bytes[rows]]
    hashes[rows] = (hashes[rows] ^ tails) * _MULTIPLIER
