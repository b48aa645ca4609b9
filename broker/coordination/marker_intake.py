"""Markers that a state machine has to take in, at once or a part at a time.

A marker that ends a transaction over very many offsets is taken in in slices. From the moment that
it is durable until its last part is taken in, no command of the partition runs: a client that
learns of the marker and asks then is shown all of it (KAFKA-17507).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordination.shard import Shard
    from barnabas.broker.runtime.host import Host

_DONE: Final = object()


@dataclass(slots=True, eq=False)
class _UnderWay:
    """What one partition is occupied with."""

    markers: deque[Iterator[None]] = field(default_factory=deque)
    """The steps that are left of each."""
    held: list[Callable[[], None]] = field(default_factory=list)
    """What goes on after that, in order."""

    def let_go(self) -> None:
        """Let go on what was held up."""
        for go_on in self.held:
            go_on()


class MarkerIntake:
    """The large markers of one coordinator."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._under_way: dict[Shard[Any], _UnderWay] = {}

    def take_in(self, shard: Shard[Any], producer_id: int, *, commit: bool) -> None:
        """Take in a marker that is durable: at once, as far as anybody can see."""
        steps = shard.machine.end_transaction(producer_id, commit=commit)
        if steps is None:
            return
        under_way = self._under_way.get(shard)
        if under_way is not None:
            under_way.markers.append(steps)
            return
        under_way = self._under_way[shard] = _UnderWay(deque([steps]))
        self._host.spawn(self._run(shard, under_way), f"take in markers of {shard.log}")

    def holds(self, shard: Shard[Any]) -> bool:
        """Whether a partition's commands have to wait now."""
        return bool(self._under_way) and shard in self._under_way

    def hold(self, shard: Shard[Any], then: Callable[[], None]) -> None:
        """Call ``then`` when all markers of the partition are taken in, or it is lost."""
        self._under_way[shard].held.append(then)

    async def pause(self, shard: Shard[Any]) -> None:
        """Let others run, and then all markers; raises KafkaError if the partition is lost."""
        await next_turn()
        while self.holds(shard):
            released = asyncio.Event()
            self.hold(shard, released.set)
            await released.wait()
        if shard.is_gone:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def forget(self, shard: Shard[Any]) -> None:
        """Let go on at once what the markers of a lost partition hold up, to find that out."""
        under_way = self._under_way.pop(shard, None)
        if under_way is not None:
            under_way.let_go()

    async def _run(self, shard: Shard[Any], under_way: _UnderWay) -> None:
        try:
            while under_way.markers and not shard.is_gone:
                if next(under_way.markers[0], _DONE) is _DONE:
                    under_way.markers.popleft()
                await next_turn()
        except Exception as error:  # noqa: BLE001  What is in memory is right no more (D9).
            self._host.fatal(error)
            return
        if not shard.is_gone:
            del self._under_way[shard]
            under_way.let_go()
            self._host.flush_answers()
