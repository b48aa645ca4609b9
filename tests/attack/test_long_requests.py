"""Requests for very many partitions that exist: done as a whole, with the loop free for others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.records import read_header
from barnabas.testing import Broker
from tests.attack.loop_lag import loop_lag
from tests.broker.long_commit import long_commit
from tests.broker.sample_requests import error_codes
from tests.crash.transaction_client import TRANSACTIONS_V2, Producer
from tests.crash.transaction_life import batches_of
from tests.garbage import collector_of_a_daemon
from tests.products import case

pytestmark = pytest.mark.slow
BUSY_MS_MOST = 200
"""The rule is 50; a crowded machine that also traces coverage may take a few times as long."""
MUCH_MS_MOST = 50
"""The rule itself. In one piece, the deletions and the sweep take longer than this."""
TOPICS, PARTITIONS = 4, 10_000
GROUP = "many"


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[Broker]:
    """A broker with as much journal as a daemon has, and its collector's settings."""
    config = {"barnabas.journal.file.bytes": str(64 << 20)}
    with Broker(storage=tmp_path_factory.mktemp("data"), config=config) as running:
        for number in range(TOPICS):
            running.create_topic(f"topic-{number}", PARTITIONS)
        with collector_of_a_daemon():
            yield running


def committed(broker: Broker) -> dict[tuple[str, int], int]:
    topics = broker.server.groups.machine_of(GROUP).offsets.of_group(GROUP)
    return {
        (topic, index): each.offset
        for topic, partitions in topics.items()
        for index, each in partitions.items()
    }


def test_commit_of_very_many_partitions_is_one_decision_and_delays_no_client(broker):
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        groups = broker.server.groups
        for offset, shape in enumerate([(1, 2001), (1, PARTITIONS), (TOPICS, PARTITIONS)], start=1):
            assert not broker.call(lambda: groups.refusal(GROUP))
            index = groups.log.partition_of(GROUP)
            log = broker.server.catalogue.partition(groups.log.topic_name, index).log
            before = broker.call(lambda log=log: log.next_offset)
            request = long_commit(GROUP, offset, *shape)
            with loop_lag(broker, f"OffsetCommit of {shape}") as lag:
                response = client.ask(OFFSET_COMMIT, request, 8)
            assert lag.busy_ms < BUSY_MS_MOST
            assert set(error_codes(response)) == {ErrorCode.NONE}
            assert [
                (topic.name, [each.partition_index for each in topic.partitions])
                for topic in response.topics
            ] == [(f"topic-{number}", [*range(shape[1])]) for number in range(shape[0])]
            batches = broker.call(lambda log=log: batches_of(log))
            headers = [read_header(memoryview(batch)) for batch in batches]
            sizes = [each.record_count for each in headers if each.base_offset >= before]
            assert sizes == [shape[0] * shape[1]], "written as one batch"
    found = broker.call(lambda: committed(broker))
    assert found == {
        (f"topic-{topic}", index): 3 for topic in range(TOPICS) for index in range(PARTITIONS)
    }


