"""Reads of records that lie in the object store.

Rules of this file:

* Several ranges are read at once, each on a connection of its own. Ranges of one object that are
  near each other are read together: a takeover brings many logs that one flush has served.
* Calls of the store run on threads of their own: the broker can end while a call hangs.
* A call for a takeover that fails is repeated until the reader is closed, as calls of the index
  are. A call for a client is not: its caller decides (``cold_store.py``).
* A read that waits for its next attempt has no thread, and half of the threads are for reads that
  have not failed: objects that the store refuses delay no others.
* An object that is missing, or ends early, is damage: a caller that needs several logs can do
  without one.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.records import CorruptBatch
from barnabas.storage.errors import IndexClosed, ObjectDamaged
from barnabas.storage.objects.blob_store import BlobNotFound, BlobRefused, BlobStoreError
from barnabas.storage.replicated.log_index import ObjectPlace
from barnabas.storage.replicated.wal_object import headers_in, read_footer
from barnabas.storage.runtime.chance import random_below
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.log_lines import LogLines
from barnabas.storage.runtime.threads import new_condition, start_thread

if TYPE_CHECKING:
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.log_index import Extent, ObjectSize
    from barnabas.storage.replicated.wal_object import FooterBatch

logger = logging.getLogger(__name__)

READS_AT_ONCE: Final = 16
REPEATED_AT_ONCE: Final = READS_AT_ONCE // 2
"""Maximum number of attempts at once for reads that have failed before."""
GAP_BYTES_MAX: Final = 64 * 1024
"""Bytes between two ranges that are read, too, to save a request."""
FOOTER_BYTES_MAX: Final = 16 * 1024 * 1024
"""Size of the footers that are kept: a takeover needs each of them for many logs."""
_PAUSE_S_MIN: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
_SAID_AFTER_S: Final = 5.0
"""Time after which a read that fails is reported; one that the store refuses is at once."""
_THOUSAND: Final = 1000


class _Range(NamedTuple):
    """Bytes of an object that are read by one request."""

    key: str
    begin: int
    end: int


class _Read:
    """One request, and its result once it has one."""

    __slots__ = ("data", "due_s", "error", "is_patient", "lines", "pause_s", "wanted")

    def __init__(self, wanted: _Range, *, is_patient: bool) -> None:
        """``is_patient``: whether it is repeated until it succeeds."""
        self.wanted = wanted
        self.is_patient = is_patient
        self.data: bytes | None = None
        self.error: BaseException | None = None
        self.due_s = 0.0
        """Time of its next attempt."""
        self.pause_s = 0.0
        """Pause before its last attempt, or 0 before the first one."""
        self.lines = LogLines(monotonic() + _SAID_AFTER_S)

    @property
    def is_done(self) -> bool:
        """Whether it has a result."""
        return self.data is not None or self.error is not None


class ObjectReader:
    """Reads of one broker; callable on any thread."""

    def __init__(self, open_store: Callable[[], BlobStore]) -> None:
        """``open_store`` returns a connection, and may block."""
        self._open_store = open_store
        self._changed = new_condition()
        self._waiting: list[_Read] = []
        """Reads without a thread, in order."""
        self._threads = self._idle_threads = 0
        self._repeated = 0
        """Number of attempts under way for reads that have failed before."""
        self._footers: dict[str, bytes] = {}
        """Footers that were read lately, by key."""
        self._footer_bytes = 0
        self._is_closed = False

    def bodies(self, extents: Sequence[Extent], within_s: float | None = None) -> list[Extent]:
        """Return extents with their bytes, as ``read``."""
        places = [each.place for each in extents if each.place is not None]
        found = self.read(places, within_s) if places else {}
        return [
            each if each.place is None else each._replace(data=found[each.place], place=None)
            for each in extents
        ]

    def headers(self, extents: Sequence[Extent]) -> list[Sequence[FooterBatch]]:
        """Return the batches of extents as footers have them; raises ObjectDamaged, IndexClosed."""
        places = [each.place for each in extents if each.place is not None]
        self._read_footers({each.key: each.size for each in places})
        return [
            headers_in(each.data) if each.place is None else self._headers_at(each.place)
            for each in extents
        ]

    def _read_footers(self, sizes: Mapping[str, ObjectSize]) -> None:
        """Read footers that were not read lately, all at once."""
        with self._changed:
            missing = {key: size for key, size in sizes.items() if key not in self._footers}
        places = {
            key: ObjectPlace(key, size.footer_at, size.size_bytes - size.footer_at, size)
            for key, size in missing.items()
        }
        found = self.read(places.values())
        with self._changed:
            for key, place in places.items():
                if key not in self._footers:  # Another thread may have read it meanwhile.
                    self._footers[key] = found[place]
                    self._footer_bytes += place.length
            for key in [*self._footers]:
                if self._footer_bytes <= FOOTER_BYTES_MAX or key in sizes:
                    continue
                self._footer_bytes -= len(self._footers.pop(key))

    def _headers_at(self, place: ObjectPlace) -> Sequence[FooterBatch]:
        with self._changed:
            footer = self._footers.get(place.key)
        try:
            if footer is None:  # Others have taken its room.
                return headers_in(self.read([place])[place])
            found = read_footer(footer)
        except CorruptBatch as error:
            raise ObjectDamaged(f"object {place.key}: {error}") from None
        for item, batches in found.items():
            if (item.position, item.length) == (place.position, place.length):
                return batches
        raise ObjectDamaged(f"object {place.key} has no extent at byte {place.position}")

    def read(
        self, places: Iterable[ObjectPlace], within_s: float | None = None
    ) -> Mapping[ObjectPlace, bytes]:
        """Return the bytes at some places; raises ObjectDamaged, IndexClosed.

        ``within_s``: None to repeat a call that fails until it succeeds; otherwise it is not
        repeated, and BlobStoreError is raised for it, or after this time.
        """
        ranges = list(_ranges(places))
        reads = [_Read(wanted, is_patient=within_s is None) for wanted, _ in ranges]
        with self._changed:
            self._waiting += reads
            self._start_threads()
            self._changed.notify_all()
            if not self._changed.wait_for(
                lambda: self._is_closed or all(each.is_done for each in reads), within_s
            ):
                self._waiting = [each for each in self._waiting if each not in reads]
                late = next(each for each in reads if not each.is_done)
                raise BlobStoreError(f"object {late.wanted.key}: no response within {within_s} s")
        return {
            place: _bytes_of(read)[place.position - read.wanted.begin :][: place.length]
            for read, (_, inside) in zip(reads, ranges, strict=True)
            for place in inside
        }

    def close(self) -> None:
        """End all reads with IndexClosed."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _start_threads(self) -> None:
        """Start as many threads as the waiting reads need; the lock is held.

        An idle thread counts as such until it has taken its read.
        """
        missing = min(len(self._waiting) - self._idle_threads, READS_AT_ONCE - self._threads)
        for _ in range(max(0, missing)):
            self._threads += 1
            start_thread("barnabas-object-reader", self._run)

    def _run(self) -> None:
        try:
            with contextlib.closing(self._open_store()) as store:
                while True:
                    self._carry_out(store, self._next_read())
        except IndexClosed:
            pass
        except Exception as error:  # noqa: BLE001  Raised to the callers.
            self._fail_all(error)
        finally:
            with self._changed:
                self._threads -= 1

    def _fail_all(self, error: Exception) -> None:
        """End all reads that no thread has started: the store cannot be opened."""
        with self._changed:
            for read in self._waiting:
                read.error = error
            self._waiting.clear()
            self._changed.notify_all()

    def _next_read(self) -> _Read:
        with self._changed:
            self._idle_threads += 1
            try:
                while not self._is_closed:
                    wait_s: float | None = None
                    for at, read in enumerate(self._waiting):
                        if read.pause_s and self._repeated == REPEATED_AT_ONCE:
                            continue
                        left_s = read.due_s - monotonic() if read.pause_s else 0.0
                        if left_s <= 0:
                            self._repeated += bool(read.pause_s)
                            return self._waiting.pop(at)
                        wait_s = left_s if wait_s is None else min(wait_s, left_s)
                    self._changed.wait(wait_s)
                raise IndexClosed
            finally:
                self._idle_threads -= 1

    def _carry_out(self, store: BlobStore, read: _Read) -> None:
        data, error = None, None
        try:
            data = _attempt(store, read.wanted)
        except Exception as found:  # noqa: BLE001  Raised to the caller.
            error = found
        with self._changed:
            self._repeated -= bool(read.pause_s)
            if read.is_patient and isinstance(error, BlobStoreError):
                self._repeat_later(read, error)
            else:
                read.data, read.error = data, error
            self._changed.notify_all()
        if isinstance(error, IndexClosed):
            raise error

    def _repeat_later(self, read: _Read, error: BlobStoreError) -> None:
        """Put a read that failed back, for its next attempt; the lock is held."""
        now_s, is_first = monotonic(), not read.pause_s
        read.pause_s = min(max(_PAUSE_S_MIN, 2 * read.pause_s), _PAUSE_S_MAX)
        read.due_s = now_s + read.pause_s * (1 + random_below(_THOUSAND) / _THOUSAND)
        self._waiting.append(read)
        is_refused = isinstance(error, BlobRefused)
        if read.lines.is_due(now_s, at_once=is_first and is_refused):
            logger.warning("takeover waits for an object key=%s error=%s", read.wanted.key, error)


