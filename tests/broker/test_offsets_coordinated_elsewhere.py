"""Offsets committed in transactions whose coordinator is another broker than the group's."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.transaction_marker import TransactionMarker
from tests.broker.handlers.test_transactional_offsets import Occupied, code_of, send_commit
from tests.broker.held_markers import Markers
from tests.broker.held_peers import HeldPeers
from tests.broker.several import FIRST_EPOCH, pair
from tests.counterparts.offsets_client import CLASSIC, IMPLICIT, UNSTABLE, OffsetsClient
from tests.waiting import wait_until

PARTITIONS = {"topic": 2, TRANSACTION_STATE: 4, GROUP_OFFSETS: 4}
PLACE = ("topic", 0)
VERSIONS = (0, 3, CLASSIC, IMPLICIT)
NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def at(broker, name):
    """A key like this one that falls to a broker of a pair."""
    found = (f"{name}-{number}" for number in range(100))
    return next(each for each in found if java_hash(each) % 4 % 2 == broker - 1)


class World:
    """Broker 1 coordinates the group, broker 2 the transactional id."""

    def __init__(self, brokers, name):
        self.first, self.second = brokers
        for broker in brokers:
            broker.port = broker.address[1]
        self.group = at(1, f"group-{name}")
        self.key = at(2, f"id-{name}")
        self.client = OffsetsClient(self.first)
        self.coordinator = OffsetsClient(self.second)
        self.producer = self.coordinator.begin_life(self.key)

    def close(self):
        self.client.close()
        self.coordinator.close()

    def add(self, version, group=None):
        """Make the group's offsets part of the transaction, where the commit does not."""
        if version < IMPLICIT:
            code = self.coordinator.add_offsets(self.producer, group or self.group)
            assert code == NONE

    def commit(self, version, offset=5, **more):
        producer = more.pop("producer", self.producer)
        (code,) = self.client.commit(
            producer, self.group, {PLACE: offset}, version, **more
        ).values()
        return code

    @property
    def offset(self):
        return self.client.fetch(self.group, {"topic": [0]})[PLACE]

    @property
    def partition(self):
        return java_hash(self.group) % 4

    def marker(self, version, *, commit=True):
        """Write the transaction's marker where the offsets are."""
        marker = TransactionMarker(
            self.producer.producer_id,
            self.producer.epoch + (version >= IMPLICIT),
            commit=commit,
            coordinator_epoch=FIRST_EPOCH,
            transaction_version=2 if version >= IMPLICIT else 0,
        )
        markers = self.first.server.markers
        code = self.first.call(lambda: markers.write(GROUP_OFFSETS, self.partition, marker))
        assert code == NONE
        self.first.do(self.first.server.transactions.durable)

    @property
    def guards(self):
        return self.first.call(lambda: len(self.first.server.remote_coordinators.guards))


@pytest.fixture(scope="module")
def brokers():
    with pair(PARTITIONS) as running:
        yield running


@pytest.fixture
def world(brokers, request):
    made = World(brokers, request.node.name)
    yield made
    assert made.guards == 0
    made.close()


@pytest.fixture
def held(brokers):
    peers = HeldPeers(brokers[0])
    yield peers
    peers.let_go()
    peers.leave()


