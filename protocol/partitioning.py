"""The partition of a key: the same as that of Kafka's Java client, so that all agree."""

from __future__ import annotations

import struct


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, as Kafka's DefaultPartitioner does."""
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


def murmur2(data: bytes) -> int:
    """Hash a key as Kafka's Java client does."""
    multiplier, mask = 0x5BD1_E995, 0xFFFF_FFFF
    whole = len(data) & ~3
    result = (0x9747_B28C ^ len(data)) & mask
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = (word * multiplier) & mask
        mixed = ((mixed ^ (mixed >> 24)) * multiplier) & mask
        result = ((result * multiplier) & mask) ^ mixed
    rest = data[whole:]
    if rest:
        result = ((result ^ int.from_bytes(rest, "little")) * multiplier) & mask
    result = ((result ^ (result >> 13)) * multiplier) & mask
    return result ^ (result >> 15)
