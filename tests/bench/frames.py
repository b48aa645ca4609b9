"""Request frames built once and the few places of their answers that the load client looks at.

Written by hand for one version of each API, so that the benchmark leans neither on a client library
nor on the codec under test.
"""

import struct
import time
from typing import NamedTuple

from barnabas.protocol.records import Record, encode_batch

PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 19, 20
OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP = 8, 10, 11, 14
PRODUCE_VERSION = 11  # what Spark's client sends; the last one that names topics and not their ids
FETCH_VERSION = 12  # the last one that names topics
CREATE_TOPICS_VERSION = 4
DELETE_TOPICS_VERSION = 3
OFFSET_COMMIT_VERSION = 7
FIND_COORDINATOR_VERSION = 1
JOIN_GROUP_VERSION = 3  # the last one that takes a member in at once
SYNC_GROUP_VERSION = 2
SESSION_TIMEOUT_MS = 30_000
REBALANCE_TIMEOUT_MS = 60_000
CLIENT_ID = b"bench"
ACKS_ALL = -1
TIMEOUT_MS = 30_000

# Where an answer has its error code, counted from the start of the frame (its size included).
# Produce: size, correlation id, tags, topic count, topic name, partition count, index.
_PRODUCE_ERROR_WITHOUT_NAME = 4 + 4 + 1 + 1 + 1 + 1 + 4
# Fetch: size, correlation id, tags, throttle time, error, session id, topic count, name,
# partition count, index.
_FETCH_ERROR_WITHOUT_NAME = 4 + 4 + 1 + 4 + 2 + 4 + 1 + 1 + 1 + 4
# OffsetCommit: size, correlation id, throttle time, topic count, name, partition count, index.
_COMMIT_ERROR_WITHOUT_NAME = 4 + 4 + 4 + 4 + 2 + 4 + 4
# JoinGroup and SyncGroup: size, correlation id, throttle time.
_GROUP_ERROR = 4 + 4 + 4


class Frames(NamedTuple):
    """Equally long request frames, sent in turn; position of the error code in responses."""

    requests: list[bytes]
    error_position: int


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    """Return a Produce frame with one batch for one partition, acks=-1."""
    body = b"\0" + struct.pack(">hi", ACKS_ALL, TIMEOUT_MS)  # null transactional id
    body += b"\x02" + _compact_string(topic)
    body += b"\x02" + struct.pack(">i", partition) + uvarint(len(batch) + 1) + batch
    return _flexible_frame(PRODUCE, PRODUCE_VERSION, body + b"\0\0\0")


def produce_error_position(topic: str) -> int:
    """Return the position of the error code in the response to `produce_frame`."""
    return _PRODUCE_ERROR_WITHOUT_NAME + len(topic)


class FetchPlace(NamedTuple):
    """Partition, offset and limit of one Fetch."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    max_wait_ms: int


def fetch_frame(place: FetchPlace) -> bytes:
    """Return a Fetch frame for one partition, without a fetch session."""
    body = struct.pack(">iiiib", -1, place.max_wait_ms, 1, place.max_bytes, 0)
    body += struct.pack(">ii", 0, -1)  # session id, epoch
    body += b"\x02" + _compact_string(place.topic) + b"\x02"
    body += struct.pack(">iiqiqi", place.partition, -1, place.offset, -1, -1, place.max_bytes)
    # Tags of the partition and the topic, no forgotten topics, empty rack, tags.
    return _flexible_frame(FETCH, FETCH_VERSION, body + b"\0\0" + b"\x01\x01\0")


def fetch_error_position(topic: str) -> int:
    """Return the position of the partition's error code in the response to `fetch_frame`."""
    return _FETCH_ERROR_WITHOUT_NAME + len(topic)


def create_topic_frame(topic: str, partitions: int) -> bytes:
    """Return a CreateTopics frame for one topic with one replica."""
    body = struct.pack(">i", 1) + _string(topic) + struct.pack(">ihii", partitions, 1, 0, 0)
    return _frame(CREATE_TOPICS, CREATE_TOPICS_VERSION, body + struct.pack(">i?", 30_000, False))


