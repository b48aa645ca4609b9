"""Offsets committed in transactions whose coordinator is another broker than the group's."""

from __future__ import annotations

import pytest

from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.transaction_marker import TransactionMarker
from tests.broker.handlers.test_transactional_offsets import Occupied, code_of, send_commit
from tests.broker.held_markers import Markers
from tests.cluster.held import HeldResponses
from tests.cluster.watched import alternating, coordinated_key
from tests.counterparts.offsets_client import CLASSIC, IMPLICIT, UNSTABLE, OffsetsClient
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

PARTITIONS = {"topic": 2, TRANSACTION_STATE: 4, GROUP_OFFSETS: 4}
PLACE = ("topic", 0)
VERSIONS = (0, 3, CLASSIC, IMPLICIT)
NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Scene:
    """Broker 1 coordinates the group, broker 2 the transactional id."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.first, self.second = cluster.brokers
        for broker in cluster.brokers:
            broker.port = broker.address[1]
        self.group = coordinated_key(1, f"group-{name}")
        self.key = coordinated_key(2, f"id-{name}")
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
        coordinated = self.second.server.transactions.log.partition_of(self.key)
        partition_id = self.cluster.partition_ids(TRANSACTION_STATE)[coordinated]
        marker = TransactionMarker(
            self.producer.producer_id,
            self.producer.epoch + (version >= IMPLICIT),
            commit=commit,
            coordinator_epoch=self.cluster.index.partition(partition_id).leader_epoch,
            transaction_version=2 if version >= IMPLICIT else 0,
        )
        markers = self.first.server.markers
        code = self.first.call(lambda: markers.write(GROUP_OFFSETS, self.partition, marker))
        assert code == NONE
        self.first._do(self.first.server.transactions.durable())

    @property
    def guards(self):
        return self.first.call(lambda: len(self.first.server.remote_coordinators.guards))


@pytest.fixture(scope="module")
def cluster():
    with alternating(PARTITIONS) as running:
        yield running


@pytest.fixture
def scene(cluster, request):
    made = Scene(cluster, request.node.name)
    yield made
    assert made.guards == 0
    made.close()


@pytest.fixture
def held(world, cluster):
    with HeldResponses(world, cluster.brokers[1]) as responses:
        yield responses


def not_now(version):
    """Return the retriable error of a version."""
    return LOADING if version >= 2 else UNAVAILABLE


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_remote_offsets_are_part_of_transaction(scene, held, version, commit):
    scene.add(version)
    assert scene.commit(version) == NONE
    assert scene.offset == UNSTABLE
    second = scene.second
    transaction = second.call(lambda: second.server.transactions.transaction(scene.key))
    assert transaction.partitions == {(GROUP_OFFSETS, scene.partition)}
    (request,) = held.asked
    assert request.transactions[0].verify_only == (version < IMPLICIT)
    scene.marker(version, commit=commit)
    assert scene.offset == (5 if commit else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_offset_commit_returns_transaction_coordinator_error(scene, version):
    if version < IMPLICIT:
        is_told = version >= CLASSIC
        refused = ErrorCode.TRANSACTION_ABORTABLE if is_told else ErrorCode.INVALID_TXN_STATE
        assert scene.commit(version) == refused
    nobody = scene.producer._replace(transactional_id=coordinated_key(2, "nobody"))
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scene.commit(version, producer=nobody) == mapping
    another = scene.producer._replace(producer_id=scene.producer.producer_id + 1_000_000)
    assert scene.commit(version, producer=another) == mapping
    successor = scene.coordinator.begin_life(scene.key)
    assert successor.epoch > scene.producer.epoch
    assert scene.commit(version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert scene.offset == -1


@pytest.mark.parametrize("version", [3, CLASSIC, IMPLICIT])
def test_offset_commit_returns_group_error(scene, version):
    """The coordinator has verified the transaction, so it contains the group's offsets."""
    scene.add(version)
    refused = scene.commit(version, member_id="nobody", generation_id=3)
    assert refused == ErrorCode.ILLEGAL_GENERATION
    assert scene.offset == -1


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_retries_during_an_outage_of_the_coordinator(version):
    with alternating(PARTITIONS) as cluster:
        scene = Scene(cluster, "away")
        scene.add(version)
        cluster.kill(1, expire=False)
        assert scene.commit(version) == not_now(version)
        assert scene.offset == -1
        cluster.restart(1)
        cluster.alternate(*PARTITIONS)
        wait_until(lambda: scene.commit(version) == NONE)
        scene.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_is_not_left_waiting(scene, held, version):
    scene.add(version)
    held.hold()
    send_commit(scene.client, scene.producer, scene.group, 6, version)
    held.wait_for_one()
    scene.first.clock.advance(seconds=6)
    assert code_of(scene.client.receive()) == not_now(version)
    held.let_go()
    assert scene.offset == -1


