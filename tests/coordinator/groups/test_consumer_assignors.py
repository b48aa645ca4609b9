"""The assignors: every partition once, fair, sticky where they promise it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.groups.consumer.assignors import ASSIGNORS
from barnabas.coordinator.groups.consumer.assignors.specification import (
    Subscriber,
    all_want_the_same,
)
from barnabas.coordinator.groups.consumer.member import Partitions

TOPICS = [bytes([number] * 16) for number in range(4)]
uniform, ranges = ASSIGNORS["uniform"], ASSIGNORS["range"]


def of(counts: dict[bytes, int]):
    return lambda topic_id: counts[topic_id]


def subscribers(topics: dict[str, set[bytes]], targets=None, instances=None):
    return {
        member_id: Subscriber(
            frozenset(wanted), (instances or {}).get(member_id), (targets or {}).get(member_id, {})
        )
        for member_id, wanted in topics.items()
    }


def pairs(target: Partitions) -> set[tuple[bytes, int]]:
    return {(topic_id, each) for topic_id, those in target.items() for each in those}


def check(given, counts, found) -> None:
    """Check that all members are named, and each partition goes to one of its subscribers."""
    assert found.keys() == given.keys()
    owned = [each for target in found.values() for each in pairs(target)]
    wanted = {topic_id for each in given.values() for topic_id in each.topic_ids}
    everything = {(topic_id, each) for topic_id in wanted for each in range(counts[topic_id])}
    assert sorted(owned) == sorted(everything)
    for member_id, target in found.items():
        assert target.keys() <= given[member_id].topic_ids
        assert all(target.values()), "no topic without partitions"


topic_counts = st.fixed_dictionaries(dict.fromkeys(TOPICS, st.integers(0, 9)))
wishes = st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from(TOPICS)), min_size=1)


@given(counts=topic_counts, topics=wishes, then=wishes, grow=topic_counts)
@settings(deadline=None)
def test_uniform_is_complete_fair_and_sticky(counts, topics, then, grow):
    before = uniform(subscribers(topics), of(counts))
    check(subscribers(topics), counts, before)
    counts = {topic_id: counts[topic_id] + grow[topic_id] for topic_id in TOPICS}
    again = subscribers(then, before)
    found = uniform(again, of(counts))
    check(again, counts, found)
    # Nothing changes when nothing has changed.
    assert uniform(subscribers(then, found), of(counts)) == found
    if not all_want_the_same(again):
        return
    sizes = [len(pairs(target)) for target in found.values()]
    assert max(sizes) - min(sizes) <= 1
    least = sum(sizes) // len(sizes)
    for member_id, target in found.items():
        kept = {each for each in pairs(before.get(member_id, {})) if each[0] in then[member_id]}
        lost = kept - pairs(target)
        assert not lost or len(pairs(target)) >= least, "a partition moved that need not"


@given(counts=topic_counts, topics=wishes)
@settings(deadline=None)
def test_uniform_leaves_no_two_apart_who_could_share(counts, topics):
    found = uniform(subscribers(topics), of(counts))
    for giver, target in found.items():
        for receiver in found:
            movable = {topic_id for topic_id in target if topic_id in topics[receiver]}
            if movable:
                assert len(pairs(target)) - len(pairs(found[receiver])) <= 1, (giver, receiver)


def test_uniform_drops_missing_and_doubly_owned_partitions():
    first = TOPICS[0]
    targets = {"a": {first: frozenset({0, 1, 7})}, "b": {first: frozenset({1, 2})}}
    given_before = subscribers({"a": {first}, "b": {first}}, targets)
    assert uniform(given_before, of({first: 4})) == {
        "a": {first: frozenset({0, 1})},
        "b": {first: frozenset({2, 3})},
    }


def test_uniform_moves_only_the_surplus():
    first = TOPICS[0]
    one = uniform(subscribers({"a": {first}}), of({first: 6}))
    two = uniform(subscribers({"a": {first}, "b": {first}}, one), of({first: 6}))
    assert two == {"a": {first: frozenset({0, 1, 2})}, "b": {first: frozenset({3, 4, 5})}}
    three = uniform(subscribers({each: {first} for each in "abc"}, two), of({first: 6}))
    assert three["a"][first] < two["a"][first]
    assert three["b"][first] < two["b"][first]
    assert len(three["c"][first]) == 2


@given(counts=topic_counts, topics=wishes)
@settings(deadline=None)
def test_range_is_complete_and_contiguous(counts, topics):
    found = ranges(subscribers(topics), of(counts))
    check(subscribers(topics), counts, found)
    for target in found.values():
        for those in target.values():
            assert max(those) - min(those) == len(those) - 1
    for topic_id in TOPICS:
        sizes = [
            len(found[member].get(topic_id, ())) for member in topics if topic_id in topics[member]
        ]
        assert not sizes or max(sizes) - min(sizes) <= 1


def test_range_puts_equal_numbers_together_and_goes_by_instance():
    first, second = TOPICS[:2]
    both = {first, second}
    found = ranges(
        subscribers({"x": both, "y": both, "z": both}, instances={"z": "1"}),
        of({first: 5, second: 5}),
    )
    assert found == {
        "z": {first: frozenset({0, 1}), second: frozenset({0, 1})},
        "x": {first: frozenset({2, 3}), second: frozenset({2, 3})},
        "y": {first: frozenset({4}), second: frozenset({4})},
    }


def test_assignors_accept_no_members_and_no_topics():
    for assign in (uniform, ranges):
        assert assign({}, of({})) == {}
        assert assign(subscribers({"a": set()}), of({})) == {"a": {}}
        assert assign(subscribers({"a": {TOPICS[0]}}), of({TOPICS[0]: 0})) == {"a": {}}
