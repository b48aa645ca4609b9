"""Barnabas and Apache Kafka with the same users: listeners that ask for a login, beside one that
does not; and, where there is an authority, listeners with TLS, and rights that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.broker.security.acls.operations import Operation, ResourceType
from tests.broker.security.access_users import allow
from tests.certificates import DAY, Authority, Credential
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.logins import LOGIN_MODULES
from tests.counterparts.probe import free_port
from tests.issuer import AUDIENCE, ISSUER, standard_set

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
LIFETIME_MS = 3000
LIFETIMES_MS = {"reauth": LIFETIME_MS, "lasting": 600_000}
"""Lifetimes of logins, by listener."""
SUPER_USER = "bob"
"""The super user where ACLs apply, as is a client that has not logged in."""
TLS_LISTENERS = {
    "TLS": "SSL",
    "MTLS": "SSL",
    "SECURE": "SASL_SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
}
"""One that asks for no certificate, one that does, one with logins; and two with certificates that
a client must not take: of yesterday, and of another host."""

_PLAIN_USERS = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
_MODULES = {
    "plain": f"{LOGIN_MODULES}.plain.PlainLoginModule required {_PLAIN_USERS};",
    "scram-sha-256": f"{LOGIN_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{LOGIN_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f"{LOGIN_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
}


def tls_settings(authority: Authority, directory: Path) -> dict[str, str]:
    """Return the settings of both brokers for the listeners with TLS, and for ACLs."""
    directory.mkdir(parents=True, exist_ok=True)
    trusted = directory / "trusted.pem"
    trusted.write_text(authority.root_pem)
    good = authority.issue()
    certificates = {
        "EXPIRED": authority.issue(begins=-2 * DAY, ends=-DAY),
        "ELSEWHERE": authority.issue("CN=elsewhere.example", hosts=("elsewhere.example",)),
    }
    settings = {
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+),O=Barn$/$1/,DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{SUPER_USER}",
    }
    for name in TLS_LISTENERS:
        prefix = f"listener.name.{name.lower()}.ssl"
        own = store(directory / f"{name.lower()}.pem", certificates.get(name, good))
        settings |= {
            f"{prefix}.keystore.type": "PEM",
            f"{prefix}.keystore.location": own,
            f"{prefix}.truststore.type": "PEM",
            f"{prefix}.truststore.location": str(trusted),
        }
    return settings


def store(path: Path, credential: Credential) -> str:
    """Write a key and its certificates into a file; return where it is."""
    path.write_text(credential.key_pem() + credential.chain_pem)
    return str(path)


def rights(user: str, topic: str = "*") -> list[Any]:
    """Return the ACLs of a user that writes, also in transactions, and reads in groups."""
    return [
        *allow(user, ResourceType.TOPIC, topic, *RIGHTS_ON_TOPICS),
        *allow(user, ResourceType.GROUP, topic, Operation.READ),
        *allow(user, ResourceType.TRANSACTIONAL_ID, topic, Operation.WRITE),
    ]


RIGHTS_ON_TOPICS = (Operation.READ, Operation.WRITE, Operation.CREATE)


def login_settings(ports: Mapping[str, int], directory: Path) -> dict[str, str]:
    """Return the settings of both brokers: SASL, and two listeners whose logins end.

    Those of REAUTH hold for three seconds, those of LASTING for longer than any test runs.
    """
    directory.mkdir(parents=True, exist_ok=True)
    keys = directory / "keys.json"
    keys.write_bytes(standard_set())
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            [
                "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,REAUTH:SASL_PLAINTEXT",
                "LASTING:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                *(f"{name}:{protocol}" for name, protocol in TLS_LISTENERS.items()),
            ]
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for listener in ("sasl", *LIFETIMES_MS, *(["secure"] if "SECURE" in ports else [])):
        prefix = f"listener.name.{listener}"
        for mechanism, module in _MODULES.items():
            settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = module
        settings[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = (
            f"{LOGIN_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        )
    for listener, lifetime_ms in LIFETIMES_MS.items():
        for mechanism in _MODULES:
            key = f"listener.name.{listener}.{mechanism}.connections.max.reauth.ms"
            settings[key] = str(lifetime_ms)
    return settings


class SecuredBroker(BrokerProcess):
    """The common part of both brokers: ports by listener names, TLS with an authority only."""

    def __init__(
        self, directory: Path, authority: Authority | None = None, **overrides: str
    ) -> None:
        super().__init__(directory, **overrides)
        names = ("SASL", "REAUTH", "LASTING")
        self.ports = {"PLAINTEXT": self.port} | {name: free_port() for name in names}
        if authority is not None:
            self.ports |= {name: free_port() for name in TLS_LISTENERS}
            self.overrides = tls_settings(authority, directory / "tls") | self.overrides
        self.overrides = login_settings(self.ports, directory) | self.overrides

    def address(self, listener: str = "SASL") -> tuple[str, int]:
        return HOST, self.ports[listener]

    def servers(self, listener: str = "SASL") -> str:
        return f"{HOST}:{self.ports[listener]}"


class SecuredBarnabas(SecuredBroker, BarnabasProcess):
    """Barnabas; it responds to a failed login after 100 ms, as Apache Kafka does."""


class SecuredKafka(SecuredBroker, ApacheKafka):
    """Apache Kafka."""

    def __init__(
        self, directory: Path, authority: Authority | None = None, **overrides: str
    ) -> None:
        super().__init__(directory, authority, **overrides)
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
