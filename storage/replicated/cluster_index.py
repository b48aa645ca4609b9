"""What brokers of a cluster ask of their store to know each other, and to agree on who leads.

Rules of this interface:

* What is read may be out of date. It never decides who writes: whoever acts on it names the epoch
  that it has seen, and the store compares. What was read of one version stays true of it, whatever
  server fails then.
* What is answered to a change is so for good.
* Methods wait for an answer, be it for ever, and call again by themselves; ``IndexClosed`` is
  raised out of a wait. They are called on threads, one at a time for each object, never on the
  loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from barnabas.storage.replicated.log_index import LogBeginning

FENCED_MAX: Final = 100
"""Maximum number of brokers that a picture shows as fenced, those that came last before others."""
FIRST_NODE_ID: Final = 1001
"""The first that is given out; below it, as in Apache Kafka, are those that brokers choose."""


class Member(NamedTuple):
    """A broker whose session goes on."""

    session: int
    node_id: int
    endpoints: str
    """Where it listens, as it was registered with."""
    is_draining: bool
    """Whether it gives up what it leads, and is given nothing more."""


class Led(NamedTuple):
    """Who leads a partition."""

    partition_id: int
    session: int | None
    """Whose session it is, be it over or not; None: nobody's."""
    epoch: int
    wanted_node: int | None
    """Who is to lead it, once its leader has let go of it; None: whoever leads it."""
    pinned_node: int | None = None
    """Who is to lead it whenever that node takes partitions; None: nobody in particular."""


class ClusterSnapshot(NamedTuple):
    """The brokers of a cluster and what they lead."""

    version: int
    """Grows with whatever changes in the members or in who leads, or is to lead, a partition.

    Other changes may raise it, too.
    """
    metadata_version: int
    """That of the MetaStore's image, or a later one."""
    controller: int | None
    """The session that plans who leads what."""
    members: Sequence[Member]
    """All whose session goes on."""
    led: Sequence[Led]
    """The partitions of which anything has changed since the version asked with, by id."""
    gone: Sequence[int] = ()
    """Those that were deleted since then: nobody will lead them."""
    fenced: Sequence[Member] = ()
    """The last session of each broker that has none now, until sessions are forgotten; by node."""


class Poll(NamedTuple):
    """A picture, and what a broker needs first of the logs that it shows it to lead from now on."""

    snapshot: ClusterSnapshot
    gained: Sequence[LogBeginning]
    """As of the picture, or later: who finds himself to lead one has all there is of it, as far
    as it goes."""


class Assignment(NamedTuple):
    """That a session is to lead a partition in the epoch after the expected one."""

    partition_id: int
    session: int
    expected_epoch: int


class HandOver(NamedTuple):
    """That a session lets go of a partition which it leads in an epoch."""

    partition_id: int
    epoch: int
    to: int | None
    """The session that leads it in the next epoch, if that is live; None: nobody does."""


class ClusterIndex(Protocol):
    """Sessions, and who leads; see the rules at the head of this module."""

    def new_node_id(self) -> int:
        """Return a node id that no broker has had; ids that brokers have chosen count, too."""

    def register(self, token: UUID, node_id: int, endpoints: str, lease_ms: int) -> int:
        """Begin a session and end the one that the node had; the same token, the same session."""

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """Have the session's lease end ``lease_ms`` from now; False: the session has ended."""

    def fence_expired(self) -> frozenset[int]:
        """End the sessions whose lease is over, and return which."""

    def fence(self, session: int) -> None:
        """End a session: nothing of it is committed from now on."""

    def drain(self, session: int) -> None:
        """Give a session no more partitions."""

    def control(self, session: int) -> bool:
        """Whether a live session plans who leads what: it does if no other live one does."""

    def snapshot(self, since: int) -> ClusterSnapshot:
        """Return what is so now; 0: with all partitions."""

    def poll(self, since: int, session: int, *, most_logs: int, most: int, most_bytes: int) -> Poll:
        """Return what is so now, and in the same answer the beginnings of logs.

        Of those in the picture that have come to ``session`` since then, and that it is to lead on:
        up to ``most_logs``, for ``most`` and ``most_bytes`` see ``LogIndex.beginnings``, and none
        whose snapshot is larger than that. Who is told fewer asks for them.
        """

    def wait(self, since: int, timeout_s: float) -> None:
        """Return once something has changed since a version of the picture, or its metadata.

        Or when the time is up; or for no reason at all.
        """

    def assign(self, assignments: Sequence[Assignment]) -> frozenset[int]:
        """Have live sessions lead partitions; return which are led as asked.

        Be it by this call or an earlier one. The others have another epoch, or their session takes
        nothing more.
        """

    def hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        """Let go of partitions, each at most once, all of them at the same time.

        What is led in the next epoch has its wish met. What the session does not lead in the epoch
        stays as it is.
        """

    def want(self, wishes: Mapping[int, int | None]) -> None:
        """Say which nodes are to lead partitions, by id; None: nobody in particular."""

    def pin(self, pins: Mapping[int, int | None]) -> None:
        """Say which nodes are to lead partitions, by id, and again whenever they take partitions.

        None: nobody in particular, next or later.
        """

    def close(self) -> None:
        """End whatever waits, on whichever thread."""
