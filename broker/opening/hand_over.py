"""Partitions that another broker is to lead: their leader lets go of them, then hands them over.

Nobody else takes a partition from a broker that serves it, but by fencing its session.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.cluster.errands import Errands
    from barnabas.broker.cluster.membership import Membership
    from barnabas.broker.opening.sessions import Sessions
    from barnabas.broker.runtime.host import Host
    from barnabas.broker.topics.leadership import Leadership
    from barnabas.storage.cluster_index import ClusterIndex


class HandOver:
    """What one broker hands over; all of it on the loop."""

    def __init__(
        self,
        host: Host,
        membership: Membership,
        sessions: Sessions,
        errands: Errands,
        leadership: Leadership,
    ) -> None:
        """Hand over nothing yet."""
        self._host = host
        self._membership = membership
        self._sessions = sessions
        self._errands = errands
        self._leadership = leadership
        self._moving: set[int] = set()
        self._is_stopped = False

    def look(self) -> None:
        """Let go of what others are to lead."""
        for partition_id in self._membership.wanted_elsewhere():
            if partition_id not in self._moving:
                self._moving.add(partition_id)
                epoch = self._epoch(partition_id)
                released = partial(self._released, partition_id, self._sessions.newest, epoch)
                self._leadership.release(partition_id, released)

    def stop(self) -> None:
        """Hand over nothing more: all that is led here ends with the session."""
        self._is_stopped = True

    def _released(self, partition_id: int, session: int, epoch: int) -> None:
        if not self._is_stopped:
            self._host.spawn(self._hand_over(partition_id, session, epoch), "hand over")

    async def _hand_over(self, partition_id: int, session: int, epoch: int) -> None:
        to = self._membership.wanted_session(partition_id)

        def hand_over(index: ClusterIndex) -> None:
            index.hand_over(partition_id, session, epoch, to)

        await self._errands.run(hand_over)
        self._moving.discard(partition_id)
        self._membership.refresh()
        now = self._sessions.newest, self._epoch(partition_id)
        if now != (session, epoch) and not self._is_stopped:
            # It has come back while the store was asked, and may have to go again.
            self.look()

    def _epoch(self, partition_id: int) -> int:
        return self._membership.view.leader_of(partition_id).epoch
