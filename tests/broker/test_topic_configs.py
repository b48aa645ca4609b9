from pathlib import Path

import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS, parse_topic_config
from barnabas.broker.config.topic_values import (
    check_topic_configs,
    describe_topic,
    effective_value,
    log_config,
)
from barnabas.broker.config.types import (
    ConfigError,
    ConfigSource,
    Setting,
    UnknownKey,
    format_value,
)
from barnabas.storage.log.config import LogConfig

BROKER = BrokerConfig()
STATIC = ConfigSource.STATIC_BROKER


def table(name):
    """Rows of facts that were printed from Apache Kafka's own classes."""
    text = (Path(__file__).parent / name).read_text()
    return [line.split(" | ") for line in text.splitlines() if not line.startswith("#")]


def accepted(validator):
    return validator.accepted if validator else "-"


KAFKA_TOPIC_CONFIGS = table("kafka_topic_configs.txt")
KAFKA_BROKER_CONFIGS = table("kafka_broker_configs.txt")

# Described in other words, or with a limit where Kafka has none.
OTHER_LIMITS = {
    "cluster.id",
    "cordoned.log.dirs",
    "log.roll.ms",
    "log.roll.jitter.ms",
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
    "authorizer.class.name",
    "connections.max.reauth.ms",
    "max.connections.per.ip.overrides",
    "security.inter.broker.protocol",
    "socket.connection.setup.timeout.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.server.max.receive.size",
    "ssl.enabled.protocols",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.truststore.type",
    "log.cleaner.dedupe.buffer.size",
    "socket.send.buffer.bytes",
    "socket.receive.buffer.bytes",
    "queued.max.request.bytes",
    "offset.metadata.max.bytes",
    "offsets.topic.segment.bytes",
    "transaction.state.log.segment.bytes",
    "group.initial.rebalance.delay.ms",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.consumer.assignors",
    "group.consumer.migration.policy",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
}

# See the docstring of barnabas.broker.config.broker_config.
OTHER_DEFAULTS = {
    "group.initial.rebalance.delay.ms",
    "node.id",
    "listeners",
    "listener.security.protocol.map",
    "controller.listener.names",
    "log.dir",
    "socket.send.buffer.bytes",
    "socket.receive.buffer.bytes",
    "socket.listen.backlog.size",
    "queued.max.request.bytes",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
}

# Listeners and their mechanisms cannot change while the broker runs.
OTHER_UPDATE_MODES = {
    "listeners",
    "listener.security.protocol.map",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "ssl.client.auth",
}


def test_every_topic_key_of_kafka_is_there():
    ours = [name for name in TOPIC_CONFIGS if name.startswith("barnabas.")]
    assert [row[0] for row in KAFKA_TOPIC_CONFIGS] == [
        name for name in TOPIC_CONFIGS if name not in ours
    ]
    assert ours == ["barnabas.record.validation.enable", "barnabas.replication.factor"]


def test_topic_keys_are_what_kafka_says():
    for name, kind, default, limits, synonyms in KAFKA_TOPIC_CONFIGS:
        key = TOPIC_CONFIGS[name]
        assert key.type.name == kind, name
        assert (key.default_text if key.default is not None else "null") == default, name
        assert (",".join(key.synonyms) or "-") == synonyms, name
        assert (accepted(key.validator) != limits) == (name in OTHER_LIMITS), name


def test_broker_keys_are_what_kafka_says():
    for name, kind, default, limits, update in KAFKA_BROKER_CONFIGS:
        key = BROKER_CONFIGS[name]
        assert key.type.name == kind, name
        assert (key.update.value != update) == (name in OTHER_UPDATE_MODES), name
        default_text = key.default_text if key.default is not None else "null"
        assert (default_text != default) == (name in OTHER_DEFAULTS), name
        assert (accepted(key.validator) != limits) == (name in OTHER_LIMITS), name


def test_keys_that_kafka_does_not_have_say_so():
    ours = BROKER_CONFIGS.keys() - {row[0] for row in KAFKA_BROKER_CONFIGS}
    # Kafka leaves those of its authorizer to the authorizer.
    of_authorizer = {"super.users", "allow.everyone.if.no.acl.found"}
    of_kafka_4_4 = {
        "sasl.oauthbearer.allow.unverified.audience",
        "sasl.oauthbearer.allow.unverified.issuer",
    }
    named = {name for name in ours if not name.startswith("barnabas.")}
    assert named == {"cluster.id"} | of_authorizer | of_kafka_4_4


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "", "Not a number of type LONG"),
        ("segment.bytes", "13", "Value must be at least 1048576"),
        ("max.message.bytes", "99999999999", "Not a number of type INT"),
        ("cleanup.policy", "foo", "String must be one of: compact, delete"),
        ("cleanup.policy", "Compact", "String must be one of: compact, delete"),
        (
            "compression.type",
            "zip",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "abc", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "1" * 200_000 + "x", "Not a number of type DOUBLE"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("message.timestamp.type", "foo", "String must be one of: CreateTime, LogAppendTime"),
        ("segment.ms", "0", "Value must be at least 1"),
    ],
)
def test_errors_have_kafkas_words(name, text, message):
    with pytest.raises(ConfigError) as caught:
        check_topic_configs({name: text}, BROKER)
    assert str(caught.value) == f"Invalid value {text} for configuration {name}: {message}"


