"""DescribeConfigs equals that of Apache Kafka 4.3.0, key by key, except for docs/administration.md.

Both brokers get the same settings, from their file and from clients; then every key of every kind
of resource must have the same type, value, source and synonyms. The differences are read from the
documentation, so that it cannot be wrong. Barnabas is a process here: the embedded broker has
defaults of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from barnabas.protocol.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from barnabas.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, check_alike, comparable
from tests.interop.recorded_kafka import RecordedKafka, plain
from tests.requests import alter_configs_request, create_topic
from tests.waiting import wait_until

DOCUMENT = Path(__file__).parents[2] / "docs" / "administration.md"

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "client metrics", GROUP: "group"}
SET, DELETE, APPEND, SUBTRACT = range(4)
DEFAULT = 5
SET_TEXT = "set"

IN_THE_FILE = {
    "log.retention.hours": "24",
    "message.max.bytes": "2000000",
    "num.network.threads": "2",
    "delegation.token.secret.key": "hush",
    "group.consumer.session.timeout.ms": "50000",
    "group.share.heartbeat.interval.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "node.id": "1",
    "process.roles": "broker,controller",
}
BY_CLIENTS = (
    (TOPIC, "set", (("retention.ms", "60000"), ("cleanup.policy", "compact"))),
    (BROKER, "1", (("log.cleaner.backoff.ms", "20000"), ("log.retention.bytes", "777"))),
    (BROKER, "1", (("log.roll.ms", "3600000"),)),
    (BROKER, "", (("log.retention.bytes", "888"), ("log.segment.bytes", "2097152"))),
    (
        GROUP,
        "set",
        (("consumer.session.timeout.ms", "46000"), ("share.isolation.level", "read_committed")),
    ),
)

# What a process cannot have in common with another one.
OF_THE_PROCESS = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.voters",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
}
ONLY_OURS = {
    "cluster.id",
    "producer.id.expiration.check.interval.ms",
    # Those of Kafka's authorizer, which are no keys of its broker, and two of Kafka 4.4.
    "allow.everyone.if.no.acl.found",
    "super.users",
    "sasl.oauthbearer.allow.unverified.audience",
    "sasl.oauthbearer.allow.unverified.issuer",
}
CANNOT_CHANGE = {
    "config.providers",
    "listener.security.protocol.map",
    "listeners",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.client.auth",
}
DYNAMIC_IN_KAFKA = {"min.insync.replicas"}


def documented_defaults() -> dict[str, tuple[str | None, str | None]]:
    """Return the table of the documentation: for each key the defaults of Kafka and of Barnabas."""
    _, _, table = DOCUMENT.read_text().partition("Defaults that differ:")
    rows = re.findall(r"^\| `(\S+)` \| (\S*) ?\| (\S*) ?\| \S.* \|$", table, re.MULTILINE)
    return {key: (_text(theirs), _text(ours)) for key, theirs, ours in rows}


def _text(cell: str) -> str | None:
    return cell.strip("`") if cell else None


@pytest.fixture(scope="module")
def barnabas(tmp_path_factory) -> Iterator[BrokerProcess]:
    yield from serving(BarnabasProcess(tmp_path_factory.mktemp("ours"), **IN_THE_FILE))


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory) -> Iterator[BrokerProcess]:
    yield from serving(ApacheKafka(tmp_path_factory.mktemp("theirs"), **IN_THE_FILE))


def serving(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """Start a broker, and change its settings as clients do."""
    with broker:
        with WireClient(broker) as client:
            prepare(client)
        yield broker


def prepare(client: WireClient) -> None:
    create_topic(client, "set")
    create_topic(client, "plain")
    for kind, name, configs in BY_CLIENTS:
        assert alter(client, kind, name, *((key, SET, text) for key, text in configs)) == 0
    # Kafka's broker learns of a change a moment after its controller responded, and applies it a
    # moment later: but before it learns of the next one.
    for text in ("45500", "46000"):
        assert alter(client, GROUP, "set", ("consumer.session.timeout.ms", SET, text)) == 0
        wait_until(
            lambda text=text: (
                text in {each.value for each in described(client, GROUP, "set").values()}
            ),
            "the group's setting is known",
        )


def alter(client: WireClient, kind: int, name: str, *configs: Any, dry: bool = False) -> int:
    request = alter_configs_request(kind, name, *configs, validate_only=dry)
    (response,) = client.ask(INCREMENTAL_ALTER_CONFIGS, request, 1).responses
    return response.error_code


def described(client: WireClient, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(kind, name, None)
    request = DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)
    (result,) = client.ask(DESCRIBE_CONFIGS, request, 4).results
    assert result.error_code == 0, result.error_message
    assert len({each.name for each in result.configs}) == len(result.configs)
    return {each.name: each for each in result.configs}


Configs = dict[str, DescribeConfigsResourceResult]


def configs_of(broker: BrokerProcess, kind: int, name: str) -> Configs:
    """Return every key; of documentation, and of a process's own values, whether it is set."""
    with WireClient(broker) as client:
        found = described(client, kind, name)
    for key, config in found.items():
        config.documentation = SET_TEXT if config.documentation else None
        if key in OF_THE_PROCESS:
            for each in config.synonyms:
                each.value = each.value if each.source == DEFAULT else SET_TEXT
            config.value = config.value if config.config_source == DEFAULT else SET_TEXT
    return found


