"""Reassignments of leaders in a cluster: request, list and cancel."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.cluster.damaged_copies import copies
from barnabas.broker.cluster.moves import Pinning
from barnabas.broker.cluster.view import NO_NODE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.testing import Cluster
from tests.broker.data_plane import Wire
from tests.broker.moves import STAYS, RecordedMoves, frozen, unled
from tests.seeds import SEED
from tests.waiting import wait_until

NONE = ErrorCode.NONE
MANUAL = "The manual partition assignment includes "
NOT_NEEDED = "Leader election not needed for topic partition."


@pytest.fixture(scope="module")
def cluster(world):
    """Broker 0 leads partition 0, broker 1 partition 1, and no broker partition 2."""
    with Cluster(brokers=3, config=STAYS) as cluster:
        cluster.create_topic("t", 3)
        for index in range(3):
            cluster.move("t", index, to=index)
        yield cluster


@pytest.fixture
def broker(cluster, monkeypatch):
    """Broker 0, while nothing moves."""
    with frozen(cluster):
        if cluster.leader("t", 2) is not None:
            unled(cluster, "t", 2)
        forget_wishes(cluster)
        yield still(cluster, monkeypatch)
        forget_wishes(cluster)  # Or a later test would see them carried out.


def forget_wishes(cluster):
    for pins in (True, False):
        cluster._store.index.want(dict.fromkeys(range(1, 4)), pins=pins)


def still(cluster, monkeypatch):
    found = cluster.brokers[0]
    view = found.server.view
    wait_until(lambda: [view.leader_of(each).node_id for each in (1, 2, 3)] == [0, 1, NO_NODE])
    wait_until(lambda: not any(found.server.moves.pinned(each) for each in (1, 2, 3)))
    found.moves = RecordedMoves(found, monkeypatch)
    return found


@pytest.fixture
def wire(cluster):
    with Wire(cluster.brokers[0].address) as opened:
        yield opened


def pin(cluster, pins):
    """Pin partitions, without a wish to move them."""
    index = cluster._store.index
    index.want(pins, pins=True)
    index.want(dict.fromkeys(pins))
    moves = cluster.brokers[0].server.moves
    wait_until(lambda: all(moves.pinned(each) == to for each, to in pins.items()))
    wait_until(lambda: all(moves.wanted(each) is None for each in pins))


def alter(wire, *partitions, topic="t", version=1, factor=True, timeout_ms=60_000):
    asked = [ReassignableTopic(topic, [ReassignablePartition(*each) for each in partitions])]
    request = AlterPartitionReassignmentsRequest(timeout_ms, factor, asked)
    response = wire.ask(ALTER_PARTITION_REASSIGNMENTS, request, version)
    found = [(each.error_code, each.error_message) for each in response.responses[0].partitions]
    return response.error_code, found


def alter_pinning(wire, index, replicas, pinning):
    asked = [ReassignableTopic("t", [ReassignablePartition(index, replicas, pinning)])]
    request = AlterPartitionReassignmentsRequest(60_000, True, asked)
    response = wire.ask(ALTER_PARTITION_REASSIGNMENTS, request, 1)
    return response.responses[0].partitions[0].error_code


def pins(wire, include_pins=True):
    request = ListPartitionReassignmentsRequest(1, None, include_pins)
    response = wire.ask(LIST_PARTITION_REASSIGNMENTS, request, 0)
    if response.pinned_topics is None:
        return None
    return {
        (topic.name, each.partition_index): each.node_id
        for topic in response.pinned_topics
        for each in topic.partitions
    }


def elected(wire, indexes, kind=0, version=2):
    asked = None if indexes is None else [TopicPartitions("t", indexes)]
    response = wire.ask(ELECT_LEADERS, ElectLeadersRequest(kind, asked), version)
    assert response.error_code == NONE
    return {
        each.partition_id: (each.error_code, each.error_message)
        for result in response.replica_election_results
        for each in result.partition_result
    }


def ongoing(wire, topics=None):
    asked = topics and [ListPartitionReassignmentsTopics(*each) for each in topics]
    response = wire.ask(
        LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(1, asked), 0
    )
    assert response.error_code == NONE
    return {
        (topic.name, each.partition_index): (
            each.replicas,
            each.adding_replicas,
            each.removing_replicas,
        )
        for topic in response.topics
        for each in topic.partitions
    }


def described(wire, topic):
    response = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name=topic)]), 12)
    return [
        (each.leader_id, each.replica_nodes, each.isr_nodes)
        for each in response.topics[0].partitions
    ]


class TestAlter:
    def test_reassignment_is_requested_listed_and_cancelled(self, broker, wire):
        assert alter(wire, (0, [1])) == (NONE, [(NONE, "")])
        assert broker.moves.asked_to_pin == [{1: 1}]
        assert ongoing(wire) == {("t", 0): ([1, 0], [1], [0])}
        assert ongoing(wire, [("t", [0, 1, 9]), ("nope", [0])]) == ongoing(wire)
        assert ongoing(wire, [("t", [1])]) == {}
        assert alter(wire, (0, None)) == (NONE, [(NONE, "")])
        assert ongoing(wire) == {}

    def test_reassignment_to_the_current_leader_ends_a_pending_one(self, broker, wire):
        assert alter(wire, (0, [0]), (1, [1, 2])) == (NONE, [(NONE, "")] * 2)
        assert ongoing(wire) == {}
        alter(wire, (1, [2]))
        assert ongoing(wire).keys() == {("t", 1)}
        assert alter(wire, (1, [1])) == (NONE, [(NONE, "")])
        assert ongoing(wire) == {}
        assert broker.moves.asked_to_pin == [{1: 0, 2: 1}, {2: 2}, {2: 1}]
        assert broker.moves.asked == []

    def test_partition_without_a_leader_is_reassigned(self, broker, wire):
        assert alter(wire, (2, [2])) == (NONE, [(NONE, "")])
        # Before, it is shown at a broker that could lead it.
        (((topic, index), (replicas, adding, removing)),) = ongoing(wire).items()
        assert (topic, index, adding, replicas) == ("t", 2, [2], [2, *removing])
        assert removing in ([0], [1])

    @pytest.mark.parametrize(
        ("replicas", "message"),
        [
            ([], "an empty replica list."),
            ([3], "broker 3, but no such broker is registered."),
            ([2, -1], "broker -1, but no such broker is registered."),
            ([1, 2, 1], "the broker 1 more than once."),
        ],
    )
    def test_impossible_replicas_are_rejected(self, broker, wire, replicas, message):
        refused = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, MANUAL + message)
        assert alter(wire, (0, replicas), (1, [0])) == (NONE, [refused, (NONE, "")])
        assert broker.moves.asked_to_pin == [{2: 0}], "one by one"

    def test_nothing_to_cancel_and_unknown_partitions(self, broker, wire):
        nothing = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        code, found = alter(wire, (0, None), (9, [1]))
        assert (code, [each for each, _ in found]) == (NONE, [nothing, unknown])
        assert alter(wire, (0, [2]), topic="nope") == (
            NONE,
            [(unknown, "Unable to find a topic named nope.")],
        )
        assert broker.moves.asked_to_pin == []

    def test_a_replication_factor_that_must_stay(self, broker, wire):
        refused = (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is changed from 1 to 2",
        )
        assert alter(wire, (0, [1, 0]), factor=False) == (NONE, [refused])
        assert alter(wire, (0, [1, 0])) == (NONE, [(NONE, "")])

    def test_the_last_word_of_a_request_counts(self, broker, wire):
        codes = [NONE, NONE, NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
        _, found = alter(wire, (0, [1]), (0, [2]), (0, None), (0, None))
        assert [code for code, _ in found] == codes
        assert broker.moves.asked_to_pin == [{1: 0}]

    def test_a_store_that_does_not_answer_in_time(self, cluster, broker, wire):
        cluster.cut_from_store(0)
        timed_out = ErrorCode.REQUEST_TIMED_OUT
        code, found = alter(wire, (0, [1]), timeout_ms=1)
        assert timed_out in {code, *(each for each, _ in found)}
        cluster.mend_to_store(0)
        wait_until(lambda: cluster._store.index.rows[1].pinned_node == 1, "it was made later")


class TestPins:
    def test_a_reassignment_pins_and_its_cancellation_pins_to_who_leads(self, broker, wire):
        alter(wire, (0, [1]), (1, [1]), (2, [2]))
        assert pins(wire) == {("t", 0): 1, ("t", 1): 1, ("t", 2): 2}
        assert pins(wire, include_pins=False) is None, "Kafka's clients are not told"
        alter(wire, (0, None), (2, None))
        assert pins(wire) == {("t", 0): 0, ("t", 1): 1}, "nobody leads the last one"
        assert ongoing(wire) == {}

    def test_a_move_without_a_pin(self, broker, wire):
        alter(wire, (0, [0]))
        assert alter_pinning(wire, 0, [2], Pinning.LEFT) == NONE
        assert (pins(wire), ongoing(wire).keys()) == ({("t", 0): 0}, {("t", 0)})
        assert alter_pinning(wire, 0, [0], Pinning.LEFT) == NONE
        assert alter_pinning(wire, 0, [0], Pinning.LEFT) == NONE
        assert ongoing(wire) == {}
        assert broker.moves.asked == [{1: 2}, {1: None}]
        assert alter_pinning(wire, 0, None, Pinning.LEFT) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    def test_the_end_of_a_pin(self, broker, wire):
        alter(wire, (0, [1]), (1, [1]))
        for _ in range(2):
            assert alter_pinning(wire, 0, None, Pinning.ENDED) == NONE
            assert (pins(wire), ongoing(wire)) == ({("t", 1): 1}, {})
        assert alter_pinning(wire, 9, None, Pinning.ENDED) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_no_other_pinning(self, broker, wire):
        for pinning in (-1, 3):
            assert alter_pinning(wire, 0, [1], pinning) == ErrorCode.INVALID_REQUEST
        assert broker.moves.asked_to_pin == broker.moves.asked == []


class TestElect:
    def test_election_moves_partitions_to_their_pinned_broker(self, cluster, broker, wire):
        pin(cluster, {1: 2, 2: 1, 3: 9})
        needless = (ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
        absent = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            "The preferred leader was not available.",
        )
        assert elected(wire, [0, 1, 2]) == {0: (NONE, None), 1: needless, 2: absent}
        assert broker.moves.asked == [{1: 2}]
        assert elected(wire, None) == {0: (NONE, None), 2: absent}
        pin(cluster, {1: 9, 2: None, 3: 2})
        assert elected(wire, None) == {0: absent, 2: (NONE, None)}, "its broker is not there"
        assert elected(wire, [0], kind=1) == {0: needless}, "it has a leader"

    def test_a_store_that_does_not_answer_in_time(self, cluster, broker, wire):
        pin(cluster, {1: 2})
        cluster.cut_from_store(0)
        request = ElectLeadersRequest(0, [TopicPartitions("t", [0])], 1)
        assert wire.ask(ELECT_LEADERS, request, 2).error_code == ErrorCode.REQUEST_TIMED_OUT
        cluster.mend_to_store(0)
        wait_until(lambda: cluster._store.index.rows[1].wanted_node == 2, "it was made later")

    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
            (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        ],
    )
    def test_election_is_not_needed_at_the_preferred_leader(self, broker, wire, kind, code):
        request = ElectLeadersRequest(kind, [TopicPartitions("t", [0, 1, 2])])
        (result,) = wire.ask(ELECT_LEADERS, request, 2).replica_election_results
        not_needed = ErrorCode.ELECTION_NOT_NEEDED
        assert [e.error_code for e in result.partition_result] == [not_needed, not_needed, code]
        everything = wire.ask(ELECT_LEADERS, ElectLeadersRequest(kind, None), 2)
        (result,) = everything.replica_election_results
        found = [(each.partition_id, each.error_code) for each in result.partition_result]
        assert found == [(2, code)], "all but what needs no election"


class TestTopics:
    @pytest.fixture(autouse=True)
    def deleted_topics(self, cluster):
        """Delete all topics except ``t`` after each test, for the tests that list all of them."""
        yield
        with Wire(cluster.brokers[0].address) as wire:
            names = [name for name in cluster.brokers[0].server.catalogue.topics if name != "t"]
            response = wire.ask(
                DELETE_TOPICS, DeleteTopicsRequest(topic_names=names, timeout_ms=60_000), 5
            )
            assert not any(each.error_code for each in response.responses)
        wait_until(lambda: [*cluster.brokers[0].server.catalogue.topics] == ["t"])

    def create(self, wire, name, factor, *assignments, **asked):
        placed = [CreatableReplicaAssignment(*each) for each in enumerate(assignments)]
        count = -1 if placed else 3
        topic = CreatableTopic(name, count, factor, placed, [], **asked)
        (result,) = wire.ask(CREATE_TOPICS, CreateTopicsRequest([topic]), 7).topics
        return result

    @pytest.mark.parametrize(("factor", "told"), [(-1, 1), (1, 1), (3, 3), (32_767, 32_767)])
    def test_any_replication_factor(self, cluster, wire, factor, told):
        name = f"factor{factor}"
        result = self.create(wire, name, factor)
        cluster.wait_until_served()
        wait_until(lambda: all(leader != NO_NODE for leader, _, _ in described(wire, name)))
        assert (result.error_code, result.replication_factor) == (NONE, told)
        for leader, replicas, isr in described(wire, name):
            assert replicas == isr
            assert (leader, len(replicas)) == (replicas[0], min(told, 3))

    @pytest.mark.parametrize("factor", [0, -2])
    def test_no_replication_factor(self, broker, wire, factor):
        code = ErrorCode.INVALID_REPLICATION_FACTOR
        assert self.create(wire, "none", factor).error_code == code

    def test_a_factor_that_is_altered(self, broker, wire):
        self.create(wire, "altered", 2)
        assert [len(each) for _, each, _ in described(wire, "altered")] == [2, 2, 2]
        configs = [AlterableConfig("barnabas.replication.factor", "3")]
        request = AlterConfigsRequest([AlterConfigsResource(2, "altered", configs)])
        assert wire.ask(ALTER_CONFIGS, request, 2).responses[0].error_code == NONE
        assert [len(each) for _, each, _ in described(wire, "altered")] == [3, 3, 3]

    def test_leaders_by_hand(self, broker, wire):
        result = self.create(wire, "by-hand", -1, [2, 0], [0, 1], [1, 2])
        assert (result.error_code, result.replication_factor) == (NONE, 2)
        topic = broker.server.catalogue.topic("by-hand")
        first, _, third = (each.partition_id for each in topic.partitions)
        second = topic.partitions[1].partition_id
        assert broker.moves.asked_to_pin == [{first: 2, second: 0, third: 1}]
        added = [CreatePartitionsAssignment(each) for each in ([1, 0], [0, 2])]
        request = CreatePartitionsRequest([CreatePartitionsTopic("by-hand", 5, added)], 60_000)
        assert wire.ask(CREATE_PARTITIONS, request, 3).results[0].error_code == NONE
        added_ids = [each.partition_id for each in topic.partitions[3:]]
        assert broker.moves.asked_to_pin[1:] == [dict(zip(added_ids, [1, 0], strict=True))]

    @pytest.mark.parametrize("assignments", [([3],), ([0], [0, 1]), ([1, 1],)])
    def test_impossible_assignments_are_rejected(self, broker, wire, assignments):
        result = self.create(wire, "refused", -1, *assignments)
        assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert broker.server.catalogue.topic("refused") is None


class TestCopies:
    def test_of_three_brokers(self):
        assert sorted(copies(7, NO_NODE, {1, 2, 3}, 3)) == [1, 2, 3]
        assert len(copies(7, NO_NODE, {1, 2, 3}, 1)) == 1
        assert copies(7, 2, {1, 2, 3}, 1) == [2]
        assert sorted(copies(7, 2, {1, 2, 3}, 9)) == [1, 2, 3]

    def test_a_broker_that_goes_changes_no_places_but_its_own(self):
        random = Random(SEED)
        for partition_id in range(300):
            nodes = set(random.sample(range(100), random.randint(2, 9)))
            leader, gone = random.sample(sorted(nodes), 2)
            before = copies(partition_id, leader, nodes, len(nodes))
            assert (before[0], set(before)) == (leader, nodes)
            after = copies(partition_id, leader, nodes - {gone}, len(nodes))
            assert after == [each for each in before if each != gone]
            assert copies(partition_id, leader, nodes - {gone}, len(nodes), [gone]) == before

    def test_fenced_brokers_fill_up_the_replication_factor(self):
        assert copies(7, 2, {2}, 1, [1, 3]) == [2]
        assert copies(7, 2, {2, 4}, 2, [1, 3]) == [2, 4], "brokers in service come before"
        assert sorted(copies(7, 2, {2, 4}, 4, [1, 3])) == [1, 2, 3, 4]
        assert sorted(copies(7, NO_NODE, {2}, 3, [1, 3])) == [1, 2, 3]
        assert len(set(copies(7, 2, {2, 4}, 3, [1, 3]))) == 3
