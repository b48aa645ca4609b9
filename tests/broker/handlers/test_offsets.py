"""DeleteRecords and OffsetForLeaderEpoch, as measured on Apache Kafka 4.3.0."""

import asyncio
from random import Random

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.records import Record, encode_batch
from tests.broker.harness import Administration

NONE = ErrorCode.NONE


def append(administration, topic, partition, count):
    """Append ``count`` batches of one record each and make them durable."""
    log = administration.catalogue.topics[topic].partitions[partition].log
    for _ in range(count):
        record = Record(0, 1_700_000_000_000, b"k", b"v", ())
        log.append(memoryview(bytearray(encode_batch([record]))))
    administration.logs.journal.flush()
    assert log.high_watermark == log.next_offset
    return log


async def delete(administration, *topics, version=2):
    request = DeleteRecordsRequest(
        [
            DeleteRecordsTopic(
                name, [DeleteRecordsPartition(index, offset) for index, offset in partitions]
            )
            for name, partitions in topics
        ]
    )
    response = await administration.ask(DELETE_RECORDS, request, version)
    return [
        (topic.name, each.partition_index, ErrorCode(each.error_code), each.low_watermark)
        for topic in response.topics
        for each in topic.partitions
    ]


@pytest.fixture
async def administration(administration):
    create = administration.catalogue.create_topic
    await create("p", 2, {})
    await create("compacted", 1, {"cleanup.policy": "compact"})
    await create("both", 1, {"cleanup.policy": "compact,delete"})
    await create("__consumer_offsets", 1, {"cleanup.policy": "compact"})
    return administration


class TestDeleteRecords:
    @pytest.mark.parametrize("version", range(3))
    async def test_every_version_moves_the_log_start(self, administration, version):
        log = append(administration, "p", 0, 10)
        assert await delete(administration, ("p", [(0, 4), (1, -1)]), version=version) == [
            ("p", 0, NONE, 4),
            ("p", 1, NONE, 0),
        ]
        assert log.log_start_offset == 4

    async def test_start_offset_moves_forward_only_and_minus_one_is_the_high_watermark(
        self, administration
    ):
        append(administration, "p", 0, 10)
        for offset, start in [(4, 4), (2, 4), (4, 4), (-1, 10), (10, 10)]:
            assert await delete(administration, ("p", [(0, offset)])) == [("p", 0, NONE, start)]

    @pytest.mark.parametrize("offset", [-2, 11, 2**62])
    async def test_offsets_that_are_not_there(self, administration, offset):
        append(administration, "p", 0, 10)
        assert await delete(administration, ("p", [(0, offset)])) == [
            ("p", 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        ]

    async def test_one_bad_partition_does_not_spoil_the_others(self, administration):
        append(administration, "p", 0, 3)
        append(administration, "both", 0, 3)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await delete(
            administration,
            ("nope", [(0, 0)]),
            ("p", [(99, 0), (0, 1), (-1, 0)]),
            ("compacted", [(0, 0)]),
            ("both", [(0, 2)]),
            ("__consumer_offsets", [(0, 0)]),
        ) == [
            ("nope", 0, unknown, -1),
            ("p", 99, unknown, -1),
            ("p", 0, NONE, 1),
            ("p", -1, unknown, -1),
            ("compacted", 0, ErrorCode.POLICY_VIOLATION, -1),
            ("both", 0, NONE, 2),
            ("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
        ]

    async def test_the_new_start_survives_a_power_loss_d1(self, administration):
        append(administration, "p", 0, 10)
        await delete(administration, ("p", [(0, 7)]))
        for seed in range(10):
            disk = administration.file_system.crash(Random(seed))
            again = Administration(disk, administration.metastore)
            log = again.catalogue.topics["p"].partitions[0].log
            assert (log.log_start_offset, log.high_watermark) == (7, 10)
            again.stop()

    async def test_a_client_that_left_does_not_matter(self, administration):
        log = append(administration, "p", 0, 3)
        deletion = asyncio.ensure_future(delete(administration, ("p", [(0, 2)])))
        # The deletion starts, and is cancelled before the end of the loop's turn that makes it
        # durable.
        asyncio.get_running_loop().call_soon(deletion.cancel)
        with pytest.raises(asyncio.CancelledError):
            await deletion
        await asyncio.sleep(0)
        assert log.log_start_offset == 2

    async def test_a_full_disk_does_not_keep_anybody_from_making_room(self, administration):
        append(administration, "p", 0, 3)
        administration.logs.full = True
        assert await delete(administration, ("p", [(0, 1)])) == [("p", 0, NONE, 1)]
        administration.logs.full = False

    async def test_a_partition_that_is_being_closed(self, administration):
        log = append(administration, "p", 0, 3)
        log.close()
        assert await delete(administration, ("p", [(0, 1)])) == [
            ("p", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        ]


async def epoch_end(administration, *asked, topic="p", version=4):
    partitions = [OffsetForLeaderPartition(*each) for each in asked]
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, partitions)])
    response = await administration.ask(OFFSET_FOR_LEADER_EPOCH, request, version)
    (answer,) = response.topics
    assert answer.topic == topic
    return [
        (each.partition, ErrorCode(each.error_code), each.leader_epoch, each.end_offset)
        for each in answer.partitions
    ]


class TestOffsetForLeaderEpoch:
    @pytest.mark.parametrize("version", range(2, 5))
    async def test_the_current_epoch_ends_at_the_log_end(self, administration, version):
        append(administration, "p", 0, 10)
        epoch = administration.logs.leader_epoch
        assert await epoch_end(
            administration, (0, -1, epoch), (1, epoch, epoch), version=version
        ) == [(0, NONE, epoch, 10), (1, NONE, epoch, 0)]

    async def test_epochs_never_heard_of(self, administration):
        epoch = administration.logs.leader_epoch
        assert await epoch_end(administration, (0, -1, epoch + 1), (0, -1, -1)) == [
            (0, NONE, -1, -1),
            (0, NONE, -1, -1),
        ]

    async def test_an_earlier_epoch_ends_where_the_next_begins(self):
        first = Administration()
        await first.catalogue.create_topic("p", 1, {})
        append(first, "p", 0, 3)
        old = first.logs.leader_epoch
        first.stop()
        second = Administration(first.file_system, first.metastore)
        append(second, "p", 0, 2)
        new = second.logs.leader_epoch
        assert new > old
        assert await epoch_end(second, (0, new, old), (0, new, new)) == [
            (0, NONE, old, 3),
            (0, NONE, new, 5),
        ]
        second.stop()

    async def test_an_epoch_before_all_known_ends_where_those_begin(self):
        first = Administration()
        await first.catalogue.create_topic("p", 2, {})
        first.stop()
        second = Administration(first.file_system, first.metastore)
        append(second, "p", 0, 2)
        old = first.logs.leader_epoch
        assert await epoch_end(second, (0, -1, old), (1, -1, old), (0, -1, 0)) == [
            (0, NONE, old, 0),
            (1, NONE, old, 0),
            (0, NONE, 0, 0),
        ]
        second.stop()

    async def test_a_client_with_another_idea_of_the_epoch(self, administration):
        epoch = administration.logs.leader_epoch
        assert await epoch_end(administration, (0, epoch - 1, 0), (0, epoch + 1, 0)) == [
            (0, ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
            (0, ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        ]

    async def test_missing_topics_and_partitions(self, administration):
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await epoch_end(administration, (77, -1, 0)) == [(77, unknown, -1, -1)]
        assert await epoch_end(administration, (0, -1, 0), topic="nope") == [(0, unknown, -1, -1)]