def test_unknown_keys_and_null_values_are_errors():
    with pytest.raises(UnknownKey) as caught:
        parse_topic_config("nonsense", "1")
    assert str(caught.value) == "Unknown topic config name: nonsense"
    with pytest.raises(ConfigError) as caught:
        check_topic_configs({"retention.ms": None, "cleanup.policy": None}, BROKER)
    expected = "Null value not supported for topic configs: cleanup.policy,retention.ms"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"cleanup.policy": ""},
        {"cleanup.policy": "delete,delete"},
        {"cleanup.policy": " compact , delete "},
        {"preallocate": "TRUE"},
        {"retention.bytes": "-7"},
        {"retention.ms": " 5 "},
        {"leader.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:1,1:1"},
        {"internal.segment.bytes": "5000"},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"},
    ],
)
def test_topic_configs_of_kafka_are_accepted(configs):
    check_topic_configs(configs, BROKER)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        ({"remote.storage.enable": "true"}, "There is no tiered storage."),
        ({"leader.replication.throttled.replicas": "abc"}, "[partitionId]:[brokerId]"),
        ({"leader.replication.throttled.replicas": "*,1:1"}, "[partitionId]:[brokerId]"),
    ],
)
def test_conflicts_are_refused(configs, message):
    with pytest.raises(ConfigError) as caught:
        check_topic_configs(configs, BROKER)
    assert message in str(caught.value)


def test_a_conflict_with_the_brokers_default_is_one_too():
    broker = BrokerConfig(log_cleaner_max_compaction_lag_ms=5)
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        check_topic_configs({"min.compaction.lag.ms": "10"}, broker)


def test_defaults_come_from_the_broker_and_the_finer_unit_wins():
    hours = BrokerConfig(log_retention_hours=2, log_roll_hours=3, log_roll_jitter_hours=1)
    assert effective_value("retention.ms", {}, hours) == 7_200_000
    assert effective_value("segment.ms", {}, hours) == 10_800_000
    assert effective_value("segment.jitter.ms", {}, hours) == 3_600_000
    minutes = BrokerConfig(log_retention_hours=2, log_retention_minutes=1)
    assert effective_value("retention.ms", {}, minutes) == 60_000
    milliseconds = BrokerConfig(log_retention_minutes=1, log_retention_ms=7)
    assert effective_value("retention.ms", {}, milliseconds) == 7
    assert effective_value("retention.ms", {"retention.ms": "9"}, milliseconds) == 9
    assert effective_value("retention.ms", {}, BrokerConfig(log_retention_hours=-1)) == -1


def entries(overrides, broker=BROKER):
    return {each.name: each for each in describe_topic(overrides, broker)}


def test_describe_lists_all_but_internal_keys():
    described = entries({})
    assert TOPIC_CONFIGS.keys() - described.keys() == {
        "barnabas.replication.factor",
        "internal.segment.bytes",
    }
    for name, entry in described.items():
        assert entry.value == format_value(TOPIC_CONFIGS[name].default)
        assert entry.source is ConfigSource.DEFAULT
        assert not entry.read_only


def test_describe_names_sources_and_synonyms():
    broker = BROKER.with_settings(
        {"log.cleanup.policy": (Setting("compact", STATIC, "server.properties line 1"),)}
    )
    inherited = entries({}, broker)["cleanup.policy"]
    assert (inherited.value, inherited.source) == ("compact", STATIC)
    own = entries({"cleanup.policy": "compact,delete"}, broker)["cleanup.policy"]
    assert (own.value, own.source) == ("compact,delete", ConfigSource.TOPIC)
    assert own.synonyms == (
        ("cleanup.policy", "compact,delete", ConfigSource.TOPIC),
        ("log.cleanup.policy", "compact", STATIC),
        ("log.cleanup.policy", "delete", ConfigSource.DEFAULT),
    )
    # No key of the three has a default in milliseconds, so Kafka lists none.
    assert entries({})["retention.ms"].synonyms == ()


def test_describe_takes_hours_for_milliseconds():
    broker = BROKER.with_settings({"log.retention.hours": (Setting("2", STATIC, "x"),)})
    entry = entries({}, broker)["retention.ms"]
    # Kafka takes the value and does not say where from, so that it passes for a default.
    assert (entry.value, entry.source) == ("7200000", ConfigSource.DEFAULT)
    assert entry.synonyms == ()
    dynamic = broker.with_dynamic({"log.retention.ms": "5"})
    entry = entries({}, dynamic)["retention.ms"]
    assert (entry.value, entry.source) == ("5", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert entry.synonyms == (
        ("log.retention.ms", "5", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "2", STATIC),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    )


def test_storage_gets_kafkas_defaults():
    assert log_config({}, BROKER) == LogConfig()


def test_storage_gets_what_was_set():
    overrides = {
        "cleanup.policy": "compact",
        "retention.ms": "5000",
        "segment.bytes": "2097152",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.1",
    }
    config = log_config(overrides, BrokerConfig(message_max_bytes=99))
    assert config == LogConfig(
        cleanup_policy=frozenset({"compact"}),
        retention_ms=5000,
        segment_bytes=2097152,
        timestamp_type="LogAppendTime",
        min_cleanable_dirty_ratio=0.1,
        max_message_bytes=99,
    )
    assert log_config({"internal.segment.bytes": "5000"}, BROKER).segment_bytes == 5000
