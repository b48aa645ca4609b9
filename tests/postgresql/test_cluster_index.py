"""PostgreSQL does what every ClusterIndex does, and what only a server asks for."""

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random
from uuid import uuid4

import pytest

from barnabas.broker.cluster.endpoints import Place
from barnabas.broker.cluster.membership.membership import Membership
from barnabas.storage.errors import IndexClosed
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.postgresql.durability import NotDurable
from barnabas.storage.replicated.cluster_index import Assignment, HandOver
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from tests.counterparts.postgresql_servers import Server
from tests.real.storage.cluster_contract import (
    LEASE_MS,
    LONG_S,
    ClusterIndexContract,
    Waiting,
    World,
)
from tests.seeds import SEED
from tests.waiting import WAIT_S, until, wait_until

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
MANY = 1000
PATIENCE_S = 0.5


def base_at(server, patience_s=5.0):
    return PostgreSqlBase(server.url, new_cluster_id=CLUSTER_ID, patience_s=patience_s)


@pytest.fixture
def base(server):
    with closing(base_at(server)) as made:
        yield made


@pytest.fixture
def patient_base(server):
    """The base for tests that count commits: a busy machine causes no retry."""
    with closing(base_at(server, WAIT_S)) as made:
        yield made


class TestPostgreSqlClusterIndex(ClusterIndexContract):
    """The index in PostgreSQL."""


def test_a_thousand_are_one_commit(patient_base):
    world = World(patient_base)
    ids, session = world.partitions(MANY), world.register()
    before = world.version
    assert world.index.assign([Assignment(each, session, -1) for each in ids]) == set(ids)
    snapshot = world.index.snapshot(before)
    assert [each.partition_id for each in snapshot.led] == ids
    assert snapshot.version == before + 1


def transactions(server):
    """The id of the next transaction that writes something: each has to reach the standby."""
    ((found,),) = server.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    return found


def test_each_question_of_a_move_is_one_commit_however_much_is_moved(server, patient_base):
    # It has transactions of its own: one may be under way, and another one about to begin.
    server.set(autovacuum="off")
    server.wait_for(
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum %'"
    )
    world = World(patient_base)
    first, second = world.register(), world.register()
    ids = world.partitions(40)
    world.lead(first, *ids)
    items = [Item(each, 0, 0, 1, at, 1) for at, each in enumerate(ids)]
    world.logs.commit_flush(first, Flush(Lane.INLINE, 0, items, payload=bytes(len(ids))))
    since = world.version

    def commits(question):
        before = transactions(server)
        found = question()
        return transactions(server) - before, found

    wishes = {each: number % 3 for number, each in enumerate(ids)}
    given = [HandOver(each, 0, second) for each in ids]
    assert commits(lambda: world.index.want(wishes))[0] == 1
    assert commits(lambda: world.index.hand_over(first, given))[0] == 1
    count, (_, gained) = commits(lambda: world.poll(since, second))
    assert (count, len(gained)) == (1, len(ids))
    count, beginnings = commits(lambda: world.logs.beginnings(ids, most=MANY, most_bytes=MANY))
    assert (count, beginnings) == (1, gained)
    assert [len(each.extents) for each in gained] == [1] * len(ids)


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
def test_follower_sees_the_current_state_after_concurrent_changes(server, base, seed):
    """Snapshots of changes add up to the snapshot of all, without a deadlock."""
    world = World(base)
    ids = world.partitions(12)
    stop = threading.Event()

    def act(random, index, logs, metastore):
        node_id = random.randrange(1, 10**6)
        session = index.register(uuid4(), node_id, "", LEASE_MS)
        for _ in range(25):
            led = {each.partition_id: each for each in index.snapshot(0).led}
            some = [led[each] for each in random.sample(ids, 4)]
            match random.randrange(8):
                case 0 | 1:
                    index.assign([Assignment(e.partition_id, session, e.epoch) for e in some])
                case 2:
                    other = random.choice(index.snapshot(0).members).session
                    given = [HandOver(each.partition_id, each.epoch, other) for each in some]
                    index.hand_over(session, given)
                case 3:
                    index.want({each.partition_id: random.randrange(9) for each in some})
                case 4:
                    session = index.register(uuid4(), node_id, "", LEASE_MS)
                    index.control(session)
                case 5:
                    topic_id = random.randbytes(16)
                    metastore.create_topic(topic_id.hex(), topic_id, 2, {})
                    metastore.delete_topic(topic_id)
                case 6:
                    index.pin({e.partition_id: random.choice([None, *range(9)]) for e in some})
                case 7:
                    index.fence_expired()
                    index.new_node_id()
                    items = [Item(each, -1, 0, 1, 0, 1) for each in ids]
                    flush = Flush(Lane.INLINE, 0, items, (), b"x")
                    logs.commit_flush(session, flush)

    def follow(index):
        known, version = {}, 0
        while True:
            is_last = stop.is_set()
            snapshot = index.snapshot(version)
            assert snapshot.version >= version
            version = snapshot.version
            known.update({each.partition_id: each for each in snapshot.led})
            for each in snapshot.gone:
                known.pop(each, None)
            if is_last:
                return known
            index.wait(version, 0.05)

    with ThreadPoolExecutor(4) as threads:
        following = threads.submit(follow, base.cluster_index())
        acting = [
            threads.submit(
                act,
                Random(f"{seed}.{each}"),
                base.cluster_index(),
                base.log_index(),
                base.metastore(each),
            )
            for each in range(3)
        ]
        try:
            for each in acting:
                each.result(WAIT_S)
        finally:
            stop.set()
        known = following.result(WAIT_S)
    assert known == {each.partition_id: each for each in world.index.snapshot(0).led}
    deadlocks = "SELECT sum(deadlocks)::integer FROM pg_stat_database"
    assert server.execute(deadlocks) == [(0,)]


