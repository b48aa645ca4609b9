"""A broker among others: its session and lease, what it knows of them, what it plans for all.

Most of it goes step by step, on a clock that a test moves; threads come at the end.
"""

import asyncio
import contextlib
from random import Random
from uuid import uuid4

import pytest

from barnabas.broker.cluster.endpoints import Place, encode_place
from barnabas.broker.cluster.membership.assigner import Rules
from barnabas.broker.cluster.membership.membership import LOOK_EVERY_S, Membership, NodeIdTaken
from barnabas.broker.cluster.view import NO_NODE, Leader, Node
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.storage.replicated.cluster_index import Assignment, HandOver
from barnabas.storage.runtime.clock import boot_seconds
from tests.seeds import SEED
from tests.waiting import until

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
LEASE_MS = 10_000
BEAT_S = 2.0


class Time:
    """A clock that a test moves."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


class Cluster:
    """A store, and its brokers."""

    def __init__(self):
        self.time = Time()
        self.store = MemoryStore(CLUSTER_ID, self.time)
        self.base = self.store.base()
        self.index = self.base.cluster_index()
        self.metastore = self.base.metastore(0)
        self.brokers = []

    def broker(self, node_id, **options):
        broker = Broker(self, node_id, **options)
        self.brokers.append(broker)
        return broker

    def topic(self, partition_count):
        topic_id = uuid4().bytes
        row = self.metastore.create_topic(topic_id.hex(), topic_id, partition_count, {})
        return topic_id, [each.partition_id for each in row.partitions]

    async def poll(self, *brokers):
        """Poll on all brokers, and apply the snapshots."""
        for broker in brokers or self.brokers:
            broker.membership.poll_once()
        await asyncio.sleep(0)

    async def settle(self, *brokers):
        """Poll and carry out wishes, until no broker changes anything."""
        version = None
        while version != self.index.snapshot(0).version:
            version = self.index.snapshot(0).version
            await self.poll(*brokers)
            for broker in brokers or self.brokers:
                broker.hand_over()

    def loads(self):
        """Return the number of partitions that each session leads."""
        led = [each.session for each in self.index.snapshot(0).led]
        return {each: led.count(each) for each in led}

    def close(self):
        for broker in self.brokers:
            broker.membership.close()
            broker.base.close()
        self.base.close()
        self.store.close()


class Broker:
    """Broker of the cluster, with the calls of its callbacks."""

    def __init__(self, cluster, node_id, *, lease_ms=LEASE_MS, clock=None, is_cordoned=False):
        self.cluster = cluster
        self.node_id = node_id
        self.base = cluster.store.base()
        self.changes = 0
        self.ended = []
        self.fatal = []
        self.gained = []
        self.way = self.base.cluster_index()
        self.membership = Membership(
            self.base,
            node_id=node_id,
            place=Place("r", {"PLAINTEXT": ("broker", 9000 + node_id)}, is_cordoned),
            lease_ms=lease_ms,
            loop=asyncio.get_running_loop(),
            on_changed=self._changed,
            on_ended=self.ended.append,
            on_fatal=self.fatal.append,
            on_gained=self._gained,
            clock=clock or cluster.time,
        )
        self.session = self.membership.open(self.way)

    def _changed(self):
        self.changes += 1

    def _gained(self, gained):
        self.gained += [each.head.partition_id for each in gained]

    @property
    def view(self):
        return self.membership.view

    def hand_over(self):
        """Hand over the partitions that others must lead, as a partition's leader does."""
        for partition_id in self.membership.wanted_elsewhere(self.session):
            epoch = self.view.leader_of(partition_id).epoch
            to = self.membership.wanted_session(partition_id)
            self.cluster.index.hand_over(self.session, [HandOver(partition_id, epoch, to)])


@pytest.fixture
async def cluster():
    made = Cluster()
    yield made
    made.close()


def node(node_id):
    return Node(node_id, "r", {"PLAINTEXT": ("broker", 9000 + node_id)})


# ----------------------------------------------------------------------------------- what is known


