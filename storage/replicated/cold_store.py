"""Reads of a cluster's store for clients, of records that are not on this broker's disk.

Rules of this file:

* Reads run on threads of their own, each with a connection while it reads, so that neither a
  takeover nor the disk waits for consumers that read old records.
* Reads of a takeover have threads of their own.
* An object whose read has failed lately, or of which all but one of the threads for clients read
  already, is read by other threads, which repeat failed calls until the timeout. So an object that
  the store does not give delays no reader of others. What the store refuses is not repeated.
* Two readers of the same bytes read them once.
* The store may be silent without limit; a reader is not. A reader with a limit of its own leaves
  with ``NotYetRead``, and gets ``OSError`` once the read is older than the timeout. The read
  continues. A later reader finds its result in the cache, or here if the cache has not taken it.
* Connections are closed once no read has run for a minute.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.storage.errors import IndexClosed
from barnabas.storage.objects.blob_store import BlobRefused, BlobStoreError
from barnabas.storage.objects.object_reads import READS_AT_ONCE, ObjectReads, ReadAside
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import (
    new_condition,
    new_executor,
    start_timer,
)

if TYPE_CHECKING:
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.block_cache import BlockCache
    from barnabas.storage.replicated.log_index import Extent, LogIndex
    from barnabas.storage.runtime.threads import Event

Result = TypeVar("Result")

ASIDE_AT_ONCE: Final = 2
"""Number of threads that read objects of which a read has failed."""
IDLE_S: Final = 60.0
PENDING_MAX: Final = 32
"""Number of reads under way from which on none is started ahead of its reader."""
_PAUSE_S_MIN: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
TIMEOUT_S: Final = 10.0
"""Less than the usual timeout of a client's request."""
UNCLAIMED_MAX: Final = 8
"""Maximum number of kept results of readers that left before the end of the read."""


class NotYetRead(Exception):
    """The read takes longer than the time that its caller allows; it continues."""


class _Reading:
    """One read, and its result once it has ended."""

    __slots__ = ("begun_s", "ended_s", "error", "is_done", "is_unclaimed", "result")

    def __init__(self) -> None:
        self.begun_s = monotonic()
        self.ended_s = 0.0
        self.is_done = False
        self.is_unclaimed = False
        """Whether a reader has left before the end."""
        self.result: Any = None
        self.error: Exception | None = None


class ColdConnection:
    """Connections of one read to the index, and to the objects once it needs them."""

    def __init__(
        self,
        index: LogIndex,
        open_blobs: Callable[[], BlobStore],
        pause: Callable[[float], None],
        objects: ObjectReads,
        timeout_s: float,
    ) -> None:
        """``open_blobs`` opens a connection to the objects, and may block.

        ``pause`` waits some seconds, and raises IndexClosed once no read is wanted any more.
        ``timeout_s``: time after which a call that fails is not repeated.
        """
        self.index = index
        self.is_aside = False
        """Whether failed calls are repeated here."""
        self.begun_s = 0.0
        """Start time of the read."""
        self._timeout_s = timeout_s
        self._open_blobs = open_blobs
        self._pause = pause
        self._objects = objects
        self._blobs: BlobStore | None = None

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """Return bytes of an object as ``BlobStore``; a failed call is repeated for some time.

        Raises BlobNotFound, IndexClosed, and OSError after that.
        """
        return self._repeat((key,), lambda: self._get_range(key, position, length))

    def bodies(self, extents: Sequence[Extent]) -> list[Extent]:
        """Return extents with their bytes as ``LogIndex``; raises OSError as ``get_range``."""
        keys = {each.place.key for each in extents if each.place is not None}
        return self._repeat(keys, lambda: self.index.bodies(extents, self._timeout_s))

    def _get_range(self, key: str, position: int, length: int) -> bytes:
        if self._blobs is None:
            self._blobs = self._open_blobs()
        return self._blobs.get_range(key, position, length)

    def _repeat(self, keys: Collection[str], call: Callable[[], Result]) -> Result:
        pause_s = _PAUSE_S_MIN
        while True:
            self._objects.begin(keys, is_aside=self.is_aside)
            failure: BlobStoreError | None = None
            try:
                return call()
            except BlobStoreError as error:
                failure = error
            finally:
                self._objects.end(keys, failure)
            is_refused = isinstance(failure, BlobRefused)
            if is_refused or monotonic() >= self.begun_s + self._timeout_s:
                self._objects.report(keys, failure)
                code = errno.EACCES if is_refused else errno.ETIMEDOUT
                raise OSError(code, str(failure), ",".join(keys))
            if not self.is_aside:
                raise ReadAside
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def close(self) -> None:
        """Close both."""
        self.index.close()
        if self._blobs is not None:
            self._blobs.close()