async def test_brokers_follow_each_other_on_a_server(server, base):
    world = World(base)
    leave_nothing_of_other_tests(world)
    nodes = [world.index.new_node_id() for _ in range(2)]
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(member(server, each)) for each in nodes]
        for broker in brokers:
            await until(lambda broker=broker: len(broker.view.nodes) == len(nodes))
        ids = world.partitions(6)
        for broker in brokers:
            await until(lambda broker=broker: leaders(broker, ids) == {*nodes})
        first, second = brokers
        world.index.fence(first.session)
        await until(lambda: leaders(second, ids) == {nodes[1]})
        await until(lambda: not first.may_serve())


def leave_nothing_of_other_tests(world):
    """Fence the sessions of other tests, which might plan, and delete their topics."""
    for member in world.index.snapshot(0).members:
        world.index.fence(member.session)
    for topic in world.metastore.load().topics:
        world.metastore.delete_topic(topic.topic_id)


def leaders(broker, ids):
    return {broker.view.leader_of(each).node_id for each in ids}


@contextlib.contextmanager
def member(server, node_id):
    """A broker that has a session."""
    with closing(base_at(server)) as base:
        made = Membership(
            base,
            node_id=node_id,
            place=Place(None, {"PLAINTEXT": ("broker", 9092)}),
            lease_ms=LEASE_MS // 100,
            loop=asyncio.get_running_loop(),
            on_changed=lambda: None,
            on_ended=lambda _session: None,
            on_fatal=lambda _error: None,
        )
        made.open(base.cluster_index())
        made.start()
        with closing(made):
            yield made


def test_listener_reconnects_to_the_primary(server, base):
    world = World(base)
    # A waiter without a connection waits until its timeout: here one second.
    waiting = Waiting(base.cluster_index(), timeout_s=1.0)
    waiting.settled()
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'barnabas'"
    )
    world.register()
    waiting.timeout_s = LONG_S
    wait_until(lambda: waiting.waits_s == LONG_S, "it goes on though the connection is gone")
    before = waiting.settled()
    world.register()
    wait_until(lambda: waiting.returns > before, "it hears of a change")
    waiting.end()