def not_now(version):
    """How a client is told to try again."""
    return LOADING if version >= 2 else UNAVAILABLE


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_they_are_part_of_the_transaction(world, held, version, commit):
    world.add(version)
    assert world.commit(version) == NONE
    assert world.offset == UNSTABLE
    second = world.second
    transaction = second.call(lambda: second.server.transactions.transaction(world.key))
    assert transaction.partitions == {(GROUP_OFFSETS, world.partition)}
    (request,) = held.asked
    assert request.transactions[0].verify_only == (version < IMPLICIT)
    world.marker(version, commit=commit)
    assert world.offset == (5 if commit else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_coordinator_says_is_answered(world, version):
    if version < IMPLICIT:
        is_told = version >= CLASSIC
        refused = ErrorCode.TRANSACTION_ABORTABLE if is_told else ErrorCode.INVALID_TXN_STATE
        assert world.commit(version) == refused
    nobody = world.producer._replace(transactional_id=at(2, "nobody"))
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.commit(version, producer=nobody) == mapping
    another = world.producer._replace(producer_id=world.producer.producer_id + 1_000_000)
    assert world.commit(version, producer=another) == mapping
    successor = world.coordinator.begin_life(world.key)
    assert successor.epoch > world.producer.epoch
    assert world.commit(version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.offset == -1


@pytest.mark.parametrize("version", [3, CLASSIC, IMPLICIT])
def test_what_the_group_says_is_answered_too(world, version):
    """The coordinator was asked before, so the transaction has the group's offsets in it."""
    world.add(version)
    refused = world.commit(version, member_id="nobody", generation_id=3)
    assert refused == ErrorCode.ILLEGAL_GENERATION
    assert world.offset == -1


@pytest.mark.parametrize("version", VERSIONS)
def test_where_the_coordinator_is_not_found_the_client_asks_again(world, version):
    view = world.first.view
    world.add(version)
    log = world.first.server.transactions.log
    partition_id = world.first.call(lambda: log.partition_id_of(world.key))
    nodes = view.nodes
    world.first.call(lambda: view.led_by(partition_id, NO_NODE))
    assert world.commit(version) == UNAVAILABLE
    world.first.call(lambda: view.led_by(partition_id, 1))  # It has no log of it.
    assert world.commit(version) == ErrorCode.NOT_COORDINATOR
    world.first.call(lambda: view.led_by(partition_id, 2))
    world.first.call(lambda: view.in_service(nodes[0]))
    assert world.commit(version) == not_now(version)
    world.first.call(lambda: view.in_service(*nodes))
    assert world.offset == -1
    assert world.commit(version) == NONE
    world.marker(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_is_not_left_waiting(world, held, version):
    world.add(version)
    held.holds = True
    send_commit(world.client, world.producer, world.group, 6, version)
    held.wait_for_one()
    world.first.clock.advance(seconds=6)
    assert code_of(world.client.receive()) == not_now(version)
    held.let_go()
    assert world.offset == -1


# --------------------------------------------------------------- between the answer and the append


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marker_that_comes_before_the_answer_refuses_the_commit(world, held, version):
    """P6, R7: it would be pending for ever."""
    world.add(version)
    held.holds = True
    send_commit(world.client, world.producer, world.group, 6, version)
    held.wait_for_one()
    world.marker(version)
    held.let_go()
    assert code_of(world.client.receive()) == not_now(version)
    assert world.offset == -1


def in_its_lane(world, version, meanwhile):
    """Do something while a commit, of which the coordinator has said NONE, waits for its turn."""
    world.add(version)
    occupied = Occupied(world.first, world.group)
    send_commit(world.client, world.producer, world.group, 6, version)
    occupied.wait_for_next()
    assert world.guards == 1
    meanwhile()
    world.first.call(occupied.leave)
    return code_of(world.client.receive())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_waits_for_its_turn_with_its_guard(world, version):
    assert in_its_lane(world, version, lambda: None) == NONE
    assert world.offset == UNSTABLE
    world.marker(version)
    assert world.offset == 6


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marker_that_comes_while_a_commit_waits_for_its_turn_refuses_it(world, version):
    """P1, R7: the guard is the second question, at the moment of the append."""
    assert in_its_lane(world, version, lambda: world.marker(version)) == not_now(version)
    assert world.offset == -1


# ------------------------------------------------------------------------- gone, ending, restarted


@pytest.mark.parametrize("version", [CLASSIC, IMPLICIT])
def test_nothing_is_committed_for_a_client_that_has_gone(world, held, version):
    world.add(version)
    first = world.first
    held.holds = True
    with OffsetsClient(first) as leaving:
        before = first.call(lambda: len(first.server.sockets.connections))
        send_commit(leaving, world.producer, world.group, 6, version)
        held.wait_for_one()
    wait_until(lambda: first.call(lambda: len(first.server.sockets.connections)) < before)
    assert first.call(lambda: len(first.server.remote_coordinators)) == 0
    held.let_go()
    assert world.offset == -1


def test_a_commit_is_asked_about_until_the_transaction_before_has_ended(monkeypatch):
    with pair(PARTITIONS, **{"barnabas.transaction.wait.ms": "60000"}) as brokers:
        world, markers = World(brokers, "ending"), Markers(monkeypatch)
        held = HeldPeers(world.first)
        # A group of the transaction's own coordinator, so that all of it ends there.
        theirs = at(2, "theirs")
        world.coordinator.committed(world.producer, theirs, {PLACE: 1})
        markers.stop()
        world.producer = world.coordinator.ended(world.producer, IMPLICIT, commit=True)
        send_commit(world.client, world.producer, world.group, 6)
        wait_until(lambda: len(held.asked) > 2)
        markers.go_on()
        assert code_of(world.client.receive()) == NONE
        assert world.offset == UNSTABLE
        world.close()
