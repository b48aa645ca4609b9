"""This broker's session, and what it knows of the others: by asking, several times a second.

Two threads ask the store, each by a way of its own: one has the lease last, the other looks at who
is there, and, for the one broker of all that may, gives partitions that nobody leads to whoever
leads fewest. What they find is told on the loop.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from barnabas.broker.cluster.view import NO_NODE, Leader, Node
from barnabas.storage.cluster_index import Assignment, Led, Member, Picture
from barnabas.storage.log_index import IndexClosed

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.cluster.base import ClusterBase
    from barnabas.storage.cluster_index import ClusterIndex

LOOK_TIMEOUT_S: Final = 0.5
HEARTBEATS_PER_LEASE: Final = 5


class MembersView:
    """A ``ClusterView`` of the picture that was taken last."""

    def __init__(self, node_id: int) -> None:
        """Nothing is known yet."""
        self.node_id = node_id
        self.controller_id = NO_NODE
        self.version = 0
        self.nodes: Sequence[Node] = ()
        self.metadata_version = 0
        self.led: Mapping[int, Led] = {}
        self.members: Mapping[int, Member] = {}
        """By session."""

    def leader_of(self, partition_id: int) -> Leader:
        """Return who leads a partition; NO_NODE where its leader's session is over."""
        led = self.led.get(partition_id)
        if led is None:
            return Leader(NO_NODE, -1)
        member = None if led.session is None else self.members.get(led.session)
        return Leader(NO_NODE if member is None else member.node_id, led.epoch)

    def apply(self, picture: Picture, led: Mapping[int, Led]) -> None:
        """Show a newer picture; ``led`` are all partitions in it."""
        self.members = {each.session: each for each in picture.members}
        self.led = led
        self.nodes = sorted(node_of(each) for each in picture.members)
        controller = self.members.get(picture.controller or 0)
        self.controller_id = NO_NODE if controller is None else controller.node_id
        self.metadata_version = picture.metadata_version
        self.version += 1


def text_of(rack: str | None, endpoints: Mapping[str, tuple[str, int]]) -> str:
    """Return what a broker is registered with."""
    return json.dumps({"rack": rack, "endpoints": endpoints})


def node_of(member: Member) -> Node:
    """Return a member as clients see it."""
    found = json.loads(member.endpoints)
    endpoints = {name: (host, port) for name, (host, port) in found["endpoints"].items()}
    return Node(member.node_id, found["rack"], endpoints)


def plan(picture: Picture, led: Mapping[int, Led]) -> list[Assignment]:
    """Return who is to lead what nobody leads that lives."""
    members = {each.session: each for each in picture.members}
    takers = {each.session: each.node_id for each in picture.members if not each.is_draining}
    if not takers:
        return []
    counts = Counter(each.session for each in led.values())
    by_node = {node_id: session for session, node_id in takers.items()}
    assignments = []
    for each in led.values():
        if each.session not in members:
            fewest = min(takers, key=lambda session: (counts[session], session))
            to = by_node.get(each.wanted_node or NO_NODE, fewest)
            counts[to] += 1
            assignments.append(Assignment(each.partition_id, to, each.epoch))
    return assignments


class PlainMembership:
    """One broker's session after the other, and its view."""

    def __init__(
        self,
        base: ClusterBase,
        *,
        node_id: int,
        text: str,
        lease_ms: int,
        loop: asyncio.AbstractEventLoop,
        on_changed: Callable[[], None],
        on_ended: Callable[[int], None],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """``on_changed``: the view; ``on_ended``: a session, by its number. Both on the loop."""
        self.view = MembersView(node_id)
        self._base = base
        self._text = text
        self._lease_ms = lease_ms
        self._loop = loop
        self._on_changed = on_changed
        self._on_ended = on_ended
        self._on_fatal = on_fatal
        self._closed = threading.Event()
        self._session: int
        self._index: ClusterIndex
        self._threads: list[threading.Thread] = []

    def open(self) -> int:
        """On a thread: begin the first session, and return it."""
        self._index = self._base.cluster_index()
        return self.new_session()

    def new_session(self) -> int:
        """On a thread: begin a session, the former one being over."""
        node_id = self.view.node_id
        self._session = self._index.register(uuid4(), node_id, self._text, self._lease_ms)
        return self._session

    def start(self) -> None:
        """Begin to have the lease last, and to look."""
        for work, name in ((self._have_it_last, "heartbeats"), (self._look, "view")):
            thread = threading.Thread(
                target=self._run, args=(work,), name=f"barnabas-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def wanted_elsewhere(self) -> list[int]:
        """Return the partitions that are led here, and are to be led by another node."""
        view = self.view
        return [
            each.partition_id
            for each in view.led.values()
            if each.wanted_node not in {None, view.node_id}
            and view.leader_of(each.partition_id).node_id == view.node_id
        ]

    def wanted_session(self, partition_id: int) -> int | None:
        """Return the session that is to lead a partition, if it lives."""
        led = self.view.led.get(partition_id)
        wanted = None if led is None else led.wanted_node
        found = [each.session for each in self.view.members.values() if each.node_id == wanted]
        return found[0] if found else None

    def close(self) -> None:
        """Tell of nothing any more; the base is closed."""
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[ClusterIndex], None]) -> None:
        try:
            work(self._base.cluster_index())
        except IndexClosed:
            return
        except BaseException as error:  # noqa: BLE001  Without it this broker is of no use.
            self._tell(partial(self._on_fatal, error))

    def _tell(self, what: Callable[[], None]) -> None:
        if not self._closed.is_set():
            self._loop.call_soon_threadsafe(what)

    def _have_it_last(self, index: ClusterIndex) -> None:
        ended: int | None = None
        while not self._closed.wait(self._lease_ms / 1000 / HEARTBEATS_PER_LEASE):
            session = self._session
            if not index.heartbeat(session, self._lease_ms) and session != ended:
                ended = session
                self._tell(partial(self._on_ended, session))
            index.fence_expired()

    def _look(self, index: ClusterIndex) -> None:
        version = 0
        led: dict[int, Led] = {}
        while not self._closed.is_set():
            picture = index.picture(version)
            version = picture.version
            led = led | {each.partition_id: each for each in picture.led}
            for each in picture.gone:
                led.pop(each, None)
            self._tell(partial(self._apply, picture, led))
            if index.control(self._session):
                assignments = plan(picture, led)
                if assignments:
                    index.assign(assignments)
                    continue
            index.wait(version, LOOK_TIMEOUT_S)

    def _apply(self, picture: Picture, led: Mapping[int, Led]) -> None:
        self.view.apply(picture, led)
        self._on_changed()
