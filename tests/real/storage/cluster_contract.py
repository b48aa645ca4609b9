"""Tests of every ClusterIndex; an engine joins by a class of tests that creates its bases."""

import itertools
import threading
import time
from uuid import uuid4

import pytest

from barnabas.storage.errors import IndexClosed, StoreUnusable
from barnabas.storage.objects.blob_store import UploadKey
from barnabas.storage.replicated.cluster_index import (
    FENCED_MAX,
    FIRST_NODE_ID,
    Assignment,
    HandOver,
    Led,
    Member,
)
from barnabas.storage.replicated.log_index import (
    Extent,
    Flush,
    Item,
    Lane,
    LogSnapshot,
    ObjectSize,
    Outcome,
)
from tests.waiting import wait_until

LEASE_MS = 60_000
LONG_S = 60.0
STORE = "file:///objects"
NODES = itertools.count(1)
UNKNOWN = 10**9
"""The id of no partition."""
MOST = 1000
"""More than there is."""


class World:
    """A cluster's store, of which others than this test may have used something before."""

    def __init__(self, base):
        self.base = base
        self.index = base.cluster_index()
        self.logs = base.log_index()
        self.metastore = base.metastore(0)
        for member in self.index.snapshot(0).members:
            self.index.fence(member.session)

    def register(self, node_id=None, endpoints="", lease_ms=LEASE_MS, object_store=None):
        """Begin a session, of a node that has had none if none is named."""
        node_id = next(NODES) if node_id is None else node_id
        return self.index.register(uuid4(), node_id, endpoints, lease_ms, object_store)

    def flush_object(self, session, partition_id):
        """Commit a flush whose body is in the object store."""
        item, key = Item(partition_id, 0, 0, 1, 8, 12), UploadKey(session, Lane.INLINE, 0, 1).text
        flush = Flush(Lane.INLINE, 0, [item], key=key, size=ObjectSize(20, 50))
        return self.logs.commit_flush(session, flush).outcome

    def report(self, session, *, failing_ms=None, stored_ms=None, within_ms=LEASE_MS):
        """Report the puts of a broker; return the nodes that store objects."""
        return self.index.report_objects(
            session, failing_ms=failing_ms, stored_ms=stored_ms, within_ms=within_ms
        )

    def node(self, session):
        return self.member(session).node_id

    def can_register(self, **named):
        """Whether one more node is registered."""
        try:
            return self.register(**named)
        except StoreUnusable:
            return False

    def topic(self, partition_count):
        """Make a topic; return its id and the ids of its partitions."""
        topic_id = uuid4().bytes
        row = self.metastore.create_topic(topic_id.hex(), topic_id, partition_count, {})
        return topic_id, [each.partition_id for each in row.partitions]

    def partitions(self, count=1):
        return self.topic(count)[1]

    @property
    def version(self):
        return self.index.snapshot(0).version

    def member(self, session):
        (found,) = (each for each in self.index.snapshot(0).members if each.session == session)
        return found

    def fenced(self, node_id):
        return [each for each in self.index.snapshot(0).fenced if each.node_id == node_id]

    def led(self, partition_id):
        (found,) = (
            each for each in self.index.snapshot(0).led if each.partition_id == partition_id
        )
        return found

    def poll(self, since, session, *, most_logs=MOST, most_bytes=MOST):
        return self.index.poll(
            since, session, most_logs=most_logs, most=MOST, most_bytes=most_bytes
        )

    def lead(self, session, *partition_ids):
        """Make a session the leader of partitions, regardless of their leaders before."""
        asked = [Assignment(each, session, self.led(each).epoch) for each in partition_ids]
        assert self.index.assign(asked) == set(partition_ids)


