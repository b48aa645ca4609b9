"""Membership of this broker in its cluster: its session, its view of the others, and its plans.

Rules of this file:

* Waits for the store run on threads, each with its own connection: one thread keeps the session
  alive, another polls the cluster and, if the store lets it, plans. Their results are applied on
  the event loop. A thread that starts a session supplies its own connection.
* A broker may show what it has read only while no other broker can have taken over: until two
  thirds of its lease have passed since *before* its last successful heartbeat was sent. That clock
  also runs while the machine sleeps. The store alone decides which session may write.
* A broker fences others only after its own heartbeats have succeeded for one lease. After an outage
  of the store all leases have expired, and all brokers are about to reconnect.
* Wall-clock times that a broker writes into records are not compared with the store's clock.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.endpoints import (
    Place,
    UnreadableEndpoints,
    decode_place,
    encode_place,
)
from barnabas.broker.cluster.membership.assigner import Rules, plan
from barnabas.broker.cluster.membership.snapshot_view import SnapshotView, Unseen
from barnabas.broker.cluster.view import Node
from barnabas.broker.config.addresses import address_text
from barnabas.storage.errors import IndexClosed
from barnabas.storage.replicated.cluster_index import ClusterSnapshot, Led, Member
from barnabas.storage.replicated.log_reading import FIRST_AT_ONCE
from barnabas.storage.runtime.chance import random_uuid
from barnabas.storage.runtime.clock import boot_seconds, monotonic
from barnabas.storage.runtime.threads import new_event, new_lock, start_thread

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.storage.replicated.cluster_index import ClusterIndex
    from barnabas.storage.replicated.log_index import LogBeginning
    from barnabas.storage.runtime.threads import Thread

logger = logging.getLogger("barnabas.broker.cluster")

HEARTBEATS_PER_LEASE: Final = 5
SERVED_SHARE: Final = 2 / 3
"""Share of the lease during which this broker may use the last state that it has read."""
LOOK_EVERY_S: Final = 0.5
"""Interval, in seconds, between polls without a notification, since notifications can get lost."""
REFRESH_EVERY_S: Final = 0.1
GAINED_AT_ONCE: Final = 64
"""Maximum number of logs whose beginnings come with a poll. It covers an ordinary hand-over, and
keeps a poll short after a broker has failed."""
GAINED_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of the beginnings of gained logs that one poll reads, so that it stays short."""

_NOTHING_PLANNED: Final = -1
"""Value in the place of a snapshot's version."""


class NodeIdTaken(Exception):
    """Another broker was started with this broker's node ID; the message is for the operator."""


