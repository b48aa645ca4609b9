"""Upkeep of the objects of a cluster, in the background: deletes, and the guard.

Rules of this file:

1. A slow or unavailable object store delays nothing else. So deletes and the guard have a thread
   and connections each, and upkeep of the index (``upkeep.py``) waits for neither.
2. Any broker may delete, so each does (``storage/replicated/blob_garbage.py``), and each writes the
   guard (``storage/objects/guard.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.cluster.leading.rounds import Rounds
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.objects.guard import write_guard
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

    look_ms: int = 2_000
    """Pause before a check whether something is due."""
    delete_ms: int = 600_000
    """Interval between deletes of objects without records."""
    guard_ms: int = 60_000
    """Interval between two moments in the guard of the object store."""


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
        settings: ObjectUpkeepSettings | None = None,
    ) -> None:
        """All ``open_`` functions return new connections, and may block.

        ``open_blobs``: to all stores of the bodies of large flushes. ``open_rows``: to what the
        guard is about, or None if there is no object store.
        """
        self._host = host
        self._open_index = open_index
        self._open_blobs = open_blobs
        self._open_rows = open_rows
        self._settings = settings or ObjectUpkeepSettings()
        self._deletes = Rounds(host, self.delete_once, "objects", self._settings.look_ms)
        self._guard = Rounds(host, self.guard_once, "guard", self._settings.look_ms)
        self._delete_due_ms = 0
        self._guard_due_ms = 0
        self.counts = ObjectUpkeepCounts(looked_ms=host.clock.now_ms())

    def start(self) -> None:
        """Start both; their first rounds come after ``look_ms``."""
        self.counts.looked_ms = self._host.clock.now_ms()
        self._deletes.start()
        if self._open_rows is not None:
            self._guard.start()

    def stop(self) -> None:
        """Stop both; closing the connections afterwards ends the current calls."""
        self._deletes.stop()
        self._guard.stop()

    async def delete_once(self) -> None:
        """Delete objects if that is due; raises IndexClosed."""
        now_ms = self._host.clock.now_ms()
        if now_ms >= self._delete_due_ms:
            if await self._deletes.aside(self._delete):
                self.counts.looked_ms = self._host.clock.now_ms()
            self._delete_due_ms = now_ms + self._settings.delete_ms

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
        """Write the guard if that is due; raises IndexClosed."""
        now_ms = self._host.clock.now_ms()
        if now_ms >= self._guard_due_ms:
            await self._guard.aside(self._write_guard)
            self._guard_due_ms = now_ms + self._settings.guard_ms

    def _write_guard(self) -> None:
        """Write the guard, on the thread."""
        assert self._open_rows is not None, "there is an object store"
        for blobs in self._open_blobs():
            with closing(blobs), closing(self._open_rows()) as rows:
                if blobs.is_object_store:
                    with suppress(BlobStoreError):  # Reported with the broker's other calls.
                        write_guard(rows, blobs)
