"""Brokers as processes for the interop tests.

`INTEROP_BROKER=kafka` runs the same tests against Apache Kafka 4.3.0: what they demand is what
Kafka does.
"""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SAID
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.interop.recorded_kafka import DIRECTORY, RecordedKafka

COUNTERPARTS: dict[str, type[BrokerProcess]] = {"barnabas": BarnabasProcess, "kafka": ApacheKafka}


@pytest.fixture(scope="session")
def broker_class() -> type[BrokerProcess]:
    """The broker under test."""
    return COUNTERPARTS[os.environ.get("INTEROP_BROKER", "barnabas")]


@pytest.fixture(scope="session")
def broker(
    broker_class: type[BrokerProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """One broker for all tests that leave it running; they use topics of their own."""
    with broker_class(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def transactional_broker(
    broker_class: type[BrokerProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """One broker that ends transactions soon after their timeout; no test stops it."""
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    with broker_class(tmp_path_factory.mktemp("transactional"), **settings) as running:
        yield running


@pytest.fixture
def own_broker(broker_class: type[BrokerProcess], tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for one test, which may kill it."""
    with broker_class(tmp_path / "broker") as running:
        yield running


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that compare with the record of Apache Kafka."""
    if "kafka" in getattr(item, "fixturenames", ()):
        item.add_marker("recorded")


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Apache Kafka for the scripts of a file; a file with other settings has its own fixture."""
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> Iterator[RecordedKafka]:
    """The observations of Apache Kafka by a file's scripts: see recorded_kafka.py."""
    path = DIRECTORY / f"{request.path.stem.removeprefix('test_')}.json"
    record = RecordedKafka(path, lambda: request.getfixturevalue("live_kafka"))
    yield record
    options = request.config.option
    is_whole = not options.keyword and not any("::" in each for each in request.config.args)
    record.save(is_whole=is_whole)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    name = request.node.name
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")


@pytest.fixture
def create_topic(broker: BrokerProcess, topic: str) -> Callable[..., str]:
    """Create the test's topic on the shared broker; returns its name."""
    from tests.interop.administration import create

    def create_it(partitions: int = 1, **configs: str) -> str:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        create(broker.bootstrap_servers, topic, partitions=partitions, configs=settings)
        return topic

    return create_it


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect what a test left while its own filter of warnings holds.

    kafka-python leaves sockets open whose connection was refused; found at the end, outside of
    any test, they would fail the whole run.
    """
    yield
    gc.collect()


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Note a number that belongs into the log of a run, although the test passes.

    It travels with the test's report, because the output of a worker process is not shown.
    """

    def note_it(text: object) -> None:
        request.node.user_properties.append((SAID, str(text)))

    return note_it