def _attempt(store: BlobStore, wanted: _Range) -> bytes:
    """Return the bytes of a range; raises ObjectDamaged, BlobStoreError, IndexClosed."""
    try:
        data = store.get_range(wanted.key, wanted.begin, wanted.end - wanted.begin)
    except BlobNotFound:
        raise ObjectDamaged(f"object {wanted.key} is missing") from None
    end = wanted.begin + len(data)
    if end < wanted.end:
        raise ObjectDamaged(f"object {wanted.key} ends at byte {end}, not {wanted.end}")
    return data


def _bytes_of(read: _Read) -> bytes:
    if read.error is not None:
        raise read.error
    if read.data is None:
        raise IndexClosed
    return read.data


def _ranges(places: Iterable[ObjectPlace]) -> Iterator[tuple[_Range, list[ObjectPlace]]]:
    """Yield ranges that cover ``places``, each with the places in it."""
    inside: list[ObjectPlace] = []
    key, begin, end = "", 0, 0
    for place in sorted(set(places)):
        if inside and (place.key != key or place.position > end + GAP_BYTES_MAX):
            yield _Range(key, begin, end), inside
            inside = []
        if not inside:
            key, begin, end = place.key, place.position, place.position
        inside.append(place)
        end = max(end, place.position + place.length)
    if inside:
        yield _Range(key, begin, end), inside
