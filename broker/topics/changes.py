"""Changes to the MetaStore, and to what this broker shows of it.

Rules of this file:

* One at a time, each to its end, even when its client has gone.
* Whoever made a change, what is shown is changed by a difference of two images
  (``storage/metastore/difference.py``): by ``show`` where this broker has just committed it, by
  ``follow`` where others have. A crash between commit and ``show`` needs no repair: a start shows
  the image.
* The image is in memory once: in what shows it (``Part``).
* What was shown is never taken back by an image that is older.
* A failure that leaves what is shown and the MetaStore different is fatal (D9).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.difference import Difference, difference
from barnabas.storage.metastore.interface import (
    MetadataImage,
    MetaStoreError,
    MetaStoreRefused,
    TopicExists,
    TopicNotFound,
)

if TYPE_CHECKING:
    from barnabas.storage.metastore.interface import MetaStore

Result = TypeVar("Result")


class Part(Protocol):
    """What shows a part of the MetaStore's image, in the form that requests need."""

    async def show(self, difference: Difference) -> None:
        """Change what is shown, and whatever else follows from that."""

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with what is shown here in place of its part."""


class Changes:
    """The changes under way, and how far what is shown has come."""

    def __init__(self, metastore: MetaStore, on_fatal: Callable[[BaseException], None]) -> None:
        self._metastore = metastore
        self._on_fatal = on_fatal
        self._parts: list[Part] = []
        self._shown_version = 0
        """Every commit up to this one is shown."""
        self._own_version = 0
        """Of the newest commit of this broker. It is shown, be those before it shown or not."""
        self._changing = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def shown_version(self) -> int:
        """Every commit up to this one is shown."""
        return self._shown_version

    def join(self, part: Part) -> None:
        """Let a part show what changes from now on; the image that ``load`` is told of is there."""
        self._parts.append(part)

    def load(self, image: MetadataImage) -> None:
        """Take note of what is shown at the start."""
        self._shown_version = image.version

    async def run(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """Run one change alone and to its end, whatever happens to its client."""
        return await asyncio.shield(self.begin(self._exclusively(change)))

    def begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start what ``close`` has to wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def show(self, committed: Difference) -> None:
        """Show what the change under way has just committed, and nothing else has changed."""
        version = self._own_version = self._metastore.version
        await self._show(committed)
        if version == self._shown_version + 1:  # Else others have committed something, too.
            self._shown_version = version

    async def catch_up(self) -> None:
        """Show all that is committed; for the change under way, to which others have come first."""
        self._own_version = self._metastore.version
        if self._own_version > self._shown_version:
            await self._follow(self._metastore.load())

    async def follow(self, image: MetadataImage) -> None:
        """Show a newer image, which others have made; one that is not newer changes nothing.

        Raises whatever a start on this image would raise, and that is fatal.
        """
        await self.run(lambda: self._follow(image))

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
            try:
                return await change()
            except KafkaError:
                raise
            except TopicExists as error:
                # Here and below: another broker has been quicker, and it is not shown here yet.
                raise KafkaError(
                    ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{error}' already exists."
                ) from error
            except TopicNotFound as error:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from error
            except MetaStoreRefused as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            except MetaStoreError as error:
                # What is on disk is no longer known, so nothing here can be trusted.
                self._on_fatal(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def close(self) -> None:
        """Wait until the changes under way are complete."""
        while self._running:
            await asyncio.wait(self._running)

    def abandon(self) -> None:
        """Drop the changes under way, as a crash does: nothing more is committed."""
        for task in self._running:
            task.cancel()