def delete_topic_frame(topic: str) -> bytes:
    """Return a DeleteTopics frame for one topic."""
    body = struct.pack(">i", 1) + _string(topic) + struct.pack(">i", 30_000)
    return _frame(DELETE_TOPICS, DELETE_TOPICS_VERSION, body)


def find_coordinator_frame(group: str) -> bytes:
    """Return a FindCoordinator frame for one group."""
    return _frame(FIND_COORDINATOR, FIND_COORDINATOR_VERSION, _string(group) + b"\0")


def offset_commit_frame(group: str, topic: str, partition: int) -> bytes:
    """Return an OffsetCommit frame of a group without members, for one partition."""
    body = _string(group) + struct.pack(">i", -1) + _string("") + struct.pack(">h", -1)
    body += struct.pack(">i", 1) + _string(topic)
    body += struct.pack(">iiqih", 1, partition, 123_456, -1, -1)
    return _frame(OFFSET_COMMIT, OFFSET_COMMIT_VERSION, body)


def offset_commit_error_position(topic: str) -> int:
    """Return the position of the error code in the response to `offset_commit_frame`."""
    return _COMMIT_ERROR_WITHOUT_NAME + len(topic)


def join_group_frame(group: str, member_id: str, topic: str, number: int) -> bytes:
    """Return a JoinGroup frame of a consumer of one topic; ``number`` is its user data."""
    body = _string(group) + struct.pack(">ii", SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS)
    body += _string(member_id) + _string("consumer")
    metadata = struct.pack(">hi", 0, 1) + _string(topic) + struct.pack(">iq", 8, number)
    body += struct.pack(">i", 1) + _string("range") + _bytes(metadata)
    return _frame(JOIN_GROUP, JOIN_GROUP_VERSION, body)


class JoinAnswer(NamedTuple):
    """Fields of the response to `join_group_frame` that the load client needs."""

    error: int
    generation: int
    leader: str
    member_id: str


def join_group_answer(answer: bytes) -> JoinAnswer:
    """Read the answer to `join_group_frame`."""
    error, generation = struct.unpack_from(">hi", answer, _GROUP_ERROR)
    texts = []
    position = _GROUP_ERROR + 6
    for _ in range(3):  # protocol, leader, member id
        (size,) = struct.unpack_from(">h", answer, position)
        position += 2
        texts.append(answer[position : position + size].decode())
        position += size
    return JoinAnswer(error, generation, texts[1], texts[2])


def sync_group_frame(
    group: str, generation: int, member_id: str, assignments: list[tuple[str, bytes]]
) -> bytes:
    """Return a SyncGroup frame; the leader's has the assignments of all members."""
    body = _string(group) + struct.pack(">i", generation) + _string(member_id)
    body += struct.pack(">i", len(assignments))
    body += b"".join(_string(each) + _bytes(assignment) for each, assignment in assignments)
    return _frame(SYNC_GROUP, SYNC_GROUP_VERSION, body)


def sync_group_error_position() -> int:
    """Return the position of the error code in the response to `sync_group_frame`."""
    return _GROUP_ERROR


def batch(record_count: int, value_bytes: int) -> bytes:
    """Return an uncompressed batch of keyless records with values of one size, stamped now."""
    now_ms = int(time.time() * 1000)
    value = bytes(32 + index * 31 % 95 for index in range(value_bytes))
    records = [Record(i, now_ms, None, value, ()) for i in range(record_count)]
    return bytes(encode_batch(records))


def uvarint(value: int) -> bytes:
    """Return an unsigned number in Kafka's variable length."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _compact_string(text: str) -> bytes:
    return uvarint(len(text) + 1) + text.encode()


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _flexible_frame(api_key: int, version: int, body: bytes) -> bytes:
    return _frame(api_key, version, b"\0" + body)


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, 7, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body
