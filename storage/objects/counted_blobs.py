"""Calls of an object store, counted for metrics and for warnings about an outage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.storage.counts import Histogram
from barnabas.storage.objects.blob_store import BlobNotFound, BlobStoreError, BlobThrottled
from barnabas.storage.objects.object_rows import Requests
from barnabas.storage.runtime.clock import counter_ns, monotonic
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from barnabas.storage.files.file_system import Buffer
    from barnabas.storage.objects.blob_store import BlobStore

Result = TypeVar("Result")

OPERATIONS: Final = ("put", "get", "list", "delete")
RESULTS: Final = ("ok", "missing", "failed")
_AWAITED: Final = ("put", "get")
"""Operations that are repeated until they succeed."""
FORGOTTEN_S: Final = 60.0
"""Time after which a failure does not count any more: a call that must succeed is repeated earlier.
"""


THROTTLED_S: Final = 10.0
"""Time after a throttled call for which work that can wait leaves the store to uploads."""


_NS_PER_S: Final = 1_000_000_000


class Puts(NamedTuple):
    """Whether the store takes objects of one broker."""

    failing_s: float | None
    """Seconds for which each put has failed, or None if the last one succeeded, or none ended."""
    stored_s: float | None
    """Seconds since the last put that succeeded, or None without one."""


class ObjectCounts:
    """Counts of one broker; any thread may read them, and counts."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        """Number of calls by operation and result."""
        self.size_bytes: Counter[str] = Counter()
        """Bytes put and got."""
        self.times = {operation: Histogram() for operation in OPERATIONS}
        """Durations of calls, in nanoseconds."""
        self._lock = new_lock()
        self._error = ""
        self._failed_s = 0.0
        self._throttled_s = float("-inf")
        self._stored_s: float | None = None
        """Time of the last put that succeeded."""
        self._failing_since_s: float | None = None
        """Start of the first put that failed after it, or None if none has."""

    @property
    def last_error(self) -> str:
        """Return the reason why uploads or reads fail now, or ""."""
        with self._lock:
            return self._error if monotonic() - self._failed_s < FORGOTTEN_S else ""

    @property
    def is_throttled(self) -> bool:
        """Whether the store has throttled a call lately."""
        with self._lock:
            return monotonic() - self._throttled_s < THROTTLED_S

    def by_operation(self) -> dict[str, Requests]:
        """Return calls and bytes by operation, without operations that were not called."""
        with self._lock:
            return {
                operation: Requests(count, self.size_bytes[operation])
                for operation in OPERATIONS
                if (count := sum(self.requests[operation, result] for result in RESULTS))
            }

    def puts(self) -> Puts:
        """Return whether the store takes objects now."""
        with self._lock:
            now_s, failing_s, stored_s = monotonic(), self._failing_since_s, self._stored_s
        return Puts(
            None if failing_s is None else now_s - failing_s,
            None if stored_s is None else now_s - stored_s,
        )

    def throttled(self) -> None:
        """Note that the store has throttled a call."""
        with self._lock:
            self._throttled_s = monotonic()

    def count(self, operation: str, result: str, began_ns: int, error: str = "") -> None:
        """Count a call that has ended."""
        with self._lock:
            self.requests[operation, result] += 1
            time_ns = counter_ns() - began_ns
            self.times[operation].observe(time_ns)
            if operation in _AWAITED:
                self._error, self._failed_s = error, monotonic()
            if operation == "put":
                self._note_put(time_ns / _NS_PER_S, is_stored=result == "ok")

    def _note_put(self, seconds: float, *, is_stored: bool) -> None:
        """Note a put that has ended; the lock is held."""
        now_s = monotonic()
        if is_stored:
            self._stored_s, self._failing_since_s = now_s, None
        elif self._failing_since_s is None:
            began_s, stored_s = now_s - seconds, self._stored_s
            self._failing_since_s = began_s if stored_s is None else max(began_s, stored_s)

    def add_bytes(self, operation: str, size_bytes: int) -> None:
        """Count bytes of a call that has succeeded."""
        with self._lock:
            self.size_bytes[operation] += size_bytes


class CountedBlobs:
    """A BlobStore whose calls are counted."""

    def __init__(self, blobs: BlobStore, counts: ObjectCounts) -> None:
        self._blobs = blobs
        self._counts = counts
        self.repeats_calls = blobs.repeats_calls
        self.is_object_store = blobs.is_object_store

    def check(self, name: str) -> None:
        """See ``BlobStore``."""
        self._blobs.check(name)

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        """See ``BlobStore``."""
        self._call("put", lambda: self._blobs.put(key, body))
        self._counts.add_bytes("put", sum(map(len, body)))

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """See ``BlobStore``."""
        found = self._call("get", lambda: self._blobs.get_range(key, position, length))
        self._counts.add_bytes("get", len(found))
        return found

    def delete(self, keys: Sequence[str]) -> None:
        """See ``BlobStore``."""
        self._call("delete", lambda: self._blobs.delete(keys))

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """See ``BlobStore``."""
        return self._call("list", lambda: self._blobs.list(prefix, after, most))

    def close(self) -> None:
        """See ``BlobStore``."""
        self._blobs.close()

    def _call(self, operation: str, call: Callable[[], Result]) -> Result:
        began_ns = counter_ns()
        try:
            found = call()
        except BlobNotFound:
            self._counts.count(operation, "missing", began_ns)
            raise
        except BlobStoreError as error:
            self._counts.count(operation, "failed", began_ns, str(error))
            if isinstance(error, BlobThrottled):
                self._counts.throttled()
            raise
        self._counts.count(operation, "ok", began_ns)
        return found