def test_a_commit_too_large_for_one_batch_is_refused_as_a_whole():
    with Broker() as small, WireClient(small.address) as client:
        small.create_topic("topic-0", PARTITIONS)
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        assert set(error_codes(client.ask(OFFSET_COMMIT, long_commit(GROUP, 1, 1, 10), 8))) == {0}
        request = long_commit(GROUP, 2, 1, PARTITIONS)
        for partition in request.topics[0].partitions:
            partition.committed_metadata = "x" * 300
        response = client.ask(OFFSET_COMMIT, request, 8)
        assert set(error_codes(response)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        found = small.call(lambda: committed(small))
        assert found == {("topic-0", index): 1 for index in range(10)}


def test_commit_reports_missing_topics_beside_committed_partitions(broker):
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        request = long_commit(GROUP, 7, 1, PARTITIONS + 500)
        gone = OffsetCommitRequestTopic("gone", partitions=request.topics[0].partitions[:1000])
        request.topics.append(gone)
        response = client.ask(OFFSET_COMMIT, request, 8)
    answered = {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answered == {
        ("topic-0", index): 0 if index < PARTITIONS else unknown
        for index in range(PARTITIONS + 500)
    } | {("gone", index): unknown for index in range(1000)}


def test_a_stranger_commits_nothing_of_very_many_partitions(broker):
    request = long_commit(GROUP, 9, 1, PARTITIONS)
    request.generation_id_or_member_epoch, request.member_id = 3, "stranger"
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        # A group that does not exist yet is refused by its generation.
        client.ask(OFFSET_COMMIT, long_commit(GROUP, 1, 1, 1), 8)
        response = client.ask(OFFSET_COMMIT, request, 8)
    assert set(error_codes(response)) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert 9 not in broker.call(lambda: committed(broker)).values()


# ------------------------------------------------------- small requests for all that a group holds


@pytest.fixture
def filled(broker) -> Iterator[WireClient]:
    """A connection to a broker with groups, of which one has committed for every partition."""
    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        request = long_commit(GROUP, 5, TOPICS, PARTITIONS)
        assert set(error_codes(client.ask(OFFSET_COMMIT, request, 8))) == {ErrorCode.NONE}
        yield client


def fill_less(client: WireClient) -> list[str]:
    """Groups of which none has many offsets, and all have together."""
    names = [f"less-{number}" for number in range(40)]
    for name in names:
        request = long_commit(name, 6, 1, 1500)
        assert set(error_codes(client.ask(OFFSET_COMMIT, request, 8))) == {ErrorCode.NONE}
    return names


@pytest.mark.parametrize("version", [case(each, in_test=each in {2, 10}) for each in (2, 7, 8, 10)])
def test_fetch_of_all_offsets_of_a_group_delays_no_client(broker, filled, version):
    names = [OffsetFetchRequestGroup(GROUP, topics=None)]
    old = OffsetFetchRequest(GROUP, None)
    request = old if version < 8 else OffsetFetchRequest(groups=names, require_stable=True)
    with loop_lag(broker, f"OffsetFetch {version}") as lag:
        response = filled.ask(OFFSET_FETCH, request, version)
    assert lag.busy_ms < MUCH_MS_MOST
    topics = response.topics if version < 8 else response.groups[0].topics
    assert len(topics) == TOPICS
    for topic in topics:
        found = [(each.partition_index, each.committed_offset) for each in topic.partitions]
        assert found == [(index, 5) for index in range(PARTITIONS)]


def test_fetch_and_deletion_of_many_groups_delay_no_client(broker, filled):
    names = fill_less(filled)
    asked = [OffsetFetchRequestGroup(name, topics=None) for name in names]
    with loop_lag(broker, "OffsetFetch of groups") as lag:
        response = filled.ask(OFFSET_FETCH, OffsetFetchRequest(groups=asked), 8)
    assert lag.busy_ms < MUCH_MS_MOST
    assert [each.group_id for each in response.groups] == names
    assert {len(each.topics[0].partitions) for each in response.groups} == {1500}
    with loop_lag(broker, "DeleteGroups of groups") as lag:
        response = filled.ask(DELETE_GROUPS, DeleteGroupsRequest(names), 2)
    assert lag.busy_ms < MUCH_MS_MOST
    found = [(each.group_id, each.error_code) for each in response.results]
    assert found == [(name, ErrorCode.NONE) for name in names]


def test_a_group_with_very_many_offsets_goes_as_a_whole(broker, filled):
    one = OffsetDeleteRequestTopic("topic-0", [OffsetDeleteRequestPartition(0)])
    with loop_lag(broker, "OffsetDelete") as lag:
        response = filled.ask(OFFSET_DELETE, OffsetDeleteRequest(GROUP, [one]), 0)
    assert lag.busy_ms < MUCH_MS_MOST
    assert set(error_codes(response)) == {ErrorCode.NONE}
    groups = broker.server.groups
    log = broker.server.catalogue.partition(
        groups.log.topic_name, groups.log.partition_of(GROUP)
    ).log
    before = broker.call(lambda: log.next_offset)
    with loop_lag(broker, "DeleteGroups") as lag:
        response = filled.ask(DELETE_GROUPS, DeleteGroupsRequest([GROUP]), 2)
    assert lag.busy_ms < MUCH_MS_MOST
    assert [each.error_code for each in response.results] == [ErrorCode.NONE]
    headers = [read_header(memoryview(each)) for each in broker.call(lambda: batches_of(log))]
    sizes = [each.record_count for each in headers if each.base_offset >= before]
    assert sizes == [TOPICS * PARTITIONS - 1], "written as one batch"
    assert broker.call(lambda: committed(broker)) == {}


def test_sweep_of_expired_offsets_delays_no_client(broker, filled):
    groups = broker.server.groups
    with loop_lag(broker, "sweep") as lag:
        broker.call(groups.expire_offsets)
        filled.ask(OFFSET_FETCH, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP)]), 8)
    assert lag.busy_ms < MUCH_MS_MOST
    assert len(broker.call(lambda: committed(broker))) == TOPICS * PARTITIONS


