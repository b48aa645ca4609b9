"""Kafka's hash of the keys that coordinators are responsible for."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

REMEMBERED: Final = 4096
REMEMBERED_LENGTH_MAX: Final = 256
"""Hashes of so many keys are remembered, of those that are not longer; names seldom are."""


def java_hash(text: str) -> int:
    """Kafka's hash of a group or transactional id: never negative.

    That of Java's String over UTF-16 units; the one value without a positive counterpart is 0.
    """
    return _remembered(text) if len(text) <= REMEMBERED_LENGTH_MAX else _computed(text)


def _computed(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    if value == 0x8000_0000:
        return 0
    return value if value < 0x8000_0000 else 0x1_0000_0000 - value


_remembered = lru_cache(REMEMBERED)(_computed)