def of_both(
    barnabas: BrokerProcess, kafka: RecordedKafka, kind: int, name: str
) -> tuple[Configs, Configs]:
    recorded = kafka.observe(
        f"{KINDS[kind]} {name!r}", lambda broker: configs_of(broker, kind, name)
    )
    for each in recorded.values():
        each["synonyms"] = [DescribeConfigsSynonym(**synonym) for synonym in each["synonyms"]]
    theirs = {key: DescribeConfigsResourceResult(**each) for key, each in recorded.items()}
    return configs_of(barnabas, kind, name), theirs


def default_of(config: DescribeConfigsResourceResult) -> str | None:
    return next((each.value for each in config.synonyms if each.source == DEFAULT), None)


def as_plain_data(config: DescribeConfigsResourceResult) -> dict[str, Any]:
    plain = comparable(config)
    # The order of the synonyms says which one wins.
    plain["synonyms"] = [(each.name, each.value, each.source) for each in config.synonyms]
    return plain


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TOPIC, "plain"),
        (TOPIC, "set"),
        (GROUP, "plain"),
        (GROUP, "set"),
        (CLIENT_METRICS, "any"),
    ],
)
def test_every_key_is_as_in_kafka(barnabas, kafka, kind, name):
    ours, theirs = of_both(barnabas, kafka, kind, name)
    more = {key for key in ours.keys() - theirs.keys() if not key.startswith("barnabas.")}
    assert theirs.keys() <= ours.keys()
    assert not more
    for key in theirs:
        mine, kafkas = as_plain_data(ours[key]), as_plain_data(theirs[key])
        if key in DYNAMIC_IN_KAFKA:
            kafkas["synonyms"] = [each for each in kafkas["synonyms"] if each[2] == DEFAULT]
            kafkas["config_source"] = DEFAULT
        assert mine == kafkas, key


def test_a_broker_has_every_key_of_kafka(barnabas, kafka):
    ours, theirs = of_both(barnabas, kafka, BROKER, "1")
    assert theirs.keys() <= ours.keys()
    more = {key for key in ours.keys() - theirs.keys() if not key.startswith("barnabas.")}
    assert more == ONLY_OURS


def test_a_brokers_defaults_differ_as_documented(barnabas, kafka):
    ours, theirs = of_both(barnabas, kafka, BROKER, "1")
    differing = {
        key: (default_of(theirs[key]), default_of(ours[key]))
        for key in theirs
        if default_of(theirs[key]) != default_of(ours[key])
    }
    assert differing == documented_defaults()


def test_a_brokers_keys_are_kafkas_but_for_that(barnabas, kafka):
    ours, theirs = of_both(barnabas, kafka, BROKER, "1")
    read_only_here = set()
    for key, kafkas in theirs.items():
        mine = ours[key]
        assert (mine.config_type, mine.is_sensitive) == (kafkas.config_type, kafkas.is_sensitive)
        assert mine.documentation, key
        if mine.read_only != kafkas.read_only:
            assert mine.read_only
            read_only_here.add(key)
        if key in OF_THE_PROCESS | DYNAMIC_IN_KAFKA:
            continue
        if key not in documented_defaults() or mine.config_source != DEFAULT:
            assert (mine.value, mine.config_source) == (kafkas.value, kafkas.config_source), key
        assert set_by_somebody(mine) == set_by_somebody(kafkas), key
    assert read_only_here >= CANNOT_CHANGE
    assert read_only_here - CANNOT_CHANGE <= IGNORED_CONFIGS.keys()


