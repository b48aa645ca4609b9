"""Every setting is read: an unread setting would have no effect."""

from __future__ import annotations

import ast
from dataclasses import fields

from barnabas.broker.config.broker_config import BROKER_CONFIGS, FIELD_NAMES, BrokerConfig
from barnabas.broker.config.topic_configs import ACCEPTED, TOPIC_CONFIGS
from barnabas.broker.config.topic_values import LOG_CONFIG_FIELDS, check_topic_configs
from barnabas.broker.config.types import ConfigError
from barnabas.broker.security.tls.client_auth import CLIENT_AUTH
from barnabas.storage.log.config import LogConfig
from tests.tidy.source import sources

# Accepted because files written for Kafka have them: with one broker there is nothing to choose.
NOTHING_TO_CHOOSE = {
    "offsets.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}

# Read before there is a configuration: the loader looks values up with them.
BY_THE_LOADER = {"config.providers"}

# Read by the function beside its field: client_auth_of.
BESIDE_THE_FIELD = {CLIENT_AUTH}

# Read by name: groups have settings of their own, and these are what holds for the others.
FOR_GROUPS = {name for name in FIELD_NAMES if name.startswith("group.consumer.")}

# Topic keys that have an effect without a field of LogConfig.
INSTEAD_OF_ANOTHER = {"internal.segment.bytes"}  # Of segment.bytes: log_config reads it by name.
REFUSED = {"remote.storage.enable": "true"}


def attributes_read(*packages):
    return {
        node.attr
        for source in sources(*packages)
        for node in source.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def read_by_name():
    """Keys that listeners may have for themselves are read by the key's name."""
    return {
        node.value
        for source in (*sources("broker/security"), *sources("broker/security/tls"))
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def accepted_of_topics():
    """Topic keys without effect, whose documentation says so and why."""
    return {
        name
        for name, key in TOPIC_CONFIGS.items()
        if key.doc.startswith(ACCEPTED) and len(key.doc) > len(ACCEPTED)
    }


def test_every_setting_of_the_broker_is_read():
    of_topics = {synonym for key in TOPIC_CONFIGS.values() for synonym in key.synonyms}
    elsewhere = FOR_GROUPS | BY_THE_LOADER | BESIDE_THE_FIELD | read_by_name()
    # Values of topics' keys come from their synonyms, and have a test of their own.
    accepted = of_topics | NOTHING_TO_CHOOSE | elsewhere
    read = attributes_read("broker")
    unread = {name for name, field in FIELD_NAMES.items() if field not in read}
    assert unread - accepted == set()
    assert NOTHING_TO_CHOOSE - unread == set()
    for name in NOTHING_TO_CHOOSE:
        assert BROKER_CONFIGS[name].doc.startswith(ACCEPTED)


def test_every_setting_of_topics_is_read_refused_or_accepted_with_a_reason():
    ways = [set(LOG_CONFIG_FIELDS), accepted_of_topics(), INSTEAD_OF_ANOTHER, set(REFUSED)]
    assert set().union(*ways) == set(TOPIC_CONFIGS)
    assert sum(map(len, ways)) == len(TOPIC_CONFIGS), "a key has an effect, or it has none"
    for name, value in REFUSED.items():
        try:
            check_topic_configs({name: value}, BrokerConfig())
        except ConfigError:
            continue
        raise AssertionError(f"{name}={value} is accepted")


def test_every_setting_of_logs_is_read():
    assert set(LOG_CONFIG_FIELDS.values()) == {field.name for field in fields(LogConfig)}
    derived = {
        name
        for name, value in vars(LogConfig).items()
        if isinstance(value, property) or (callable(value) and not name.startswith("_"))
    }
    settings = {field.name for field in fields(LogConfig)}
    assert (settings | derived) - attributes_read("storage", "broker") == set()
