"""A setting that nobody reads is a promise that nobody keeps."""

from __future__ import annotations

import ast

from barnabas.broker.config.broker_config import FIELD_NAMES
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.tls.client_auth import CLIENT_AUTH
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

# Read by node id, of all brokers, from what is set while they run (opening/member.py).
BY_THE_PLANNER = {"cordoned.log.dirs"}

# Read by name: groups have settings of their own, and these are what holds for the others.
FOR_GROUPS = {name for name in FIELD_NAMES if name.startswith("group.consumer.")}


def attributes_read():
    return {
        node.attr
        for source in sources("broker")
        for node in source.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def read_by_name():
    """Keys that listeners may have for themselves are read by the key's name."""
    return {
        node.value
        for source in (*sources("broker/security"), *sources("broker/tls"))
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_setting_is_read():
    of_topics = {synonym for key in TOPIC_CONFIGS.values() for synonym in key.synonyms}
    elsewhere = FOR_GROUPS | BY_THE_LOADER | BESIDE_THE_FIELD | BY_THE_PLANNER | read_by_name()
    accepted = of_topics | NOTHING_TO_CHOOSE | elsewhere
    read = attributes_read()
    unread = {name for name, field in FIELD_NAMES.items() if field not in read}
    assert unread - accepted == set()
    assert NOTHING_TO_CHOOSE - unread == set()
