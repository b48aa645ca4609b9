"""Hand-over of partitions from this broker to the nodes that must lead them.

Rules of this file:

* The leader releases a partition before another broker may lead it: it accepts no more records, and
  all accepted ones are durable. From then on the partition has no leader until the next one has
  read it.
* Few partitions are released at a time; the others are served until their turn. The released ones
  are handed over in one commit, all or none. Then follows a rest without releases, in which the
  next leaders read them; without it each would be without a leader for longer. Partitions released
  before the rest do not wait for its end.
* A leadership is handed over once. The view shows it until a later snapshot shows its end.
* A partition is not released if it could not be handed over: the view can name a session that the
  broker has not started yet. If the wish were withdrawn by then, no broker would resume the
  partition in that epoch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.storage.replicated.cluster_index import HandOver

if TYPE_CHECKING:
    from collections.abc import Coroutine

HANDED_OVER_AT_ONCE: Final = 32
"""Maximum number of partitions that are released and not yet handed over."""
REST_S: Final = 0.05
"""Pause, in seconds, after a hand-over. Of 333 partitions that two brokers with two cores each took
over, each was readable again after at most 180 ms and writable after at most 220 ms; without a
pause after 230 ms and 270 ms."""
MANY: Final = 400
"""Number of partitions to move from which there is no pause: a stopping broker has only seconds to
hand over all. A plan moves at most MOVES_AT_ONCE (assigner.py) at a time."""


class Leaderships(Protocol):
    """View of the partitions that this broker leads."""

    def wanted_elsewhere(self, session: int) -> Sequence[int]:
        """Return the partitions that a session leads and another node must lead."""

    def wanted_session(self, partition_id: int) -> int | None:
        """Return the session of the node that must lead a partition, or None."""

    def epoch_of(self, partition_id: int) -> int:
        """Return the leader epoch of a partition."""


class Given(NamedTuple):
    """Leadership of this broker."""

    partition_id: int
    session: int
    epoch: int


class HandOvers:
    """Partitions on their way from this broker to others; used on the event loop only."""

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
        """``session`` returns this broker's current session; ``release``: see ``Leadership``.

        ``hand_over`` calls the store, as ``ClusterIndex`` does, and requests a poll. ``sleep``: see
        ``Clock``.
        """
        self._leaderships = leaderships
        self._session = session
        self._release = release
        self._hand_over = hand_over
        self._spawn = spawn
        self._at_once = at_once
        self._sleep = sleep
        self._moving: set[int] = set()
        """Partitions that are released, or about to be, and not yet handed over."""
        self._released: list[Given] = []
        """Leaderships that are released completely."""
        self._handed_over: set[Given] = set()
        """Leaderships that the view still shows after their hand-over."""
        self._is_handing_over = False
        self._is_resting = False
        self._is_stopped = False

    @property
    def unfinished(self) -> int:
        """Return the number of partitions that are released and not handed over."""
        return len(self._moving)

    def stop(self) -> None:
        """Stop all hand-overs."""
        self._is_stopped = True

    def release_next(self) -> None:
        """Release the next partitions that other nodes must lead, up to the limit."""
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
        """Whether the view still shows a leadership."""
        return (
            given.session == self._session()
            and self._leaderships.epoch_of(given.partition_id) == given.epoch
        )

    def _is_released(self, given: Given) -> None:
        self._released.append(given)
        if not self._is_handing_over and not self._is_stopped:
            # Hand over all partitions that are released in this turn of the loop together.
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
            self.release_next()
        self._is_handing_over = False

    async def _rest(self) -> None:
        await self._sleep(REST_S)
        self._is_resting = False
        self.release_next()

    def _addressed(self, given: Given) -> HandOver:
        to = self._leaderships.wanted_session(given.partition_id)
        return HandOver(given.partition_id, given.epoch, to)