async def test_brokers_know_each_other_and_who_leads(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    assert one.view.leader_of(1) == Leader(NO_NODE, -1)
    _, ids = cluster.topic(4)
    await cluster.settle()
    for broker in (one, two):
        assert broker.view.nodes == [node(1), node(2)]
        assert broker.view.controller_id == 1
        leaders = [broker.view.leader_of(each) for each in ids]
        assert sorted(leaders) == [(1, 0), (1, 0), (2, 0), (2, 0)]
    assert set(one.view.led_by(one.session)) | set(one.view.led_by(two.session)) == set(ids)
    assert one.view.leader_of(10**6) == Leader(NO_NODE, -1)


async def test_membership_reports_each_change_once(cluster):
    one = cluster.broker(1)
    await cluster.settle()
    changes, version = one.changes, one.view.version
    await cluster.poll()
    assert (one.changes, one.view.version) == (changes, version)
    cluster.metastore.set_broker_configs("", {"log.retention.ms": "1"})
    await cluster.poll()
    assert one.changes == changes + 1
    assert one.membership.metadata_version == cluster.metastore.load().version
    # A loop that is busy comes to several at once.
    version = one.view.version
    _, ids = cluster.topic(2)
    one.membership.poll_once()
    topic_id, (gone,) = cluster.topic(1)
    cluster.index.want({gone: 1})
    one.membership.poll_once()
    cluster.metastore.delete_topic(topic_id)
    one.membership.poll_once()
    await asyncio.sleep(0)
    assert one.view.version == version + 1
    assert [one.view.leader_of(each).node_id for each in ids] == [1, 1]
    assert one.view.wanted(gone) is None


async def test_the_log_of_what_comes_is_there_before_that_is_shown(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    _, (partition_id,) = cluster.topic(1)
    await cluster.settle()
    giver, taker = (one, two) if one.view.leader_of(partition_id).node_id == 1 else (two, one)
    cluster.index.want({partition_id: taker.node_id})
    await cluster.poll()
    gained_before = [*giver.gained]
    assert taker.gained == []
    giver.hand_over()
    taker.membership.poll_once()
    assert taker.gained == [partition_id]
    assert taker.view.leader_of(partition_id) == Leader(giver.node_id, 0), "it is shown later"
    await asyncio.sleep(0)
    assert taker.view.leader_of(partition_id) == Leader(taker.node_id, 1)
    await cluster.poll()
    assert (giver.gained, taker.gained) == (gained_before, [partition_id])


async def test_a_log_that_may_have_been_written_to_is_not_brought_again(cluster):
    """A second read would miss the broker's own appends."""
    one = cluster.broker(1)
    _, (partition_id,) = cluster.topic(1)
    await cluster.settle()
    assert one.gained == [partition_id]
    since = cluster.index.snapshot(0).version
    cluster.index.want({partition_id: 7})
    await cluster.settle()
    assert one.view.wanted(partition_id) is None, "there is no such broker"
    changed = cluster.index.poll(since, one.session, most_logs=9, most=9, most_bytes=9)
    assert [each.partition_id for each in changed.snapshot.led] == [partition_id]
    assert changed.gained == []
    one.membership._polls_everything = True
    await cluster.poll()
    assert one.gained == [partition_id]


async def test_broker_cordoned_by_own_config_leads_no_partition(cluster):
    one, two = cluster.broker(1), cluster.broker(2, is_cordoned=True)
    assert one.membership.session
    _, ids = cluster.topic(2)
    await cluster.settle()
    assert [one.view.leader_of(each).node_id for each in ids] == [1, 1]
    for broker in (one, two):
        broker.membership.plan_by(Rules(settled=frozenset({2})))
    await cluster.settle()
    assert sorted(one.view.leader_of(each).node_id for each in ids) == [1, 2]
    for broker in (one, two):
        broker.membership.plan_by(Rules())
    await cluster.settle()
    assert [one.view.leader_of(each).node_id for each in ids] == [1, 1]


async def test_the_view_says_which_leaders_may_have_changed(cluster):
    random = Random(SEED)
    one = cluster.broker(1)
    _, ids = cluster.topic(4)
    leaders = {}
    others = []
    narrowed = 0
    for _ in range(200):
        match random.randrange(6):
            case 0:
                others.append(cluster.index.register(uuid4(), 2 + len(others), "", LEASE_MS))
            case 1 if others:
                cluster.index.fence(random.choice(others))
            case 2 if others:
                cluster.index.drain(random.choice(others))
            case _:
                partition_id = random.choice(ids)
                epoch = cluster.store.index.partition(partition_id).leader_epoch
                session = random.choice([one.session, *others])
                cluster.index.assign([Assignment(partition_id, session, epoch)])
        one.membership._planned_version = cluster.index.snapshot(0).version
        await cluster.poll()
        now = {each: one.view.leader_of(each) for each in ids}
        for version, before in leaders.items():
            changed = one.view.changed_since(version)
            differ = {each for each in ids if before[each] != now[each]}
            assert changed is None or differ <= changed, SEED
            narrowed += changed is not None and len(changed) < len(ids)
        leaders[one.view.version] = now
    assert narrowed
    assert one.view.changed_since(one.view.version) == set()
    assert one.view.changed_since(0) is None, "too long ago"


async def test_a_partition_that_is_deleted_is_not_known(cluster):
    one = cluster.broker(1)
    topic_id, (first, second) = cluster.topic(2)
    await cluster.settle()
    cluster.index.want({first: 1})
    cluster.metastore.delete_topic(topic_id)
    await cluster.settle()
    assert one.view.leader_of(first) == one.view.leader_of(second) == Leader(NO_NODE, -1)
    assert one.view.wanted(first) is None
    assert one.view.led_by(one.session) == []


async def test_partitions_of_dead_broker_have_no_leader_until_plan(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    _, ids = cluster.topic(2)
    await cluster.settle()
    (lost,) = two.view.led_by(one.session)
    cluster.index.fence(one.session)
    # The controller has left, too; before this broker sees a new one:
    two.membership.poll_once()
    await asyncio.sleep(0)
    assert two.view.nodes == [node(2)]
    assert two.view.leader_of(lost) == Leader(NO_NODE, 0)
    await cluster.settle(two)
    assert two.view.controller_id == 2
    assert [two.view.leader_of(each).node_id for each in ids] == [2, 2]
    assert two.view.leader_of(lost).epoch == 1


async def test_view_includes_own_broker_without_session(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    assert one.view.nodes == (node(1),), "before it has looked"
    await cluster.poll()
    cluster.index.fence(one.session)
    await cluster.poll()
    assert one.view.nodes == [node(1), node(2)]
    assert two.view.nodes == [node(2)]
    cluster.index.fence(two.session)
    await cluster.poll()
    assert one.view.nodes == [node(1)]
    assert two.view.nodes == [node(2)]
    assert one.view.session_of(1) is None, "it is given nothing"


async def test_view_shows_fenced_brokers_until_they_return(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    await cluster.poll()
    assert one.view.fenced == []
    cluster.index.fence(two.session)
    await cluster.poll()
    assert one.view.fenced == [node(2)]
    assert two.view.fenced == [], "it is among the nodes though its session has ended"
    cluster.index.register(uuid4(), 3, "later release", LEASE_MS)
    cluster.index.fence(cluster.index.snapshot(0).members[-1].session)
    cluster.broker(2)
    await cluster.poll(one)
    assert one.view.fenced == [], "what the broker 3 registered with cannot be read"


async def test_a_broker_that_cannot_be_read_is_left_out_and_said_so_once(cluster, caplog):
    one = cluster.broker(1)
    session = cluster.index.register(uuid4(), 2, "later release", LEASE_MS)
    _, (partition_id,) = cluster.topic(1)
    cluster.index.assign([Assignment(partition_id, session, -1)])
    await cluster.poll()
    await cluster.poll()
    assert one.view.nodes == [node(1)]
    assert one.view.leader_of(partition_id) == Leader(NO_NODE, 0)
    assert [each.getMessage().count("node=2") for each in caplog.records].count(1) == 1


# ------------------------------------------------------------------------------------------- plans


async def test_one_plans_at_a_time_and_another_one_after_it(cluster):
    one, two, three = (cluster.broker(each) for each in (1, 2, 3))
    _, ids = cluster.topic(9)
    await cluster.settle(two, one, three)
    assert one.view.controller_id == two.node_id
    assert sorted(cluster.loads().values()) == [3, 3, 3]
    version = cluster.index.snapshot(0).version
    await cluster.poll()
    assert cluster.index.snapshot(0).version == version, "it is at rest"
    two.base.cut()
    cluster.time.now_s += LEASE_MS / 1000 + 1
    for each in (one, three):
        assert cluster.index.heartbeat(each.session, LEASE_MS)
    assert cluster.index.fence_expired() == {two.session}
    await cluster.settle(one, three)
    assert one.view.controller_id in {1, 3}
    assert sorted(cluster.loads()) == [one.session, three.session]
    assert sum(cluster.loads().values()) == len(ids)
    two.base.mend()


async def test_joining_broker_gets_share_of_partitions(cluster):
    one = cluster.broker(1)
    cluster.topic(8)
    await cluster.settle()
    assert cluster.loads() == {one.session: 8}
    two = cluster.broker(2)
    await cluster.settle()
    assert cluster.loads() == {one.session: 4, two.session: 4}
    for each in (one, two):
        assert each.membership.wanted_elsewhere(each.session) == []


async def test_broker_with_unreadable_place_gets_no_partition(cluster):
    one = cluster.broker(1)
    unread = cluster.index.register(uuid4(), 2, "later release", LEASE_MS)
    _, (led, *_) = cluster.topic(8)
    cluster.index.assign([Assignment(led, unread, -1)])
    await cluster.settle()
    assert cluster.loads() == {one.session: 7, unread: 1}
    (wished,) = [each for each in cluster.index.snapshot(0).led if each.partition_id == led]
    assert wished.wanted_node == 1, "its leader is asked to let go of it"


async def test_draining_broker_leads_no_partition_in_the_end(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    cluster.topic(8)
    await cluster.settle()
    cluster.index.drain(one.session)
    await cluster.poll()
    assert not two.view.takes_partitions(1)
    await cluster.settle()
    assert cluster.loads() == {two.session: 8}
    assert [each.node_id for each in two.view.nodes] == [1, 2]


async def test_partition_without_next_leader_is_not_released(cluster):
    one = cluster.broker(1)
    _, (partition_id,) = cluster.topic(1)
    await cluster.settle()
    two = cluster.broker(2)
    cluster.index.want({partition_id: 2})
    snapshot = cluster.index.snapshot(0)
    assert snapshot.controller == one.session
    # Another broker is the planner, and does not plan: the wish stays visible.
    cluster.index.fence(two.session)
    one.membership._planned_version = cluster.index.snapshot(0).version
    await cluster.poll(one)
    assert one.view.wanted(partition_id) == 2
    assert one.membership.wanted_elsewhere(one.session) == []
    assert one.membership.wanted_session(partition_id) is None
    assert one.membership.wanted_session(10**6) is None


async def test_session_hands_over_only_what_it_leads(cluster):
    brokers = [cluster.broker(each) for each in (1, 2, 3)]
    _, (partition_id,) = cluster.topic(1)
    await cluster.settle()
    (session,) = cluster.loads()
    leader = next(each for each in brokers if each.session == session)
    taker, other = (each for each in brokers if each is not leader)
    cluster.index.want({partition_id: taker.node_id})
    await cluster.poll()
    assert leader.membership.wanted_elsewhere(session) == [partition_id]
    assert other.membership.wanted_elsewhere(other.session) == []


async def test_a_refused_assignment_is_looked_at_from_the_start(cluster):
    one = cluster.broker(1)
    _, (partition_id,) = cluster.topic(1)
    await cluster.poll(one)
    cluster.index.fence(one.session)
    second = cluster.broker(2)
    await cluster.settle(second)
    # Known by a picture, and gone without one, as when its row was swept long ago.
    cluster.store.index.rows.pop(partition_id)
    cluster.index.fence(second.session)
    third = cluster.broker(3)
    third.membership._known.update(second.membership._known)
    third.membership._polls_everything = False
    third.membership._known_version = second.membership._known_version
    await cluster.poll(third)
    await cluster.poll(third)
    assert third.membership._known == {}
    assert third.membership._planned_version == cluster.index.snapshot(0).version


# ---------------------------------------------------------------------------------------- sessions


async def test_membership_may_serve_for_two_thirds_of_lease(cluster):
    one = cluster.broker(1)
    assert one.membership.may_serve()
    cluster.time.now_s += 6.6
    assert one.membership.may_serve()
    cluster.time.now_s += 0.1
    assert not one.membership.may_serve()
    one.membership.beat_once()
    assert one.membership.may_serve()


async def test_a_heartbeat_counts_from_before_it_was_sent(cluster):
    one = cluster.broker(1)
    cluster.time.now_s += BEAT_S
    index = one.membership._beating
    beat = index.heartbeat

    def slowly(session, lease_ms):
        answer = beat(session, lease_ms)
        cluster.time.now_s += 6.0
        return answer

    index.heartbeat = slowly
    one.membership.beat_once()
    assert one.membership.may_serve()
    cluster.time.now_s += 0.7
    assert not one.membership.may_serve()


@pytest.fixture
def yielding(cluster, monkeypatch):
    """Return a list of the outcomes of sessions that yield; each ends if it is empty."""
    outcomes = []

    def yield_to(session, nodes, within_ms):
        if outcomes:
            return outcomes.pop()
        cluster.store.index.fence(session)
        return True

    monkeypatch.setattr(cluster.store.index, "yield_to", yield_to)
    return outcomes


async def test_broker_that_yields_serves_nothing(cluster, yielding):
    one = cluster.broker(1)
    yield_to, served = one.way.yield_to, []

    def watched(*arguments):
        served.append(one.membership.may_serve())
        return yield_to(*arguments)

    one.way.yield_to = watched
    assert one.membership.yield_to(one.way, one.session, [2], 1)
    assert served == [False]
    one.membership.beat_once()
    await asyncio.sleep(0)
    assert one.ended == [one.session], "it is reported once"
    assert not one.membership.yield_to(one.way, one.session, [2], 1), "it has ended"
    one.membership.new_session(one.way)
    assert one.membership.may_serve()


async def test_session_that_does_not_yield_serves_again_after_a_heartbeat(cluster, yielding):
    one = cluster.broker(1)
    yielding.append(False)
    assert not one.membership.yield_to(one.way, one.session, [2], 1)
    assert not one.membership.may_serve()
    one.membership.beat_once()
    assert one.membership.may_serve()
    cluster.index.fence(one.session)
    one.membership.beat_once()
    await asyncio.sleep(0)
    assert one.ended == [one.session]


async def test_earlier_heartbeat_does_not_revive_a_session_that_yields(cluster, yielding):
    one = cluster.broker(1)
    index = one.membership._beating
    beat = index.heartbeat

    def meanwhile(session, lease_ms):
        answer = beat(session, lease_ms)
        assert one.membership.yield_to(one.way, session, [2], 1)
        return answer

    index.heartbeat = meanwhile
    one.membership.beat_once()
    assert not one.membership.may_serve()


async def test_fenced_session_is_reported_once_and_replaced(cluster):
    one = cluster.broker(1)
    cluster.index.fence(one.session)
    for _ in range(2):
        one.membership.beat_once()
        await asyncio.sleep(0)
    assert one.ended == [one.session]
    assert not one.membership.may_serve()
    new = one.membership.new_session(one.way)
    assert new != one.session
    assert one.membership.session == new
    assert one.membership.may_serve()
    one.membership.beat_once()
    cluster.index.fence(new)
    one.membership.beat_once()
    await asyncio.sleep(0)
    assert one.ended == [one.session, new]


async def test_the_answer_to_an_old_heartbeat_means_nothing_to_a_new_session(cluster):
    one = cluster.broker(1)
    cluster.index.fence(one.session)
    index = one.membership._beating
    beat = index.heartbeat

    def meanwhile(session, lease_ms):
        answer = beat(session, lease_ms)
        one.membership.new_session(one.way)
        return answer

    index.heartbeat = meanwhile
    one.membership.beat_once()
    await asyncio.sleep(0)
    assert one.ended == []
    assert one.membership.may_serve()


async def test_the_lease_of_an_old_session_is_not_that_of_a_new_one(cluster):
    one = cluster.broker(1)
    index = one.membership._beating
    beat = index.heartbeat

    def meanwhile(session, lease_ms):
        answer = beat(session, lease_ms)
        cluster.time.now_s += 5.0
        cluster.index.fence(session)
        one.membership.new_session(one.way)
        return answer

    index.heartbeat = meanwhile
    one.membership.beat_once()
    cluster.time.now_s += 3.0
    assert one.membership.may_serve()


async def test_two_brokers_with_one_node_id_do_not_fight(cluster):
    one = cluster.broker(7)
    other = cluster.broker(7)
    one.membership.beat_once()
    await asyncio.sleep(0)
    assert one.ended == [one.session]
    with pytest.raises(NodeIdTaken, match=r"another broker .* node\.id=7 at broker:9007: each"):
        one.membership.new_session(one.way)
    other.membership.beat_once()
    await asyncio.sleep(0)
    assert other.ended == []


async def test_broker_fences_others_after_a_lease_of_own_heartbeats(cluster):
    one, two = cluster.broker(1), cluster.broker(2)
    for _ in range(6):
        cluster.time.now_s += BEAT_S
        one.membership.beat_once()
    assert [each.session for each in cluster.index.snapshot(0).members] == [one.session]
    # The store was unavailable: all leases have expired, and all brokers reconnect.
    two.membership.beat_once()
    await asyncio.sleep(0)
    assert two.ended == [two.session]
    second = two.membership.new_session(two.way)
    for each in (one, two):
        each.membership.beat_once()
    cluster.time.now_s += 60
    one.membership.beat_once()
    assert {each.session for each in cluster.index.snapshot(0).members} == {one.session, second}
    two.membership.beat_once()
    assert {each.session for each in cluster.index.snapshot(0).members} == {one.session, second}


# -------------------------------------------------------------------------------------- the threads


async def test_by_itself_it_stays_and_takes_over_from_who_does_not(cluster):
    options = {"lease_ms": 500, "clock": boot_seconds}
    cluster.time.now_s = 0.0  # Of the store, whose leases end when this says so.
    one, two = cluster.broker(1, **options), cluster.broker(2, **options)
    for each in (one, two):
        each.membership.start()
    _, ids = cluster.topic(4)
    await until(lambda: sorted(cluster.loads().values()) == [2, 2])
    one.base.cut()
    await until(lambda: not one.membership.may_serve())
    assert two.membership.may_serve() or not two.ended
    # One's lease is over before two's could be, however long two takes from beat to beat.
    of_two = cluster.store.index._sessions[two.session]
    for now_s in (0.4, 0.8):
        cluster.time.now_s = now_s
        await until(lambda now_s=now_s: of_two.lease_until >= now_s + 0.5)
    await until(lambda: cluster.loads() == {two.session: 4} or two.ended)
    assert two.ended == [], "its lease lasts"
    await until(lambda: [two.view.leader_of(each).node_id for each in ids] == [2] * 4)
    one.base.mend()
    await until(lambda: one.ended == [one.session])
    assert one.fatal == two.fatal == []


async def test_a_look_can_be_asked_for(cluster, monkeypatch):
    monkeypatch.setattr(
        "barnabas.broker.cluster.membership.membership.LOOK_EVERY_S", 1000 * LOOK_EVERY_S
    )
    one = cluster.broker(1)
    looks = []
    poll = one.membership.poll_once
    one.membership.poll_once = lambda: (looks.append(1), poll())
    one.membership.start()
    await until(lambda: one.view.controller_id == 1)
    for _ in range(2):
        before = len(looks)
        one.membership.refresh()
        await until(lambda before=before: len(looks) > before)


async def test_error_in_membership_thread_is_fatal(cluster):
    one = cluster.broker(1)

    def broken():
        raise AssertionError("broken")

    one.membership.poll_once = broken
    one.membership.start()
    await until(lambda: one.fatal)
    assert str(one.fatal[0]) == "broken"


def test_membership_threads_end_with_closed_loop(world):
    async def live():
        cluster = Cluster()
        broker = cluster.broker(1)
        broker.membership.start()
        await until(lambda: broker.changes)
        return cluster

    cluster = world.run(live())
    cluster.index.register(uuid4(), 2, encode_place(Place(None, {})), LEASE_MS)
    with contextlib.closing(cluster):
        cluster.brokers[0].membership._threads[1].join(60)
        assert not cluster.brokers[0].membership._threads[1].is_alive()


async def test_closing_ends_a_broker_that_is_cut_off(cluster):
    one = cluster.broker(1)
    one.membership.start()
    one.base.cut()
    one.membership.close()
    assert not any(each.is_alive() for each in one.membership._threads)
