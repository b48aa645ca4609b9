"""The hand-written frames say what they should, checked with the codec."""

import struct

from barnabas.protocol.header import decode_request_header
from barnabas.protocol.messages.create_topics import CREATE_TOPICS
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR
from barnabas.protocol.messages.join_group import JOIN_GROUP, JoinGroupResponse
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.messages.sync_group import SYNC_GROUP, SyncGroupResponse
from barnabas.protocol.records import check_batch
from tests.bench import frames


def decoded(api, frame):
    view = memoryview(frame)
    assert struct.unpack(">i", view[:4])[0] == len(frame) - 4
    header, position = decode_request_header(view[4:])
    assert header.api_key == api.key
    assert header.client_id == "bench"
    return api.decode_request(view[4:], position, header.api_version)


def answer(api, response, version):
    """A whole answer: size, correlation id, header tags, body."""
    body = b"".join(api.encode_response(response, version))
    return struct.pack(">ii", 5 + len(body), 7) + b"\0" + body


def test_produce():
    encoded = frames.batch(160, 100)
    request = decoded(PRODUCE, frames.produce_frame("topic", 3, encoded))
    assert request.acks == -1
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert (topic.name, partition.index) == ("topic", 3)
    assert bytes(partition.records) == encoded
    assert check_batch(encoded).record_count == 160


def test_fetch():
    place = frames.FetchPlace("topic", 2, 12345, 1 << 20, 500)
    request = decoded(FETCH, frames.fetch_frame(place))
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.topic, partition.partition, partition.fetch_offset) == ("topic", 2, 12345)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 1 << 20)
    assert partition.partition_max_bytes == 1 << 20
    assert (request.session_id, request.session_epoch) == (0, -1)


def test_topics():
    (created,) = decoded(CREATE_TOPICS, frames.create_topic_frame("topic", 4)).topics
    assert (created.name, created.num_partitions, created.replication_factor) == ("topic", 4, 1)
    assert decoded(DELETE_TOPICS, frames.delete_topic_frame("topic")).topic_names == ["topic"]


def test_the_error_position_of_a_produce_answer():
    partition = PartitionProduceResponse(index=1, error_code=0x1234, base_offset=99)
    response = ProduceResponse(
        [TopicProduceResponse(name="topic", partition_responses=[partition])]
    )
    encoded = answer(PRODUCE, response, frames.PRODUCE_VERSION)
    position = frames.produce_error_position("topic")
    assert encoded[position : position + 10] == struct.pack(">hq", 0x1234, 99)


def test_the_error_position_of_a_fetch_answer():
    partition = PartitionData(partition_index=1, error_code=0x1234, high_watermark=99)
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="topic", partitions=[partition])]
    )
    encoded = answer(FETCH, response, frames.FETCH_VERSION)
    position = frames.fetch_error_position("topic")
    assert encoded[position : position + 10] == struct.pack(">hq", 0x1234, 99)


def answer_without_tags(api, response, version):
    """A whole answer of a version that is not flexible."""
    body = b"".join(api.encode_response(response, version))
    return struct.pack(">ii", 4 + len(body), 7) + body


def test_group_commits():
    request = decoded(FIND_COORDINATOR, frames.find_coordinator_frame("group"))
    assert (request.key, request.key_type) == ("group", 0)
    request = decoded(OFFSET_COMMIT, frames.offset_commit_frame("group", "topic", 3))
    assert (request.group_id, request.generation_id_or_member_epoch) == ("group", -1)
    assert (request.member_id, request.group_instance_id) == ("", None)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index) == ("topic", 3)
    assert (partition.committed_offset, partition.committed_metadata) == (123_456, None)
    failed = OffsetCommitResponseTopic("topic", partitions=[OffsetCommitResponsePartition(3, 25)])
    encoded = answer_without_tags(
        OFFSET_COMMIT, OffsetCommitResponse(topics=[failed]), frames.OFFSET_COMMIT_VERSION
    )
    position = frames.offset_commit_error_position("topic")
    assert struct.unpack_from(">h", encoded, position) == (25,)


def test_rebalances():
    request = decoded(JOIN_GROUP, frames.join_group_frame("group", "me", "topic", 9))
    assert (request.group_id, request.member_id) == ("group", "me")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (30_000, 60_000)
    (protocol,) = request.protocols
    assert (request.protocol_type, protocol.name) == ("consumer", "range")
    assert protocol.metadata == b"\0\0\0\0\0\1\0\5topic\0\0\0\10" + bytes(7) + b"\11"
    joined = JoinGroupResponse(0, 25, 4, None, "range", "leader", False, "me")
    encoded = answer_without_tags(JOIN_GROUP, joined, frames.JOIN_GROUP_VERSION)
    assert frames.join_group_answer(encoded) == (25, 4, "leader", "me")
    request = decoded(SYNC_GROUP, frames.sync_group_frame("group", 4, "me", [("me", b"mine")]))
    assert (request.group_id, request.generation_id, request.member_id) == ("group", 4, "me")
    assert [(each.member_id, each.assignment) for each in request.assignments] == [("me", b"mine")]
    synced = SyncGroupResponse(0, 27)
    encoded = answer_without_tags(SYNC_GROUP, synced, frames.SYNC_GROUP_VERSION)
    assert struct.unpack_from(">h", encoded, frames.sync_group_error_position()) == (27,)
