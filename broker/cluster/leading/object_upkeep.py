"""Upkeep of the objects of a cluster, in the background: deletes, the guard, the bill.

Rules of this file:

1. A slow or unavailable object store delays nothing else. So deletes and the guard have a thread
   and connections each, and upkeep of the index (``upkeep.py``) waits for neither.
2. Any broker may delete, so each does (``storage/replicated/blob_garbage.py``), and each writes the
   guard (``storage/objects/guard.py``).
3. With the guard each broker adds its requests since the last time to those of the cluster, for
   ``barnabas cluster cost``. Those of its last minute are not counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from operator import sub
from typing import TYPE_CHECKING

from barnabas.broker.cluster.leading.rounds import Rounds
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.objects.guard import write_guard
from barnabas.storage.objects.object_rows import Requests
from barnabas.storage.replicated.blob_garbage import (
    delete_dead_objects,
    delete_dereferenced_objects,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.runtime.host import Host
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.objects.object_rows import ObjectRows
    from barnabas.storage.replicated.log_index import LogIndex

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ObjectUpkeepSettings:
    """Intervals of the upkeep of objects."""

    first_ms: int = 2_000
    """Pause before the first round of both."""
    delete_ms: int = 600_000
    """Pause before each delete of objects without records."""
    guard_ms: int = 60_000
    """Pause before each moment in the guard of the object store."""


@dataclass(slots=True)
class ObjectUpkeepCounts:
    """Counts since the start, for metrics."""

    deleted: int = 0
    """Number of objects that this broker deleted."""
    looked_ms: int = 0
    """Time of the end of the last complete round of deletes, or of the start before it."""


class ObjectUpkeep:
    """Upkeep of objects by one broker."""

    def __init__(
        self,
        host: Host,
        open_index: Callable[[], LogIndex],
        open_blobs: Callable[[], Sequence[BlobStore]],
        open_rows: Callable[[], ObjectRows] | None = None,
        sent: Callable[[], Mapping[str, Requests]] = dict,
        settings: ObjectUpkeepSettings | None = None,
    ) -> None:
        """All ``open_`` functions return new connections, and may block.

        ``open_blobs``: to all stores of the bodies of large flushes. ``open_rows``: to what the
        guard is about, or None if there is no object store. ``sent`` returns this broker's requests
        to it since the start.
        """
        self._host = host
        self._open_index = open_index
        self._open_blobs = open_blobs
        self._open_rows = open_rows
        self._sent = sent
        self._added: Mapping[str, Requests] = {}
        """Requests that were added to those of the cluster."""
        settings = settings or ObjectUpkeepSettings()
        self._first_ms = settings.first_ms
        self._deletes = Rounds(host, self.delete_once, "objects", settings.delete_ms)
        self._guard = Rounds(host, self.guard_once, "guard", settings.guard_ms)
        self.counts = ObjectUpkeepCounts(looked_ms=host.clock.now_ms())

    def start(self) -> None:
        """Start both; the first rounds come after ``first_ms``."""
        self.counts.looked_ms = self._host.clock.now_ms()
        self._deletes.start(self._first_ms)
        if self._open_rows is not None:
            self._guard.start(self._first_ms)

    def stop(self) -> None:
        """Stop both; closing the connections afterwards ends the current calls."""
        self._deletes.stop()
        self._guard.stop()

    async def delete_once(self) -> None:
        """Delete objects; raises IndexClosed."""
        if await self._deletes.aside(self._delete):
            self.counts.looked_ms = self._host.clock.now_ms()

    def _delete(self) -> bool:
        """Delete objects without records, now or ever, on the thread; return whether all are."""
        deleted, delay_ms = 0, self._host.config.objects_delete_delay_ms
        is_complete = False
        try:
            with ExitStack() as opened:
                index = opened.enter_context(closing(self._open_index()))
                for blobs in [opened.enter_context(closing(each)) for each in self._open_blobs()]:
                    deleted += delete_dead_objects(index, blobs)
                    deleted += delete_dereferenced_objects(index, blobs, delay_ms)
            is_complete = True
        except BlobStoreError as error:
            logger.warning("object store failed, unused objects are deleted later error=%s", error)
        self.counts.deleted += deleted
        if deleted:
            logger.info("unused objects deleted objects=%d", deleted)
        return is_complete

    async def guard_once(self) -> None:
        """Write the guard, and add requests; raises IndexClosed."""
        await self._guard.aside(self._write_guard)

    def _write_guard(self) -> None:
        """Write the guard and add requests, on the thread."""
        assert self._open_rows is not None, "there is an object store"
        for blobs in self._open_blobs():
            with closing(blobs), closing(self._open_rows()) as rows:
                if blobs.is_object_store:
                    with suppress(BlobStoreError):  # Reported with the broker's other calls.
                        write_guard(rows, blobs)
                    self._add_requests(rows)

    def _add_requests(self, rows: ObjectRows) -> None:
        sent = self._sent()
        none = Requests(0, 0)
        rows.add_requests(
            {
                operation: Requests(*map(sub, total, self._added.get(operation, none)))
                for operation, total in sent.items()
            }
        )
        self._added = sent
