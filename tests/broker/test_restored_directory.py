"""Clients of the original at a broker that was started from its backup.

The original continued after the backup: it gave out producer ids and epochs, led in a later epoch,
and its groups reached later generations. The restored broker takes none of that for its own.
"""

import shutil
from types import SimpleNamespace

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.storage.runtime.clock import now_ns
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.requests import add_partitions_request, added_codes, codes_of, commit_request
from tests.storage.stores import batch
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

SESSION_MS, REBALANCE_MS, TIMEOUT_MS = 600_000, 600_000, 900_000
CLASSIC, CONSUMER = "classic", "consumer"
RECORDS = 10


def append(broker, count):
    log = broker.server.catalogue.topics["orders"].partitions[0].log
    records = batch(count, timestamp=now_ns() // 1_000_000)
    broker.call(lambda: log.append(records))
    wait_until(lambda: log.high_watermark == log.next_offset)


def wire(broker):
    """Return a connection on which all coordinators are known."""
    client = WireClient(broker.address)
    for kind, keys in ((0, [CLASSIC, CONSUMER]), (1, ["t"])):
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest("", kind, keys), 6)
    return client


def producer(client, name=None):
    """Return the producer id and epoch that InitProducerId gives."""
    found = []

    def is_given():
        found[:] = [client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(name, TIMEOUT_MS), 4)]
        return not found[0].error_code

    wait_until(is_given)
    return found[0].producer_id, found[0].producer_epoch


def add(client, producer_id, epoch):
    """Return the error code of adding a partition to the transaction of ``t``."""
    request = add_partitions_request("t", (producer_id, epoch), ("orders", 0))
    return added_codes(client.ask(ADD_PARTITIONS_TO_TXN, request, 3))[0]


def join(client, member=""):
    """Join the classic group as its one member; returns the member's id and the generation."""
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest(
        CLASSIC, SESSION_MS, REBALANCE_MS, member, None, "consumer", protocols
    )
    joined = client.ask(JOIN_GROUP, request, 3)
    assert not joined.error_code
    given = [SyncGroupRequestAssignment(joined.member_id, b"all")]
    request = SyncGroupRequest(
        CLASSIC, joined.generation_id, joined.member_id, None, "consumer", "range", given
    )
    assert not client.ask(SYNC_GROUP, request, 5).error_code
    return joined.member_id, joined.generation_id


def heartbeat(client, member, epoch, **more):
    request = ConsumerGroupHeartbeatRequest(CONSUMER, member, epoch, **more)
    return client.ask(CONSUMER_GROUP_HEARTBEAT, request, 1)


def enter(client, member):
    """Join the consumer group, and return the member's epoch once it owns what it is given."""
    options = {"subscribed_topic_names": ["orders"], "topic_partitions": []}
    joined = heartbeat(client, member, 0, rebalance_timeout_ms=REBALANCE_MS, **options)
    assert not joined.error_code
    return joined.member_epoch


def commit(client, group, member, epoch):
    request = commit_request(group, {("orders", 0): 7}, epoch, member, metadata=None)
    return codes_of(client.ask(OFFSET_COMMIT, request, 9))[0]


