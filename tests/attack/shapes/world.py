"""A secured broker, its users, and what exists for them: large topics, groups and transactions."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.broker.security.acls.operations import Operation, PatternType, ResourceType
from barnabas.protocol import compression
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.records import Record, encode_batch
from tests.attack.process import AttackedBroker
from tests.attack.scenarios.arrays import VICTIM
from tests.attack.scenarios.bombs import batch_of, tiny_records
from tests.attack.shapes.shape import ORDINARY
from tests.attack.shapes.size import part
from tests.broker.data_plane import Named, produce_request
from tests.broker.long_commit import long_commit
from tests.broker.sample_requests import error_codes
from tests.broker.security.access_users import AUTHORIZER, MODULE, PASSWORD, acl, add_acls
from tests.counterparts.wire_client import WireClient
from tests.crash.transaction_client import TRANSACTIONS_V2, Producer, persistent

WIDE = VICTIM
"""A topic of very many partitions, without a record."""
WIDE_PARTITIONS = 10_000
RECORDS = f"{VICTIM}-records"
COMPACTED = f"{VICTIM}-compacted"
"""A topic whose records the broker has to look into."""
TINY, BATCHES, HUGE, JSON_VALUES, PRODUCERS, EXPANDED, ABORTED, SCRATCH = range(8)
"""Partitions of RECORDS."""
PARTITIONS = 16
CONSUMER_GROUP = "group-consumers"
"""A KIP-848 group whose member is assigned every partition of WIDE."""
LARGE_GROUP = "group-large"
"""A classic group whose member has as much metadata and as large an assignment as it may have."""
WIDE_GROUP = "topic-offsets"
"""A group with committed offsets of every partition of WIDE."""
TRANSACTION = f"{VICTIM}-open"
"""A transaction that has every partition of WIDE in it."""
PRODUCE_VERSION = 9
PIPELINE = 500
TINY_RECORDS = part(1_000_000)
TINY_BATCHES = 3_000
PRODUCER_IDS = 2_000
ABORTED_TRANSACTIONS = 200
HUGE_BYTES = 60 << 20
MEMBER_BYTES = 1 << 20
SESSION_MS = 1_800_000
DATA_BYTES_MOST = 2 << 30
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.login.plain.sasl.jaas.config": (
        f'{MODULE} required user_{ORDINARY}="{PASSWORD}";'
    ),
    "barnabas.scram.credentials": f"SCRAM-SHA-256=[name={ORDINARY},password={PASSWORD}]",
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.max.timeout.ms": "1800000",
    "barnabas.login.failures.per.address.max": "100000",
}
JSON_TEXTS = (
    b'{"id":1e9999999999999999999}',
    b'{"id":' + b"9" * 4000 + b"}",
    b"[" * 30_000 + b"]" * 30_000,
    b'{"a":' * 900 + b"1" + b"}" * 900,
    b"{" + b",".join(b'"k%d":1' % number for number in range(5_000)) + b"}",
    b'"' + rb"\ud800" * 10_000 + b'"',
    b"x" * 60_000,
)


@dataclass
class World:
    """Things that exist; ``token`` makes a text that no earlier request had."""

    ids: dict[str, bytes] = field(default_factory=dict)
    """Ids of topics, by name."""
    producer: tuple[int, int] = (-1, -1)
    """Producer id and epoch of TRANSACTION."""
    member: tuple[int, str] = (-1, "")
    """Generation and id of the member of LARGE_GROUP."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def token(self) -> str:
        """Return a short new text."""
        return f"t{next(self._numbers)}"


@contextmanager
def running(directory: Path) -> Iterator[tuple[AttackedBroker, World]]:
    """Start a broker in ``directory``, fill it, and stop it."""
    with AttackedBroker(directory, **SETTINGS) as broker, WireClient(broker) as admin:
        # A fault takes memory from the broker, not from the machine.
        resource.prlimit(broker.pid, resource.RLIMIT_DATA, (DATA_BYTES_MOST, DATA_BYTES_MOST))
        world = World()
        _create_topics(admin, world)
        _grant(admin)
        _produce(admin)
        world.member = _join_groups(admin)
        world.producer = _begin_transaction(admin)
        yield broker, world
        broker.terminate()


def _create_topics(admin: WireClient, world: World) -> None:
    compacted = [CreatableTopicConfig("cleanup.policy", "compact")]
    kept = [CreatableTopicConfig("retention.ms", "-1")]
    topics = [
        CreatableTopic(WIDE, WIDE_PARTITIONS, 1),
        CreatableTopic(RECORDS, PARTITIONS, 1, configs=kept),
        CreatableTopic(COMPACTED, PARTITIONS, 1, configs=compacted),
    ]
    # One request creates at most 10,000 partitions.
    for topic in topics:
        response = admin.ask(CREATE_TOPICS, CreateTopicsRequest([topic], 60_000), 7)
        assert not response.topics[0].error_code, response
        world.ids[topic.name] = response.topics[0].topic_id


def _grant(admin: WireClient) -> None:
    """Allow the ordinary user what an application has."""
    prefixes = (
        (ResourceType.TOPIC, VICTIM, Operation.READ),
        (ResourceType.TOPIC, VICTIM, Operation.WRITE),
        (ResourceType.TOPIC, VICTIM, Operation.DESCRIBE_CONFIGS),
        (ResourceType.TOPIC, "topic-", Operation.READ),
        (ResourceType.GROUP, "group", Operation.READ),
        (ResourceType.GROUP, "topic-", Operation.READ),
        (ResourceType.TRANSACTIONAL_ID, VICTIM, Operation.WRITE),
    )
    add_acls(
        admin,
        [
            acl(ORDINARY, kind, prefix, operation, pattern=PatternType.PREFIXED)
            for kind, prefix, operation in prefixes
        ],
    )


