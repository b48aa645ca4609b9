"""Partitions of both coordinators move while clients wait for them.

A client that waits is sent elsewhere. What a broker coordinates is what reading its log again gives
(D4), and it forgets and sends nothing for what it lost (R6). In any order:
``tests/cluster/test_at_random.py``, which makes the same comparison.
"""

from __future__ import annotations

import pytest

from barnabas.broker.coordination import marker_phase
from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from tests.broker.coordinators_inside import check_coordinators
from tests.broker.data_plane import Named, Wire
from tests.broker.handlers.test_groups import Member
from tests.broker.held_markers import Markers
from tests.broker.moves import gain, is_served, key_at, lead, led_cluster, lose, stored
from tests.broker.raw_producer import RawProducer
from tests.crash.transaction_client import Producer, committed_offset
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

NONE, GONE = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
T = Named("t")
LEADERS = {T.name: [0, 0, 0]}
TIMEOUT_MS = 900_000
SETTINGS = {"group.initial.rebalance.delay.ms": "3000"}


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster(LEADERS, brokers=2, **SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def brokers(cluster):
    lead(cluster, LEADERS)
    yield cluster.brokers
    for each in cluster.brokers:
        check_coordinators(each)


@pytest.fixture
def wire(brokers):
    with Wire(brokers[0].address) as wire:
        yield wire


def move(cluster, topic, index, to=1):
    """Move a partition, with a look at the memory of both brokers before and after."""
    for each in cluster.brokers:
        check_coordinators(each)
    cluster.move(topic, index, to=to)
    for each in cluster.brokers:
        check_coordinators(each)


def members(broker, group, count=2):
    return [Member(broker, group=group) for _ in range(count)]


def parked(broker):
    """Return the number of members that wait for a response."""
    return broker.call(lambda: len(broker.server.groups._runner._parked))


def stable(broker, group):
    """A group of two members, of which the first one leads."""
    found = members(broker, group)
    for each in found:
        each.send_join(version=3)
    joined = [each.joined() for each in found]
    found.sort(key=lambda each: not next(one for one in joined if one.member_id == each.id).members)
    found[0].send_sync([(each.id, b"all") for each in found])
    found[1].send_sync()
    assert [each.receive().error_code for each in found] == [NONE] * 2
    return found


# ------------------------------------------------------------------------------------------ groups


def test_joining_members_are_sent_elsewhere(cluster, brokers):
    """Mutant: answers that wait for a later decision stay."""
    group, other = key_at(0, "joining"), key_at(1, "joining")
    joining, (apart,) = members(brokers[0], group), members(brokers[0], other, 1)
    for each in (*joining, apart):
        each.send_join(version=3)
    wait_until(lambda: parked(brokers[0]) == 3)
    move(cluster, GROUP_OFFSETS, 0)
    assert [each.receive().error_code for each in joining] == [GONE] * 2
    assert apart.joined().member_id, "a group of another partition continues"


def test_members_that_wait_for_their_assignment_are_sent_elsewhere(cluster, brokers):
    leader, follower = stable(brokers[0], key_at(0, "syncing"))
    leader.send_join(version=3)
    wait_until(lambda: parked(brokers[0]) == 1)
    assert follower.join().generation_id == leader.joined().generation_id
    follower.send_sync()
    wait_until(lambda: parked(brokers[0]) == 1)
    move(cluster, GROUP_OFFSETS, 0)
    assert follower.receive().error_code == GONE


def test_group_continues_with_its_members_after_a_move(world, cluster, brokers):
    """Members lose nothing but time: the same ids, and their sessions begin again."""
    group = key_at(0, "continuing")
    found = stable(brokers[0], group)
    world.sleep(50)
    move(cluster, GROUP_OFFSETS, 0)
    wait_until(lambda: is_served(brokers[1], GROUP_OFFSETS, group))
    world.sleep(50)  # More than a session, since the members were last heard of.
    moved = members(brokers[1], group)
    for former, each in zip(found, moved, strict=True):
        each.id, each.generation = former.id, former.generation
    assert [each.heartbeat() for each in moved] == [NONE] * 2
    world.sleep(61)
    assert moved[0].heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalances_are_listed_where_they_happened(cluster, brokers):
    group, other = key_at(0, "rebalances"), key_at(1, "rebalances")
    for each in (group, other):
        stable(brokers[0], each)
    former, new = (each.server.groups.rebalances for each in brokers)
    kept = [*former.of(other)]
    assert former.of(group)
    assert kept
    move(cluster, GROUP_OFFSETS, 0)
    assert (former.of(group), former.of(other), new.of(group)) == ([], kept, [])
    move(cluster, GROUP_OFFSETS, 0, to=0)
    assert former.of(group) == [], "what is read has happened elsewhere"


@pytest.mark.parametrize("commit", [True, False])
def test_marker_for_offsets_waits_for_their_partition(cluster, brokers, wire, commit):
    """The partition of the group moves between the commit and the decision, and loads meanwhile."""
    key, group = key_at(0, f"offsets-{commit}"), key_at(1, f"offsets-{commit}")
    producer = Producer(wire, key)
    assert producer.init() == NONE
    assert producer.send_offsets(group, (T.name, 0), 5) == NONE
    lose(brokers[0], GROUP_OFFSETS, 1)
    assert producer.end(commit=commit) == NONE
    transactions = brokers[0].server.transactions
    assert brokers[0].call(lambda: transactions.awaiting_markers(key)) == [(GROUP_OFFSETS, 1)]
    gain(brokers[0], GROUP_OFFSETS, 1)
    wait_until(lambda: is_idle(brokers[0], key))
    assert committed_offset(wire, group, (T.name, 0)) == (5 if commit else -1)


# ------------------------------------------------------------------------------------ transactions


def is_idle(broker, key):
    transactions = broker.server.transactions
    return broker.call(lambda: transactions.transaction(key).state.is_idle)


def begun(wire, name, *partitions, index=0):
    """A producer in a transaction."""
    producer = RawProducer(wire, key_at(index, name), version=11)
    assert producer.add(T, *partitions) == NONE
    return producer


def test_clients_that_wait_for_a_transition_are_sent_elsewhere(
    world, cluster, brokers, monkeypatch
):
    """The markers of another partition's transaction are still written here, and no others (R6)."""
    markers = Markers(monkeypatch)
    with Wire(brokers[0].address) as wire, Wire(brokers[0].address) as other:
        waiting, apart = begun(wire, "waits", 0, 1), begun(other, "apart", 0, index=1)
        markers.stop()
        for each in (waiting, apart):
            each.end()
            request = InitProducerIdRequest(each.name, TIMEOUT_MS, each.producer_id, each.epoch)
            each.wire.send(INIT_PRODUCER_ID, request, 4)
        transactions = brokers[0].server.transactions
        wait_until(lambda: brokers[0].call(lambda: len(transactions._waits)) == 2)
        lose(brokers[0], TRANSACTION_STATE, 0)
        assert wire.receive().error_code == GONE
        assert [*transactions._markers._retries] == [apart.name]
        check_coordinators(brokers[0])
        markers.go_on()
        assert other.receive().error_code == NONE
        written = transactions.counts.markers_written
        world.sleep(10)
        assert transactions.counts.markers_written == written
        gain(brokers[0], TRANSACTION_STATE, 0)
        wait_until(lambda: is_idle(brokers[0], waiting.name))


@pytest.mark.parametrize("error", [NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
@pytest.mark.parametrize("per_turn", [1, 256])
def test_marker_whose_writing_loses_the_partition_is_the_last(
    world, cluster, brokers, wire, monkeypatch, error, per_turn
):
    """Mutant: the markers of later turns are written for a partition that was lost (R6)."""
    producer = begun(wire, f"last-{error}-{per_turn}", 0, 1, 2)
    written = []

    def write(_writer, topic, index, _marker):
        written.append((topic, index))
        brokers[0].server.transactions.lose(0)
        return error

    with monkeypatch.context() as patch:
        patch.setattr(marker_phase, "MARKERS_PER_TURN", per_turn)
        patch.setattr(MarkerWriter, "write", write)
        producer.end()
        world.sleep(10)
        assert written == [(T.name, 0)]
        check_coordinators(brokers[0])
    gain(brokers[0], TRANSACTION_STATE, 0)
    wait_until(lambda: is_idle(brokers[0], producer.name))


def test_markers_of_later_turns_are_not_written_once_the_partition_is_lost(
    world, cluster, brokers, wire, monkeypatch
):
    """Nor by the former phase, when the partition is back: that one writes all of them again."""
    monkeypatch.setattr(marker_phase, "MARKERS_PER_TURN", 1)
    producer = begun(wire, "later-turns", 0, 1, 2)
    genuine, written = MarkerWriter.write, []
    transactions = brokers[0].server.transactions

    def write(writer, topic, index, marker):
        written.append(index)
        if len(written) == 1:  # Before the second turn.
            brokers[0].server.loop.call_soon(transactions.lose, 0)
        return genuine(writer, topic, index, marker)

    monkeypatch.setattr(MarkerWriter, "write", write)
    producer.end()
    world.sleep(10)
    assert written == [0]
    gain(brokers[0], TRANSACTION_STATE, 0)
    wait_until(lambda: is_idle(brokers[0], producer.name))
    assert written == [0, 0, 1, 2]


def test_coordinator_epoch_is_that_of_its_partition(cluster, brokers, wire):
    epoch = stored(cluster, TRANSACTION_STATE, 0).leader_epoch
    assert brokers[0].server.transactions.coordinator_epoch >= epoch
    producer = begun(wire, "epoch", 0)
    move(cluster, TRANSACTION_STATE, 0)
    wait_until(lambda: is_served(brokers[1], TRANSACTION_STATE, producer.name))
    latest = stored(cluster, TRANSACTION_STATE, 0).leader_epoch
    assert brokers[1].server.transactions.coordinator_epoch == latest > epoch
    with Wire(brokers[1].address) as other:
        producer.wire = other
        producer.end()
        wait_until(lambda: is_idle(brokers[1], producer.name))


def test_id_is_forgotten_with_all_that_is_known_of_it(cluster, brokers, wire):
    moved, kept = begun(wire, "moved", 0), begun(wire, "kept", 0, index=1)
    for each in (moved, kept):
        each.end()
        wait_until(lambda each=each: is_idle(brokers[0], each.name))
    move(cluster, TRANSACTION_STATE, 0)
    wait_until(lambda: is_served(brokers[1], TRANSACTION_STATE, moved.name))
    for broker, here, away in ((brokers[0], kept, moved), (brokers[1], moved, kept)):
        transactions = broker.server.transactions
        assert transactions.transaction_of_producer(here.producer_id) is not None
        assert transactions.transaction_of_producer(away.producer_id) is None
        assert transactions.clients.of(away.name) is None
        assert away.name not in {each.transactional_id for each in transactions.all}
        events = transactions.events.newest_first()
        assert away.name not in {each.transactional_id for each in events}


def test_answer_that_comes_after_the_loss_is_the_truth(cluster, brokers, wire):
    key = key_at(0, "late")
    cluster.hold_commits(0)
    wire.send(INIT_PRODUCER_ID, InitProducerIdRequest(key, TIMEOUT_MS), 4)
    transactions = brokers[0].server.transactions
    wait_until(lambda: brokers[0].call(lambda: transactions.transaction(key)) is not None)
    lose(brokers[0], TRANSACTION_STATE, 0)
    cluster.release_commits(0)
    answer = wire.receive()
    assert answer.error_code == NONE
    check_coordinators(brokers[0])
    gain(brokers[0], TRANSACTION_STATE, 0)
    found = brokers[0].call(lambda: transactions.transaction(key).producer)
    assert found == (answer.producer_id, answer.producer_epoch)


def test_timeout_of_a_transaction_begins_again_after_a_move(world, cluster, brokers, wire):
    producer = begun(wire, "timeout", 0)
    world.sleep(TIMEOUT_MS / 1000 - 60)
    move(cluster, TRANSACTION_STATE, 0)
    wait_until(lambda: is_served(brokers[1], TRANSACTION_STATE, producer.name))
    world.sleep(120)
    with Wire(brokers[1].address) as other:
        request = producer.end_request(commit=True)
        assert other.ask(END_TXN, request, 3).error_code == ErrorCode.PRODUCER_FENCED
