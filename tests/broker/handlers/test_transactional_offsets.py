"""Offsets committed in transactions, on a running broker: hidden, committed, dropped, refused.

tests/interop compares the results for every kind of member with Apache Kafka's, state by
state in tests/coordinator/groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.testing import Broker
from tests.counterparts.offsets_client import CLASSIC, IMPLICIT, UNSTABLE, OffsetsClient
from tests.requests import commit_in_transaction_request, fetch_offsets_request
from tests.waiting import wait_until

GENERATIONS = (CLASSIC, IMPLICIT)
LONG_MS = 900_000
A, B, C = ("topic", 0), ("topic", 1), ("other", 0)
PLACES = {"topic": [0, 1], "other": [0]}
NOTHING = dict.fromkeys((A, B, C), -1)


SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.retention.minutes": "10",
    "offsets.retention.check.interval.ms": "60000",
    "group.initial.rebalance.delay.ms": "0",
    "barnabas.transaction.wait.ms": "10000",
}


@pytest.fixture
def settings() -> dict[str, str]:
    """Configuration of the broker; a test overrides it."""
    return SETTINGS


@pytest.fixture
def broker(settings) -> Iterator[Broker]:
    with Broker(config=settings) as running:
        running.create_topic("topic", 2)
        running.create_topic("other", 1)
        running.port = running.address[1]
        with OffsetsClient(running) as client:
            client.find("any", 0)
            client.find("any", 1)
        yield running


@pytest.fixture
def client(broker) -> Iterator[OffsetsClient]:
    with OffsetsClient(broker) as connected:
        yield connected


def listed(client: OffsetsClient) -> set[str]:
    return {each.group_id for each in client.ask(LIST_GROUPS, ListGroupsRequest(), 5).groups}


# -------------------------------------------------------------------------------------------- whole


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", GENERATIONS)
def test_offsets_are_hidden_until_the_end_is_decided(client, version, commit):
    producer = client.begin_life("id")
    client.commit_plainly("group", {A: 1})
    client.committed(producer, "group", {A: 2, B: 2}, version)
    assert client.fetch("group", PLACES) == {A: UNSTABLE, B: UNSTABLE, C: -1}
    assert client.fetch("group", PLACES, stable=False) == {A: 1, B: -1, C: -1}
    producer = client.ended(producer, version, commit=commit)
    expected = {A: 2, B: 2, C: -1} if commit else {A: 1, B: -1, C: -1}
    assert client.fetch("group", PLACES) == expected
    client.committed(producer, "group", {B: 3}, version)  # The next one, at once.
    assert client.fetch("group", PLACES) == expected | {B: UNSTABLE}
    client.ended(producer, version, commit=True)
    assert client.fetch("group", PLACES) == expected | {B: 3}


def test_offsets_are_visible_when_the_end_is_acknowledged(broker, client):
    """KAFKA-17507: the response came before the offsets were visible."""
    producer = client.begin_life("id")
    with OffsetsClient(broker) as reader:
        for number in range(40):
            client.committed(producer, "group", {A: number, C: number})
            producer = client.ended(producer, IMPLICIT, commit=True)
            assert reader.fetch("group") == {A: number, C: number}


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", GENERATIONS)
def test_pending_offsets_outlive_a_crash(broker, client, version, commit):
    """Rows 17 and 18 of the crash table: before the marker, and with it."""
    producer = client.begin_life("id", LONG_MS)
    client.commit_plainly("group", {A: 1})
    client.committed(producer, "group", {A: 2, B: 2}, version)
    client.committed(producer, "pending", {C: 9}, version)
    broker.crash()
    broker.restart()
    with OffsetsClient(broker) as anew:
        assert anew.fetch("group", PLACES) == {A: UNSTABLE, B: UNSTABLE, C: -1}
        assert anew.fetch("group", PLACES, stable=False) == {A: 1, B: -1, C: -1}
        assert listed(anew) == {"group", "pending"}
        producer = anew.ended(producer, version, commit=commit)
    expected = {A: 2, B: 2, C: -1} if commit else {A: 1, B: -1, C: -1}
    for _ in range(2):
        with OffsetsClient(broker) as anew:
            assert anew.fetch("group", PLACES) == expected
            assert anew.fetch("pending", PLACES) == NOTHING | ({C: 9} if commit else {})
            assert listed(anew) == ({"group", "pending"} if commit else {"group"})
        broker.crash()
        broker.restart()
    with OffsetsClient(broker) as anew:
        anew.committed(producer, "group", {C: 3}, version)
        anew.ended(producer, version, commit=True)
        assert anew.fetch("group", PLACES) == expected | {C: 3}


def test_several_producers_share_a_group(client):
    one, two = client.begin_life("one"), client.begin_life("two")
    client.committed(one, "group", {A: 1, B: 1})
    client.committed(two, "group", {A: 2, C: 2})
    client.ended(two, IMPLICIT, commit=True)
    assert client.fetch("group", PLACES) == {A: UNSTABLE, B: UNSTABLE, C: 2}
    assert client.fetch("group", PLACES, stable=False) == {A: 2, B: -1, C: 2}
    client.ended(one, IMPLICIT, commit=True)
    # What stands later in the log counts, not what was committed later.
    assert client.fetch("group", PLACES) == {A: 2, B: 1, C: 2}


def test_a_transaction_that_takes_too_long_leaves_nothing(broker, client):
    producer = client.begin_life("id", 10_000)
    client.committed(producer, "group", {A: 1})
    broker.clock.advance(seconds=30)
    wait_until(lambda: client.fetch("group", PLACES) == NOTHING)
    assert client.commit(producer, "group", {A: 1}) == {A: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert listed(client) == set()


# --------------------------------------------------------------------------------------- zombies


@pytest.mark.parametrize("version", GENERATIONS)
def test_commit_of_a_zombie_member_has_no_effect(broker, client, version):
    """O5, KIP-447: not even if its transaction is committed."""
    client.commit_plainly("group", {A: 1})
    former = client.join("group", group_instance_id="i")
    now = client.join("group", former.member_id, group_instance_id="i")
    assert now.generation_id > former.generation_id
    mine = {"member_id": now.member_id, "generation_id": now.generation_id}
    zombies = [
        (ErrorCode.ILLEGAL_GENERATION, mine | {"generation_id": former.generation_id}),
        (ErrorCode.UNKNOWN_MEMBER_ID, mine | {"member_id": "gone"}),
        (ErrorCode.FENCED_INSTANCE_ID, mine | {"member_id": "gone", "group_instance_id": "i"}),
        (ErrorCode.UNKNOWN_MEMBER_ID, mine | {"group_instance_id": "another"}),
        (ErrorCode.ILLEGAL_GENERATION, mine | {"generation_id": -1}),
    ]
    producer = client.begin_life("id")
    for number, (code, identity) in enumerate(zombies):
        if version == CLASSIC:
            assert client.add_offsets(producer, "group") == ErrorCode.NONE
        assert client.commit(producer, "group", {A: 66, B: number}, version, **identity) == {
            A: code,
            B: code,
        }
        assert client.fetch("group", PLACES) == {A: 1, B: -1, C: -1}
        producer = client.ended(producer, version, commit=True)
        assert client.fetch("group", PLACES) == {A: 1, B: -1, C: -1}
    client.committed(producer, "group", {B: 2}, version, **mine)
    client.ended(producer, version, commit=True)
    broker.crash()
    broker.restart()
    with OffsetsClient(broker) as anew:
        assert anew.fetch("group", PLACES) == {A: 1, B: 2, C: -1}


def test_commit_without_member_data_is_not_fenced(client):
    """Old clients, and those that assign themselves (KAFKA-18060)."""
    client.join("group")
    producer = client.begin_life("id")
    for version in range(6):
        if version < IMPLICIT:
            assert client.add_offsets(producer, "group") == ErrorCode.NONE
        codes = client.commit(producer, "group", {A: version}, version)
        assert codes == {A: ErrorCode.NONE}
    client.ended(producer, IMPLICIT, commit=True)
    assert client.fetch("group", PLACES) == {A: 5, B: -1, C: -1}


@pytest.mark.parametrize("version", GENERATIONS)
def test_committing_client_becomes_the_last_client_of_the_id(broker, client, version):
    """An id has no client after a restart, until a client uses it with any request."""

    def last_client():
        return broker.call(lambda: broker.server.transactions.clients.of("id"))

    producer = client.begin_life("id")
    client.committed(producer, "group", {A: 1}, version)
    broker.crash()
    broker.restart()
    broker.port = broker.address[1]
    with OffsetsClient(broker) as again:
        again.find("any", 0)
        fenced = again.commit(producer.bumped(-1), "group", {A: 2}, version)[A]
        assert fenced == ErrorCode.INVALID_PRODUCER_EPOCH
        assert last_client() is None
        assert again.commit(producer, "group", {A: 2}, version)[A] == ErrorCode.NONE
        assert last_client().client_id == "wire-client"


def test_a_fenced_producer_commits_nothing(client):
    producer = client.begin_life("id")
    client.committed(producer, "group", {A: 1}, CLASSIC)
    client.begin_life("id")
    for version in range(6):
        codes = client.commit(producer, "group", {A: 2}, version)
        assert codes == {A: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert client.fetch("group", PLACES) == NOTHING


def test_commit_outside_the_transaction_gets_an_error_by_version(client):
    producer = client.begin_life("id")
    found = [client.commit(producer, "group", {A: 2}, version)[A] for version in range(6)]
    outside = [ErrorCode.INVALID_TXN_STATE] * 4 + [ErrorCode.TRANSACTION_ABORTABLE]
    assert found == [*outside, ErrorCode.NONE]  # Version 5 puts itself inside.


def marker_of(producer, epoch: int) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic("__consumer_offsets", [0, 1, 2])]
    return WriteTxnMarkersRequest(
        [WritableTxnMarker(producer.producer_id, epoch, False, topics, 0)]
    )


def test_an_operator_has_ended_it_behind_the_coordinators_back(client):
    """The append also checks the epoch in the log."""
    producer = client.begin_life("id")
    client.committed(producer, "group", {A: 1})
    answer = client.ask(WRITE_TXN_MARKERS, marker_of(producer, producer.epoch + 1), 1)
    codes = {each.error_code for each in answer.markers[0].topics[0].partitions}
    assert codes == {ErrorCode.NONE}
    assert client.fetch("group", PLACES) == NOTHING
    assert client.commit(producer, "group", {A: 2}) == {A: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert client.fetch("group", PLACES) == NOTHING


# --------------------------------------------------------------------------------------- removal


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("what", ["offsets", "group", "topic"])
def test_deleted_pending_offsets_do_not_return(broker, client, what, crashes):
    """O7: the commit of the transaction finds nothing to make true."""
    producer = client.begin_life("id", LONG_MS)
    client.commit_plainly("both", {A: 1})
    client.committed(producer, "both", {A: 2, C: 2})
    client.committed(producer, "only-pending", {A: 3, C: 3})
    if what == "offsets":
        assert client.delete("both", A, C) == ErrorCode.NONE
        assert client.delete("only-pending", A, C) == ErrorCode.NONE
    elif what == "group":
        deleted = client.ask(DELETE_GROUPS, DeleteGroupsRequest(["both", "only-pending"]), 2)
        assert {each.error_code for each in deleted.results} == {ErrorCode.NONE}
    else:
        names = ["topic", "other"]
        client.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 5)
        wait_until(lambda: client.fetch("only-pending", PLACES) == NOTHING)
        broker.create_topic("topic", 2)
        broker.create_topic("other", 1)
    assert client.fetch("both", PLACES) == NOTHING
    assert client.fetch("only-pending", PLACES) == NOTHING
    assert listed(client) == set()
    if crashes:
        broker.crash()
        broker.restart()
    with OffsetsClient(broker) as anew:
        anew.ended(producer, IMPLICIT, commit=True)
        assert anew.fetch("both", PLACES) == NOTHING
        assert anew.fetch("only-pending", PLACES) == NOTHING
        assert listed(anew) == set()


def test_pending_offsets_do_not_expire(broker, client):
    producer = client.begin_life("id", LONG_MS)
    client.commit_plainly("group", {A: 1, B: 1})
    client.committed(producer, "group", {A: 2})
    client.committed(producer, "only-pending", {C: 3})
    broker.clock.advance(minutes=12)
    wait_until(lambda: client.fetch("group", PLACES, stable=False)[B] == -1)
    assert client.fetch("group", PLACES) == {A: UNSTABLE, B: -1, C: -1}
    assert client.fetch("group", PLACES, stable=False) == {A: 1, B: -1, C: -1}
    assert listed(client) == {"group", "only-pending"}
    client.ended(producer, IMPLICIT, commit=True)
    assert client.fetch("group", PLACES) == {A: 2, B: -1, C: -1}
    broker.clock.advance(minutes=2)
    wait_until(lambda: not listed(client))  # Their time started with the commits themselves.


# ------------------------------------------------------------------------------- order and waiting


def send_commit(
    client: OffsetsClient, producer, group: str, offset: int, version: int = IMPLICIT, **more
) -> None:
    request = commit_in_transaction_request(
        producer[0], group, producer[1:], {("topic", 0): offset}, **more
    )
    client.send(TXN_OFFSET_COMMIT, request, version)


def code_of(response) -> int:
    ((partition,),) = (topic.partitions for topic in response.topics)
    return int(partition.error_code)


def test_a_fetch_behind_a_commit_that_is_not_durable_yet_finds_it_unstable(client):
    client.commit_plainly("group", {A: 1})
    producer = client.begin_life("id")
    fetch = fetch_offsets_request("group", of=[("topic", 0)], stable=True)
    send_commit(client, producer, "group", 2)
    client.send(OFFSET_FETCH, fetch, 9)
    assert code_of(client.receive()) == ErrorCode.NONE
    found = client.receive().groups[0].topics[0].partitions[0]
    assert found.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_the_end_does_not_overtake_a_commit_in_a_pipeline(client):
    """The order also holds while a deletion is on its way to the disk."""
    producer = client.begin_life("id")
    for number in range(20):
        deleted = OffsetDeleteRequestTopic("topic", [OffsetDeleteRequestPartition(0)])
        client.send(OFFSET_DELETE, OffsetDeleteRequest("group", [deleted]), 0)
        send_commit(client, producer, "group", number)
        client.send(END_TXN, EndTxnRequest(*producer, committed=True), IMPLICIT)
        client.receive()
        assert code_of(client.receive()) == ErrorCode.NONE
        ended = client.receive()
        assert ended.error_code == ErrorCode.NONE
        producer = producer._replace(epoch=ended.producer_epoch)
        assert client.fetch("group", PLACES) == {A: number, B: -1, C: -1}


class Occupied:
    """A group that a long decision holds."""

    def __init__(self, broker: Broker, group: str) -> None:
        self.broker = broker
        self.group = group
        self.groups = broker.server.groups
        self.shard = self.groups.log.shard_of(group)
        self.slices = self.groups._runner._slices
        broker.call(lambda: self.slices.begin(self.shard, group))

    def wait_for_next(self) -> None:
        """Return when a command waits behind it."""
        decisions = self.slices._under_way[self.shard].after_decisions
        wait_until(lambda: self.broker.call(lambda: len(decisions[self.group])))

    def leave(self) -> None:
        """Resume the waiting requests; on the broker's loop."""
        self.slices.end(self.shard, self.group)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    ("version", "code"),
    [
        (CLASSIC - 1, ErrorCode.INVALID_TXN_STATE),
        (CLASSIC, ErrorCode.TRANSACTION_ABORTABLE),
        (IMPLICIT, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_commit_whose_transaction_ends_while_it_waits_is_refused(
    broker, client, version, code, commit
):
    """P1: the append checks the transaction. After its marker, nothing would end the commit."""
    producer = client.begin_life("id")
    client.committed(producer, "group", {B: 1}, version)
    occupied = Occupied(broker, "group")
    with OffsetsClient(broker) as late:
        send_commit(late, producer, "group", 66, version)
        occupied.wait_for_next()
        client.ended(producer, version, commit=commit)
        broker.call(occupied.leave)
        assert code_of(late.receive()) == code
    wait_until(lambda: client.fetch("group", PLACES)[B] != UNSTABLE)
    assert client.fetch("group", PLACES) == {A: -1, B: 1 if commit else -1, C: -1}


def test_a_commit_whose_turn_comes_while_the_groups_topic_goes_is_refused(broker, client):
    """The topic's many logs are deleted in slices; the coordinator is notified after the last."""
    producer = client.begin_life("id")
    client.committed(producer, "group", {B: 1}, CLASSIC)
    occupied = Occupied(broker, "group")
    with OffsetsClient(broker) as late:
        send_commit(late, producer, "group", 66, CLASSIC)
        occupied.wait_for_next()
        catalogue = broker.server.catalogue
        removed = catalogue._on_log_removed
        meanwhile = [occupied.leave]

        def remove(log) -> None:
            removed(log)
            if meanwhile:
                meanwhile.pop()()

        broker.call(lambda: setattr(catalogue, "_on_log_removed", remove))
        names = ["__consumer_offsets"]
        client.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 5)
        assert not meanwhile
        assert code_of(late.receive()) == ErrorCode.NOT_COORDINATOR


class Delayed:
    """Markers of the group's offsets that wait until the test releases them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        groups = broker.server.groups
        self.real = groups.write_marker
        self.is_over = False
        broker.call(lambda: setattr(groups, "write_marker", self.write_marker))

    def write_marker(self, *arguments):
        if not self.is_over:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.real(*arguments)


def next_of(client: OffsetsClient, producer):
    """The producer after a transaction that is decided, and not over."""
    client.committed(producer, "group", {A: 1})
    answer = client.end(producer, IMPLICIT, commit=True)
    assert answer.error_code == ErrorCode.NONE
    return producer._replace(epoch=answer.producer_epoch)


def test_a_commit_waits_for_the_transaction_before_it(broker, client):
    """Apache Kafka returns CONCURRENT_TRANSACTIONS here, and its client sleeps."""
    delayed = Delayed(broker)
    producer = next_of(client, client.begin_life("id"))
    send_commit(client, producer, "group", 2)
    with OffsetsClient(broker) as reader:
        assert reader.fetch("group", PLACES)[A] == UNSTABLE
        delayed.is_over = True
        broker.clock.advance(seconds=1)
        assert code_of(client.receive()) == ErrorCode.NONE
        assert reader.fetch("group", PLACES, stable=False)[A] == 1
        client.ended(producer, IMPLICIT, commit=True)
        assert reader.fetch("group", PLACES)[A] == 2


def test_waiting_commit_gets_concurrent_transactions_after_the_timeout(broker, client):
    Delayed(broker)
    producer = next_of(client, client.begin_life("id"))
    send_commit(client, producer, "group", 2)
    with OffsetsClient(broker) as another:
        another.fetch("group", PLACES)  # The commit was in the queue before.
    broker.clock.advance(seconds=11)
    assert code_of(client.receive()) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_commit_that_waited_finds_its_group_not_loaded(broker, client):
    """The group's error comes first, as for one that did not wait."""
    Delayed(broker)
    producer = next_of(client, client.begin_life("id"))
    send_commit(client, producer, "group", 2)
    transactions, groups = broker.server.transactions, broker.server.groups
    wait_until(lambda: broker.call(lambda: transactions.requests_waiting) == 1)
    broker.call(lambda: [setattr(each, "is_loaded", False) for each in groups.log.shards])
    broker.clock.advance(seconds=11)
    assert code_of(client.receive()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("settings", [SETTINGS | {"barnabas.transaction.wait.ms": "0"}], ids=["0"])
def test_disabled_wait_returns_concurrent_transactions_at_once(broker, client):
    """Apache Kafka does the same; its clients retry."""
    delayed = Delayed(broker)
    producer = next_of(client, client.begin_life("id"))
    assert client.commit(producer, "group", {A: 2}) == {A: ErrorCode.CONCURRENT_TRANSACTIONS}
    delayed.is_over = True
    broker.clock.advance(seconds=1)
    client.committed(producer, "group", {A: 2})
    client.ended(producer, IMPLICIT, commit=True)
    wait_until(lambda: client.fetch("group", PLACES)[A] == 2)


def test_a_late_commit_of_the_transaction_before_does_not_get_into_the_next_one(broker, client):
    """KAFKA-14402: it waits like the others, and is refused then."""
    delayed = Delayed(broker)
    producer = next_of(client, client.begin_life("id"))
    with OffsetsClient(broker) as late:
        send_commit(late, producer.bumped(-1), "group", 66)
        send_commit(client, producer, "group", 3)
        delayed.is_over = True
        broker.clock.advance(seconds=1)
        assert code_of(late.receive()) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert code_of(client.receive()) == ErrorCode.NONE
    client.ended(producer, IMPLICIT, commit=True)
    assert client.fetch("group", PLACES)[A] == 3


def test_a_commit_that_waited_hears_of_its_transaction_before_its_group(broker, client):
    """A check of the transaction precedes that of the group, as without a wait."""
    former = client.join("group", group_instance_id="i")
    client.join("group", former.member_id, group_instance_id="i")
    zombie = {"member_id": former.member_id, "generation_id": former.generation_id}
    delayed = Delayed(broker)
    producer = client.begin_life("id")
    client.committed(producer, "another", {A: 1})
    answer = client.end(producer, IMPLICIT, commit=True)
    following = producer._replace(epoch=answer.producer_epoch)
    with OffsetsClient(broker) as late:
        send_commit(late, producer, "group", 66, **zombie)
        send_commit(client, following, "group", 67, **zombie)
        transactions = broker.server.transactions
        wait_until(lambda: broker.call(lambda: transactions.requests_waiting) == 2)
        delayed.is_over = True
        broker.clock.advance(seconds=1)
        assert code_of(late.receive()) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert code_of(client.receive()) == ErrorCode.ILLEGAL_GENERATION
    client.ended(following, IMPLICIT, commit=True)
    assert client.fetch("group", PLACES) == NOTHING


def test_a_partition_that_is_being_read_is_said_by_version(broker, client):
    producer = client.begin_life("id")
    client.commit_plainly("group", {A: 1})
    broker.call(
        lambda: [setattr(each, "is_loaded", False) for each in broker.server.groups.log.shards]
    )
    found = [client.commit(producer, "group", {A: 1}, version)[A] for version in range(6)]
    loading = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 4
    assert found == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2 + loading


def test_nothing_without_an_id_or_a_group(client):
    producer = client.begin_life("id")
    nobody = producer._replace(transactional_id="")
    assert client.commit(nobody, "group", {A: 1}) == {A: ErrorCode.INVALID_REQUEST}
    assert client.commit(producer, "", {A: 1}) == {A: ErrorCode.INVALID_GROUP_ID}
    missing = {("missing", 0): 1, ("topic", 9): 1}
    unknown = dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert client.commit(producer, "group", missing) == unknown
    assert listed(client) == set()
