"""One of three brokers as processes cannot reach the object store, and the others can."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from tests.counterparts.broker_process import HOST
from tests.counterparts.mended_kafka_python import PatientClient
from tests.counterparts.object_stores import Versitygw
from tests.counterparts.probe import free_port
from tests.counterparts.s3_gateway import S3Gateway
from tests.counterparts.scripted_s3 import ScriptedS3
from tests.counterparts.wire_client import WireClient
from tests.postgresql.brokers import Member, running
from tests.postgresql.links import Between, Cut, Links
from tests.postgresql.object_stores import BUCKET, settings_of
from tests.postgresql.test_object_store import read_all
from tests.products import case
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 6
BROKERS = 3
RECORD_BYTES = 2048
LONE = 0
LINK = Between(LONE, "objects")


@pytest.fixture
def store(request, tmp_path) -> Iterator[ScriptedS3]:
    with contextlib.ExitStack() as stack:
        if request.param == "scripted":
            opened = stack.enter_context(ScriptedS3())
            opened.create_bucket(BUCKET)
        else:
            server = stack.enter_context(Versitygw(tmp_path / "versitygw"))
            server.create_bucket(BUCKET)
            opened = stack.enter_context(S3Gateway(server, BUCKET))
        yield opened


def leaders_seen_by(member: Member) -> set[int]:
    """Return the node IDs that lead partitions of any topic."""
    request = MetadataRequest(None, allow_auto_topic_creation=False)
    with WireClient(member) as client:
        found = client.ask(METADATA, request, 9)
    return {each.leader_id for topic in found.topics for each in topic.partitions}


class Writer:
    """A producer of transactions over all partitions."""

    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer
        self.committed: list[bytes] = []

    def write(self) -> None:
        """Commit a transaction."""
        number = len(self.committed)
        values = [b"%d " % (number + each) + bytes(RECORD_BYTES) for each in range(PARTITIONS)]
        self._producer.begin_transaction()
        for partition, value in enumerate(values):
            self._producer.send(TOPIC, value, partition=partition)
        self._producer.commit_transaction()
        self.committed += values

    def write_until_leaders_are(self, member: Member, *numbers: int) -> None:
        """Commit transactions until these brokers lead all partitions."""

        def is_led() -> bool:
            self.write()
            return leaders_seen_by(member) == set(numbers)

        wait_until(is_led, lambda: f"partitions are led by {leaders_seen_by(member)}", seconds=120)


def members_of(directory: Path, address: str, store: ScriptedS3, lone_port: int) -> list[Member]:
    """Return brokers of which one reaches the store through a port."""
    settings = [settings_of(store) for _ in range(BROKERS)]
    settings[LONE]["barnabas.storage.endpoint"] = f"http://{HOST}:{lone_port}"
    return [
        Member(directory / f"broker-{number}", address, **{"node.id": str(number)} | each)
        for number, each in enumerate(settings)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "store", [case("scripted", in_test=True), case("versitygw", in_test=False)], indirect=True
)
def test_transactions_continue_while_one_broker_lacks_the_store(server, store, tmp_path):
    with Links() as links:
        port = free_port()
        links.listen(port, store.port, LINK)
        members = members_of(tmp_path, server.url, store, port)
        with running(members):
            addresses = [each.bootstrap_servers for each in members]
            with contextlib.closing(KafkaAdminClient(bootstrap_servers=addresses)) as admin:
                admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
            with contextlib.closing(
                KafkaProducer(
                    bootstrap_servers=addresses,
                    transactional_id="writer",
                    transaction_timeout_ms=120_000,
                    delivery_timeout_ms=120_000,
                    linger_ms=0,
                    kafka_client=PatientClient,
                )
            ) as producer:
                producer.init_transactions()
                writer = Writer(producer)
                wait_until(lambda: leaders_seen_by(members[1]) == {0, 1, 2})
                writer.write()
                links.cut([LINK], Cut.RESET)
                writer.write_until_leaders_are(members[1], 1, 2)
                assert "partitions given up" in members[LONE].output()
                writer.write()
                links.mend([LINK])
                writer.write_until_leaders_are(members[1], 0, 1, 2)
                writer.write()
            assert "object store works again for this broker" in members[LONE].output()
            found = read_all(",".join(addresses), len(writer.committed), PARTITIONS)
            assert Counter(found) == Counter(writer.committed)
