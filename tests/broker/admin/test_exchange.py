"""Exchanges without a broker: requests, receivers, results and errors."""

import pytest

from barnabas.broker.admin import groups, offsets, transactions
from barnabas.broker.admin.exchange import Coordinator, Partition, Rejected, check_partition
from barnabas.broker.admin.positions import Position
from barnabas.broker.client.brokers import GROUP, TRANSACTION
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

TWO = [Partition("orders", 0, 1), Partition("orders", 1, 2)]


def run(exchange, answer):
    """Return the result of an exchange and its requests; ``answer`` returns the responses."""
    sent, response = [], None
    while True:
        try:
            sent.append(exchange.send(response))
        except StopIteration as ended:
            return ended.value, sent
        response = answer(sent[-1])


def listed(sent):
    """Return offsets like those of partitions from 10 to 20, with an offset of 15 at a time."""
    found = {offsets.EARLIEST: 10, offsets.LATEST: 20}
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    ListOffsetsPartitionResponse(
                        each.partition_index, offset=found.get(each.timestamp, 15)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in sent.request.topics
        ]
    )


@pytest.mark.parametrize(
    ("position", "expected"), [("beginning", 10), ("end", 20), ("-3", 17), ("@5", 15), ("12", 12)]
)
def test_offset_of_a_position_comes_from_each_leader(position, expected):
    found, sent = run(offsets.offsets_of(Position.parse(position), TWO), listed)
    assert found == {("orders", 0): expected, ("orders", 1): expected}
    assert {each.to for each in sent} == {1, 2}


def test_offset_outside_of_a_partition_is_out_of_range():
    with pytest.raises(KafkaError, match="orders-0: offset 9 does not exist") as caught:
        run(offsets.offsets_of(Position.parse("9"), TWO), listed)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("step", "expected"), [(3, 15), (-5, 10), (100, 20)])
def test_moved_offset_stays_within_its_partition(step, expected):
    old = {each.topic_partition: 12 for each in TWO}
    found, _ = run(offsets.moved_by(step, old, TWO), listed)
    assert set(found.values()) == {expected}


def test_partition_without_a_leader_is_rejected():
    with pytest.raises(Rejected, match=r"orders-0: .* \(LEADER_NOT_AVAILABLE\)"):
        run(offsets.offsets_at([Partition("orders", 0, -1)], offsets.LATEST), listed)


def test_changes_go_to_the_coordinator():
    deleted = DeleteGroupsResponse(results=[DeletableGroupResult("g")])
    _, (sent,) = run(groups.delete("g"), lambda _: deleted)
    assert sent.to == Coordinator(GROUP, "g")
    fenced = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    with pytest.raises(Rejected, match="CONCURRENT_TRANSACTIONS"):
        run(transactions.fence("t", 10), lambda _: fenced)
    assert next(transactions.fence("t", 10)).to == Coordinator(TRANSACTION, "t")


def test_rejection_names_its_object_for_the_command_line_and_not_for_the_console():
    problem = Rejected("orders", ErrorCode.INVALID_REQUEST, "no")
    assert (str(problem), problem.message) == ("orders: no (INVALID_REQUEST)", "no")
    with pytest.raises(Rejected) as caught:
        check_partition(("orders", 3), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert str(caught.value).endswith("(NOT_LEADER_OR_FOLLOWER)")
    assert caught.value.message == "orders-3"
