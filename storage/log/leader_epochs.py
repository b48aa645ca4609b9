"""Start and end offsets of the leader epochs of a log (KIP-101, KIP-320).

A list of (epoch, offset of its first batch), the oldest first.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import TypeAlias

LeaderEpochs: TypeAlias = Sequence[tuple[int, int]]

_epoch = itemgetter(0)
_start = itemgetter(1)


def end_of_epoch(epochs: LeaderEpochs, epoch: int, log_end: int) -> tuple[int, int]:
    """Return the largest epoch up to ``epoch`` and its end: the next one's start, or ``log_end``.

    An epoch before all that are known (its records are deleted) ends where the first known one
    starts: told that nothing is known, a client would take its own position for lost and reset it.
    """
    following = bisect_right(epochs, epoch, key=_epoch)
    found = epochs[following - 1][0] if following else epoch
    return found, log_end if following == len(epochs) else epochs[following][1]


def epoch_at(epochs: LeaderEpochs, offset: int) -> int:
    """Return the epoch in which ``offset`` was (or will be) written; -1 before the first."""
    at = bisect_right(epochs, offset, key=_start) - 1
    return epochs[at][0] if at >= 0 else -1


def epochs_from(epochs: LeaderEpochs, log_start: int) -> list[tuple[int, int]]:
    """Return the epochs of a log from ``log_start`` on; the first begins there, as in Kafka."""
    first = max(0, bisect_right(epochs, log_start, key=_start) - 1)
    return [(epoch, max(start, log_start)) for epoch, start in epochs[first:]]
