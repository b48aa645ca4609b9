"""The interface to the rows of a cluster that concern the object store.

Methods wait for the index without limit, and repeat their calls; ``IndexClosed`` is raised out of a
wait. One caller at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class NamedObject(NamedTuple):
    """An object of the object store that a flush has named, and that has records."""

    row: int
    """Number of its row; rows are never numbered again."""
    key: str
    size_bytes: int


class NamedExtent(NamedTuple):
    """Offsets of a partition whose records are in an object."""

    partition_id: int
    base_offset: int
    next_offset: int


class Moment(NamedTuple):
    """Numbers of an index that never fall."""

    session: int
    """The highest session ID given out, or a higher one."""
    version: int
    """Version of the members and leaders."""
    flushes: Mapping[str, int]
    """Number of the next flush by session and lane, of sessions that are not forgotten."""


class Requests(NamedTuple):
    """Requests to the object store by one operation."""

    calls: int
    size_bytes: int
    """Bytes written or read by them."""


class Held(NamedTuple):
    """Objects of one kind, or payloads in the index."""

    objects: int
    size_bytes: int


class Usage(NamedTuple):
    """Contents of the stores of a cluster, and its requests in the last hours."""

    seconds: float
    """Time to which ``requests`` belong."""
    requests: Mapping[str, Requests]
    """Requests by operation."""
    objects: Mapping[str, Held]
    """Objects by kind: ``wal``, ``seg``."""
    waiting_keys: int
    """Number of objects without records that wait for their deletion."""
    rows: Held
    """Payloads of records in the index."""
    index_bytes: int
    """Size of the index as a whole."""


class ObjectRows(Protocol):
    """Rows about objects; see the head of this module."""

    def moment(self) -> Moment:
        """Return the present moment, durably: no failover goes back before it."""

    def raise_sessions(self, session: int) -> None:
        """Raise the ID of the next session above ``session``."""

    def named_objects(self, after_row: int, most: int) -> Sequence[NamedObject]:
        """Return up to ``most`` objects whose rows follow ``after_row``, in order."""

    def extents_in(self, key: str) -> Sequence[NamedExtent]:
        """Return the extents whose records are in an object."""

    def add_requests(self, requests: Mapping[str, Requests]) -> None:
        """Add requests of this hour by operation."""

    def usage(self, hours: int) -> Usage:
        """Return the contents of the stores, and the requests of the last ``hours``."""

    def close(self) -> None:
        """End every wait, on any thread."""
