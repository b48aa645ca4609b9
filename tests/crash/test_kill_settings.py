"""Acknowledged settings of topics, brokers and groups survive kill -9."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient

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
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, operation, text)])
    request = IncrementalAlterConfigsRequest([resource])
    (response,) = client.ask(INCREMENTAL_ALTER_CONFIGS, request, 1).responses
    assert response.error_code == 0, response.error_message


def values(client: WireClient) -> list[Any]:
    resources = [DescribeConfigsResource(kind, name, [key]) for kind, name, key, _ in PLACES]
    results = client.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources), 4).results
    return [[config.value for config in result.configs] for result in results]


def test_settings_outlive_kill_9(tmp_path):
    with BarnabasProcess(tmp_path) as broker:
        with WireClient(broker) as client:
            request = CreateTopicsRequest([CreatableTopic("t", 1, 1)], 10_000)
            assert client.ask(CREATE_TOPICS, request, 7).topics[0].error_code == 0
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
