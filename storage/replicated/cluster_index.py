"""The store's interface for brokers of a cluster: members, sessions, and leaders of partitions.

Rules of this interface:

* A result of a read may be stale. It never decides which broker writes: a caller that acts on it
  names the epoch of the result, and the store compares. A fact that was read of one version stays
  true of it, regardless of servers that fail then.
* The response to a change is final.
* Methods wait for the store without limit, and repeat their calls; ``IndexClosed`` is raised out of
  a wait. They are called on threads, one at a time for each object, never on the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from barnabas.storage.replicated.log_index import LogBeginning

FENCED_MAX: Final = 100
"""Maximum number of fenced brokers in a snapshot; the most recently fenced ones come first."""
FIRST_NODE_ID: Final = 1001
"""First node ID that the cluster allocates; brokers choose lower ones themselves, as in Apache
Kafka."""


class Member(NamedTuple):
    """A broker with a live session."""

    session: int
    node_id: int
    endpoints: str
    """Addresses of its listeners, as it was registered."""
    is_draining: bool
    """Whether the broker releases its partitions and receives no others."""


class Led(NamedTuple):
    """The leader of a partition."""

    partition_id: int
    session: int | None
    """The leader's session, live or ended, or None without a leader."""
    epoch: int
    wanted_node: int | None
    """Node ID of the next leader, effective when the current leader releases the partition, or None
    to keep the current leader."""
    pinned_node: int | None = None
    """Node ID of the preferred leader, effective whenever that node takes partitions, or None."""


class ClusterSnapshot(NamedTuple):
    """The brokers of a cluster and the partitions that they lead."""

    version: int
    """Grows with each change of the members, and of a partition's present or next leader.

    Other changes may raise it, too."""
    metadata_version: int
    """Version of the MetaStore's image, or a later one."""
    controller: int | None
    """The session of the broker that assigns partitions."""
    members: Sequence[Member]
    """All members with live sessions."""
    led: Sequence[Led]
    """The partitions that have changed since the requested version, by id."""
    gone: Sequence[int] = ()
    """Partitions that were deleted since then: no broker will lead them."""
    fenced: Sequence[Member] = ()
    """The last session, by node ID, of each broker without a live one, until it is forgotten."""
    failing: Sequence[int] = ()
    """Live sessions whose brokers report that the object store fails; see ``report_objects``."""


class Poll(NamedTuple):
    """State of the cluster, and the starts of the logs that the broker leads from this state on."""

    snapshot: ClusterSnapshot
    gained: Sequence[LogBeginning]
    """Starts of logs as of this state or later: a broker that leads a log by this state gets all
    its records up to the start's end."""


class Assignment(NamedTuple):
    """Assignment of a partition to a session, in the epoch after the expected one."""

    partition_id: int
    session: int
    expected_epoch: int


class HandOver(NamedTuple):
    """Release of a partition that a session leads in an epoch."""

    partition_id: int
    epoch: int
    to: int | None
    """Session that leads the partition in the next epoch if it is live then; None for no leader."""


class ClusterIndex(Protocol):
    """Sessions and leaders; see the rules at the head of this module."""

    def new_node_id(self) -> int:
        """Return a node ID that no broker has had; configured ids count, too."""

    def register(
        self,
        token: UUID,
        node_id: int,
        endpoints: str,
        lease_ms: int,
        object_store: str | None = None,
    ) -> int:
        """Start a session in place of the node's previous one; one token gets one session.

        ``object_store`` names the one that the broker has, or is None. Raises StoreUnusable if
        records are in an object store that it lacks.
        """

    def begin_objects(self, session: int) -> Sequence[int]:
        """Begin to keep records in the session's object store, and return the nodes that lack it.

        If it returns nodes, the records stay in the index.
        """

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """Extend the session's lease to ``lease_ms`` from now; False if the session has ended."""

    def report_objects(
        self, session: int, *, failing_ms: int | None, stored_ms: int | None, within_ms: int
    ) -> Sequence[int]:
        """Report a broker's puts into the object store; return the nodes where they succeed.

        ``failing_ms``: time for which all have failed, or None if they do not fail. ``stored_ms``:
        time since the last one that succeeded, or None. The returned nodes take partitions unless
        they are cordoned, have the same store, and reported a put in the last ``within_ms``.
        """

    def yield_to(self, session: int, nodes: Sequence[int], within_ms: int) -> bool:
        """End a session if ``report_objects`` returns one of ``nodes``.

        Return whether the session has ended, by this call or before. Sessions yield one after the
        other, so the last one stays.
        """

    def fence_expired(self) -> frozenset[int]:
        """End the sessions whose lease has expired, and return them."""

    def fence(self, session: int) -> None:
        """End a session; none of its flushes is committed any more."""

    def drain(self, session: int) -> None:
        """Stop the assignment of partitions to a session."""

    def control(self, session: int) -> bool:
        """Return whether a live session is the controller; without a controller it becomes the
        controller.
        """

    def snapshot(self, since: int) -> ClusterSnapshot:
        """Return the changes since a version, with all partitions for version 0."""

    def poll(self, since: int, session: int, *, most_logs: int, most: int, most_bytes: int) -> Poll:
        """Return the changes since a version, with the starts of logs.

        The logs are those of partitions in the snapshot that have come to ``session`` since then
        and are to stay with it. There are up to ``most_logs`` of them; for ``most`` and
        ``most_bytes`` see ``LogIndex.beginnings``. A log with a larger snapshot than that is
        missing; the caller requests it.
        """

    def wait(self, since: int, timeout_s: float) -> None:
        """Return after a change since a version of the snapshot or of its metadata.

        Also returns after the time limit, or without a reason.
        """

    def assign(self, assignments: Sequence[Assignment]) -> frozenset[int]:
        """Make live sessions the leaders of partitions; return the partitions with that leader.

        They include assignments of earlier calls. The other partitions have another epoch, or
        their session takes no more partitions.
        """

    def hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        """Release partitions, each at most once, all of them at the same time.

        A partition with a leader in the next epoch loses its planned next leader. A partition that
        the session does not lead in the epoch is left unchanged.
        """

    def want(self, wishes: Mapping[int, int | None]) -> None:
        """Set the next leaders of partitions by node ID, or None for no preference."""

    def pin(self, pins: Mapping[int, int | None]) -> None:
        """Set the preferred leaders of partitions by node ID, effective whenever those nodes take
        partitions.

        None removes a preference, for now and later.
        """

    def close(self) -> None:
        """End every wait, on any thread."""