def set_by_somebody(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [
        (each.name, each.value, each.source) for each in config.synonyms if each.source != DEFAULT
    ]


def test_settings_for_all_brokers_are_those_of_kafka(barnabas, kafka):
    ours, theirs = of_both(barnabas, kafka, BROKER, "")
    assert set(theirs) - set(ours) == DYNAMIC_IN_KAFKA
    for key in ours:
        assert as_plain_data(ours[key]) == as_plain_data(theirs[key]), key


def loggers(broker: BrokerProcess) -> dict[str, Any]:
    """Return whether there is the root logger, and the sources, types and flags of all."""
    with WireClient(broker) as client:
        found = described(client, LOGGER, "1")
    shapes = {
        (each.config_source, each.config_type, each.read_only, each.is_sensitive)
        for each in found.values()
    }
    return {"has root": "root" in found, "shapes": sorted(shapes)}


def test_loggers_look_like_kafkas(barnabas, kafka):
    ours, theirs = plain(loggers(barnabas)), kafka.observe("loggers", loggers)
    assert ours == theirs == {"has root": True, "shapes": [[6, 0, False, False]]}


# ---------------------------------------------------------------------------- altering and listing

ON_PURPOSE = {
    "change a logger by an unknown operation": "Kafka answers -1",
    "set client metrics": "Kafka stores a subscription; here nobody would collect anything",
}


def alterations(client: WireClient) -> Iterator[Answer]:
    """IncrementalAlterConfigs of loggers, client metrics and groups; what no broker shares."""

    def attempt(label: str, kind: int, name: str, *configs: Any, dry: bool = False) -> Answer:
        return label, alter(client, kind, name, *configs, dry=dry)

    for label, config in (
        ("set a level", ("root", SET, "WARN")),
        ("set a level in small letters", ("root", SET, "warn")),
        ("set no level", ("root", SET, "")),
        ("set a level to null", ("root", SET, None)),
        ("take the root's level away", ("root", DELETE, None)),
        ("append a level", ("root", APPEND, "INFO")),
        ("subtract a level", ("root", SUBTRACT, "INFO")),
        ("change a logger by an unknown operation", ("root", 9, "INFO")),
        ("set the level of no logger", ("no.such.logger", SET, "INFO")),
        ("take the level of no logger away", ("no.such.logger", DELETE, None)),
    ):
        yield attempt(label, LOGGER, "1", config)
    for name in ("2", "", "x"):
        yield attempt(f"set a level at {name!r}", LOGGER, name, ("root", SET, "INFO"))
    yield attempt("try a level", LOGGER, "1", ("root", SET, "DEBUG"), dry=True)
    level = described(client, LOGGER, "1")["root"].value
    yield "the level that is left", level
    assert alter(client, LOGGER, "1", ("root", SET, "ERROR")) == 0
    yield attempt("cordon all brokers", BROKER, "", ("cordoned.log.dirs", SET, "*"))
    for text in ("/elsewhere", "*,/elsewhere"):
        for operation in (SET, APPEND):
            config = ("cordoned.log.dirs", operation, text)
            yield attempt(f"cordon {text} by {operation}", BROKER, "1", config)
    yield attempt("set client metrics", CLIENT_METRICS, "m", ("interval.ms", SET, "1000"))
    assert alter(client, CLIENT_METRICS, "m", ("interval.ms", DELETE, None)) in {0, 44}
    for key, texts in (
        ("consumer.session.timeout.ms", ("1", "44999", "45000", "60000", "60001", "x", None)),
        ("consumer.heartbeat.interval.ms", ("0", "1", "4999", "5000", "15000", "15001")),
        ("consumer.assignment.interval.ms", ("-1", "0", "15000", "15001")),
        ("share.session.timeout.ms", ("44999", "60001")),
        ("share.heartbeat.interval.ms", ("0", "1", "15001")),
        ("share.record.lock.duration.ms", ("1", "999", "14999", "15000", "60001")),
        ("share.delivery.count.limit", ("1", "2", "10", "11")),
        ("share.partition.max.record.locks", ("99", "100", "4001")),
        ("share.renew.acknowledge.enable", ("maybe", "FALSE")),
        ("share.isolation.level", ("none", "read_uncommitted")),
        ("share.auto.offset.reset", ("none", "earliest", "by_duration:PT1H", "by_duration:1h")),
        ("share.assignment.interval.ms", ("-1", "15001")),
        ("streams.session.timeout.ms", ("44999", "60001")),
        ("streams.heartbeat.interval.ms", ("1", "15001")),
        ("streams.num.standby.replicas", ("-1", "2", "3")),
        ("streams.initial.rebalance.delay.ms", ("-1", "0", "99999")),
        ("streams.assignment.interval.ms", ("-1", "7", "15001")),
        ("no.such.key", ("1",)),
    ):
        for text in texts:
            yield attempt(f"set {key} to {text}", GROUP, "altered", (key, SET, text))
        for operation in (DELETE, APPEND, SUBTRACT):
            config = (key, operation, "1")
            yield attempt(f"change {key} by {operation}", GROUP, "altered", config)
    yield attempt("set a group without a name", GROUP, "", ("share.isolation.level", SET, "x"))


def resources(client: WireClient) -> Iterator[Answer]:
    """ListConfigResources."""
    for label, types in (
        ("everything", []),
        ("topics", [TOPIC]),
        ("brokers and loggers", [LOGGER, BROKER]),
        ("groups", [GROUP]),
        ("an unknown kind", [TOPIC, 7]),
    ):
        answer = client.ask(LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(types), 1)
        found = comparable(answer)
        found["config_resources"] = [
            each for each in found["config_resources"] if each["resource_type"] != CLIENT_METRICS
        ]
        yield f"list {label}", found
    answer = client.ask(LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(), 0)
    yield "list client metrics", answer.error_code


@pytest.mark.parametrize("family", [alterations, resources])
def test_answers_are_kafkas(barnabas, kafka, family):
    check_alike(barnabas, kafka, family.__name__, family, ON_PURPOSE)
