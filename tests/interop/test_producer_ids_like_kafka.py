"""A user with nothing but WRITE on a topic, and the producer id of a transactional producer there.

Apache Kafka 4.3.0 takes its batches, after which the producer is fenced in that partition; Barnabas
accepts none and the producer continues.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.data_plane import Named, batch, produce_request
from tests.broker.raw_producer import RawProducer
from tests.broker.security.access_users import PASSWORD, UserClient, add_acls, allow
from tests.counterparts.secured import Secured, SecuredKafka
from tests.counterparts.wire_client import WireClient
from tests.interop.recorded_kafka import SecuredBarnabas
from tests.requests import create_topic
from tests.waiting import wait_until

ATTACKER, WORKER = "attacker", "worker"
PASSWORDS = dict.fromkeys((ATTACKER, WORKER), PASSWORD)
LAST_EPOCH = 32_767
TOPIC = Named("t")
VERSION = 12


def write(client: UserClient, producer_id: int) -> int:
    """Write outside of transactions with a producer id in its last epoch, or with -1 without."""
    numbers = {"producer_id": producer_id, "producer_epoch": LAST_EPOCH, "base_sequence": 0}
    records = batch(b"v", **numbers) if producer_id >= 0 else batch(b"v")
    answer = client.ask(PRODUCE, produce_request(VERSION, TOPIC, (0, records)), VERSION)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Secured]:
    with SecuredKafka(PASSWORDS) as running:
        yield running


def codes(broker: Secured) -> dict[str, int]:
    """The errors of a user who may write, and of the producer whose id the user takes."""
    with WireClient(broker) as client:
        create_topic(client, TOPIC.name)
        rights = [
            acl
            for user in (ATTACKER, WORKER)
            for acl in allow(user, ResourceType.TOPIC, TOPIC.name, Operation.WRITE)
        ]
        rights += allow(WORKER, ResourceType.TRANSACTIONAL_ID, "id", Operation.WRITE)
        add_acls(client, rights)
    worker = UserClient(broker.sasl_address, WORKER)
    attacker = UserClient(broker.sasl_address, ATTACKER)
    with worker, attacker:
        find = FindCoordinatorRequest("id", key_type=1)
        wait_until(lambda: not worker.ask(FIND_COORDINATOR, find, 3).error_code)
        producer = RawProducer(worker, "id", VERSION)
        wait_until(lambda: write(attacker, -1) == ErrorCode.NONE, "the topic has a leader")
        return {
            "the producer's id": write(attacker, producer.producer_id),
            "the producer then": producer.send(TOPIC, b"its own").error_code,
            "an id that no producer has": write(attacker, producer.producer_id + 5_000),
        }


def test_a_transactional_producer_and_who_may_write_its_topic(kafka):
    with SecuredBarnabas(PASSWORDS) as broker:
        ours = codes(broker)
    unknown, fenced = ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_EPOCH
    assert [*ours.values()] == [unknown, ErrorCode.NONE, unknown]
    theirs = kafka.observe("codes", codes)
    assert [theirs[label] for label in ours] == [ErrorCode.NONE, fenced, ErrorCode.NONE]
