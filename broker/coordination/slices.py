"""Work of a coordinator that is done a slice at a time, and the commands that wait for it.

* A decision that takes long (``Decision.steps``) holds its key: from its first step until its last
  record is applied no other command of the key runs.
* A marker that ends a transaction over very many offsets holds its partition: from its append until
  its last part is taken in no command of the partition runs. A client that learns of the marker and
  then reads is shown all of it (KAFKA-17507).
* The slices of a decision rest while a marker is taken in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordination.shard import Shard
    from barnabas.broker.runtime.host import Host

Then = Callable[[], None]
Result = TypeVar("Result")

_DONE: Final = object()


@dataclass(slots=True, eq=False)
class _UnderWay:
    """Work in one partition, and the work that follows it, in order."""

    markers: deque[Iterator[None]] = field(default_factory=deque)
    """The remaining steps of each marker."""
    holds_all: bool = False
    """Whether markers hold the partition, until the commands that wait for them continue."""
    after_markers: list[Then] = field(default_factory=list)
    after_decisions: dict[str, list[Then]] = field(default_factory=dict)
    """Functions that continue after the long decision of each key."""


class Slices:
    """The long decisions and the large markers of one coordinator."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._under_way: dict[Shard[Any], _UnderWay] = {}

    def __len__(self) -> int:
        """Return the number of partitions with work under way."""
        return len(self._under_way)

    def holds(self, shard: Shard[Any], key: str) -> bool:
        """Return whether a command of ``key`` must wait."""
        under_way = self._under_way.get(shard) if self._under_way else None
        return under_way is not None and (under_way.holds_all or key in under_way.after_decisions)

    def hold(self, shard: Shard[Any], key: str, then: Then) -> None:
        """Call ``then`` when ``key`` is free or the partition is lost."""
        under_way = self._under_way[shard]
        under_way.after_decisions.get(key, under_way.after_markers).append(then)

    # ------------------------------------------------------------------------------------- markers

    def take_in(self, shard: Shard[Any], producer_id: int, *, commit: bool) -> None:
        """Apply an appended marker; commands see its whole effect at once."""
        steps = shard.machine.end_transaction(producer_id, commit=commit)
        if steps is None:
            return
        under_way = self._enter(shard)
        under_way.markers.append(steps)
        if not under_way.holds_all:
            under_way.holds_all = True
            self._host.spawn(self._take_in(shard, under_way), f"take in markers of {shard.log}")

    async def _take_in(self, shard: Shard[Any], under_way: _UnderWay) -> None:
        try:
            while under_way.markers and not shard.is_gone:
                if next(under_way.markers[0], _DONE) is _DONE:
                    under_way.markers.popleft()
                await next_turn()
        except Exception as error:  # noqa: BLE001  What is in memory is right no more (D9).
            self._host.fatal(error)
            return
        if not shard.is_gone:
            held, under_way.after_markers = under_way.after_markers, []
            under_way.holds_all = False
            self._leave(shard, under_way)
            for then in held:
                then()
            self._host.flush_answers()

    # ------------------------------------------------------------------------------- long decisions

    def begin(self, shard: Shard[Any], key: str) -> None:
        """Reserve ``key`` until ``end``."""
        self._enter(shard).after_decisions[key] = []

    async def take(self, shard: Shard[Any], steps: Generator[None, None, Result]) -> Result:
        """Take all steps and return their result; raises KafkaError if the partition is lost."""
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: Result = done.value
                return result
            await self._pause(shard)

    def end(self, shard: Shard[Any], key: str) -> None:
        """Run the commands of ``key`` that had to wait."""
        under_way = self._under_way.get(shard)
        if under_way is None:
            return  # The partition was lost.
        held = under_way.after_decisions.pop(key)
        self._leave(shard, under_way)
        for then in held:
            then()

    async def _pause(self, shard: Shard[Any]) -> None:
        await next_turn()
        while (under_way := self._under_way.get(shard)) is not None and under_way.holds_all:
            released = asyncio.Event()
            under_way.after_markers.append(released.set)
            await released.wait()
        if shard.is_gone:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # ----------------------------------------------------------------------------------------- end

    def forget(self, shard: Shard[Any]) -> None:
        """Run all waiting commands of a lost partition; each finds that it is lost."""
        under_way = self._under_way.pop(shard, None)
        if under_way is None:
            return
        for held in (*under_way.after_decisions.values(), under_way.after_markers):
            for then in held:
                then()

    def _enter(self, shard: Shard[Any]) -> _UnderWay:
        under_way = self._under_way.get(shard)
        if under_way is None:
            under_way = self._under_way[shard] = _UnderWay()
        return under_way

    def _leave(self, shard: Shard[Any], under_way: _UnderWay) -> None:
        if not (under_way.holds_all or under_way.after_decisions):
            del self._under_way[shard]
