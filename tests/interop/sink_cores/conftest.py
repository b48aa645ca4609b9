"""Brokers for the cores of the Spark sinks, and queries that are stopped at the end."""

from __future__ import annotations

import pytest

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create
from tests.interop.sink_cores.faults import CLASSIC, PINNING
from tests.interop.spark_sink import PARTITIONS, Query, options

BROKERS = {"barnabas": (BarnabasProcess, PINNING), "kafka": (ApacheKafka, {})}


@pytest.fixture(scope="session", params=BROKERS)
def any_broker(request, tmp_path_factory):
    broker_class, settings = BROKERS[request.param]
    with broker_class(tmp_path_factory.mktemp(request.param), **settings) as running:
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture(scope="session")
def classic_broker(tmp_path_factory):
    """No KIP-890, no KIP-939."""
    with BarnabasProcess(tmp_path_factory.mktemp("classic"), **CLASSIC) as running:
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture
def killed_broker(tmp_path):
    with BarnabasProcess(tmp_path / "broker", **PINNING) as running:
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture
def sink(any_broker, topic):
    create(any_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    return options(any_broker, topic)


@pytest.fixture
def start():
    """Make queries; what is left of them at the end of a test is stopped."""
    made = []

    def start_one(*arguments):
        made.append(Query(*arguments))
        return made[-1]

    yield start_one
    for query in made:
        query.stop()