class Membership:
    """One broker among the others of its cluster."""

    def __init__(
        self,
        base: ClusterBase,
        *,
        node_id: int,
        place: Place,
        lease_ms: int,
        loop: asyncio.AbstractEventLoop,
        on_changed: Callable[[], object],
        on_ended: Callable[[int], object],
        on_fatal: Callable[[BaseException], object],
        on_polled: Callable[[], object] = lambda: None,
        on_gained: Callable[[Sequence[LogBeginning]], object] = lambda _gained: None,
        clock: Callable[[], float] = boot_seconds,
    ) -> None:
        """Prepare the membership; ``open`` and ``start`` begin it.

        ``place`` describes this broker to the others. The callbacks run on ``loop``. ``on_changed``
        follows a change of the view or of the metadata's version, and ``on_polled`` every poll.
        ``on_ended`` is called once with each session of this broker that the store has ended, and
        ``on_fatal`` with an error that this broker cannot survive. ``on_gained`` runs on a
        thread, with the beginnings of the logs that the view will newly show as led by this broker
        (``StoredLogs.bring``). ``clock``: see ``boot_seconds``. Raises ValueError for a place that
        no broker could read.
        """
        self._base = base
        self._node_id = node_id
        self._place = encode_place(place)
        self._lease_ms = lease_ms
        self._loop = loop
        self._on_changed = on_changed
        self._on_ended = on_ended
        self._on_fatal = on_fatal
        self._on_looked = on_polled
        self._on_gained = on_gained
        self._clock = clock
        own = Node(node_id, place.rack, place.endpoints, place.features)
        self.view = SnapshotView(own, self.may_serve)
        """View of the cluster, for use on the event loop."""
        self._lock = new_lock()
        self._session: int | None = None
        self._ended_session: int | None = None
        """Session that has ended, or that this broker gives up; it serves nothing in it."""
        self._served_until_s = -math.inf
        self._fences_from_s = math.inf
        self.polls_started = 0
        """Number of polls started; see ``Polls``. Readable on any thread."""
        self.polls_applied = 0
        """Number of the last poll applied; see ``Polls``. Readable on the event loop."""
        self._unseen: Unseen | None = None
        self._unseen_poll = 0
        """Number of the newest poll in ``_unseen``."""
        self._known: dict[int, Led] = {}
        self._known_version = 0
        self._polls_everything = True
        self._planned_version = _NOTHING_PLANNED
        self._rules = Rules()
        self._planned_rules = self._rules
        self._objects_version = _NOTHING_PLANNED
        """Version of the snapshot before the last attempt to use the object store."""
        self._is_closed = new_event()
        self._is_asked = new_event()
        self._beating: ClusterIndex
        self._polling: ClusterIndex
        self._threads: list[Thread] = []

    # ------------------------------------------------------------------------------------ lifecycle

    def open(self, index: ClusterIndex) -> int:
        """Register this broker and return its session; this fences the node's previous session.

        Call it on a thread: it waits while the store is unavailable. Raises the errors of
        ``ClusterBase``.
        """
        self._beating = self._base.cluster_index()
        self._polling = self._base.cluster_index()
        return self._register(index)

    def start(self) -> None:
        """Start the threads that keep the session alive and poll the cluster."""
        for name, run in (("heartbeat", self._beat), ("look", self._watch)):
            thread = start_thread(f"barnabas-{name}", partial(self._run, run))
            self._threads.append(thread)

    def new_session(self, index: ClusterIndex) -> int:
        """Register again after the session has ended and its state was dropped; return the session.

        Call it on a thread. Raises NodeIdTaken if another broker has registered with this node ID.
        """
        for member in index.snapshot(0).members:
            if member.node_id == self._node_id and member.session != self._session:
                raise NodeIdTaken(
                    f"another broker has joined the cluster with node.id={self._node_id}"
                    f"{_whereabouts(member)}: each needs one of its own"
                )
        return self._register(index)

    def close(self) -> None:
        """Stop the threads; the session stays registered until its lease expires."""
        self._is_closed.set()
        self._is_asked.set()
        for name in ("_beating", "_polling"):
            index: ClusterIndex | None = getattr(self, name, None)
            if index is not None:
                index.close()
        for thread in self._threads:
            thread.join()

    # ------------------------------------------------------------------------------------- queries

    @property
    def session(self) -> int | None:
        """Return the newest session of this broker; callable on any thread."""
        return self._session

    def may_serve(self) -> bool:
        """Whether no other broker can have taken over this broker's partitions; on any thread."""
        return self._clock() < self._served_until_s

    def lease_age_s(self) -> float:
        """Return the seconds since the last successful heartbeat was sent.

        Infinite once the session has ended. Callable on any thread.
        """
        return self._clock() - (self._served_until_s - self._lease_s * SERVED_SHARE)

    @property
    def metadata_version(self) -> int:
        """Return the view's version of the MetaStore's image, or a later one."""
        return self.view.metadata_version

    def wanted_elsewhere(self, session: int) -> Sequence[int]:
        """Return the partitions that a session of this broker leads and another node must lead."""
        return self.view.wanted_elsewhere(session)

    def wanted_session(self, partition_id: int) -> int | None:
        """Return the session of the node that must lead a partition, or None."""
        node_id = self.view.wanted(partition_id)
        return None if node_id is None else self.view.session_of(node_id)

    def epoch_of(self, partition_id: int) -> int:
        """Return the leader epoch of a partition, or -1 if it is not known."""
        return self.view.leader_of(partition_id).epoch

    def plan_by(self, rules: Rules) -> None:
        """Plan by ``rules`` from now on, if this broker plans. Call it on the event loop."""
        if rules != self._rules:
            self._rules = rules
            self.view.plan_by(rules)
            self.refresh()

    def refresh(self) -> None:
        """Request a poll, at once or soon after the last one; callable on any thread."""
        self._is_asked.set()

    # ------------------------------------------------------------------------------------- sessions

    def beat_once(self) -> None:
        """Renew the session's lease and fence expired sessions; for one thread."""
        session, sent_s = self._session, self._clock()
        assert session is not None, "it was opened"
        if self._beating.heartbeat(session, self._lease_ms):
            self._note_heartbeat(session, sent_s)
        else:
            self._note_end(session)
        if self._clock() >= self._fences_from_s:
            for fenced in sorted(self._beating.fence_expired()):
                logger.warning("fenced a broker with an expired lease session=%d", fenced)

    def yield_to(
        self, index: ClusterIndex, session: int, nodes: Sequence[int], within_ms: int
    ) -> bool:
        """End a session if other nodes store objects; see ``ClusterIndex``.

        Call it on a thread. This broker serves nothing from the call on, since others may take over
        during it; if the session continues, it serves again after the next heartbeat.
        """
        with self._lock:
            if session != self._session or session == self._ended_session:
                return False
            self._stop_serving(session)
        if index.yield_to(session, nodes, within_ms):
            self._call_on_loop(self._on_ended, session)
            return True
        with self._lock:
            self._ended_session = None
        return False

    def _register(self, index: ClusterIndex) -> int:
        sent_s = self._clock()
        session = index.register(
            random_uuid(),
            self._node_id,
            self._place,
            self._lease_ms,
            self._base.object_use.address,
        )
        with self._lock:
            self._session = session
            self._served_until_s = sent_s + self._lease_s * SERVED_SHARE
            self._fences_from_s = self._clock() + self._lease_s
        self._begin_objects(index, session)
        return session

    def _begin_objects(self, index: ClusterIndex, session: int) -> None:
        """Begin to use the object store in a session, once all live brokers have it."""
        use = self._base.object_use
        if use.may_put(session) or not use.note(session, index.begin_objects(session)):
            return
        if use.lacking:
            nodes = ",".join(map(str, use.lacking))
            logger.warning(
                "object store not used until these brokers have the same barnabas.storage, too "
                "nodes=%s address=%s",
                nodes,
                use.address,
            )
        else:
            logger.info("object store in use address=%s", use.address)

    @property
    def _lease_s(self) -> float:
        return self._lease_ms / 1000

    def _note_heartbeat(self, session: int, sent_s: float) -> None:
        with self._lock:
            if session != self._session or session == self._ended_session:
                return
            if sent_s >= self._served_until_s or self._clock() - sent_s > self._lease_s / 2:
                # The store was unavailable, or this broker was paused.
                self._fences_from_s = self._clock() + self._lease_s
            self._served_until_s = sent_s + self._lease_s * SERVED_SHARE

    def _note_end(self, session: int) -> None:
        with self._lock:
            if session != self._session or session == self._ended_session:
                return
            self._stop_serving(session)
        self._call_on_loop(self._on_ended, session)

    def _stop_serving(self, session: int) -> None:
        """Stop serving, and stop ending sessions of others, in a session; the lock is held."""
        self._ended_session = session
        self._served_until_s = -math.inf
        self._fences_from_s = math.inf

    # -------------------------------------------------------------------------------------- polling

    def poll_once(self) -> None:
        """Poll the cluster, apply the snapshot, and plan if this broker is the planner; for one
        thread.
        """
        self.polls_started += 1
        since = 0 if self._polls_everything else self._known_version
        snapshot = self._taken_snapshot(since)
        changed = Unseen()
        changed.add(snapshot, is_whole=since == 0)
        changed.update(self._known)
        self._known_version = snapshot.version
        self._polls_everything = False
        self._show(snapshot, is_whole=since == 0)
        session = self._session
        if session is None:
            return
        if snapshot.controller in {None, session}:
            self._control(session, snapshot)
        if snapshot.version != self._objects_version:  # Brokers may have come or left.
            self._objects_version = snapshot.version
            self._begin_objects(self._polling, session)

    def _taken_snapshot(self, since: int) -> ClusterSnapshot:
        session = self._session
        if session is None or not since:  # Of all partitions: led ones were read before.
            return self._polling.snapshot(since)
        snapshot, gained = self._polling.poll(
            since,
            session,
            most_logs=GAINED_AT_ONCE,
            most=FIRST_AT_ONCE,
            most_bytes=GAINED_BYTES,
        )
        if gained:
            self._on_gained(gained)
        return snapshot

    def _show(self, snapshot: ClusterSnapshot, *, is_whole: bool) -> None:
        """Schedule the snapshot on the event loop, with those that are not applied yet."""
        with self._lock:
            is_asked = self._unseen is not None
            if self._unseen is None:
                self._unseen = Unseen()
            self._unseen.add(snapshot, is_whole=is_whole)
            self._unseen_poll = self.polls_started
        if not is_asked:
            self._call_on_loop(self._apply)

    def _apply(self) -> None:
        with self._lock:
            unseen, self._unseen = self._unseen, None
            look = self._unseen_poll
        assert unseen is not None
        if self.view.apply(unseen) and not self._is_closed.is_set():
            self._on_changed()
        self.polls_applied = look
        self._on_looked()

    def _control(self, session: int, snapshot: ClusterSnapshot) -> None:
        """Plan for a new snapshot or new rules, if this broker is the planner."""
        rules = self._rules
        is_planned = (self._planned_version, self._planned_rules) == (snapshot.version, rules)
        if is_planned or not self._polling.control(session):
            return
        members, cordoned = _as_takers(snapshot.members)
        by_all = rules._replace(cordoned=rules.all_cordoned(cordoned))
        planned = plan(members, self._known.values(), rules=by_all)
        refused = {each.partition_id for each in planned.assignments}
        if planned.assignments:
            refused -= self._polling.assign(planned.assignments)
        if planned.wishes:
            self._polling.want(planned.wishes)
        if not planned.is_empty:
            logger.info(
                "partitions assigned=%d refused=%d wished=%d",
                len(planned.assignments) - len(refused),
                len(refused),
                len(planned.wishes),
            )
        # A refused partition may have been deleted long ago, so that no snapshot of changes has it.
        self._polls_everything = bool(refused)
        self._planned_version = _NOTHING_PLANNED if refused else snapshot.version
        self._planned_rules = rules

    # ---------------------------------------------------------------------------------- the threads

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        except IndexClosed:
            return
        except Exception as error:  # noqa: BLE001  Told where it ends the broker.
            with contextlib.suppress(IndexClosed):
                self._call_on_loop(self._on_fatal, error)

    def _beat(self) -> None:
        while not self._is_closed.wait(self._lease_s / HEARTBEATS_PER_LEASE):
            self.beat_once()

    def _watch(self) -> None:
        while not self._is_closed.is_set():
            self._is_asked.clear()
            self.poll_once()
            self._pause()

    def _pause(self) -> None:
        """Wait until there is a reason to poll."""
        looked_s = monotonic()
        while not self._is_closed.is_set():
            before_s = monotonic()
            self._polling.wait(self._known_version, REFRESH_EVERY_S)
            now_s = monotonic()
            if now_s - before_s < REFRESH_EVERY_S:
                # The cluster has changed. The pause before lets one poll cover many changes.
                return
            if self._is_asked.is_set() or now_s - looked_s >= LOOK_EVERY_S:
                return

    def _call_on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        """Schedule a call on the event loop; raises IndexClosed if the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            raise IndexClosed from None


def _whereabouts(member: Member) -> str:
    """Return the addresses of another broker for an operator, or "" if they cannot be read."""
    try:
        endpoints = decode_place(member.endpoints).endpoints
    except UnreadableEndpoints:
        return ""
    found = ", ".join(address_text(host, port) for host, port in endpoints.values())
    return f" at {found}" if found else ""


def _as_takers(members: Sequence[Member]) -> tuple[list[Member], frozenset[int]]:
    """Return brokers as plans need them, and the nodes that their configuration cordons.

    A broker whose registration this release cannot read counts as draining: it gets no partitions.
    """
    takers, cordoned = [], set()
    for member in members:
        try:
            if decode_place(member.endpoints).is_cordoned:
                cordoned.add(member.node_id)
            takers.append(member)
        except UnreadableEndpoints:
            takers.append(member._replace(is_draining=True))
    return takers, frozenset(cordoned)
