"""Both brokers with access control: users log in by PLAIN on one listener, the other is the tests'.

On the PLAINTEXT listener every client is a super user, so that a broker can be watched and set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.counterparts.logins import (
    LOGIN_MODULES,
    Login,
    java_settings,
    kafka_python_settings,
    librdkafka_settings,
)

MODULE = f"{LOGIN_MODULES}.plain.PlainLoginModule"
PASSWORD = "secret"
ADMIN = "admin"
"""A super user."""


def access_settings(users: Mapping[str, str] | None = None) -> dict[str, str]:
    """The settings of both brokers, except their listeners; passwords by user."""
    entries = " ".join(f'user_{name}="{word}"' for name, word in (users or {}).items())
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULE} required {entries};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }


class Secured(BrokerProcess):
    """The common part of both brokers."""

    def __init__(
        self, users: Mapping[str, str], directory: Path | None = None, **overrides: str
    ) -> None:
        super().__init__(directory, **overrides)
        self.sasl_port = self.listen("SASL_PLAINTEXT")
        self.overrides |= access_settings(users)

    @property
    def sasl_servers(self) -> str:
        """The bootstrap servers of the SASL listener."""
        return f"{HOST}:{self.sasl_port}"

    @property
    def sasl_address(self) -> tuple[str, int]:
        """The same as host and port."""
        return HOST, self.sasl_port


class SecuredKafka(Secured, ApacheKafka):
    """Apache Kafka with StandardAuthorizer."""


class SecuredBarnabas(Secured, BarnabasProcess):
    """Barnabas with both listeners."""


class SecuredEmbedded(Secured, EmbeddedBarnabas):
    """Barnabas in the process of the test."""


def librdkafka_login(user: str, password: str = PASSWORD) -> dict[str, str]:
    """Return the login settings of confluent-kafka and kcat."""
    return librdkafka_settings(Login("PLAIN", user, password))


def python_login(user: str, password: str = PASSWORD) -> dict[str, str]:
    """Return the login settings of kafka-python and aiokafka."""
    return kafka_python_settings(Login("PLAIN", user, password))


def client_settings(user: str, password: str = PASSWORD) -> dict[str, str]:
    """Return the login settings of Java's clients and Spark."""
    return java_settings(Login("PLAIN", user, password))
