"""Indexes of a cluster in memory, for brokers of one process, whose cluster ends with it.

All brokers share a ``MemoryIndex``, whose calls are atomic. ``MemoryLogIndex`` (log_index.py) is
one broker's connection to the durable logs, ``MemoryClusterIndex`` (cluster_index.py) its
connection to the other brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final
from uuid import UUID

from barnabas.broker.testing.store.object_access import ObjectAccess
from barnabas.broker.testing.store.rows import (
    PartitionRow,
    SessionRow,
    Transfer,
    beginnings_of,
    fenced_members,
)
from barnabas.broker.testing.store.used_store import UsedStore
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.object_rows import Moment, Requests
from barnabas.storage.replicated.cluster_index import (
    FIRST_NODE_ID,
    Assignment,
    ClusterSnapshot,
    HandOver,
    Led,
    Member,
    Poll,
)
from barnabas.storage.replicated.cluster_transfer import (
    EXPORTED,
    IN_USE,
    NOT_COMPLETED,
    NOT_EMPTY,
    NOT_WHOLE,
    SUPERSEDED,
    TransferRefused,
)
from barnabas.storage.replicated.log_index import (
    ANY_BYTES,
    Extent,
    Flush,
    FlushAnswer,
    IndexMisused,
    Item,
    LogBeginning,
    LogPart,
    LogSnapshot,
    LogStart,
    Outcome,
    PartitionState,
)
from barnabas.storage.replicated.wal_object import FooterBatch, headers_in
from barnabas.storage.runtime.clock import monotonic

_IMPORT_MS: Final = 60_000
"""Lease, in milliseconds, of an import, for which no caller waits."""


class MemoryIndex(ObjectAccess):
    """All sessions and partitions; callable on any thread.

    See ``LogIndex`` and ``ClusterIndex`` for the methods.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """``clock`` returns the time of leases, in seconds."""
        super().__init__(clock)
        self._next_session = 1
        self._nodes: set[int] = set()
        """Node IDs that brokers have had."""
        self._metadata_version = 0
        self._controller: int | None = None
        self._next_node_id = FIRST_NODE_ID
        self._transfer: Transfer | None = None
        self._used_store = UsedStore()
        self.object_requests: dict[str, Requests] = {}

    # -- sessions ----------------------------------------------------------------------------------

    def new_node_id(self) -> int:
        """See ``ClusterIndex``."""
        with self._changed:
            while self._next_node_id in self._nodes:
                self._next_node_id += 1
            self._next_node_id += 1
            return self._next_node_id - 1

    def register(
        self,
        token: UUID,
        node_id: int,
        endpoints: str,
        lease_ms: int,
        object_store: str | None = None,
    ) -> int:
        """Register a session; see ``ClusterIndex``.

        Raises StoreUnusable during an import or export, too.
        """
        with self._changed:
            self._refuse_session(token)
            for number, session in self._sessions.items():
                if session.token == token:
                    return number
            sessions = self._sessions.values()
            if self._used_store.lacks(object_store):
                self._fence_expired()
                self._used_store.replace(node_id, object_store, sessions, self._has_objects)
            for session in sessions:
                if session.node_id == node_id:
                    session.is_live = False
            begun = self._begin_session(token, node_id, endpoints, lease_ms)
            self._sessions[begun].object_store = object_store
            return begun

    def begin_objects(self, session: int) -> Sequence[int]:
        """See ``ClusterIndex``."""
        with self._changed:
            return self._used_store.begin(self._session(session), self._sessions.values())

    def _has_objects(self) -> bool:
        extents = (each for row in self.rows.values() for each in row.extents)
        return any(each.place is not None for each in extents)

    def moment(self) -> Moment:
        """See ``ObjectRows``."""
        with self._changed:
            flushes = {
                f"{number}/{lane}": next_flush
                for number, session in self._sessions.items()
                for lane, next_flush in session.next_flushes.items()
            }
            return Moment(self._next_session - 1, self._version, flushes)

    def raise_sessions(self, session: int) -> None:
        """See ``ObjectRows``."""
        with self._changed:
            self._next_session = max(self._next_session, session + 1)

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """See ``ClusterIndex``."""
        with self._changed:
            found = self._session(session)
            if found.is_live:
                found.lease_until = self._lease_until(lease_ms)
            return found.is_live

    def fence_expired(self) -> frozenset[int]:
        """See ``ClusterIndex``."""
        with self._changed:
            return self._fence_expired()

    def _fence_expired(self) -> frozenset[int]:
        now = self._clock()
        expired = {
            number: session
            for number, session in self._sessions.items()
            if session.is_live and session.lease_until < now
        }
        for session in expired.values():
            session.is_live = False
        if expired:
            self._raise_version()
        return frozenset(expired)

    def fence(self, session: int) -> None:
        """See ``ClusterIndex``."""
        with self._changed:
            if self._session(session).is_live:
                self._session(session).is_live = False
                self._raise_version()

    def drain(self, session: int) -> None:
        """See ``ClusterIndex``."""
        with self._changed:
            if self._session(session).takes_partitions:
                self._session(session).is_draining = True
                self._raise_version()

    def control(self, session: int) -> bool:
        """See ``ClusterIndex``."""
        with self._changed:
            if self._live_controller() is None and self._session(session).is_live:
                self._controller = session
                self._raise_version()
            return self._live_controller() == session

    # -- imports and exports -----------------------------------------------------------------------

    def begin_import(
        self, token: UUID, node_id: int, object_store: str | None = None, *, has_topics: bool
    ) -> int:
        """Start an import; see ``ClusterTransfer``.

        ``has_topics``: whether the metadata has topics.
        """
        with self._changed:
            transfer = self._transfer
            for number, session in self._sessions.items():
                if session.token == token:
                    return number
            if transfer is None or transfer.is_done or not transfer.is_import:
                if self._is_in_use():
                    raise TransferRefused(IN_USE)
                if has_topics:
                    raise TransferRefused(NOT_EMPTY)
            for session in self._sessions.values():
                session.is_live = False
            self.rows.clear()
            self._payloads.clear()
            self.uploads.clear()
            self._used_store.replace(node_id, object_store, (), self._has_objects)
            self._transfer = Transfer(token, is_import=True)
            return self._begin_session(token, node_id, "", _IMPORT_MS)

    def import_logs(self, session: int, epoch: int, bases: Mapping[int, int]) -> None:
        """See ``ClusterTransfer``."""
        with self._changed:
            if not self._session(session).is_live:
                raise TransferRefused(SUPERSEDED)
            added = [each for each in bases if each not in self.rows]
            for each in added:
                base = bases[each]
                row = PartitionRow(epoch, session, log_start_offset=base, log_end_offset=base)
                self.rows[each] = row
            self._note_changed(added)

    def is_importing(self, token: UUID) -> bool:
        """Whether this import is in progress."""
        with self._changed:
            transfer = self._transfer
            return transfer is not None and transfer.token == token and not transfer.is_done

    def end_import(self, token: UUID) -> None:
        """See ``ClusterTransfer``."""
        with self._changed:
            transfer = self._transfer
            if transfer is None or transfer.token != token:
                raise TransferRefused(SUPERSEDED)
            transfer.is_done = True
            for session in self._sessions.values():
                if session.token == token:
                    session.is_live = False
            self._raise_version()

    def begin_export(self, token: UUID) -> None:
        """See ``ClusterTransfer``."""
        with self._changed:
            transfer = self._transfer
            if transfer is not None and transfer.is_import and not transfer.is_done:
                raise TransferRefused(NOT_WHOLE)
            if self._is_in_use():
                raise TransferRefused(IN_USE)
            self._transfer = Transfer(token, is_import=False)

    def is_exported(self) -> bool:
        """See ``ClusterTransfer``."""
        with self._changed:
            return self._transfer is not None and not self._transfer.is_import

    def raise_epochs(self, epoch: int) -> None:
        """See ``ClusterTransfer.advance``."""
        with self._changed:
            if self._is_in_use():
                raise TransferRefused(IN_USE)
            for row in self.rows.values():
                if not row.is_deleted:
                    row.leader_epoch = max(row.leader_epoch + 1, epoch)

    def reopen(self) -> bool:
        """See ``ClusterTransfer``."""
        with self._changed:
            was_exported = self._transfer is not None and not self._transfer.is_import
            if was_exported:
                self._transfer = None
            return was_exported

    # -- who leads ---------------------------------------------------------------------------------

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """See ``LogIndex``."""
        with self._changed:
            if partition_id not in self.rows:
                self.rows[partition_id] = PartitionRow(first_epoch - 1)
                self._note_changed([partition_id])

    def remove_partitions(self, partition_ids: Iterable[int]) -> None:
        """Remove the leaders of a deleted topic's partitions, permanently."""
        with self._changed:
            for partition_id in partition_ids:
                row = self.rows[partition_id]
                row.leader_session, row.wanted_node, row.pinned_node = None, None, None
                row.is_deleted = True
                self._note_changed([partition_id])

    def assign(self, assignments: Sequence[Assignment]) -> frozenset[int]:
        """See ``ClusterIndex``."""
        with self._changed:
            valid = [each for each in assignments if self._session(each.session).takes_partitions]
            changed = [each for each in valid if self._may_lead_next(each)]
            for each in changed:
                self._lead(each.partition_id, each.session)
            self._note_changed([each.partition_id for each in changed])
            return frozenset(
                each.partition_id
                for each in valid
                if self._leads(each.session, each.partition_id, each.expected_epoch + 1)
            )

    def hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        """See ``ClusterIndex``."""
        with self._changed:
            led = [each for each in partitions if self._leads(session, *each[:2])]
            for partition_id, _, to in led:
                if to is not None and self._session(to).takes_partitions:
                    self._lead(partition_id, to)
                    self.rows[partition_id].wanted_node = None
                else:
                    self.rows[partition_id].leader_session = None
            self._note_changed([each.partition_id for each in led])

    def want(self, nodes: Mapping[int, int | None], *, pins: bool = False) -> None:
        """Store wanted leaders, or pins if ``pins`` is true; see ``ClusterIndex``."""
        with self._changed:
            changed = []
            for each, node_id in nodes.items():
                row = self.rows.get(each)
                if row is None or row.is_deleted:
                    continue
                # A pin to the current leader is not a wish.
                is_wish = not pins or node_id != self._leader_node(row)
                later = (node_id if is_wish else None, node_id if pins else row.pinned_node)
                if (row.wanted_node, row.pinned_node) != later:
                    row.wanted_node, row.pinned_node = later
                    changed.append(each)
            self._note_changed(changed)

    # -- what is known -----------------------------------------------------------------------------

    def snapshot(self, since: int) -> ClusterSnapshot:
        """See ``ClusterIndex``."""
        with self._changed:
            return self._picture(since)

    def poll(self, since: int, session: int, *, most_logs: int, most: int, most_bytes: int) -> Poll:
        """See ``ClusterIndex``."""
        with self._changed:
            snapshot = self._picture(since)
            gained = [
                each.partition_id
                for each in snapshot.led
                if each.session == session
                and each.wanted_node is None
                and self.rows[each.partition_id].led_in > since
            ]
            few = [
                each
                for each in gained[:most_logs]
                if self.rows[each].head(each).snapshot_bytes <= most_bytes
            ]
            return Poll(snapshot, beginnings_of(self.rows, few, most, most_bytes))

    def wait(
        self, since: int, timeout_s: float, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for a change; see ``ClusterIndex``.

        It also ends if ``is_over`` is true at a ``wake``.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._version > since or is_over(), timeout_s)

    def wake(self) -> None:
        """Make all waiting calls check whether their wait has ended."""
        with self._changed:
            self._changed.notify_all()

    def metadata_changed(self, version: int) -> None:
        """Notify all waiting calls of a new version of the metadata."""
        with self._changed:
            self._metadata_version = max(self._metadata_version, version)
            self._raise_version()

    # -- what is durable ---------------------------------------------------------------------------

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """See ``LogIndex``."""
        with self._changed:
            found = self._session(session)
            number = found.next_flushes.get(flush.lane, 0)
            if number > flush.number:
                return FlushAnswer(Outcome.COMMITTED)
            if not found.is_live:
                return FlushAnswer(Outcome.FENCED)
            if number != flush.number:
                raise IndexMisused(f"flush {flush.number} comes instead of {number}")
            refused = self._led_elsewhere(session, flush)
            if refused:
                return FlushAnswer(Outcome.REFUSED, refused)
            self._payloads.write(self.rows, flush, self.uploads.body(flush))
            found.next_flushes[flush.lane] = number + 1
            return FlushAnswer(Outcome.COMMITTED)

    def dead_keys(self, keys: Sequence[str]) -> Sequence[str]:
        """See ``LogIndex``."""
        with self._changed:
            dead = self.uploads.dead(keys, self._sessions)
            return [each for each in dead if each not in self._payloads.dereferenced_keys]

    def dereferenced_keys(self, most: int, rest_ms: int) -> Sequence[str]:
        """See ``LogIndex``."""
        with self._changed:
            return self._payloads.dead_keys(most, rest_ms)

    def forget_keys(self, keys: Sequence[str]) -> None:
        """See ``LogIndex``."""
        with self._changed:
            for key in keys:
                self._payloads.dereferenced_keys.pop(key, None)

    def partition(self, partition_id: int) -> PartitionState | None:
        """See ``LogIndex``."""
        with self._changed:
            return self.rows[partition_id].state if partition_id in self.rows else None

    def extents(
        self, partition_id: int, from_offset: int, *, most: int, most_bytes: int = ANY_BYTES
    ) -> list[Extent]:
        """See ``LogIndex``."""
        with self._changed:
            row = self.rows.get(partition_id)
            found = [] if row is None else row.extents_from(from_offset, most)
        bytes_before = accumulate((each.size_bytes for each in found), initial=0)
        return [
            each for each, before in zip(found, bytes_before, strict=False) if before < most_bytes
        ]

    def bodies(self, extents: Sequence[Extent], within_s: float | None = None) -> list[Extent]:
        """See ``LogIndex``; an index by itself has no object store."""
        del within_s
        return list(extents)

    def headers(self, extents: Sequence[Extent]) -> list[Sequence[FooterBatch]]:
        """See ``LogIndex``."""
        return [headers_in(each.data) for each in extents]

    def beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """See ``LogIndex``."""
        with self._changed:
            return beginnings_of(self.rows, partition_ids, most, most_bytes)

    def recent_beginnings(self, of: Sequence[int], **limits: int) -> list[LogBeginning]:
        """See ``LogIndex``."""
        with self._changed:
            return beginnings_of(self.rows, of, **limits, recent=True)

    def put_snapshot(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        snapshot: LogSnapshot,
        parts: Sequence[LogPart] | None = None,
    ) -> bool:
        """See ``LogIndex``."""
        with self._changed:
            if not self._leads_still(session, partition_id, epoch):
                return False
            self.rows[partition_id].put_snapshot(snapshot, parts)
            return True

    def parts(self, from_offsets: Mapping[int, int], *, most: int) -> dict[int, list[LogPart]]:
        """See ``LogIndex``."""
        with self._changed:
            rows = {key: self.rows[key] for key in from_offsets if key in self.rows}
            return {key: row.parts_from(from_offsets[key], most) for key, row in rows.items()}

    def forget(self, most: int, kept_ms: int) -> int:
        """See ``LogIndex``."""
        with self._changed:
            before = self._clock() - kept_ms / 1000
            named = {row.leader_session for row in self.rows.values()} | {self._controller}
            ended = [
                number
                for number, session in self._sessions.items()
                if not session.is_live and session.lease_until < before and number not in named
            ]
            for number in ended[:most]:
                del self._sessions[number]
            return min(len(ended), most)

    def _picture(self, since: int) -> ClusterSnapshot:
        changed = sorted(each for each, row in self.rows.items() if row.changed_in > since)
        rows = {each: self.rows[each] for each in changed}
        led = [
            Led(each, row.leader_session, row.leader_epoch, row.wanted_node, row.pinned_node)
            for each, row in rows.items()
            if not row.is_deleted
        ]
        gone = [each for each, row in rows.items() if row.is_deleted]
        members = [
            Member(number, session.node_id, session.endpoints, session.is_draining)
            for number, session in self._sessions.items()
            if session.is_live
        ]
        controller, fenced = self._live_controller(), fenced_members(self._sessions)
        return ClusterSnapshot(
            self._version,
            self._metadata_version,
            controller,
            members,
            led,
            gone,
            fenced,
            self._failing_sessions(),
        )

    def _begin_session(self, token: UUID, node_id: int, endpoints: str, lease_ms: int) -> int:
        number = self._next_session
        self._next_session += 1
        self._nodes.add(node_id)
        self._sessions[number] = SessionRow(token, node_id, endpoints, self._lease_until(lease_ms))
        self._raise_version()
        return number

    def _is_in_use(self) -> bool:
        now = self._clock()
        return any(each.is_live and each.lease_until >= now for each in self._sessions.values())

    def _refuse_session(self, token: UUID) -> None:
        transfer = self._transfer
        if transfer is None or transfer.token == token:
            return
        if not transfer.is_import:
            raise StoreUnusable(EXPORTED)
        if not transfer.is_done:
            raise StoreUnusable(NOT_COMPLETED)

    def _note_changed(self, partition_ids: Collection[int]) -> None:
        if partition_ids:
            self._raise_version()
        for partition_id in partition_ids:
            self.rows[partition_id].changed_in = self._version

    def _live_controller(self) -> int | None:
        found = self._controller
        return found if found is not None and self._session(found).is_live else None

    def _may_lead_next(self, taken: Assignment) -> bool:
        row = self.rows.get(taken.partition_id)
        return row is not None and row.leader_epoch == taken.expected_epoch and not row.is_deleted

    def _leader_node(self, row: PartitionRow) -> int | None:
        """Return the node that leads a partition, or led it last, or None."""
        return None if row.leader_session is None else self._session(row.leader_session).node_id

    def _lead(self, partition_id: int, session: int) -> None:
        row = self.rows[partition_id]
        row.leader_session = session
        row.leader_epoch += 1
        row.led_in = self._version + 1  # The caller records the change.
        if row.wanted_node == self._session(session).node_id:
            row.wanted_node = None

    def _lease_until(self, lease_ms: int) -> float:
        return self._clock() + lease_ms / 1000

    def _led_elsewhere(self, session: int, flush: Flush) -> frozenset[int]:
        """Return the partitions of ``flush`` that its session does not lead in its epochs."""
        named: list[Item | LogStart] = [*flush.items, *flush.starts]
        return frozenset(
            each.partition_id
            for each in named
            if not self._leads(session, each.partition_id, each.leader_epoch)
        )
