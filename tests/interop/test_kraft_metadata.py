"""The directory of a stopped Kafka contains the topics and settings that its clients set."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.storage.adoption.kraft_metadata import read_kraft_metadata
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.directory_names import KRAFT_DIRECTORY
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.checkpoint import decode_partition_metadata
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.requests import alter_configs, create_topic
from tests.waiting import wait_until

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
TOPICS = {"kept", "gone", "plain"}


def create(client: WireClient, name: str, **configs: str) -> None:
    settings = {key.replace("_", "."): text for key, text in configs.items()}
    create_topic(client, name, configs=settings)


def administer(kafka: BrokerProcess) -> None:
    """Create settings of every kind, and the topics of TOPICS."""
    with WireClient(kafka) as client:
        create(client, "kept", retention_ms="-1", cleanup_policy="compact")
        alter_configs(
            client,
            TOPIC,
            "kept",
            ("segment.bytes", SET, "2000000"),
            ("cleanup.policy", DELETE, None),
        )
        create(client, "gone", retention_ms="5")
        request = DeleteTopicsRequest([DeleteTopicState("gone")], [], 60_000)
        client.ask(DELETE_TOPICS, request, 6)
        create(client, "gone", segment_ms="60000")
        create(client, "plain")
        alter_configs(client, BROKER, "", ("log.retention.ms", SET, "888"))
        alter_configs(client, BROKER, "1", ("log.retention.ms", SET, "777"))

        def has_producer_id() -> bool:
            answer = client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 0), 4)
            return bool(answer.error_code == 0)

        wait_until(has_producer_id, "a producer ID", pause_s=0.05)


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_stopped_kafka(kafka, tmp_path, snapshots):
    interval = {"metadata_log_max_snapshot_interval_ms": "1"} if snapshots else {}
    kafka.stopped(f"snapshots-{snapshots}", administer, tmp_path / "kafka", **interval)
    directory = tmp_path / "kafka" / "data"
    found = read_kraft_metadata(LocalFileSystem(), str(directory))
    taken = [
        each for each in (directory / KRAFT_DIRECTORY).glob("*.checkpoint") if int(each.name[:20])
    ]
    assert bool(taken) == snapshots
    assert found is not None
    assert set(found.topics.values()) == TOPICS
    assert found.topics == {topic_id(directory / f"{name}-0"): name for name in TOPICS}
    settings = {name: configs for name, configs in found.topic_configs.items() if configs}
    assert settings == {
        "kept": {"retention.ms": "-1", "segment.bytes": "2000000"},
        "gone": {"segment.ms": "60000"},
    }
    assert found.broker_configs["1"] == {"log.retention.ms": "777"}
    assert found.broker_configs[""]["log.retention.ms"] == "888"
    assert found.next_producer_id == 1000


def topic_id(partition: Path) -> bytes:
    """Return the topic's ID that Apache Kafka wrote into the directory of a partition."""
    return decode_partition_metadata((partition / "partition.metadata").read_bytes())


def test_a_directory_without_metadata(tmp_path):
    assert read_kraft_metadata(LocalFileSystem(), str(tmp_path)) is None


def test_damage_is_named(tmp_path):
    damaged: Path = tmp_path / KRAFT_DIRECTORY
    damaged.mkdir()
    (damaged / f"{0:020}.log").write_bytes(bytes(8) + (100).to_bytes(4) + bytes(100))
    with pytest.raises(Corrupt, match=r"__cluster_metadata-0/00000000000000000000\.log"):
        read_kraft_metadata(LocalFileSystem(), str(tmp_path))
