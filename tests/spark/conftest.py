"""Brokers that the tests of a file share, and Spark drivers that files share (see sharing.py).

Brokers end with the file: a worker of many would keep their memory for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.jars import delta_jars, s3a_jars, spark_kafka_jars
from tests.counterparts.s3 import S3Server
from tests.interop.conftest import say
from tests.spark.harness import SparkDriver
from tests.spark.tables import delta_settings

__all__ = ["say"]

BUCKET = "checkpoints"
SETTINGS = {
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="module")
def barnabas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that no test kills."""
    with BarnabasProcess(tmp_path_factory.mktemp("barnabas"), **SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that tests kill under any pipeline."""
    with BarnabasProcess(tmp_path_factory.mktemp("mortal"), **SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Apache Kafka."""
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    """The driver that survives."""
    with SparkDriver(tmp_path_factory.mktemp("driver")) as running:
        yield running


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server with a bucket for checkpoints."""
    with S3Server() as running:
        running.create_bucket(BUCKET)
        yield running


@pytest.fixture(scope="session")
def store_settings(s3: S3Server) -> dict[str, str]:
    """The settings of a Spark that knows Delta, and `s3a`."""
    jars = ",".join(map(str, [*spark_kafka_jars(), *delta_jars(), *s3a_jars()]))
    return {**delta_settings(), "spark.jars": jars, **s3.hadoop_settings()}


@pytest.fixture(scope="session")
def store_driver(
    store_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkDriver]:
    """The driver that survives, and knows Delta and `s3a`."""
    with SparkDriver(tmp_path_factory.mktemp("store-driver"), **store_settings) as running:
        yield running