class ClusterIndexContract:
    """Tests of an index by itself; ``base`` is a fixture: a ClusterBase."""

    @pytest.fixture
    def world(self, base):
        return World(base)

    # -- sessions ----------------------------------------------------------------------------------

    def test_a_member_is_there_with_what_it_registered(self, world):
        node_id = next(NODES)
        session = world.register(node_id, '{"a": 1}')
        assert world.member(session) == Member(session, node_id, '{"a": 1}', is_draining=False)
        world.index.drain(session)
        assert world.member(session).is_draining
        world.index.fence(session)
        assert session not in {each.session for each in world.index.snapshot(0).members}

    def test_a_node_has_one_session_and_a_token_stands_for_one(self, world):
        token, node_id = uuid4(), next(NODES)
        first = world.index.register(token, node_id, "", LEASE_MS)
        version = world.version
        assert world.index.register(token, node_id, "", LEASE_MS) == first, "the answer was lost"
        assert world.version == version
        second = world.register(node_id)
        assert second != first
        assert [each.session for each in world.index.snapshot(0).members] == [second]
        assert not world.index.heartbeat(first, LEASE_MS)
        assert world.index.heartbeat(second, LEASE_MS)
        assert world.index.register(token, node_id, "", LEASE_MS) == first, "it is over, still"
        assert [each.session for each in world.index.snapshot(0).members] == [second]

    def test_picture_shows_the_last_session_of_fenced_nodes(self, world):
        node_id = next(NODES)
        for text in ("before", "last"):
            session = world.register(node_id, text)
        assert world.fenced(node_id) == []
        world.index.fence(session)
        assert world.fenced(node_id) == [Member(session, node_id, "last", is_draining=False)]
        world.register(node_id, "back")
        assert world.fenced(node_id) == []

    def test_an_import_is_no_fenced_broker(self, world):
        node_id = next(NODES)
        world.index.fence(world.register(node_id, endpoints=""))
        assert world.fenced(node_id) == []

    def test_a_picture_shows_a_limited_number_of_fenced_nodes(self, world):
        sessions = [world.register(endpoints="there") for _ in range(FENCED_MAX + 1)]
        for each in sessions:
            world.index.fence(each)
        assert [each.session for each in world.index.snapshot(0).fenced] == sessions[1:]

    def test_fence_expired_ends_sessions_with_expired_leases(self, world):
        lasting, short = world.register(), world.register(lease_ms=1)
        version = world.version
        fenced = set()
        wait_until(lambda: fenced.update(world.index.fence_expired()) or fenced)
        assert fenced == {short}
        assert [each.session for each in world.index.snapshot(0).members] == [lasting]
        assert world.version > version
        assert not world.index.heartbeat(short, LEASE_MS)
        version = world.version
        assert world.index.fence_expired() == frozenset()
        assert world.version == version

    def test_new_node_id_is_above_every_used_id(self, world):
        ids = [world.index.new_node_id() for _ in range(2)]
        assert FIRST_NODE_ID <= ids[0] < ids[1]
        chosen = ids[1] + 1
        world.register(chosen)
        assert world.index.new_node_id() > chosen
        world.register(2**31 - 1)
        assert world.index.new_node_id() == chosen + 2

    # -- the object store --------------------------------------------------------------------------

    def test_nodes_that_have_just_stored_an_object_are_reported_to_the_others(self, world):
        without, elsewhere = world.register(), world.register(object_store="file:///other")
        own, other, third = (world.register(object_store=STORE) for _ in range(3))
        assert world.report(own) == []
        for session in (other, third, elsewhere, without):
            world.report(session, stored_ms=1)
        nodes = sorted(map(world.node, (other, third)))
        assert world.report(own, failing_ms=15_000, stored_ms=20_000) == nodes
        assert world.report(without) == [], "it has no store"
        assert world.report(third, stored_ms=1) == [world.node(other)], "the first one fails"
        world.report(third, stored_ms=2 * LEASE_MS)
        assert world.report(own) == [world.node(other)], "an old success"
        world.report(other, failing_ms=1, stored_ms=1)
        assert world.report(own) == [], "it fails now"
        world.report(other)
        assert world.report(own) == [], "it has stored nothing"
        world.report(other, stored_ms=1)
        world.index.drain(other)
        assert world.report(own) == [], "it takes no partitions"

    def test_session_that_has_ended_reports_nothing(self, world):
        own, other = (world.register(object_store=STORE) for _ in range(2))
        world.index.fence(other)
        version = world.version
        assert world.report(other, failing_ms=1) == []
        assert world.version == version
        world.report(other, stored_ms=1)
        assert world.report(own) == []
        assert world.index.snapshot(0).failing == []

    def test_picture_shows_the_sessions_at_which_the_store_fails(self, world):
        own, other = (world.register(object_store=STORE) for _ in range(2))
        before = world.version
        world.report(own, stored_ms=1)
        world.report(own)
        assert (world.version, world.index.snapshot(0).failing) == (before, [])
        for failing_ms in (15_000, 17_000):
            world.report(own, failing_ms=failing_ms)
            assert (world.version, world.index.snapshot(0).failing) == (before + 1, [own])
        world.report(other, failing_ms=1)
        assert world.index.snapshot(0).failing == [own, other]
        world.report(own, stored_ms=1)
        assert (world.version, world.index.snapshot(0).failing) == (before + 3, [other])
        world.index.fence(other)
        assert world.index.snapshot(0).failing == []

    def test_session_yields_only_to_nodes_that_store_objects(self, world):
        own, other, third = (world.register(object_store=STORE) for _ in range(3))
        nodes = [world.node(other), world.node(third)]
        world.report(own, failing_ms=30_000)
        assert not world.index.yield_to(own, nodes, LEASE_MS)
        world.report(other, stored_ms=1)
        for others in ([], [world.node(third)], [world.node(own)]):
            assert not world.index.yield_to(own, others, LEASE_MS)
        version = world.version
        assert world.member(own)
        assert world.index.yield_to(own, nodes, LEASE_MS)
        assert own not in {each.session for each in world.index.snapshot(0).members}
        assert world.version == version + 1
        assert not world.index.heartbeat(own, LEASE_MS)
        assert world.index.yield_to(own, nodes, LEASE_MS), "the answer was lost"
        assert world.version == version + 1

    def test_last_session_does_not_yield(self, world):
        """Each has reported a success before the store failed at it."""
        sessions = [world.register(object_store=STORE) for _ in range(3)]
        nodes = [*map(world.node, sessions)]
        for session in sessions:
            world.report(session, stored_ms=1)
        assert [world.index.yield_to(each, nodes, LEASE_MS) for each in sessions] == [
            True,
            True,
            False,
        ]

    def test_use_of_a_store_begins_once_all_live_sessions_have_it(self, world):
        node_ids = [next(NODES) for _ in range(4)]
        first = world.register(node_ids[0], object_store=STORE)
        without = world.register(node_ids[1])
        world.register(node_ids[2], object_store="file:///other")
        second = world.register(node_ids[3], object_store=STORE)
        assert world.index.begin_objects(first) == [node_ids[1], node_ids[2]]
        world.index.fence(without)
        assert world.index.begin_objects(second) == [node_ids[2]]
        world.register(node_ids[2], object_store=STORE)
        for session in (first, second, first):
            assert world.index.begin_objects(session) == []

    def test_broker_that_lacks_the_store_in_use_is_refused_and_loses_nothing(self, world):
        node_id = next(NODES)
        session = world.register(node_id, object_store=STORE)
        world.register(object_store=STORE)
        assert world.index.begin_objects(session) == []
        for store, words in ((None, "not set"), ("file:///other", "file:///other")):
            with pytest.raises(
                StoreUnusable, match=rf"{STORE}, and .* broker {node_id} is {words}:"
            ):
                world.register(node_id, object_store=store)
            assert world.index.heartbeat(session, LEASE_MS), "it goes on"
        assert world.register(node_id, object_store=STORE) > session

    def test_store_without_records_and_sessions_can_be_left(self, world):
        for store in (STORE, "file:///other"):
            session = world.register(object_store=store)
            assert world.index.begin_objects(session) == []
            world.index.fence(session)
        session = world.register(object_store="file:///other", lease_ms=1)
        assert world.index.begin_objects(session) == []
        wait_until(lambda: world.can_register(object_store=None))
        assert world.index.begin_objects(world.register()) == []
        # Of sessions with different stores none begins.
        assert world.index.begin_objects(world.register(object_store=STORE))
        world.register()

    def test_store_that_has_records_can_be_moved_and_not_left(self, world):
        session, (topic_id, (partition_id,)) = world.register(object_store=STORE), world.topic(1)
        assert world.index.assign([Assignment(partition_id, session, -1)])
        assert world.index.begin_objects(session) == []
        assert world.flush_object(session, partition_id) is Outcome.COMMITTED
        world.index.fence(session)
        with pytest.raises(StoreUnusable, match=rf"{STORE}, and .* is not set"):
            world.register()
        again = world.register(object_store="file:///moved")
        assert world.index.begin_objects(again) == []
        world.index.fence(again)
        world.metastore.delete_topic(topic_id)
        while world.logs.collect_garbage(MOST):
            pass
        world.register()

    def test_one_live_session_plans(self, world):
        first, second = world.register(), world.register()
        assert world.index.snapshot(0).controller is None
        assert world.index.control(first)
        version = world.version
        assert [world.index.control(each) for each in (first, second)] == [True, False]
        assert world.version == version
        assert world.index.snapshot(0).controller == first
        world.index.fence(first)
        assert world.index.snapshot(0).controller is None
        version = world.version
        assert not world.index.control(first)
        assert world.version == version
        assert [world.index.control(each) for each in (first, second)] == [False, True]
        assert world.index.snapshot(0).controller == second

    # -- who leads ---------------------------------------------------------------------------------

    def test_new_partition_has_no_leader(self, world):
        _topic_id, ids = world.topic(2)
        snapshot = world.index.snapshot(0)
        assert [each for each in snapshot.led if each.partition_id in ids] == [
            Led(each, None, -1, None) for each in ids
        ]

    def test_partition_added_with_an_epoch_continues_from_it(self, world):
        partition_id = UNKNOWN - 1 - next(NODES)
        world.logs.add_partition(partition_id, 6)
        version = world.version
        world.logs.add_partition(partition_id, 9)
        assert world.version == version
        session = world.register()
        assert world.index.assign([Assignment(partition_id, session, 5)]) == {partition_id}
        assert world.led(partition_id) == Led(partition_id, session, 6, None)
        assert world.logs.partition(partition_id)[:2] == (session, 6)

    def test_many_are_assigned_at_once_each_for_itself(self, world):
        live, other, draining, ended = (world.register() for _ in range(4))
        ids = world.partitions(6)
        world.index.drain(draining)
        world.index.fence(ended)
        asked = [
            Assignment(ids[5], live, -1),
            Assignment(ids[0], live, -1),
            Assignment(ids[1], other, -1),
            Assignment(ids[2], draining, -1),
            Assignment(ids[3], ended, -1),
            Assignment(ids[4], live, 0),
            Assignment(UNKNOWN, live, -1),
        ]
        done = {ids[5], ids[0], ids[1]}
        assert world.index.assign(asked) == done
        version = world.version
        assert world.index.assign(asked) == done, "the answer was lost"
        assert world.version == version
        led = [world.led(each) for each in ids]
        assert [(each.session, each.epoch) for each in led] == [
            (live, 0), (other, 0), (None, -1), (None, -1), (None, -1), (live, 0)
        ]  # fmt: skip
        assert world.index.assign([]) == frozenset()
        assert world.version == version

    def test_first_assignment_of_an_epoch_wins(self, world):
        first, second = world.register(), world.register()
        (partition_id,) = world.partitions()
        assert world.index.assign([Assignment(partition_id, first, -1)]) == {partition_id}
        assert world.index.assign([Assignment(partition_id, second, -1)]) == set()
        assert world.index.assign([Assignment(partition_id, second, 0)]) == {partition_id}
        assert world.index.assign([Assignment(partition_id, first, -1)]) == set()
        assert world.led(partition_id) == Led(partition_id, second, 1, None)

    def test_a_session_that_has_ended_is_still_named(self, world):
        session = world.register()
        (partition_id,) = world.partitions()
        world.lead(session, partition_id)
        world.index.fence(session)
        assert world.led(partition_id) == Led(partition_id, session, 0, None)
        assert world.index.assign([Assignment(partition_id, session, -1)]) == set()

    def test_handed_over_partition_is_led_in_the_next_epoch(self, world):
        first, second = world.register(), world.register()
        (partition_id,) = world.partitions()
        world.lead(first, partition_id)
        world.index.want({partition_id: UNKNOWN})
        world.index.hand_over(first, [HandOver(partition_id, 0, second)])
        assert world.led(partition_id) == Led(partition_id, second, 1, None)
        version = world.version
        for session, epoch in ((first, 0), (second, 0), (first, 1)):
            world.index.hand_over(session, [HandOver(partition_id, epoch, first)])
        world.index.hand_over(first, [HandOver(UNKNOWN, 0, second)])
        assert world.version == version
        assert world.led(partition_id) == Led(partition_id, second, 1, None)

    def test_hand_over_of_several_partitions_is_one_change(self, world):
        leader, draining, *takers = (world.register() for _ in range(4))
        ids = world.partitions(6)
        world.lead(leader, *ids[:5])
        world.lead(takers[0], ids[5])
        world.index.want(dict.fromkeys(ids, UNKNOWN))
        world.index.drain(draining)
        before = world.index.snapshot(0)
        to = [takers[0], takers[1], None, draining, takers[1], takers[1]]
        epochs = [0, 0, 0, 0, 7, 0]
        given = [HandOver(*each) for each in zip(ids, epochs, to, strict=True)]
        for _ in range(2):  # A caller without a response calls again.
            world.index.hand_over(leader, given)
            assert world.version == before.version + 1
            assert [world.led(each)[1:4] for each in ids] == [
                (takers[0], 1, None),
                (takers[1], 1, None),
                (None, 0, UNKNOWN),
                (None, 0, UNKNOWN),
                (leader, 0, UNKNOWN),
                (takers[0], 0, UNKNOWN),
            ]
        changed = [each.partition_id for each in world.index.snapshot(before.version).led]
        assert changed == ids[:4]

    def test_partition_handed_to_no_live_session_has_no_leader(self, world):
        leader, draining, ended = (world.register() for _ in range(3))
        ids = world.partitions(4)
        world.lead(leader, *ids)
        world.index.want({ids[0]: UNKNOWN})
        world.index.drain(draining)
        world.index.fence(ended)
        takers = zip(ids, (None, draining, ended), strict=False)
        world.index.hand_over(leader, [HandOver(each, 0, to) for each, to in takers])
        assert [world.led(each)[1:4] for each in ids] == [
            (None, 0, UNKNOWN), (None, 0, None), (None, 0, None), (leader, 0, None)
        ]  # fmt: skip
        assert world.index.assign([Assignment(ids[0], leader, 0)]) == {ids[0]}

    def test_assignment_to_the_wanted_node_ends_the_wish(self, world):
        node_id = next(NODES)
        session, other = world.register(node_id), world.register()
        ids = world.partitions(3)
        world.index.want(dict.fromkeys([*ids[:2], UNKNOWN], node_id))
        version = world.version
        world.index.want(dict.fromkeys(ids[:2], node_id))
        world.index.want({})
        assert world.version == version
        world.lead(session, ids[0])
        world.lead(other, ids[1])
        assert [world.led(each).wanted_node for each in ids] == [None, node_id, None]
        world.index.want(dict.fromkeys(ids))
        assert [world.led(each).wanted_node for each in ids] == [None, None, None]

    def test_pinned_partition_is_wanted_there_and_stays_pinned(self, world):
        node_id = next(NODES)
        leader, pinned = world.register(), world.register(node_id)
        ids = world.partitions(4)
        world.lead(leader, *ids[:2])
        world.lead(pinned, ids[2])
        world.index.want(dict.fromkeys(ids[2:], UNKNOWN))
        seen = world.version
        for _ in range(2):  # A caller without a response calls again.
            world.index.pin(dict.fromkeys([*ids[1:], UNKNOWN], node_id))
            assert world.version == seen + 1
        assert [world.led(each)[1:] for each in ids] == [
            (leader, 0, None, None),
            (leader, 0, node_id, node_id),
            (pinned, 0, None, node_id),
            (None, -1, node_id, node_id),
        ]
        assert [each.partition_id for each in world.index.snapshot(seen).led] == ids[1:]
        world.index.hand_over(leader, [HandOver(ids[1], 0, pinned)])
        world.lead(pinned, ids[3])
        assert [world.led(each)[3:] for each in ids[1:]] == [(None, node_id)] * 3
        # Another session leads it meanwhile; the planner decides when it returns.
        world.index.fence(pinned)
        world.lead(leader, *ids[1:])
        assert [world.led(each)[3:] for each in ids[1:]] == [(None, node_id)] * 3
        world.index.want(dict.fromkeys(ids[1:]))
        assert [world.led(each)[3:] for each in ids[1:]] == [(None, node_id)] * 3

    def test_a_pin_is_another_one_or_none(self, world):
        first, second = next(NODES), next(NODES)
        session = world.register(first)
        ids = world.partitions(2)
        world.lead(session, *ids)
        world.index.pin(dict.fromkeys(ids, second))
        world.index.pin({ids[0]: first})
        assert [world.led(each)[3:] for each in ids] == [(None, first), (second, second)]
        before = world.version
        world.index.pin(dict.fromkeys(ids))
        assert [world.led(each)[3:] for each in ids] == [(None, None)] * 2
        assert world.version == before + 1
        world.index.pin(dict.fromkeys(ids))
        world.index.pin({})
        assert world.version == before + 1

    def test_a_session_that_has_ended_leads_what_is_pinned_to_its_node_until_it_is_assigned(
        self, world
    ):
        node_id = next(NODES)
        session = world.register(node_id)
        (partition_id,) = world.partitions()
        world.lead(session, partition_id)
        world.index.fence(session)
        world.index.pin({partition_id: node_id})
        assert world.led(partition_id) == Led(partition_id, session, 0, None, node_id)

    def test_wishes_for_several_nodes_are_one_change(self, world):
        ids = world.partitions(3)
        before = world.index.snapshot(0)
        world.index.want({ids[0]: 7, ids[1]: 8})
        assert [world.led(each).wanted_node for each in ids] == [7, 8, None]
        world.index.want({ids[0]: 7, ids[1]: None, ids[2]: 9})
        assert [world.led(each).wanted_node for each in ids] == [7, None, 9]
        assert world.version == before.version + 2

    # -- pictures ----------------------------------------------------------------------------------

    def test_a_picture_has_the_partitions_that_were_changed_since(self, world):
        first, second = world.register(), world.register()
        ids = world.partitions(5)
        seen = world.index.snapshot(0)
        assert set(ids) <= {each.partition_id for each in seen.led}
        assert world.index.snapshot(seen.version).led == []
        world.index.want({ids[3]: 7, ids[1]: 7})
        world.lead(first, ids[0])
        newer = world.index.snapshot(seen.version)
        assert [each.partition_id for each in newer.led] == [ids[0], ids[1], ids[3]]
        world.index.hand_over(first, [HandOver(ids[0], 0, second)])
        newest = world.index.snapshot(newer.version)
        assert newest.led == [Led(ids[0], second, 1, None)]
        assert [each.session for each in newest.members] == [first, second]

    def test_a_look_brings_the_logs_that_a_session_has_come_to_lead(self, world):
        """The result with the new leader has the logs too, so the leader can start at once."""
        first, second = world.register(), world.register()
        ids = world.partitions(4)
        world.lead(first, *ids[:3])
        world.lead(second, ids[3])
        items = [Item(each, 0, 0, 1, 3 * at, 3) for at, each in enumerate(ids[:2])]
        world.logs.commit_flush(first, Flush(Lane.INLINE, 0, items, (), b"abcdef"))
        seen = world.index.snapshot(0)
        assert world.poll(seen.version, second) == (world.index.snapshot(seen.version), [])
        world.index.hand_over(first, [HandOver(each, 0, second) for each in ids[:2]])
        snapshot, gained = world.poll(seen.version, second)
        assert snapshot == world.index.snapshot(seen.version)
        assert gained == world.logs.beginnings(ids[:2], most=MOST, most_bytes=MOST)
        assert [each.head.state for each in gained] == [(second, 1, 0, 1)] * 2
        assert [each.extents for each in gained] == [
            [Extent(0, 1, 0, b"abc")], [Extent(0, 1, 0, b"def")]
        ]  # fmt: skip
        assert world.poll(seen.version, first).gained == [], "it let go of them"
        assert world.poll(snapshot.version, second).gained == [], "once"

    def test_a_look_brings_as_much_as_is_asked_for(self, world):
        session = world.register()
        ids = world.partitions(4)
        since = world.version
        world.lead(session, *ids)
        items = [Item(each, 0, 0, 1, 3 * at, 3) for at, each in enumerate(ids)]
        flush = Flush(Lane.INLINE, 0, items, (), b"abcdefghijkl")
        world.logs.commit_flush(session, flush)
        world.index.want({ids[1]: UNKNOWN})
        staying = [ids[0], *ids[2:]]
        for most_logs in range(5):
            gained = world.poll(since, session, most_logs=most_logs).gained
            assert [each.head.partition_id for each in gained] == staying[:most_logs]
        for most_bytes, found in ((0, 0), (1, 1), (3, 1), (4, 2), (9, 3)):
            gained = world.poll(since, session, most_bytes=most_bytes).gained
            assert [len(each.extents) for each in gained] == [1] * found + [0] * (3 - found)

    def test_a_look_brings_nothing_of_what_was_led_all_along(self, world):
        """The end of a planned move does not bring the partition's log."""
        first, second = world.register(), world.register()
        kept, moved = world.partitions(2)
        world.lead(first, kept, moved)
        since = world.version
        world.index.want({kept: UNKNOWN, moved: UNKNOWN})
        world.index.want({kept: None})
        world.index.hand_over(first, [HandOver(moved, 0, second)])
        assert [each.partition_id for each in world.index.snapshot(since).led] == [kept, moved]
        assert world.poll(since, first).gained == []
        assert [each.head.partition_id for each in world.poll(since, second).gained] == [moved]
        since = world.version
        world.lead(first, kept)
        assert [each.head.partition_id for each in world.poll(since, first).gained] == [kept]

    def test_a_look_brings_no_snapshot_that_is_larger_than_all_it_may(self, world):
        session = world.register()
        ids = world.partitions(3)
        since = world.version
        world.lead(session, *ids)
        for each, size in zip(ids, (40, 10, 40), strict=True):
            assert world.logs.put_snapshot(session, each, 0, LogSnapshot(0, bytes(size), b""))
        for most_bytes, brought in ((9, []), (10, ids[1:2]), (40, ids[:1]), (90, ids)):
            gained = world.poll(since, session, most_bytes=most_bytes).gained
            assert [each.head.partition_id for each in gained] == brought

    def test_heartbeats_and_flushes_change_no_picture(self, world):
        session = world.register()
        (partition_id,) = world.partitions()
        world.lead(session, partition_id)
        seen = world.index.snapshot(0)
        assert world.index.heartbeat(session, LEASE_MS)
        flush = Flush(Lane.INLINE, 0, [Item(partition_id, 0, 0, 1, 0, 3)], (), b"abc")
        world.logs.commit_flush(session, flush)
        assert world.index.snapshot(0) == seen

    def test_partitions_come_with_topics_and_go_with_them(self, world):
        topic_id, ids = world.topic(2)
        session = world.register()
        world.lead(session, *ids)
        world.index.pin(dict.fromkeys(ids, 7))
        seen = world.index.snapshot(0)
        added = world.metastore.create_partitions(topic_id, 3)[0].partition_id
        grown = world.index.snapshot(seen.version)
        assert [each.partition_id for each in grown.led] == [added]
        world.metastore.delete_topic(topic_id)
        world.metastore.forget_topic(topic_id)
        shrunk = world.index.snapshot(grown.version)
        assert (shrunk.led, shrunk.gone) == ([], [*ids, added])
        assert not {*ids, added} & {each.partition_id for each in world.index.snapshot(0).led}
        assert world.index.assign([Assignment(ids[0], session, 0)]) == set()
        world.index.want(dict.fromkeys(ids, 7))
        world.index.pin(dict.fromkeys(ids, 7))
        assert world.version == shrunk.version
        _, anew = world.topic(2)
        assert [world.led(each).pinned_node for each in anew] == [None, None]

    def test_the_version_of_the_metadata_is_seen(self, world):
        versions = [world.index.snapshot(0).metadata_version]
        for change in (
            lambda: world.topic(1),
            lambda: world.metastore.set_broker_configs("", {"log.retention.ms": "1"}),
            lambda: world.metastore.set_broker_configs("", {}),
        ):
            change()
            versions.append(world.index.snapshot(0).metadata_version)
            assert versions[-1] >= world.metastore.load().version
        assert versions == sorted(set(versions))

    # -- waiting -----------------------------------------------------------------------------------

    def test_wait_returns_after_a_change(self, world, base):
        waiting = Waiting(base.cluster_index())
        for change in (
            world.register,
            lambda: world.metastore.set_broker_configs("", {"log.retention.ms": "2"}),
            lambda: world.metastore.set_broker_configs("", {}),
            lambda: world.topic(1),
        ):
            before = waiting.settled()
            change()
            wait_until(lambda before=before: waiting.returns > before)
        waiting.end()

    def test_wait_returns_after_its_timeout(self, world):
        version = world.version
        for _ in range(3):
            started_s = time.monotonic()
            world.index.wait(version, 0.02)
            assert time.monotonic() - started_s < LONG_S

    def test_close_ends_a_wait(self, base):
        waiting = Waiting(base.cluster_index())
        waiting.settled()
        waiting.end()


class Waiting:
    """A thread that waits for one change after the other, for ``timeout_s`` each time."""

    def __init__(self, index, timeout_s=LONG_S):
        self.index = index
        self.timeout_s = timeout_s
        self.waits_s = 0.0
        """For how long it waits now, or has waited."""
        self.returns = 0
        self._waits = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            while True:
                self.waits_s = self.timeout_s
                version = self.index.snapshot(0).version
                self._waits.set()
                self.index.wait(version, self.waits_s)
                self.returns += 1
        except IndexClosed:
            return

    def settled(self):
        """Wait until it has seen all there is, and waits; return how often it has returned."""
        while True:
            returns = self.returns
            self._waits.clear()
            if self._waits.wait(0.1) or self.returns != returns:
                continue
            return returns

    def end(self):
        """Close the index during any call, and check that the waiting thread ends."""
        self.index.close()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
