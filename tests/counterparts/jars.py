"""Pinned jars of Apache Kafka, Delta, Hadoop's S3 file system and Spark's Kafka connector.

See `spark_connector/session/jars.py`.
"""

import functools
from pathlib import Path

from barnabas.spark_connector.session.jars import PinnedJar, fetched, pyspark_jars
from barnabas.spark_connector.session.jars import spark_kafka_jars as spark_kafka_jars  # noqa: PLC0414 - for others
from tests.counterparts.errors import MissingCounterpart

KAFKA_VERSION = "4.3.0"
_HERE = Path(__file__).parent


DELTA_JARS = (
    PinnedJar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    PinnedJar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


@functools.cache
def delta_jars() -> list[Path]:
    """Return the jars that make Spark 4.2 write tables of Delta."""
    directory = fetched("delta", DELTA_JARS)
    return [directory / jar.file_name for jar in DELTA_JARS]


AVRO_JARS = (
    PinnedJar(
        "org.apache.spark",
        "spark-avro_2.13",
        "4.2.0",
        "4c186cedc03cbe4ee356a94b32232b347ef48611c3209400b3a77e4fe4abff4f",
    ),
)


@functools.cache
def avro_jars() -> list[Path]:
    """Return the jar with Spark's functions for Avro."""
    directory = fetched("avro", AVRO_JARS)
    return [directory / jar.file_name for jar in AVRO_JARS]


@functools.cache
def s3a_jars() -> list[Path]:
    """Return the jars that make PySpark 4.2.0 reach S3: Hadoop's, and 12 MB of Amazon's SDK.

    Hadoop names the SDK's bundle, which has more than 600 MB: these are the modules it loads. What
    they need besides is in PySpark's wheel.
    """
    pinned = _pinned("s3a_jars.txt")
    directory = fetched("s3a", pinned)
    return [directory / jar.file_name for jar in pinned]


@functools.cache
def kafka_jars() -> Path:
    """Return a directory with the jars of Apache Kafka 4.3.0: server, tools, clients."""
    return fetched("kafka", pinned_kafka_jars())


def spark_jars() -> Path:
    """Return the directory with PySpark's own jars; raises MissingCounterpart."""
    jars = pyspark_jars()
    if jars is None:
        raise MissingCounterpart("PySpark is needed: `pip install pyspark==4.2.0`")
    return jars


def kafka_class_path() -> str:
    """Return the class path that runs Apache Kafka 4.3.0's broker and tools."""
    return f"{kafka_jars()}/*"


def connect_class_path() -> str:
    """Return the class path of Kafka Connect 4.3.0 with MirrorMaker 2 and the file connectors."""
    return f"{kafka_jars()}/*:{fetched('connect', _pinned('connect_jars.txt'))}/*"


def debezium_postgresql() -> Path:
    """Return the directory of Debezium's connector for PostgreSQL: a plugin of Kafka Connect."""
    return fetched("debezium", _pinned("debezium_jars.txt"))


def pinned_kafka_jars() -> list[PinnedJar]:
    """Return the pinned jars of Apache Kafka."""
    return _pinned("kafka_jars.txt")


def listed_jars(family: str) -> Path:
    """Return a directory with the jars of a list, ``<family>_jars.txt``, and no others."""
    return fetched(family, pinned_jars(family))


def pinned_jars(family: str) -> list[PinnedJar]:
    """Return the pinned jars of a list."""
    return _pinned(f"{family}_jars.txt")


def _pinned(file_name: str) -> list[PinnedJar]:
    lines = (_HERE / file_name).read_text().splitlines()
    return [_parse(line) for line in lines if line.strip()]


def _parse(line: str) -> PinnedJar:
    coordinates, sha256 = line.split()
    group, artifact, version = coordinates.split(":")
    return PinnedJar(group, artifact, version, sha256)
