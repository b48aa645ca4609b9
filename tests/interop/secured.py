"""Barnabas and Apache Kafka with the same users: listeners that ask for a login, beside one that
does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.probe import free_port
from tests.issuer import AUDIENCE, ISSUER, standard_set

LOGIN_MODULES = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
LIFETIME_MS = 3000

_PLAIN_USERS = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
_MODULES = {
    "plain": f"{LOGIN_MODULES}.plain.PlainLoginModule required {_PLAIN_USERS};",
    "scram-sha-256": f"{LOGIN_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{LOGIN_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f"{LOGIN_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
}


def login_settings(ports: Mapping[str, int], directory: Path) -> dict[str, str]:
    """Return what both brokers are told: SASL, and REAUTH, whose logins hold for three seconds."""
    directory.mkdir(parents=True, exist_ok=True)
    keys = directory / "keys.json"
    keys.write_bytes(standard_set())
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
        "REAUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for listener in ("sasl", "reauth"):
        prefix = f"listener.name.{listener}"
        for mechanism, module in _MODULES.items():
            settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = module
        settings[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = (
            f"{LOGIN_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        )
    for mechanism in _MODULES:
        settings[f"listener.name.reauth.{mechanism}.connections.max.reauth.ms"] = str(LIFETIME_MS)
    return settings


class SecuredBroker(BrokerProcess):
    """What both have: ports by the names of listeners."""

    def __init__(self, directory: Path, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self.ports = {"PLAINTEXT": self.port, "SASL": free_port(), "REAUTH": free_port()}
        self.overrides = login_settings(self.ports, directory) | self.overrides

    def address(self, listener: str = "SASL") -> tuple[str, int]:
        return HOST, self.ports[listener]

    def servers(self, listener: str = "SASL") -> str:
        return f"{HOST}:{self.ports[listener]}"


class SecuredBarnabas(SecuredBroker, BarnabasProcess):
    """Barnabas; a failed login is answered after 100 ms, as Apache Kafka does it."""


class SecuredKafka(SecuredBroker, ApacheKafka):
    """Apache Kafka."""

    def __init__(self, directory: Path, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        controller = f",CONTROLLER://{HOST}:{self._controller_port}"
        self.overrides["listeners"] += controller

    def start_options(self) -> Sequence[str]:
        # Since CVE-2025-27817 it reads no file that is not allowed beside its configuration.
        allowed = "org.apache.kafka.sasl.oauthbearer.allowed"
        keys = self.directory / "keys.json"
        return [
            *super().start_options(),
            f"-D{allowed}.urls=file://{keys}",
            f"-D{allowed}.files={keys}",
        ]
