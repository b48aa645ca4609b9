"""The connection to the rows in memory that concern the object store."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.objects.object_rows import (
    Held,
    Moment,
    NamedExtent,
    NamedObject,
    Requests,
    Usage,
)

if TYPE_CHECKING:
    from barnabas.broker.testing.store.index import MemoryIndex
    from barnabas.storage.replicated.log_index import Extent, ObjectPlace


class MemoryObjectRows(Way):
    """``ObjectRows`` in memory."""

    def __init__(self, index: MemoryIndex, link: Link | None = None) -> None:
        """``link``: see ``Way``."""
        super().__init__(link)
        self._index = index

    def moment(self) -> Moment:
        """See ``ObjectRows``."""
        return self._ask(self._index.moment)

    def raise_sessions(self, session: int) -> None:
        """See ``ObjectRows``."""
        self._ask(self._index.raise_sessions, session)

    def named_objects(self, after_row: int, most: int) -> Sequence[NamedObject]:
        """See ``ObjectRows``."""
        sizes = {place.key: place.size.size_bytes for _, _, place in self._ask(self._places)}
        named = [NamedObject(row, *each) for row, each in enumerate(sorted(sizes.items()), 1)]
        return named[after_row:][:most]

    def extents_in(self, key: str) -> Sequence[NamedExtent]:
        """See ``ObjectRows``."""
        return [
            NamedExtent(partition_id, extent.base_offset, extent.next_offset)
            for partition_id, extent, place in self._ask(self._places)
            if place.key == key
        ]

    def add_requests(self, requests: Mapping[str, Requests]) -> None:
        """See ``ObjectRows``; the hour does not matter in memory."""
        self._ask(self._add, requests)

    def _add(self, requests: Mapping[str, Requests]) -> None:
        all_requests = self._index.object_requests
        for operation, sent in requests.items():
            known = all_requests.get(operation, Requests(0, 0))
            total = Requests(known.calls + sent.calls, known.size_bytes + sent.size_bytes)
            all_requests[operation] = total

    def usage(self, hours: int) -> Usage:
        """See ``ObjectRows``."""
        named = self.named_objects(0, sys.maxsize)
        objects = {
            kind: Held(len(sizes), sum(sizes))
            for kind in ("seg", "wal")
            if (sizes := [each.size_bytes for each in named if each.key.startswith(kind)])
        }
        requests = self._ask(lambda: dict(self._index.object_requests))
        return Usage(hours * 3600.0, requests, objects, 0, Held(0, 0), 0)

    def _places(self) -> list[tuple[int, Extent, ObjectPlace]]:
        """Return the extents that are in the object store, with their partitions and places."""
        return [
            (partition_id, extent, extent.place)
            for partition_id, row in sorted(self._index.rows.items())
            for extent in row.extents
            if extent.place is not None
        ]
