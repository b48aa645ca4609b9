"""Changes to the MetaStore, and to what this broker shows of it.

Rules of this file:

* One at a time, each to its end, even when its client has gone or waits no longer.
* Whoever made a change, what is shown is changed by a difference of two images
  (``storage/metastore/difference.py``): by ``show`` where this broker has just committed it, by
  ``follow`` where others have. A crash between commit and ``show`` needs no repair: a start shows
  the image.
* The image is in memory once: in what shows it (``Part``).
* What was shown is never taken back by an image that is older.
* A change is computed from what is shown, and committed only if that is all there is: where another
  broker has been quicker, what it did is shown, and the change is computed again. So of two brokers
  that alter one resource neither undoes what the other did, and no rule is kept that both know
  only half of what it is about.
* A failure that leaves what is shown and the MetaStore different is fatal (D9).
* Where the store may be away (``metastore_calls.py``), nobody waits for it without end: who asks
  for a change is answered REQUEST_TIMED_OUT when his time is up, and it may still be committed, as
  in Kafka. A change that was not begun by then never is. No more than WAITING_MAX wait.
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
"""In the place of a time: for what has to be done, however long it takes."""
REPEATED_MS: Final = 1000
"""How long a client waits that asks again by itself, on a connection that others wait for, too."""
WAITING_MAX: Final = 500
"""Changes that may wait for a store that is away; one more is refused."""
ATTEMPTS_MOST: Final = 10
"""How often a change is computed; each time but the last another broker has been quicker."""
EARLY_S: Final = 0.002
"""By so much a timer may be early: with less time left than that there is none."""


class Part(Protocol):
    """What shows a part of the MetaStore's image, in the form that requests need."""

    async def show(self, difference: Difference) -> None:
        """Change what is shown, and whatever else follows from that."""

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with what is shown here in place of its part."""


class Changes:
    """The changes under way, and how far what is shown has come."""

    def __init__(
        self,
        metastore: MetaStore,
        on_fatal: Callable[[BaseException], None],
        calls: MetaStoreCalls | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Without ``calls`` the loop calls the store; ``clock`` is the machine's by default."""
        self._metastore = metastore
        self._clock: Clock = clock or SystemClock()
        self._on_fatal = on_fatal
        self._calls: MetaStoreCalls = calls or CallsHere()
        self._parts: list[Part] = []
        self._shown_version = 0
        """Every commit up to this one is shown."""
        self._own_version = 0
        """Of the newest commit of this broker. It is shown, be those before it shown or not."""
        self._changing = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        self._is_given_up = False
        """Whether this broker ends, and a store that may be away is not called any more."""

    def join(self, part: Part) -> None:
        """Let a part show what changes from now on; the image that ``load`` is told of is there."""
        self._parts.append(part)

    def load(self, image: MetadataImage) -> None:
        """Take note of what is shown at the start."""
        self._shown_version = image.version

    @property
    def shown_version(self) -> int:
        """Return a version of the image up to which all is shown: more may be."""
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
        """Run one change alone and to its end, whatever happens to its client.

        ``change`` is called again where another broker has been quicker (``commit``).
        ``until_s`` is the clock's time at which the client waits no longer (``time_in``); without
        it, a time that suits all clients. It counts only where the store may be away. Raises
        KafkaError, which is REQUEST_TIMED_OUT then.
        """
        if until_s is None:
            until_s = self._default_end_s()
        self.admit(until_s)
        return await self.outcome_of(self.start(change), until_s)

    def _default_end_s(self) -> float:
        patience_s = self._calls.patience_s
        return FOREVER if patience_s is None else self._clock.monotonic() + patience_s

    def admit(self, until_s: float) -> None:
        """Raise KafkaError where a change is not to be begun for who waits until then."""
        if self._calls.patience_s is None or until_s == FOREVER:
            return
        if len(self._running) >= WAITING_MAX:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "Too many changes wait for the metadata store."
            )
        if self._clock.monotonic() >= until_s - EARLY_S:
            raise _timed_out()

    def start(self, change: Callable[[], Awaitable[Result]]) -> asyncio.Task[Result]:
        """Have a change run alone and to its end, for which ``outcome_of`` may wait."""
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
        """Start what ``close`` has to wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def commit(self, change: Callable[[], Result]) -> Result:
        """Have the change under way make its commit: one call of the MetaStore; return its answer.

        ``show`` follows. Raises Outdated where others have come first, for ``run`` or ``start``:
        what was computed is dropped, and the change called again.
        """
        shown = self._shown_version
        return await self._commit(lambda: self._metastore.based_on(shown, change))

    async def commit_regardless(self, change: Callable[[], Result]) -> Result:
        """Do the same for what does not depend on what is shown; ``show`` follows.

        What others have committed before is not shown by that.
        """
        return await self._commit(change)

    async def _commit(self, change: Callable[[], Result]) -> Result:
        result, self._own_version = await self._calls.answer_of(
            lambda: (change(), self._metastore.version)
        )
        return result

    async def show(self, committed: Difference) -> None:
        """Show what the change under way has just committed, and nothing else has changed."""
        version = self._own_version
        await self._show(committed)
        if version == self._shown_version + 1:  # Else others have committed something, too.
            self._shown_version = version

    async def catch_up(self) -> None:
        """Show all that is committed; for the change under way, to which others have come first."""
        await self._follow(await self.image())

    async def image(self) -> MetadataImage:
        """Return what the MetaStore holds, however long that takes; raises MetaStoreError."""
        return await self._calls.answer_of(self._metastore.load)

    async def follow(self, image: MetadataImage) -> None:
        """Show a newer image, which others have made; one that is not newer changes nothing.

        Raises whatever a start on this image would raise, and that is fatal.
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
        # Looked at here because its client may be gone; it gets it too if it is there.
        if not task.cancelled():
            task.exception()

    async def _exclusively(self, change: Callable[[], Awaitable[Result]]) -> Result:
        async with self._changing:
            await next_turn()  # Each waits for the disk: those of many clients are not one turn.
            if self._is_given_up:
                raise _timed_out()
            try:
                return await self._computed(change)
            except KafkaError:
                raise
            except TopicNotFound as error:
                # Another broker has been quicker to delete it, and that is not shown here yet.
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from error
            except MetaStoreRefused as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            except MetaStoreError as error:
                if self._is_given_up:  # The next start shows what is committed, be it this or not.
                    raise _timed_out() from error
                # What is on disk is no longer known, so nothing here can be trusted.
                self._on_fatal(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def _computed(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """Make a change, computed from all that there is when it is committed."""
        for _ in range(ATTEMPTS_MOST):
            try:
                return await change()
            except Outdated:
                await self.catch_up()
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, "Other brokers change the metadata all the time."
        )

    async def close(self) -> None:
        """Wait until the changes under way are complete.

        Where the store is away they are given up after a while, and the store is closed.
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
        """Wait until no change is under way; False: some still are after all that time."""
        limit = contextlib.nullcontext() if patience_s is None else self._clock.timeout(patience_s)
        try:
            async with limit:
                while self._running:
                    await asyncio.wait(self._running)
        except TimeoutError:
            return not self._running
        return True

    def abandon(self) -> None:
        """Drop the changes under way, as a crash does: nothing more is committed.

        Unless it is on its way to a store that is elsewhere.
        """
        for task in self._running:
            task.cancel()
        self._calls.close()


def _timed_out() -> KafkaError:
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        "The metadata store has not answered in time. It may still make the change.",
    )
