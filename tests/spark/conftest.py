"""Brokers and Spark drivers that the tests of a file share.

They end with the file: a worker of many would keep their memory for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.interop.conftest import say
from tests.spark.harness import SparkDriver

__all__ = ["say"]

SETTINGS = {
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="module")
def barnabas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that nobody kills."""
    with BarnabasProcess(tmp_path_factory.mktemp("barnabas"), **SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that is killed, whatever runs on it."""
    with BarnabasProcess(tmp_path_factory.mktemp("mortal"), **SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Apache Kafka."""
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    """The driver that survives."""
    with SparkDriver(tmp_path_factory.mktemp("driver")) as running:
        yield running
