"""Changes of the MetaStore, and of the metadata that this broker shows.

Rules of this file:

* Changes run one at a time and each to its end, even if the client has disconnected or stopped
  waiting.
* A difference of two images (``storage/metastore/difference.py``) updates the shown metadata,
  regardless of the broker that made the change: ``show`` applies this broker's commit, ``follow``
  those of others. A crash between commit and ``show`` needs no repair, since a start shows the
  image.
* The image is in memory once: in the parts that show it (``Part``).
* An older image never undoes a newer one.
* A change is computed from the shown metadata, and committed only if that is the newest. If another
  broker has committed first, its change is shown, and this one is computed again. So two brokers
  that alter one resource do not undo each other's changes, and a rule is never checked with
  incomplete data.
* A failure that makes the shown metadata differ from the MetaStore is fatal (D9).
* If the store can be unavailable (``metastore_calls.py``), waits for it are limited: a client whose
  timeout expires gets REQUEST_TIMED_OUT, and the change may still be committed, as in Kafka. A
  change that has not started by then never starts. At most WAITING_MAX changes wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from barnabas.broker.metadata.metastore_calls import CallsHere
from barnabas.broker.runtime.clock import Clock, SystemClock
from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.difference import Difference, difference
from barnabas.storage.metastore.interface import (
    MetadataImage,
    MetaStoreError,
    MetaStoreRefused,
    Outdated,
    TopicNotFound,
)

if TYPE_CHECKING:
    from barnabas.broker.metadata.metastore_calls import MetaStoreCalls
    from barnabas.storage.metastore.interface import MetaStore

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

FOREVER: Final = math.inf
"""Time of a caller that waits without a timeout."""
REPEATED_MS: Final = 1000
"""Timeout, in milliseconds, for a client that retries by itself, on a connection that other
requests share."""
WAITING_MAX: Final = 500
"""Maximum number of changes that wait for an unavailable store; further ones are refused."""
ATTEMPTS_MOST: Final = 10
"""Maximum number of computations of a change; each but the last was overtaken by another broker."""
EARLY_S: Final = 0.002
"""Time, in seconds, by which a timer can fire early; less time left counts as none."""


class Part(Protocol):
    """Component that shows a part of the MetaStore's image, in the form that requests need."""

    async def show(self, difference: Difference) -> None:
        """Apply a difference, with all consequences."""

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with one part replaced by the part that is shown here."""


class Changes:
    """Changes in progress, and the version that is shown."""

    def __init__(
        self,
        metastore: MetaStore,
        on_fatal: Callable[[BaseException], None],
        calls: MetaStoreCalls | None = None,
        clock: Clock | None = None,
    ) -> None:
        """``calls`` runs calls of the store, by default on the event loop; ``clock`` is by default
        the machine's.
        """
        self._metastore = metastore
        self._clock: Clock = clock or SystemClock()
        self._on_fatal = on_fatal
        self._calls: MetaStoreCalls = calls or CallsHere()
        self._parts: list[Part] = []
        self._shown_version = 0
        """Version up to which all commits are shown."""
        self._own_version = 0
        """Version of this broker's newest commit. It is shown, possibly before earlier commits of
        others."""
        self._changing = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        self._is_given_up = False
        """Whether this broker stops and makes no more calls of a store that may be unavailable."""

    def join(self, part: Part) -> None:
        """Add a part that shows all later changes; it must show the image of ``load`` already."""
        self._parts.append(part)

    def load(self, image: MetadataImage) -> None:
        """Record the version that is shown at the start."""
        self._shown_version = image.version

    @property
    def shown_version(self) -> int:
        """Return the version up to which all commits are shown; later ones may be, too."""
        return self._shown_version

    def time_in(self, timeout_ms: int) -> float:
        """Return the clock's seconds in ``timeout_ms`` milliseconds, for ``run``."""
        return self._clock.monotonic() + timeout_ms / 1000

    async def in_time(self, work: Awaitable[None], until_s: float) -> None:
        """Wait for another request to the cluster's store; raises KafkaError REQUEST_TIMED_OUT."""
        try:
            async with self._clock.timeout(until_s - self._clock.monotonic()):
                await work
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from None

    async def run(
        self, change: Callable[[], Awaitable[Result]], until_s: float | None = None
    ) -> Result:
        """Run one change alone and to its end, even if its client disconnects.

        ``change`` is called again after another broker has committed first (``commit``).
        ``until_s`` is the clock's time at which the client stops waiting (``time_in``), or None for
        a time that suits all clients. It has an effect only if the store may be unavailable. Raises
        KafkaError, which is REQUEST_TIMED_OUT after that time.
        """
        if until_s is None:
            until_s = self._default_end_s()
        self.admit(until_s)
        return await self.outcome_of(self.start(change), until_s)

    def _default_end_s(self) -> float:
        patience_s = self._calls.patience_s
        return FOREVER if patience_s is None else self._clock.monotonic() + patience_s

    def admit(self, until_s: float) -> None:
        """Raise KafkaError if no change may start for a client that waits until ``until_s``."""
        if self._calls.patience_s is None or until_s == FOREVER:
            return
        if len(self._running) >= WAITING_MAX:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "Too many changes wait for the metadata store."
            )
        if self._clock.monotonic() >= until_s - EARLY_S:
            raise _timed_out()

    def start(self, change: Callable[[], Awaitable[Result]]) -> asyncio.Task[Result]:
        """Start a change that runs alone and to its end, for ``outcome_of``."""
        return self._begin(self._exclusively(change))

    async def outcome_of(self, change: asyncio.Task[Result], until_s: float) -> Result:
        """Wait for a change that was started; raises KafkaError, see ``run``."""
        if self._calls.patience_s is None or until_s == FOREVER:
            return await asyncio.shield(change)
        try:
            async with self._clock.timeout(until_s - self._clock.monotonic()):
                await asyncio.wait([change])
        except TimeoutError:
            if not change.done():
                raise _timed_out() from None
        return change.result()

    def _begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start a task that ``close`` awaits."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def commit(self, change: Callable[[], Result]) -> Result:
        """Commit the current change by one call of the MetaStore, and return the call's result.

        ``show`` must follow. Raises Outdated if others have committed first, for ``run`` or
        ``start``: the computed change is dropped, and ``change`` is called again.
        """
        shown = self._shown_version
        return await self._commit(lambda: self._metastore.based_on(shown, change))

    async def commit_regardless(self, change: Callable[[], Result]) -> Result:
        """Commit a change that does not depend on the shown metadata; ``show`` must follow.

        ``show`` does not include earlier commits of other brokers.
        """
        return await self._commit(change)

    async def _commit(self, change: Callable[[], Result]) -> Result:
        result, self._own_version = await self._calls.answer_of(
            lambda: (change(), self._metastore.version)
        )
        return result

    async def show(self, committed: Difference) -> None:
        """Apply the difference that the current change has just committed."""
        version = self._own_version
        await self._show(committed)
        if version == self._shown_version + 1:  # Otherwise others have committed, too.
            self._shown_version = version

    async def catch_up(self) -> None:
        """Show all commits; for a change that others have overtaken."""
        await self._follow(await self.image())

    async def image(self) -> MetadataImage:
        """Return the MetaStore's image, without a timeout; raises MetaStoreError."""
        return await self._calls.answer_of(self._metastore.load)

    async def follow(self, image: MetadataImage) -> None:
        """Show a newer image of other brokers; an older one has no effect.

        Raises the errors of a start on this image, which are fatal.
        """
        await self.run(lambda: self._follow(image), FOREVER)

    async def _follow(self, image: MetadataImage) -> None:
        if image.version <= self._shown_version or image.version < self._own_version:
            return
        shown = MetadataImage((), (), {})
        for part in self._parts:
            shown = await part.shown_in(shown)
        await self._show(difference(shown, image))
        self._shown_version = image.version

    async def _show(self, changed: Difference) -> None:
        try:
            for part in self._parts:
                await part.show(changed)
        except Exception as error:
            self._on_fatal(error)
            raise

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        # Retrieved here, since the client may be disconnected; a waiting client gets it, too.
        if not task.cancelled():
            task.exception()

    async def _exclusively(self, change: Callable[[], Awaitable[Result]]) -> Result:
        async with self._changing:
            await next_turn()  # Each waits for the disk: those of many clients take many turns.
            if self._is_given_up:
                raise _timed_out()
            try:
                return await self._computed(change)
            except KafkaError:
                raise
            except TopicNotFound as error:
                # Another broker has deleted it first, and that is not shown here yet.
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from error
            except MetaStoreRefused as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            except MetaStoreError as error:
                if self._is_given_up:  # The next start shows this change if it was committed.
                    raise _timed_out() from error
                # The state on disk is unknown, so no later change would be safe.
                self._on_fatal(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def _computed(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """Run a change until no other broker commits between its computation and its commit."""
        for _ in range(ATTEMPTS_MOST):
            try:
                return await change()
            except Outdated:
                await self.catch_up()
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, "Other brokers change the metadata all the time."
        )

    async def close(self) -> None:
        """Wait until the changes in progress are complete.

        If the store is unavailable they are given up after a time limit, and the store is closed.
        """
        if not await self._are_over_within(self._calls.closing_patience_s):
            logger.warning(
                "metadata store unavailable: outcome of its last changes unknown changes=%d",
                len(self._running),
            )
            self._is_given_up = True
            await self._calls.give_up()
            await self._are_over_within(None)
        self._is_given_up = self._calls.patience_s is not None
        self._calls.close()

    async def _are_over_within(self, patience_s: float | None) -> bool:
        """Wait until no change is in progress; return False if the time limit passes first."""
        limit = contextlib.nullcontext() if patience_s is None else self._clock.timeout(patience_s)
        try:
            async with limit:
                while self._running:
                    await asyncio.wait(self._running)
        except TimeoutError:
            return not self._running
        return True

    def abandon(self) -> None:
        """Drop the changes in progress, as a crash does: only commits in flight to a remote store
        continue.
        """
        for task in self._running:
            task.cancel()
        self._calls.close()


def _timed_out() -> KafkaError:
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        "The metadata store has not answered in time. It may still make the change.",
    )
