"""Brokers for the cores of the Spark sinks, and queries that are stopped at the end."""

from __future__ import annotations

import pytest

from barnabas.testing import Broker
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create
from tests.interop.sink_cores.faults import CLASSIC, PINNING
from tests.interop.spark_sink import PARTITIONS, Query, options
from tests.products import BARNABAS_AND_KAFKA


@pytest.fixture(scope="session", params=BARNABAS_AND_KAFKA)
def any_broker(request, tmp_path_factory):
    """Return Barnabas, embedded, or Apache Kafka."""
    directory = tmp_path_factory.mktemp(request.param)
    is_ours = request.param == "barnabas"
    with (
        Broker(storage=directory, config=PINNING) if is_ours else ApacheKafka(directory) as running
    ):
        create(running.bootstrap_servers, "source", partitions=1)
        yield running


@pytest.fixture(scope="session")
def classic_broker(tmp_path_factory):
    """Yield a broker without KIP-890 and KIP-939."""
    with Broker(storage=tmp_path_factory.mktemp("classic"), config=CLASSIC) as running:
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
