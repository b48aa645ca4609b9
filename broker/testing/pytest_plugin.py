"""Pytest plugin: a ``kafka`` fixture with one broker for the whole session.

    def test_orders(kafka):
        topic = kafka.create_topic("orders", partitions=3)
        produce_orders(kafka.bootstrap_servers, topic)
        assert [record.value for record in kafka.records("orders")] == [...]

Each test has its own prefix of topic names, which is cheaper than a broker of its own. Settings
come from the ``kafka_config`` fixture, then ``--kafka-config key=value``, then the ini option
``kafka_config``; the first that names a key wins. The data directory comes from ``kafka_storage``,
``--kafka-storage`` and the ini option in the same way (in memory by default). The
``kafka_security`` fixture sets logins and permissions (none by default).

Every pytest of the environment imports this file, so it imports nothing of the broker by itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.broker.testing.embedded import Broker, ReceivedRecord
    from barnabas.broker.testing.security import Security, Style

_numbers = itertools.count(1)


class Kafka:
    """Broker of the session for one test, whose topic names get the test's own prefix."""

    def __init__(self, broker: Broker, prefix: str) -> None:
        self.broker = broker
        self.prefix = prefix

    @property
    def bootstrap_servers(self) -> str:
        """Return "host:port" for clients."""
        return self.broker.bootstrap_servers

    def client_config(
        self, user: str | None = None, style: Style = "kafka-python"
    ) -> dict[str, Any]:
        """Return the settings of a client that connects as a user; see ``Broker.client_config``."""
        return self.broker.client_config(user, style)

    def topic(self, name: str) -> str:
        """Return the broker's name for a topic of this test."""
        return self.prefix + name

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic of this test, and return the broker's name for it."""
        return self.broker.create_topic(self.topic(name), partitions, configs).result

    def crash(self) -> None:
        """End the broker as `kill -9` and a power cut would; see ``Broker.crash``."""
        self.broker.crash()

    def restart(self) -> None:
        """Start the broker again, on the data that was synced to disk; see ``Broker.restart``."""
        self.broker.restart()

    def records(self, name: str, isolation: str = "read_uncommitted") -> list[ReceivedRecord]:
        """Return all records of a topic of this test."""
        return self.broker.records(self.topic(name), isolation).result


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest from rewriting the asserts of the broker.

    pytest rewrites the asserts of all modules of a distribution that has a plugin: five hundred
    here, five seconds of each fresh environment. It has no public way to exclude any.
    """
    rewritten = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(rewritten, set):
        rewritten -= {"barnabas", "pyspark_barnabas"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the session's broker."""
    group = parser.getgroup("kafka", "in-process Kafka broker")
    group.addoption(
        "--kafka-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the in-process broker, by Kafka's name for it",
    )
    group.addoption(
        "--kafka-storage", metavar="DIRECTORY", help="keep the broker's data here, not in memory"
    )
    parser.addini("kafka_config", "settings of the in-process broker, KEY=VALUE a line", "linelist")
    parser.addini("kafka_storage", "directory for the broker's data", default="")


@pytest.fixture(scope="session")
def kafka_config() -> dict[str, str]:
    """Return settings by Kafka's keys; override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def kafka_storage() -> str | None:
    """Return the data directory, or None for memory; override it in a conftest.py."""
    return None


@pytest.fixture(scope="session")
def kafka_security() -> Security | None:
    """Return logins and permissions, or None without any; override it in a conftest.py."""
    return None


@pytest.fixture(scope="session")
def kafka_broker(
    pytestconfig: pytest.Config,
    kafka_config: dict[str, str],
    kafka_storage: str | None,
    kafka_security: Security | None,
) -> Iterator[Broker]:
    """Run the session's broker."""
    from barnabas.broker.config.types import ConfigError
    from barnabas.broker.testing.embedded import Broker

    settings: dict[str, str] = {}
    for item in (*pytestconfig.getini("kafka_config"), *pytestconfig.getoption("--kafka-config")):
        key, equals, value = item.partition("=")
        if not equals:
            raise pytest.UsageError(f"kafka_config: {item} is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    storage = (
        kafka_storage
        or pytestconfig.getoption("--kafka-storage")
        or pytestconfig.getini("kafka_storage")
        or None
    )
    try:
        running = Broker(config=settings | kafka_config, storage=storage, security=kafka_security)
    except ConfigError as error:
        raise pytest.UsageError(f"kafka_config: {error}") from None
    with running as broker:
        yield broker


@pytest.fixture
def kafka(kafka_broker: Broker, request: pytest.FixtureRequest) -> Kafka:
    """Return the session's broker with topic names of this test's own."""
    request.node.add_report_section("setup", "kafka", f"broker seed {kafka_broker.seed}")
    name = re.sub(r"[^a-zA-Z0-9_-]+", "-", request.node.name).strip("-")[:80]
    return Kafka(kafka_broker, f"{name}-{next(_numbers)}-")
