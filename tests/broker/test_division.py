"""Requests in parts: nothing is lost, doubled or moved, and the answers are one again."""

import random

import pytest

from barnabas.broker.api.division import by, count_elements, is_long, join, parts
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def offsets(rng):
    return ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(f"t{n}", [ListOffsetsPartition(i) for i in range(rng.randrange(30))])
            for n in range(rng.randrange(30))
        ]
    )


def answer(request):
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [ListOffsetsPartitionResponse(each.partition_index) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def answered_in_parts(request, divide, handler):
    whole = None
    for part, continues in parts(request, divide):
        if whole is None:
            whole = handler(part)
        else:
            join(whole, handler(part), continues=continues)
    return whole


@pytest.mark.parametrize("seed", range(50))
def test_answers_in_parts_are_the_answer_to_the_whole(seed):
    rng = random.Random(seed)
    request = offsets(rng)
    divide = by("topics.partitions", elements=rng.randrange(1, 60))
    assert answered_in_parts(request, divide, answer) == answer(request)
    assert request == offsets(random.Random(seed)), "the request is as it was"
    for part, _ in parts(request, divide):
        assert count_elements(part) <= divide.elements + 1


def test_an_empty_request_is_one_part():
    assert [part for part, _ in parts(ListOffsetsRequest(), by("topics"))] == [ListOffsetsRequest()]


@pytest.mark.parametrize("seed", range(20))
def test_arrays_three_deep(seed):
    rng = random.Random(seed)
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                f"g{g}",
                topics=None
                if rng.random() < 0.2
                else [
                    OffsetFetchRequestTopics(
                        f"t{t}", partition_indexes=list(range(rng.randrange(9)))
                    )
                    for t in range(rng.randrange(9))
                ],
            )
            for g in range(rng.randrange(9))
        ]
    )

    def fetched(part):
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group.group_id,
                    [
                        OffsetFetchResponseTopics(
                            topic.name,
                            partitions=[
                                OffsetFetchResponsePartitions(index)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in group.topics or ()
                    ],
                )
                for group in part.groups
            ]
        )

    divide = by("groups.topics.partition_indexes", "topics", elements=rng.randrange(1, 40))
    assert answered_in_parts(request, divide, fetched) == fetched(request)


def test_elements_are_counted_in_all_arrays():
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic("t", [ListOffsetsPartition()] * 3), ListOffsetsTopic("u")]
    )
    assert count_elements(request) == 5
    assert not is_long(request, 5)
    assert is_long(request, 4)
    assert not is_long(b"no message at all", 0)


def test_structures_further_within_count_too():
    found = OffsetFetchResponseTopics("t", partitions=[OffsetFetchResponsePartitions()] * 3)
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [found] * 2)] * 2)
    assert count_elements(response) == 18
    assert not is_long(response, 18)
    assert is_long(response, 17)


def test_a_request_is_long_if_it_has_more_than_one_part():
    divide = by("topics.partitions", elements=3)
    assert not divide.is_long(ListOffsetsRequest(topics=[ListOffsetsTopic("t")] * 3))
    assert divide.is_long(ListOffsetsRequest(topics=[ListOffsetsTopic("t")] * 4))
    one = ListOffsetsTopic("t", [ListOffsetsPartition(0)] * 3)
    assert divide.is_long(ListOffsetsRequest(topics=[one]))
