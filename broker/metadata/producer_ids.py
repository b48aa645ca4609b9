"""Producer IDs that were never allocated before (S10), taken from the MetaStore in blocks."""

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
"""First producer ID that is not allocated to producers. The console derives IDs from here on from
the keys of records that it might send twice (broker/console/actions/records.py); no transactional
ID gets them."""
LOW: Final = 500
"""Number of remaining IDs below which the next block is fetched."""


class ProducerIds:
    """IDs of the current block."""

    def __init__(self, metastore: MetaStore, changes: Changes) -> None:
        self._metastore = metastore
        self._changes = changes
        self._ids: deque[int] = deque()
        self._end = 0
        """First ID that neither this broker nor another one can have allocated."""
        self._coming: asyncio.Task[None] | None = None
        """Change that fetches the next block."""
        changes.join(self)

    def load(self, image: MetadataImage) -> None:
        """Load the range of IDs that earlier starts may have allocated."""
        self._end = image.next_producer_id

    def was_given(self, producer_id: int) -> bool:
        """Whether an ID was allocated by this start, or may have been by an earlier or another
        one.
        """
        if not self._ids or producer_id < self._ids[0]:
            return producer_id < self._end
        # Blocks of other brokers may lie between and after those of this broker.
        return producer_id < self._end and producer_id not in self._ids

    @property
    def era_start(self) -> int:
        """Return the first ID that no producer elsewhere can have got before a restore."""
        return era_start(self._end)

    async def next(self) -> int:
        """Return a producer ID that was never returned before (S10).

        Raises KafkaError, also after a short time if the MetaStore is unavailable, since clients
        retry.
        """
        until_s = self._changes.time_in(REPEATED_MS)
        while not self._ids:
            await self._changes.outcome_of(self._next_block(), until_s)
        return self._ids.popleft()

    def peek(self) -> int:
        """Return a free producer ID for ``take``, or -1 if none is ready.

        The next block is fetched early, so that an ID is ready while the disk works.
        """
        if len(self._ids) < LOW:
            self._next_block()
        return self._ids[0] if self._ids else -1

    def take(self, producer_id: int) -> None:
        """Allocate the ID that ``peek`` returned."""
        taken = self._ids.popleft()
        assert taken == producer_id, (taken, producer_id)

    async def ensure(self) -> None:
        """Wait until producer IDs are available; raises KafkaError, see ``next``."""
        if not self._ids:
            await self._changes.outcome_of(self._next_block(), self._changes.time_in(REPEATED_MS))

    def _next_block(self) -> asyncio.Task[None]:
        """Return the change that fetches the next block, shared by all waiting callers."""
        if self._coming is None or self._coming.done():
            self._coming = self._changes.start(self._allocate)
        return self._coming

    async def _allocate(self) -> None:
        """Make the next block durable before one of its IDs is allocated."""
        if len(self._ids) < LOW:
            allocate = self._metastore.allocate_producer_ids
            block = await self._changes.commit_regardless(allocate)
            await self._changes.show(Difference(next_producer_id=block.stop))
            self._ids.extend(block)

    # ----------------------------------------------------------------------- called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Record a block of IDs that this or another broker has got."""
        if difference.next_producer_id is not None:
            self._end = difference.next_producer_id

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with the first ID that is not allocated yet."""
        return replace(image, next_producer_id=self._end)
