"""Uploads of the bodies of flushes: several at once, each by one or more attempts.

Rules of this file:

1. Each attempt has a key of its own, which no other attempt ever has (F7). The first attempt that
   the store confirms decides the key of its upload, for good.
2. A failed attempt is followed by another one after a pause of 0.1 s, which doubles up to 5 s. A
   late attempt gets a second one beside it, unless the store repeats its calls by itself: after
   three times the duration that 99 of 100 attempts keep, at least one second.
3. No call is cancelled. An upload that is abandoned, or an attempt that comes too late, may still
   leave an object: it is garbage (``storage/replicated/blob_garbage.py``).
4. A store that throttles gets fewer attempts at once, and none beside late ones; its flushes are
   fewer and larger (``upload_limit.py``).
5. The order in which uploads end has no meaning: flushes are committed in theirs (F8).
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from barnabas.storage.errors import IndexClosed
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.objects.blob_store import (
    BlobStore,
    BlobStoreError,
    BlobThrottled,
    UploadKey,
)
from barnabas.storage.replicated.log_index import Lane
from barnabas.storage.replicated.upload_limit import RECOVERY_S, UploadLimit
from barnabas.storage.runtime.chance import random_below
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import new_condition, start_thread

_PAUSE_S_MIN: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
_DOUBLINGS_MAX: Final = 6
_HEDGE_S_MIN: Final = 1.0
_HEDGE_FACTOR: Final = 3
_ATTEMPTS_AT_ONCE: Final = 2
"""Maximum number of attempts of one upload at the same time."""
_DURATIONS_KEPT: Final = 100
_THOUSAND: Final = 1000


@dataclass(frozen=True, slots=True)
class UploadSettings:
    """Limits of the uploads of one broker."""

    bytes_min: int = 1024 * 1024
    """Size of the body from which a flush is uploaded; a smaller one goes with its commit."""
    bytes_max: int = 4 * 1024 * 1024
    """Maximum size of the body of an uploaded flush of several commit groups."""
    most: int = 4
    """Maximum number of uploaded flushes that are not committed."""
    in_object_store: bool = False
    """Whether bodies are put into an object store, each as a ``WalObject``."""
    window_s: float = 0.0
    """Time for which commit groups are collected before an upload; see ``FlushWindow``."""


@dataclass(slots=True, eq=False)
class Upload:
    """The body of one flush, on its way."""

    session: int
    number: int
    body: Sequence[Buffer]
    key: str | None = None
    """Key of the object, set once an upload is confirmed; it never changes afterwards."""
    is_abandoned: bool = False
    running: int = 0
    """Number of attempts that run."""
    failures: int = 0
    due_s: float = 0.0
    """Time of the next attempt."""

    @property
    def is_open(self) -> bool:
        """Whether it needs an attempt."""
        return self.key is None and not self.is_abandoned


class Attempt(NamedTuple):
    """One call of the store for an upload."""

    upload: Upload
    key: str
    begun_s: float


class Uploads:
    """The uploads of one broker, which callers carry out; callable on any thread."""

    def __init__(
        self, settings: UploadSettings | None = None, now_s: Callable[[], float] = monotonic
    ) -> None:
        """``now_s`` returns the time of pauses and hedges."""
        self.settings = settings or UploadSettings()
        self.on_confirmed: Callable[[], None] = lambda: None
        """Called after each upload that has got its key."""
        self.hedges = True
        """Whether a late attempt gets a second one in parallel."""
        self.may_begin: Callable[[int], bool] = lambda _session: True
        """Returns whether bodies of a session may be uploaded; the others go with their commit."""
        self.hedged = 0
        """Number of attempts started in parallel to late ones."""
        self.now_s = now_s
        """Returns the time of pauses, hedges and windows."""
        self._changed = new_condition()
        self._open: list[Upload] = []
        """Uploads without a key, in order."""
        self._running = 0
        """Number of attempts under way, of abandoned uploads, too."""
        self._limit = UploadLimit(self.settings.most)
        self._attempts = itertools.count(1)
        """Numbers of attempts, never used again in this process; sessions are its own."""
        self._durations_s: deque[float] = deque(maxlen=_DURATIONS_KEPT)
        self._is_closed = False

    @property
    def open_count(self) -> int:
        """Number of uploads without a key."""
        return len(self._open)

    @property
    def at_once(self) -> int:
        """Maximum number of uploads at once now."""
        with self._changed:
            return self._limit.at_once(self.now_s())

    @property
    def is_throttled(self) -> bool:
        """Whether the store gets fewer uploads at once than configured."""
        return self.at_once < self.settings.most

    def begin(self, session: int, number: int, body: Sequence[Buffer]) -> Upload:
        """Open the upload of a flush's body; it gets its key later."""
        upload = Upload(session, number, body)
        with self._changed:
            self._open.append(upload)
            self._keep_thread_idle()
            self._changed.notify_all()
        return upload

    def abandon(self, uploads: Sequence[Upload]) -> None:
        """Cancel further attempts for these uploads, which will not be committed."""
        with self._changed:
            for upload in uploads:
                upload.is_abandoned = True
            self._open = [each for each in self._open if each.is_open]

    def wait_for(self, upload: Upload) -> None:
        """Wait until an upload has its key; raises IndexClosed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or upload.key is not None)
            if upload.key is None:
                raise IndexClosed

    def next_attempt(self) -> Attempt | None:
        """Start an attempt that is due, or return None."""
        with self._changed:
            now_s = self.now_s()
            upload = self._next_due()
            if upload is None or upload.due_s > now_s or not self._has_room(now_s):
                return None
            self.hedged += bool(upload.running)
            upload.running += 1
            self._running += 1
            may_hedge = self.hedges and upload.running < _ATTEMPTS_AT_ONCE
            upload.due_s = now_s + self._hedge_s() if may_hedge else math.inf
            number = next(self._attempts)
            key = UploadKey(upload.session, Lane.INLINE, upload.number, number).text
            return Attempt(upload, key, now_s)

    def confirm(self, attempt: Attempt) -> None:
        """End an attempt whose object is durable: the first one decides the upload's key."""
        upload = attempt.upload
        with self._changed:
            upload.running -= 1
            self._running -= 1
            self._durations_s.append(self.now_s() - attempt.begun_s)
            self._changed.notify_all()
            if not upload.is_open:
                return
            upload.key = attempt.key
            self._open.remove(upload)
        self.on_confirmed()

    def fail(self, attempt: Attempt, error: BlobStoreError) -> None:
        """End an attempt without a confirmation: another one follows after a pause."""
        upload = attempt.upload
        with self._changed:
            upload.running -= 1
            self._running -= 1
            if isinstance(error, BlobThrottled):
                self._limit.throttled(attempt.begun_s, self.now_s(), str(error))
            pause_s = min(_PAUSE_S_MIN * 2 ** min(upload.failures, _DOUBLINGS_MAX), _PAUSE_S_MAX)
            upload.failures += 1
            jitter = 1 + random_below(_THOUSAND) / _THOUSAND
            upload.due_s = min(upload.due_s, self.now_s() + pause_s * jitter)
            self._changed.notify_all()

    def close(self) -> None:
        """End all waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _keep_thread_idle(self) -> None:
        """Keep a thread ready for the next attempt; called under the lock."""

    def _has_room(self, now_s: float) -> bool:
        """Whether another attempt may run; the lock is held."""
        return not self._limit.is_reduced(now_s) or self._running < self._limit.at_once(now_s)

    def _next_due(self) -> Upload | None:
        return min(self._open, key=_due_s, default=None)

    def _hedge_s(self) -> float:
        """Return the duration after which an attempt is late."""
        durations_s = sorted(self._durations_s)
        if not durations_s:
            return _HEDGE_S_MIN
        return max(_HEDGE_S_MIN, _HEDGE_FACTOR * durations_s[len(durations_s) * 99 // 100])


_due_s = attrgetter("due_s")


class UploadThreads(Uploads):
    """Uploads on threads of their own, each with a connection, started as they are needed."""

    def __init__(
        self,
        open_store: Callable[[], BlobStore],
        on_failed: Callable[[BaseException], None],
        settings: UploadSettings | None = None,
    ) -> None:
        """``open_store`` returns a connection, and may block.

        ``on_failed`` is called for an error that is not the store's.
        """
        super().__init__(settings)
        self._open_store = open_store
        self._on_failed = on_failed
        self._stores: list[BlobStore] = []
        self._threads = self._idle_threads = 0

    def close(self) -> None:
        """End all attempts and threads."""
        super().close()
        with self._changed:
            stores, self._stores = self._stores, []
        for store in stores:
            store.close()

    def _keep_thread_idle(self) -> None:
        most = self.settings.most * (_ATTEMPTS_AT_ONCE if self.hedges else 1)
        if not self._idle_threads and self._threads < most:
            self._threads += 1
            self._idle_threads += 1
            start_thread("barnabas-upload", self._run)

    def _run(self) -> None:
        try:
            store = self._connect()
            while (attempt := self._wait_for_attempt()) is not None:
                try:
                    store.put(attempt.key, attempt.upload.body)
                except BlobStoreError as error:
                    self.fail(attempt, error)
                else:
                    self.confirm(attempt)
                with self._changed:
                    self._idle_threads += 1
        except IndexClosed:
            pass
        except BaseException as error:  # noqa: BLE001  Any failure here ends the process (D9).
            self._on_failed(error)

    def _connect(self) -> BlobStore:
        store = self._open_store()
        with self._changed:
            if not self._is_closed:
                self._stores.append(store)
                self.hedges = not store.repeats_calls
                return store
        store.close()
        raise IndexClosed

    def _wait_for_attempt(self) -> Attempt | None:
        """Wait for an attempt that is due; return None at the end."""
        while True:
            attempt = self.next_attempt()
            with self._changed:
                if attempt is not None:
                    self._idle_threads -= 1
                    following = self._next_due()
                    if following is not None and following.due_s < math.inf:
                        self._keep_thread_idle()
                    return attempt
                if self._is_closed:
                    return None
                upload = self._next_due()
                now_s = self.now_s()
                if upload is None or upload.due_s == math.inf:
                    self._changed.wait()
                elif upload.due_s > now_s:
                    self._changed.wait(upload.due_s - now_s)
                else:  # Until another attempt has ended, or more may run at once.
                    self._changed.wait(RECOVERY_S)