def _produce(admin: WireClient) -> None:
    tiny = compression.compress(compression.ZSTD, tiny_records(TINY_RECORDS))
    _write(admin, TINY, *[batch_of(tiny, TINY_RECORDS, compression.ZSTD)] * 2)
    _write(admin, BATCHES, *(_batch(b"x") for _ in range(TINY_BATCHES)))
    huge = encode_batch([_record(0, bytes(HUGE_BYTES))], compression=compression.ZSTD)
    _write(admin, HUGE, *[huge] * 3)
    values = [_record(number, value) for number, value in enumerate(JSON_TEXTS)]
    _write(admin, JSON_VALUES, *[encode_batch(values)] * 20)
    _write_of_producers(admin)
    _write_aborted(admin)


def _record(offset: int, value: bytes) -> Record:
    return Record(offset, time.time_ns() // 1_000_000, b"key", value)


def _batch(value: bytes) -> bytes:
    return encode_batch([_record(0, value)])


def _write(admin: WireClient, partition: int, *batches: bytes) -> None:
    requests = [
        produce_request(PRODUCE_VERSION, Named(RECORDS), (partition, memoryview(batch)))
        for batch in batches
    ]
    responses = _pipelined(admin, PRODUCE, requests, PRODUCE_VERSION)
    codes = {code for response in responses for code in error_codes(response)}
    assert codes == {0}, codes


def _pipelined(admin: WireClient, api: Any, requests: list[Any], version: int) -> list[Any]:
    responses = []
    for start in range(0, len(requests), PIPELINE):
        some = requests[start : start + PIPELINE]
        for request in some:
            admin.send(api, request, version)
        responses += [admin.receive() for _ in some]
    return responses


def _write_of_producers(admin: WireClient) -> None:
    """Write a batch of each of many idempotent producers."""
    requests = [InitProducerIdRequest(None, 60_000)] * PRODUCER_IDS
    responses = _pipelined(admin, INIT_PRODUCER_ID, requests, 4)
    ids = [each.producer_id for each in responses]
    state = {"producer_epoch": 0, "base_sequence": 0}
    batches = [encode_batch([_record(0, b"x")], producer_id=each, **state) for each in ids]
    _write(admin, PRODUCERS, *batches)


def _write_aborted(admin: WireClient) -> None:
    """Write aborted transactions, which a read_committed Fetch has to list."""
    producer = Producer(admin, f"{VICTIM}-aborts", TRANSACTIONS_V2)
    admin.ask(FIND_COORDINATOR, FindCoordinatorRequest(producer.key, key_type=1), 3)
    assert not persistent(producer.init)
    for _ in range(ABORTED_TRANSACTIONS):
        assert not persistent(lambda: producer.write((RECORDS, ABORTED), b"x")[0])
        assert not persistent(lambda: producer.end(commit=False))


def _join_groups(admin: WireClient) -> tuple[int, str]:
    """Fill the groups; return generation and id of the member of LARGE_GROUP."""
    admin.ask(FIND_COORDINATOR, FindCoordinatorRequest(LARGE_GROUP), 3)
    protocols = [JoinGroupRequestProtocol("range", bytes(MEMBER_BYTES))]
    request = JoinGroupRequest(LARGE_GROUP, SESSION_MS, SESSION_MS, "", None, "consumer", protocols)
    request.member_id = admin.ask(JOIN_GROUP, request, 9).member_id
    joined = admin.ask(JOIN_GROUP, request, 9)
    assert not joined.error_code, joined
    assignment = SyncGroupRequestAssignment(joined.member_id, bytes(MEMBER_BYTES))
    synced = admin.ask(
        SYNC_GROUP,
        SyncGroupRequest(
            LARGE_GROUP,
            joined.generation_id,
            joined.member_id,
            None,
            "consumer",
            "range",
            [assignment],
        ),
        5,
    )
    assert not synced.error_code, synced
    _join_consumer(admin)
    commit = long_commit(WIDE_GROUP, 5, 1, WIDE_PARTITIONS)
    commit.topics[0].name = WIDE
    assert {*error_codes(admin.ask(OFFSET_COMMIT, commit, 8))} == {0}
    return joined.generation_id, joined.member_id


def _join_consumer(admin: WireClient) -> None:
    request = ConsumerGroupHeartbeatRequest(CONSUMER_GROUP, "A" * 22, 0)
    request.rebalance_timeout_ms = SESSION_MS
    request.subscribed_topic_names = [WIDE]
    request.topic_partitions = []
    joined = admin.ask(CONSUMER_GROUP_HEARTBEAT, request, 1)
    assert not joined.error_code, joined


def _begin_transaction(admin: WireClient) -> tuple[int, int]:
    """Put every partition of WIDE into a transaction; return its producer id and epoch."""
    producer = Producer(admin, TRANSACTION, timeout_ms=SESSION_MS)
    assert not persistent(producer.init)
    places = [(WIDE, index) for index in range(WIDE_PARTITIONS)]
    code = persistent(lambda: producer.add(*places))
    assert not code, code
    return producer.identity