@pytest.mark.parametrize(
    ("groups", "topics", "partitions", "end"),
    [
        case(3, TOPICS, PARTITIONS, "commit", in_test=True),
        case(3, TOPICS, PARTITIONS, "abort", in_test=False),
        case(999, 1, 120, "commit", in_test=False),
        case(999, 1, 120, "abort", in_test=False),
        case(999, 1, 40, "abort", in_test=True),
    ],
)
def test_end_of_a_transaction_over_very_many_offsets_delays_no_client(
    broker, groups, topics, partitions, end
):
    """A client that sends a request right after the end of the transaction sees all offsets."""
    commit = end == "commit"
    with WireClient(broker.address) as client:
        producer = Producer(client, f"ends-{groups}-{commit}", TRANSACTIONS_V2)
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(producer.key, key_type=1), 3)
        assert producer.init() == ErrorCode.NONE
        assert broker.call(broker.server.groups.is_coordinator)
        names = [
            in_one_partition(broker, f"{groups}-{commit}-{number}") for number in range(groups)
        ]
        for name in names:
            request = TxnOffsetCommitRequest(producer.key, name, *producer.identity)
            for topic in long_commit(GROUP, 8, topics, partitions).topics:
                within = [
                    TxnOffsetCommitRequestPartition(each.partition_index, each.committed_offset)
                    for each in topic.partitions
                ]
                request.topics.append(TxnOffsetCommitRequestTopic(topic.name, within))
            assert set(error_codes(client.ask(TXN_OFFSET_COMMIT, request, 5))) == {ErrorCode.NONE}
        asked = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(name, topics=None) for name in names],
            require_stable=True,
        )
        with loop_lag(broker, f"EndTxn of {groups} groups") as lag:
            assert producer.end(commit=commit) == ErrorCode.NONE
            response = client.ask(OFFSET_FETCH, asked, 8)
        assert lag.busy_ms < MUCH_MS_MOST
    shown = {
        (group.group_id, topic.name, each.partition_index): each.committed_offset
        for group in response.groups
        for topic in group.topics
        for each in topic.partitions
    }
    assert len(shown) == (groups * topics * partitions if commit else 0)
    assert set(shown.values()) <= {8}


def in_one_partition(broker: Broker, start: str) -> str:
    """A group's name that falls to the same partition as all others of this function's."""
    groups = broker.server.groups
    names = (f"{start}-{each}" for each in range(10_000))
    return next(name for name in names if groups.log.partition_of(name) == 0)