class ColdStore:
    """The store and the cache of one broker; callable on any thread."""

    def __init__(
        self,
        open_index: Callable[[], LogIndex],
        open_blobs: Callable[[], BlobStore],
        cache: BlockCache,
        now_ms: Callable[[], int],
        *,
        timeout_s: float = TIMEOUT_S,
        is_throttled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Both functions open a connection, which the caller of this ends.

        ``now_ms``: the wall clock. ``is_throttled`` returns whether the object store has throttled
        a call lately: nothing is read ahead then.
        """
        self.cache = cache
        self.now_ms = now_ms
        self.reads = 0
        """Reads of the store so far."""
        self._open_index = open_index
        self._open_blobs = open_blobs
        self._timeout_s = timeout_s
        self._is_throttled = is_throttled
        self._threads = new_executor("cold-reader", READS_AT_ONCE)
        self._takeover_threads = new_executor("takeover-reader", READS_AT_ONCE)
        self._aside_threads = new_executor("failing-reader", ASIDE_AT_ONCE)
        self._objects = ObjectReads()
        self._changed = new_condition()
        self._free: list[ColdConnection] = []
        self._readings: dict[Hashable, _Reading] = {}
        self._unclaimed: OrderedDict[Hashable, _Reading] = OrderedDict()
        """Reads that have ended after a reader had left, and that the cache does not have."""
        self._idle_timer: Event | None = None
        """Event that cancels the idle timer, which runs while connections are open."""
        self._is_closed = False

    def read(
        self,
        key: Hashable,
        work: Callable[[ColdConnection], Result],
        *,
        patiently: bool = False,
        until_s: float | None = None,
    ) -> Result:
        """Return the result of ``work``, or of the current read with the same key; wait for it.

        ``patiently``: without a limit of time, for a takeover. ``until_s``: time, as of
        ``monotonic``, at which the caller stops to wait.
        Raises NotYetRead at that time; OSError if the store does not respond in time, or is
        closed; and what ``work`` raises.
        """
        reading = self._begin(key, work, is_takeover=patiently)
        timeout_s = None if patiently else self._timeout_s
        if until_s is not None:
            timeout_s = min(self._timeout_s, max(0.0, until_s - monotonic()))
        with self._changed:
            if not self._changed.wait_for(lambda: reading.is_done, timeout_s):
                reading.is_unclaimed = True
                if until_s is not None and monotonic() - reading.begun_s < self._timeout_s:
                    raise NotYetRead
                raise TimeoutError(errno.ETIMEDOUT, "the store does not respond", str(key))
        if reading.error is not None:
            raise reading.error
        result: Result = reading.result
        return result

    def begin(self, key: Hashable, work: Callable[[ColdConnection], object]) -> None:
        """Begin to read ahead, unless many reads are in progress."""
        with self._changed:
            is_busy = self._is_closed or len(self._readings) >= PENDING_MAX
        if not is_busy and not self._is_throttled():
            self._begin(key, work)

    def close(self) -> None:
        """Refuse reads from now on; closing the connections ends those under way."""
        with self._changed:
            self._is_closed = True
            if self._idle_timer is not None:
                self._idle_timer.set()
            for key, reading in self._readings.items():
                reading.error = OSError(errno.ESHUTDOWN, "the broker stops", str(key))
                reading.is_done = True
            self._readings.clear()
            self._unclaimed.clear()
            self._changed.notify_all()
        for threads in (self._threads, self._takeover_threads, self._aside_threads):
            threads.shutdown(wait=False, cancel_futures=True)

    def _begin(
        self,
        key: Hashable,
        work: Callable[[ColdConnection], object],
        *,
        is_takeover: bool = False,
    ) -> _Reading:
        with self._changed:
            if self._is_closed:
                raise OSError(errno.ESHUTDOWN, "the broker stops", str(key))
            reading = self._readings.get(key)
            if reading is not None:
                return reading
            reading = self._unclaimed.pop(key, None)
            if reading is not None and monotonic() - reading.ended_s < self._timeout_s:
                return reading
            reading = self._readings[key] = _Reading()
            threads = self._takeover_threads if is_takeover else self._threads
            threads.submit(partial(self._run, key, reading, work, is_aside=is_takeover))
            return reading

    def _run(
        self,
        key: Hashable,
        reading: _Reading,
        work: Callable[[ColdConnection], object],
        *,
        is_aside: bool,
    ) -> None:
        try:
            connection = self._take()
            connection.is_aside, connection.begun_s = is_aside, reading.begun_s
            try:
                reading.result = work(connection)
            finally:
                self._give_back(connection)
        except ReadAside:
            with self._changed:
                if not self._is_closed:
                    again = partial(self._run, key, reading, work, is_aside=True)
                    self._aside_threads.submit(again)
            return
        except IndexClosed:
            reading.error = OSError(errno.ESHUTDOWN, "the store is closed", str(key))
        except Exception as error:  # noqa: BLE001  Raised to each of its readers.
            reading.error = error
        with self._changed:
            self.reads += 1
            reading.is_done = True
            reading.ended_s = monotonic()
            self._readings.pop(key, None)
            if reading.is_unclaimed and not self._is_closed and not self.cache.has(key):
                self._unclaimed[key] = reading
                while len(self._unclaimed) > UNCLAIMED_MAX:
                    self._unclaimed.popitem(last=False)
            self._changed.notify_all()

    def _pause(self, pause_s: float) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: self._is_closed, pause_s):
                raise IndexClosed

    def _take(self) -> ColdConnection:
        with self._changed:
            if self._free:
                return self._free.pop()
        return ColdConnection(
            self._open_index(), self._open_blobs, self._pause, self._objects, self._timeout_s
        )

    def _give_back(self, connection: ColdConnection) -> None:
        with self._changed:
            self._free.append(connection)
            if self._idle_timer is None and not self._is_closed:
                self._start_idle_timer()

    def _start_idle_timer(self) -> None:
        """Close the connections once no read has run for IDLE_S; the lock is held."""
        close = partial(self._close_idle, self.reads)
        self._idle_timer = start_timer("barnabas-idle-cold-reads", IDLE_S, close)

    def _close_idle(self, reads_before: int) -> None:
        with self._changed:
            self._idle_timer = None
            if self._is_closed:
                return
            idle: list[ColdConnection] = []
            if self.reads == reads_before:
                idle, self._free = self._free, []
                self._unclaimed.clear()
            if self._readings or self._free:
                self._start_idle_timer()
        for connection in idle:
            connection.close()