# --------------------------------------------------------------- between the answer and the append


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marker_that_comes_before_the_answer_refuses_the_commit(scene, held, version):
    """P6, R7: the commit would stay pending forever."""
    scene.add(version)
    held.hold()
    send_commit(scene.client, scene.producer, scene.group, 6, version)
    held.wait_for_one()
    scene.marker(version)
    held.let_go()
    assert code_of(scene.client.receive()) == not_now(version)
    assert scene.offset == -1


def in_its_lane(scene, version, meanwhile):
    """Do something while a commit, of which the coordinator has said NONE, waits for its turn."""
    scene.add(version)
    occupied = Occupied(scene.first, scene.group)
    send_commit(scene.client, scene.producer, scene.group, 6, version)
    occupied.wait_for_next()
    assert scene.guards == 1
    meanwhile()
    scene.first.call(occupied.leave)
    return code_of(scene.client.receive())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_waits_for_its_turn_with_its_guard(scene, version):
    assert in_its_lane(scene, version, lambda: None) == NONE
    assert scene.offset == UNSTABLE
    scene.marker(version)
    assert scene.offset == 6


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marker_that_comes_while_a_commit_waits_for_its_turn_refuses_it(scene, version):
    """P1, R7: the guard is the second question, at the moment of the append."""
    assert in_its_lane(scene, version, lambda: scene.marker(version)) == not_now(version)
    assert scene.offset == -1


# ------------------------------------------------------------------------- gone, ending, restarted


@pytest.mark.parametrize("version", [CLASSIC, IMPLICIT])
def test_offsets_of_disconnected_client_are_not_committed(scene, held, version):
    scene.add(version)
    first = scene.first
    held.hold()
    with OffsetsClient(first) as leaving:
        before = first.call(lambda: len(first.server.sockets.connections))
        send_commit(leaving, scene.producer, scene.group, 6, version)
        held.wait_for_one()
    wait_until(lambda: first.call(lambda: len(first.server.sockets.connections)) < before)
    assert first.call(lambda: len(first.server.remote_coordinators)) == 0
    held.let_go()
    assert scene.offset == -1


def test_a_commit_is_asked_about_until_the_transaction_before_has_ended(world, monkeypatch):
    with alternating(PARTITIONS, **{"barnabas.transaction.wait.ms": "60000"}) as cluster:
        scene, markers = Scene(cluster, "ending"), Markers(monkeypatch)
        held = HeldResponses(world, scene.second)
        # A group of the transaction's own coordinator, so that all of it ends there.
        theirs = coordinated_key(2, "theirs")
        scene.coordinator.committed(scene.producer, theirs, {PLACE: 1})
        markers.stop()
        scene.producer = scene.coordinator.ended(scene.producer, IMPLICIT, commit=True)
        send_commit(scene.client, scene.producer, scene.group, 6)
        wait_until(lambda: len(held.asked) > 2)
        markers.go_on()
        assert code_of(scene.client.receive()) == NONE
        assert scene.offset == UNSTABLE
        scene.close()
