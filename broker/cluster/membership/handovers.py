"""What this broker leads and others are to lead: it lets go of it, and hands it over.

Rules of this file:

* Who leads a partition lets go of it before another may have it: it takes nothing more, and what it
  has taken is durable. From then on nobody leads it until the next leader has read it.
* So few are let go of at a time: the others are served while they wait for their turn. Those few
  are handed over in one commit, all of them or none. After it there is a rest, in which no more are
  let go of and the next leaders read what they have got: handed over faster than that, each would
  be without a leader for longer. What was let go of already does not wait for its end.
* A leadership is handed over once. The view names it until it has shown that it is over.
* Nothing is let go of that could not be handed over: what the view names for a session that the
  broker has not begun yet. Nobody would take it up again in that epoch, should the wish be void by
  the time when it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.storage.replicated.cluster_index import HandOver

if TYPE_CHECKING:
    from collections.abc import Coroutine

HANDED_OVER_AT_ONCE: Final = 32
"""So many partitions, at most, are let go of and not yet handed over."""
REST_S: Final = 0.05
"""Of 333 partitions that two brokers took over on two cores each was read again after 180 ms and
written to after 220 ms at the most; without a rest after 230 ms and 270 ms."""
MANY: Final = 400
"""With so many to go there is no rest: a broker that stops has seconds to hand over all. Plans have
no more than MOVES_AT_ONCE (assigner.py) be on their way at once."""


class Leaderships(Protocol):
    """What the view says of the partitions that this broker leads."""

    def wanted_elsewhere(self, session: int) -> Sequence[int]:
        """Return the partitions that a session leads and another node is to lead."""

    def wanted_session(self, partition_id: int) -> int | None:
        """Return the session of the node that is to lead a partition; None: there is none now."""

    def epoch_of(self, partition_id: int) -> int:
        """Return the epoch in which a partition is led."""


class Given(NamedTuple):
    """One leadership of this broker."""

    partition_id: int
    session: int
    epoch: int


class HandOvers:
    """All that is on its way from this broker to others; all of it on the loop."""

    def __init__(
        self,
        leaderships: Leaderships,
        session: Callable[[], int],
        release: Callable[[int, Callable[[], None]], None],
        hand_over: Callable[[int, Sequence[HandOver]], Awaitable[None]],
        spawn: Callable[[Coroutine[object, object, None], str], object],
        *,
        sleep: Callable[[float], Awaitable[object]],
        at_once: int = HANDED_OVER_AT_ONCE,
    ) -> None:
        """``session`` is this broker's now; ``release``: see ``Leadership``.

        ``hand_over`` asks the store, as ``ClusterIndex`` does, and has a look be taken at what
        follows. ``sleep``: see ``Clock``.
        """
        self._leaderships = leaderships
        self._session = session
        self._release = release
        self._hand_over = hand_over
        self._spawn = spawn
        self._at_once = at_once
        self._sleep = sleep
        self._moving: set[int] = set()
        """Let go of, or about to be, and not yet handed over."""
        self._released: list[Given] = []
        """Those of them that take nothing more."""
        self._handed_over: set[Given] = set()
        """What the view has still to show."""
        self._is_handing_over = False
        self._is_resting = False
        self._is_stopped = False

    @property
    def unfinished(self) -> int:
        """Return how many partitions are on their way: let go of, and not handed over."""
        return len(self._moving)

    def stop(self) -> None:
        """Hand over nothing more."""
        self._is_stopped = True

    def look(self) -> None:
        """Let go of what others are to lead, as far as its turn has come."""
        if self._is_stopped or self._is_resting:
            return
        self._handed_over = {each for each in self._handed_over if self._is_shown(each)}
        session = self._session()
        for partition_id in self._leaderships.wanted_elsewhere(session):
            if len(self._moving) >= self._at_once:
                return
            given = Given(partition_id, session, self._leaderships.epoch_of(partition_id))
            if partition_id not in self._moving and given not in self._handed_over:
                self._moving.add(partition_id)
                self._release(partition_id, partial(self._is_released, given))

    def _is_shown(self, given: Given) -> bool:
        """Whether the view shows a leadership still."""
        return (
            given.session == self._session()
            and self._leaderships.epoch_of(given.partition_id) == given.epoch
        )

    def _is_released(self, given: Given) -> None:
        self._released.append(given)
        if not self._is_handing_over and not self._is_stopped:
            # Those that are released in this turn of the loop go together.
            self._is_handing_over = True
            self._spawn(self._hand_over_all(), "hand over")

    async def _hand_over_all(self) -> None:
        while self._released and not self._is_stopped:
            session = self._released[0].session
            batch = [each for each in self._released if each.session == session]
            self._released = [each for each in self._released if each.session != session]
            await self._hand_over(session, [self._addressed(each) for each in batch])
            self._handed_over.update(batch)
            self._moving.difference_update(each.partition_id for each in batch)
            left = self._leaderships.wanted_elsewhere(self._session())
            if not self._is_resting and len(left) < MANY:
                self._is_resting = True
                self._spawn(self._rest(), "rest between hand-overs")
            self.look()
        self._is_handing_over = False

    async def _rest(self) -> None:
        await self._sleep(REST_S)
        self._is_resting = False
        self.look()

    def _addressed(self, given: Given) -> HandOver:
        to = self._leaderships.wanted_session(given.partition_id)
        return HandOver(given.partition_id, given.epoch, to)