@pytest.fixture(scope="module")
def restored(tmp_path_factory):
    """A broker on a restored directory, and what its original gave out after the backup."""
    root = tmp_path_factory.mktemp("restored")
    shell = Shell(pytest.MonkeyPatch(), "")
    with Broker(storage=root / "data") as broker:
        broker.create_topic("orders", 1)
        append(broker, RECORDS)
        client = wire(broker)
        transactional = producer(client, "t")
        member, generation = join(client)
        epoch = enter(client, "m")
        assert shell("backup", root / "copy", "-d", root / "data", server=False).exit_code == 0
        client.close()
        broker.restart()
        client = wire(broker)
        append(broker, 2 * RECORDS)
        later = SimpleNamespace(
            transactional=producer(client, "t"),
            producer_ids=[producer(client)[0] for _ in range(3)],
            leader_epoch=broker.server.logs.leader_epoch,
            member=member,
            generation=join(client, member)[1],
        )
        broker.create_topic("prices", 1)
        topics = {"subscribed_topic_names": ["orders", "prices"]}
        later.first_epoch, later.epoch = epoch, epoch

        def has_grown():
            # Assignments of a group follow each other after an interval only.
            later.epoch = heartbeat(client, "m", later.epoch, **topics).member_epoch
            return later.epoch > epoch

        wait_until(has_grown, "a later epoch")
        client.close()
    assert later.transactional == (transactional[0], transactional[1] + 1)
    assert later.generation > generation
    assert later.epoch > epoch
    shutil.rmtree(root / "data")
    assert shell("restore", root / "copy", root / "data", server=False).exit_code == 0
    with Broker(storage=root / "data") as broker:
        later.broker = broker
        later.client = wire(broker)
        later.directory = root / "data"
        yield later
        later.client.close()


def test_restored_broker_gives_out_no_producer_id_of_the_original(restored):
    ids = {producer(restored.client)[0] for _ in range(3)}
    assert min(ids) > max(restored.producer_ids) + (1 << 24)
    assert not (restored.directory / "barnabas-restored").exists()


def test_epoch_in_which_the_original_led_ends_with_the_backup(restored):
    """A consumer that has read further then finds that the log went back (KIP-320)."""
    append(restored.broker, 3 * RECORDS)
    partition = OffsetForLeaderPartition(0, -1, restored.leader_epoch)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("orders", [partition])])
    (found,) = restored.client.ask(OFFSET_FOR_LEADER_EPOCH, request, 4).topics[0].partitions
    assert found.leader_epoch < restored.leader_epoch
    assert found.end_offset == RECORDS


def test_transactional_producer_of_the_original_is_fenced(restored):
    assert add(restored.client, *restored.transactional) == ErrorCode.PRODUCER_FENCED
    producer_id, epoch = producer(restored.client, "t")
    assert producer_id > restored.transactional[0] + (1 << 24)
    assert epoch == 0
    assert add(restored.client, *restored.transactional) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert add(restored.client, producer_id, epoch) == ErrorCode.NONE


def test_generation_of_the_original_is_not_taken_for_one_of_the_restored_group(restored):
    """A generation counts with the members that joined it here, of any number."""
    client, member, generation = restored.client, restored.member, restored.generation
    beat = HeartbeatRequest(CLASSIC, generation, member, None)
    assert client.ask(HEARTBEAT, beat, 4).error_code == ErrorCode.ILLEGAL_GENERATION
    assert commit(client, CLASSIC, member, generation) == ErrorCode.ILLEGAL_GENERATION
    stranger = HeartbeatRequest(CLASSIC, generation, "another", None)
    assert client.ask(HEARTBEAT, stranger, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(client, CLASSIC, "another", generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_epoch_of_the_original_is_fenced(restored):
    """A member reaches an epoch only by a response of this broker."""
    client = restored.client
    assert heartbeat(client, "m", restored.epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert commit(client, CONSUMER, "m", restored.epoch) == ErrorCode.STALE_MEMBER_EPOCH
    assert heartbeat(client, "n", restored.epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_of_the_same_epoch_gets_the_assignment_of_the_restored_group(restored):
    """The epochs of a deleted group begin again; a client reports everything after a reconnect."""
    topic_id = restored.broker.server.catalogue.topics["orders"].topic_id
    told = heartbeat(
        restored.client,
        "m",
        restored.first_epoch,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=["orders"],
        topic_partitions=[TopicPartitions(topic_id, [0, 1, 2])],
    )
    assert (told.error_code, told.member_epoch) == (ErrorCode.NONE, restored.first_epoch)
    assert [each.partitions for each in told.assignment.topic_partitions] == [[0]]
