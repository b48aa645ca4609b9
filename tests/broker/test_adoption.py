"""Settings of a Kafka directory that an adoption keeps, and those that it drops."""

import logging

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.types import ConfigError
from barnabas.broker.metadata.adoption import _keep_broker_settings, _settings_of
from barnabas.storage.adoption.kraft_metadata import KraftMetadata
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore


@pytest.fixture
def metastore():
    store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg")
    yield store
    store.close()


def test_a_topic_keeps_the_settings_that_mean_something_here(caplog):
    configs = {"t": {"retention.ms": "-1", "confluent.tier.enable": "true"}, "u": {"x": "y"}}
    with caplog.at_level(logging.WARNING):
        assert _settings_of("t", configs, BrokerConfig()) == {"retention.ms": "-1"}
    assert "topic=t key=confluent.tier.enable value=true" in caplog.text
    assert _settings_of("v", configs, BrokerConfig()) == {}


def test_a_topic_that_cannot_be_honoured_stops_the_start():
    with pytest.raises(ConfigError, match="There is no tiered storage"):
        _settings_of("t", {"t": {"remote.storage.enable": "true"}}, BrokerConfig())


def test_a_broker_keeps_what_can_change_at_run_time(metastore, caplog):
    found = KraftMetadata(
        broker_configs={
            "": {"log.retention.ms": "888", "min.insync.replicas": "1"},
            "1": {"log.retention.ms": "777", "num.io.threads": "4"},
            "2": {"log.retention.ms": "666"},
        }
    )
    with caplog.at_level(logging.WARNING):
        _keep_broker_settings(found, metastore)
    kept = metastore.load().broker_configs
    assert kept["1"] == {"log.retention.ms": "777"}
    assert kept[""]["log.retention.ms"] == "888"
    assert "2" not in kept
    assert "broker=1 key=num.io.threads" in caplog.text
    BrokerConfig().with_dynamic(kept[""], kept["1"])
