"""Acknowledged settings of topics, brokers and groups survive kill -9."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.requests import alter_configs, create_topic

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
PLACES = (
    (TOPIC, "t", "retention.ms", "60000"),
    (BROKER, "1", "log.retention.ms", "70000"),
    (BROKER, "", "message.max.bytes", "2000000"),
    (GROUP, "g", "consumer.session.timeout.ms", "50000"),
)


def alter(client: WireClient, kind: int, name: str, key: str, text: str | None) -> None:
    operation = DELETE if text is None else SET
    alter_configs(client, kind, name, (key, operation, text))


def values(client: WireClient) -> list[Any]:
    resources = [DescribeConfigsResource(kind, name, [key]) for kind, name, key, _ in PLACES]
    results = client.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources), 4).results
    return [[config.value for config in result.configs] for result in results]


def test_settings_outlive_kill_9(tmp_path):
    with BarnabasProcess(tmp_path) as broker:
        with WireClient(broker) as client:
            create_topic(client, "t")
            before = values(client)
            for place in PLACES:
                alter(client, *place)
        broker.kill()
        broker.restart()
        with WireClient(broker) as client:
            assert values(client) == [[text] for *_, text in PLACES]
            for kind, name, key, _ in PLACES:
                alter(client, kind, name, key, None)
        broker.kill()
        broker.restart()
        with WireClient(broker) as client:
            assert values(client) == before
