"""Producer ids that were never given away (S10), taken from the MetaStore in blocks."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.changes import REPEATED_MS
from barnabas.broker.metadata.restored import era_start
from barnabas.storage.metastore.difference import Difference

if TYPE_CHECKING:
    from barnabas.broker.metadata.changes import Changes
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

KEYED_FROM: Final = 2**62
"""From here on ids are given to nobody: they are made of the keys of what is sent twice, by the
console (broker/console/actions/records.py), and never those of a transactional id."""
LOW: Final = 500
"""When fewer are left the next block is fetched."""


class ProducerIds:
    """The ids of the present block."""

    def __init__(self, metastore: MetaStore, changes: Changes) -> None:
        self._metastore = metastore
        self._changes = changes
        self._ids: deque[int] = deque()
        self._end = 0
        """No id from this one on was given away, nor can one be by another broker."""
        self._coming: asyncio.Task[None] | None = None
        """The change that brings the next block."""
        changes.join(self)

    def load(self, image: MetadataImage) -> None:
        """Take over which ids earlier starts may have given away."""
        self._end = image.next_producer_id

    def was_given(self, producer_id: int) -> bool:
        """Whether an id was given away: by this start or, perhaps, by an earlier or another one."""
        if not self._ids or producer_id < self._ids[0]:
            return producer_id < self._end
        # Blocks of others may lie between and behind those of this broker.
        return producer_id < self._end and producer_id not in self._ids

    @property
    def era_start(self) -> int:
        """Return the first id that cannot have gone to a producer elsewhere before a restore."""
        return era_start(self._end)

    async def next(self) -> int:
        """Return a producer id that was never returned before (S10).

        Raises KafkaError, be it that the MetaStore is away: not for long, clients ask again.
        """
        until_s = self._changes.time_in(REPEATED_MS)
        while not self._ids:
            await self._changes.outcome_of(self._next_block(), until_s)
        return self._ids.popleft()

    def peek(self) -> int:
        """Return a producer id that is free, for ``take``; -1: none is ready.

        The next block is fetched in time, so that there is always one while the disk works.
        """
        if len(self._ids) < LOW:
            self._next_block()
        return self._ids[0] if self._ids else -1

    def take(self, producer_id: int) -> None:
        """Give away the id that ``peek`` returned."""
        taken = self._ids.popleft()
        assert taken == producer_id, (taken, producer_id)

    async def ensure(self) -> None:
        """Wait until there are producer ids to give away; raises KafkaError, see ``next``."""
        if not self._ids:
            await self._changes.outcome_of(self._next_block(), self._changes.time_in(REPEATED_MS))

    def _next_block(self) -> asyncio.Task[None]:
        """Return the change that brings the next block, which is one for all who wait."""
        if self._coming is None or self._coming.done():
            self._coming = self._changes.start(self._allocate)
        return self._coming

    async def _allocate(self) -> None:
        """Make the next block durable before one id of it is given away."""
        if len(self._ids) < LOW:
            allocate = self._metastore.allocate_producer_ids
            block = await self._changes.commit_regardless(allocate)
            await self._changes.show(Difference(next_producer_id=block.stop))
            self._ids.extend(block)

    # ----------------------------------------------------------------------- called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Take note of ids that are given away, be it here."""
        if difference.next_producer_id is not None:
            self._end = difference.next_producer_id

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with the first id that nobody was given yet."""
        return replace(image, next_producer_id=self._end)
