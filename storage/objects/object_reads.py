"""Reads of objects for clients: the present ones, and objects whose read has failed lately.

Rules of this file:

* The threads for clients read no object that has failed lately, and one object with all but one
  of them at most: other threads read it then, aside.
* What the store refuses is not read again for a second.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter, OrderedDict
from collections.abc import Collection
from typing import Final

from barnabas.storage.objects.blob_store import BlobRefused, BlobStoreError
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.log_lines import LogLines
from barnabas.storage.runtime.threads import new_lock

logger = logging.getLogger(__name__)

READS_AT_ONCE: Final = 4
"""Maximum number of reads for clients, and of takeovers; each has a connection."""
OF_ONE_OBJECT: Final = READS_AT_ONCE - 1
"""Maximum number of reads of one object for clients at a time."""
FAILING_S: Final = 30.0
"""Time after a failed read for which only the threads for failing objects read that object."""
REFUSED_S: Final = 1.0
"""Time for which an object is not read again after the store has refused it."""
_FAILURES_MAX: Final = 1000
"""Number of failing objects that are known at once."""


class ReadAside(Exception):
    """The threads that read failing objects are to carry out the read."""


class _Failure:
    """An object of which a read has failed."""

    __slots__ = ("failed_s", "lines", "refusal")

    def __init__(self) -> None:
        self.failed_s = 0.0
        self.lines = LogLines()
        self.refusal = ""
        """Text of the store's refusal, or empty."""


class ObjectReads:
    """Objects that are read now, and those that failed lately; callable on any thread."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._reads: Counter[str] = Counter()
        """Number of reads under way by key."""
        self._failures: OrderedDict[str, _Failure] = OrderedDict()

    def begin(self, keys: Collection[str], *, is_aside: bool) -> None:
        """Note the begin of a read.

        Raises ReadAside unless it ``is_aside``, or all objects are well. Raises OSError for an
        object that the store has just refused.
        """
        now_s = monotonic()
        with self._lock:
            for key in keys:
                failure = self._failures.get(key)
                if failure is not None and failure.refusal and now_s - failure.failed_s < REFUSED_S:
                    raise PermissionError(errno.EACCES, failure.refusal, key)
                has_failed = failure is not None and now_s - failure.failed_s < FAILING_S
                if not is_aside and (has_failed or self._reads[key] >= OF_ONE_OBJECT):
                    raise ReadAside
            self._reads.update(keys)

    def end(self, keys: Collection[str], error: BlobStoreError | None = None) -> None:
        """Note the end of a read, and why it has failed."""
        with self._lock:
            self._reads.subtract(keys)
            for key in keys:
                if not self._reads[key]:
                    del self._reads[key]
                if error is None:
                    self._failures.pop(key, None)
                else:
                    self._fail(key, error)

    def report(self, keys: Collection[str], error: BlobStoreError) -> None:
        """Write a line for objects that cannot be read, now and then."""
        now_s = monotonic()
        with self._lock:
            failed = [self._failures[key] for key in keys if key in self._failures]
            due = [each for each in failed if each.lines.is_due(now_s)]
        if due:
            words = "old records unreadable, clients get KAFKA_STORAGE_ERROR key=%s error=%s"
            logger.warning(words, ",".join(keys), error)

    def _fail(self, key: str, error: BlobStoreError) -> None:
        failure = self._failures.setdefault(key, _Failure())
        failure.failed_s = monotonic()
        failure.refusal = str(error) if isinstance(error, BlobRefused) else ""
        self._failures.move_to_end(key)
        while len(self._failures) > _FAILURES_MAX:
            self._failures.popitem(last=False)