def test_snapshot_contains_only_replicated_changes(pair):
    with closing(base_at(pair, PATIENCE_S)) as base:
        world = World(base)
        session = world.register()
        seen = world.index.snapshot(0)
        (partition_id,) = world.partitions()
        pair.standby.stop()
        changing = base.cluster_index()
        with ThreadPoolExecutor(2) as threads:
            asked = [Assignment(partition_id, session, -1)]
            assigned = threads.submit(changing.assign, asked)
            pair.primary.wait_for(WAITING)
            pair.primary.terminate_waiting()
            pair.primary.wait_for(
                f"SELECT leader_session = {session} FROM barnabas.partitions"
                f" WHERE partition_id = {partition_id}"
            )
            # Now it can be seen, here only.
            looked = threads.submit(world.index.snapshot, seen.version)
            time.sleep(0.1)
            assert not looked.done()
            pair.standby.start()
            assert assigned.result(WAIT_S) == {partition_id}
            assert [each.session for each in looked.result(WAIT_S).led] == [session]


def test_the_base_says_what_is_wrong_and_closing_ends_what_waits(pair):
    base = base_at(pair, PATIENCE_S)
    index, logs, metastore = base.cluster_index(), base.log_index(), base.metastore(1)
    assert (base.last_error, base.warning) == ("", None)
    assert metastore.identity.node_id == 1
    pair.standby.stop()
    with ThreadPoolExecutor(2) as threads:
        asking = threads.submit(index.new_node_id)
        opening = threads.submit(base.metastore, 2)
        wait_until(lambda: base.last_error)
        base.close()
        for each in (asking, opening):
            with pytest.raises(IndexClosed):
                each.result(WAIT_S)
    for make in (base.log_index, base.cluster_index, lambda: base.metastore(1)):
        with pytest.raises(IndexClosed):
            make()
    with pytest.raises(IndexClosed):
        logs.partition(1)
    pair.standby.start()


def test_a_server_that_loses_commits_is_refused():
    with Server(fsync="off") as server, closing(base_at(server)) as base:
        for make in (base.log_index, base.cluster_index, lambda: base.metastore(1)):
            with pytest.raises(NotDurable, match="fsync"):
                make()
        assert base.last_error == ""


def set_clock(server, hours):
    """Move the server's clock, which only leases use: recorded times keep their distance."""
    server.execute(
        "UPDATE barnabas.leases SET lease_until = lease_until - %s * interval '1 hour'", hours
    )


def test_a_clock_that_was_set_back_does_not_prolong_the_lease_of_the_dead(server, base):
    """A broker dies, and the primary; the clock of the new one is behind by an hour."""
    world = World(base)
    dead, alive = world.register(lease_ms=1), world.register()
    assert world.index.heartbeat(alive, LEASE_MS)
    set_clock(server, -1)
    fenced: set[int] = set()

    def is_fenced() -> bool:
        fenced.update(world.index.fence_expired())  # The first call, if it takes a millisecond.
        return dead in fenced

    wait_until(is_fenced)
    assert world.index.heartbeat(alive, LEASE_MS)


def test_a_clock_that_was_set_forward_ends_the_sessions_that_have_not_beaten_since(server, base):
    """Each session learns of its end, and takes a new one: an early takeover is harmless (F1)."""
    world = World(base)
    late, early = world.register(), world.register()
    (partition_id,) = world.partitions()
    world.lead(late, partition_id)
    set_clock(server, 1)
    assert world.index.heartbeat(early, LEASE_MS)
    assert world.index.fence_expired() == {late}
    assert not world.index.heartbeat(late, LEASE_MS)
    flush = Flush(Lane.INLINE, 0, [Item(partition_id, 0, 0, 1, 0, 1)], payload=b"x")
    assert world.logs.commit_flush(late, flush).outcome is Outcome.FENCED
    world.lead(early, partition_id)


def test_notification_of_a_known_change_wakes_no_waiter(base):
    """A look is a commit: one that was taken just before the word came is not taken again."""
    world = World(base)
    (partition_id,) = world.partitions()
    world.index.wait(0, WAIT_S)  # It listens from now on.
    versions = []
    for node_id in (7, 8):
        world.index.want({partition_id: node_id})
        versions.append(world.version)
    begun_s = time.monotonic()
    world.index.wait(versions[1], 0.5)
    assert time.monotonic() - begun_s >= 0.5, "it has heard of nothing new"
    world.index.want({partition_id: 9})
    world.index.wait(versions[1], WAIT_S)
    world.metastore.set_broker_configs("", {"log.retention.ms": "1"})
    begun_s = time.monotonic()
    world.index.wait(world.version, WAIT_S)
    assert time.monotonic() - begun_s < WAIT_S, "versions say nothing of the metadata"
