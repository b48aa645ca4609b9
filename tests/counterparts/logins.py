"""Credentials of a client, in the spelling of each library; none is imported without need."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

LOGIN_MODULES = "org.apache.kafka.common.security"
TOKEN_LIFETIME_S = 600


@dataclass(frozen=True)
class Tls:
    """The trusted certificates of a client, and its own: files of PEM."""

    trusted: str
    own: str = ""
    """The client's key and certificates, or empty if it has none."""


@dataclass(frozen=True)
class Login:
    """The credentials of a client; without a mechanism its certificate, or none at all."""

    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    tls: Tls | None = None

    @property
    def protocol(self) -> str:
        """The security protocol that this takes."""
        transport = "PLAINTEXT" if self.tls is None else "SSL"
        return f"SASL_{transport}" if self.mechanism else transport


NOBODY = Login()
"""A client that does not log in."""


def librdkafka_settings(login: Login) -> dict[str, Any]:
    """Return the settings of confluent-kafka."""
    found: dict[str, Any] = {"security.protocol": login.protocol}
    if login.tls is not None:
        found["ssl.ca.location"] = login.tls.trusted
        if login.tls.own:
            found |= {"ssl.certificate.location": login.tls.own, "ssl.key.location": login.tls.own}
    if login.mechanism:
        found["sasl.mechanism"] = login.mechanism
    if login.token:
        expires = time.time() + TOKEN_LIFETIME_S
        found["oauth_cb"] = lambda _config: (login.token, expires)
    elif login.mechanism:
        found |= {"sasl.username": login.user, "sasl.password": login.password}
    return found


def kafka_python_settings(login: Login) -> dict[str, Any]:
    """Return the settings of kafka-python."""
    found = _python_settings(login)
    if login.token:
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Token(AbstractTokenProvider):
            def token(self) -> str:
                return login.token

        found["sasl_oauth_token_provider"] = Token()
    if login.tls is not None:
        found["ssl_cafile"] = login.tls.trusted
        if login.tls.own:
            found |= {"ssl_certfile": login.tls.own, "ssl_keyfile": login.tls.own}
    return found


def aiokafka_settings(login: Login) -> dict[str, Any]:
    """Return the settings of aiokafka."""
    found = _python_settings(login)
    if login.token:
        from aiokafka.abc import AbstractTokenProvider

        class Token(AbstractTokenProvider):
            async def token(self) -> str:
                return login.token

        found["sasl_oauth_token_provider"] = Token()
    if login.tls is not None:
        from aiokafka.helpers import create_ssl_context

        own = login.tls.own or None
        found["ssl_context"] = create_ssl_context(
            cafile=login.tls.trusted, certfile=own, keyfile=own
        )
    return found


def java_settings(login: Login) -> dict[str, str]:
    """Return the settings of Java's clients and Spark; they read a token from a file."""
    found = {"security.protocol": login.protocol}
    if login.tls is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": login.tls.trusted}
        if login.tls.own:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": login.tls.own}
    if login.mechanism:
        found["sasl.mechanism"] = login.mechanism
    if login.mechanism and not login.token:
        kind = "plain.Plain" if login.mechanism == "PLAIN" else "scram.Scram"
        found["sasl.jaas.config"] = (
            f"{LOGIN_MODULES}.{kind}LoginModule required "
            f'username="{login.user}" password="{login.password}";'
        )
    return found


def _python_settings(login: Login) -> dict[str, Any]:
    found: dict[str, Any] = {"security_protocol": login.protocol}
    if login.mechanism:
        found["sasl_mechanism"] = login.mechanism
    if login.mechanism and not login.token:
        found |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return found
