"""Logins and permissions of a broker for tests: ``Broker(security=Security(...))``.

Certificates are created in memory, once for a process: one authority that clients trust, one
certificate for the brokers, and one for each user that needs it. So are the keys of tokens.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.broker.config.security_protocols import PROTOCOLS, has_login, has_tls
from barnabas.broker.security.acls.acls import EVERYWHERE, Acl
from barnabas.broker.security.acls.operations import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.broker.security.sasl.client_settings import ClientSettings
from barnabas.broker.security.sasl.jaas_modules import MODULES
from barnabas.broker.security.tls.client import client_context
from barnabas.broker.security.tls.issuing import Authority, Issued
from barnabas.protocol.sasl.jaas import JaasModule, jaas_text
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.runtime.clock import now_seconds

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

HOST: Final = "127.0.0.1"
HOSTS: Final = ("localhost", HOST, "::1")
"""Host names and addresses of a test's broker."""
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKENS: Final = "OAUTHBEARER"
ISSUER: Final = "https://barnabas.test"
AUDIENCE: Final = "barnabas"
_NOT_IN_PASSWORDS: Final = frozenset('"\n\r\0')
_NOT_IN_NAMES: Final = _NOT_IN_PASSWORDS | frozenset("\\,+<>;=#")
"""Characters that a certificate escapes, or a list of users cannot contain."""

ClientCertificates: TypeAlias = Literal["none", "requested", "required"]
Style: TypeAlias = Literal["kafka-python", "confluent", "librdkafka", "aiokafka", "java", "spark"]
STYLES: Final[tuple[Style, ...]] = get_args(Style)
_WITHOUT_TOKENS: Final = frozenset(("java", "librdkafka", "spark"))
"""Clients with text settings only, which get tokens from a URL or a file."""


# ----------------------------------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Permission or denial for a user, created by ``allow`` and ``deny``."""

    acls: tuple[Acl, ...]


def allow(
    user: str,
    *operations: str,
    topic: str | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    cluster: bool = False,
    prefixed: bool = False,
    host: str = EVERYWHERE,
) -> AccessRule:
    """Permit operations to a user: ``allow("alice", "READ", "WRITE", topic="orders")``.

    Operations are Kafka's. A name may be "*", for all, or with ``prefixed`` the beginning of names;
    user "*" is all users.
    """
    names = _names(topic, group, transactional_id, cluster=cluster)
    return _rule(Permission.ALLOW, user, operations, names, host, is_prefix=prefixed)


def deny(
    user: str,
    *operations: str,
    topic: str | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    cluster: bool = False,
    prefixed: bool = False,
    host: str = EVERYWHERE,
) -> AccessRule:
    """Forbid operations to a user, which overrides ``allow``."""
    names = _names(topic, group, transactional_id, cluster=cluster)
    return _rule(Permission.DENY, user, operations, names, host, is_prefix=prefixed)


def _names(
    topic: str | None, group: str | None, transactional_id: str | None, *, cluster: bool
) -> dict[ResourceType, str]:
    named = {
        ResourceType.TOPIC: topic,
        ResourceType.GROUP: group,
        ResourceType.TRANSACTIONAL_ID: transactional_id,
        ResourceType.CLUSTER: CLUSTER_NAME if cluster else None,
    }
    return {kind: name for kind, name in named.items() if name is not None}


def _rule(
    permission: Permission,
    user: str,
    operations: Sequence[str],
    names: Mapping[ResourceType, str],
    host: str,
    *,
    is_prefix: bool,
) -> AccessRule:
    if not operations or not names:
        raise ValueError("a rule names operations, and a topic, group, transactional_id or cluster")
    known = [operation.name for operation in Operation]
    for operation in operations:
        if operation.upper() not in known:
            raise ValueError(f"{operation} is none of {', '.join(known)}")
    pattern = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    return AccessRule(
        tuple(
            Acl(kind, name, pattern, f"User:{user}", host, Operation[each.upper()], permission)
            for kind, name in names.items()
            for each in operations
        )
    )


# -------------------------------------------------------------------------------------- security


@dataclass(frozen=True, kw_only=True)
class Security:
    """Protection of a broker for tests; raises ValueError for invalid settings."""

    protocol: str = "SASL_SSL"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, on the one listener."""
    users: Mapping[str, str] | Collection[str] = field(default=(), repr=False)
    """Passwords by user, or names alone: then the password of "alice" is "alice-secret"."""
    mechanisms: Sequence[str] = ("SCRAM-SHA-512",)
    """Mechanisms for logins: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."""
    super_users: Collection[str] = ()
    """Users with all permissions; without ``acls`` no other user has any."""
    acls: Collection[AccessRule] | None = None
    """Permissions of the other users: ``[allow("alice", "READ", topic="orders")]``. Without super
    users and rules there is no access control."""
    client_certificates: ClientCertificates | None = None
    """Whether clients show a certificate. None requires it only if ``users`` have no other login,
    as with the protocol SSL."""

    def __post_init__(self) -> None:
        """Check the settings."""
        for name in ("users", "mechanisms", "super_users"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name}: several names are expected, not one text")  # noqa: TRY004
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol: {self.protocol} is none of {', '.join(PROTOCOLS)}")
        known = (*PASSWORD_MECHANISMS, TOKENS)
        for mechanism in self.mechanisms:
            if mechanism not in known:
                raise ValueError(f"mechanisms: {mechanism} is none of {', '.join(known)}")
        for name, password in self.passwords.items():
            if not name or _NOT_IN_NAMES & set(name):
                raise ValueError(f"users: {name!r} is empty or has a special character")
            if not password or _NOT_IN_PASSWORDS & set(password):
                raise ValueError(f"users: the password of {name} cannot be used here")
        if self.has_login and not (self.passwords and self.mechanisms):
            raise ValueError(f"users: no user can authenticate with {self.protocol}")
        if self.protocol == "PLAINTEXT" and self.passwords:
            raise ValueError("users: a PLAINTEXT listener authenticates no user")
        if self.client_auth != "none" and not self.has_tls:
            raise ValueError(f"client_certificates: there are none with {self.protocol}")

    @property
    def passwords(self) -> dict[str, str]:
        """Return the password of each user."""
        if isinstance(self.users, Mapping):
            return dict(self.users)
        return {name: f"{name}-secret" for name in self.users}

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return has_tls(self.protocol)

    @property
    def has_login(self) -> bool:
        """Whether clients have to log in."""
        return has_login(self.protocol)

    @property
    def client_auth(self) -> str:
        """Return the value of ``ssl.client.auth``: none, requested or required."""
        if self.client_certificates is not None:
            return self.client_certificates
        return "required" if self.protocol == "SSL" and self.passwords else "none"

    @property
    def rules(self) -> list[Acl]:
        """Return the ACLs that the broker starts with."""
        return [acl for rule in self.acls or () for acl in rule.acls]

    def settings(self, port: int) -> dict[str, str]:
        """Return the broker's settings."""
        found = {"listeners": f"{self.protocol}://{HOST}:{port}"}
        if self.has_tls:
            found |= self._tls_settings()
        if self.has_login:
            found |= self._login_settings()
        super_users = list(self.super_users)
        if super_users or self.acls is not None:
            found["authorizer.class.name"] = STANDARD_AUTHORIZER
            found["super.users"] = ";".join(f"User:{name}" for name in super_users)
        return found

    def _tls_settings(self) -> dict[str, str]:
        own = broker_certificate()
        found = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": own.key_pem,
            "ssl.keystore.certificate.chain": own.certificate_pem,
        }
        if self.client_auth != "none":
            found |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": authority().certificate_pem,
                f"listener.name.{self.protocol.lower()}.ssl.client.auth": self.client_auth,
                "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            }
        return found

    def _login_settings(self) -> dict[str, str]:
        found = {"sasl.enabled.mechanisms": ",".join(self.mechanisms)}
        listener = f"listener.name.{self.protocol.lower()}"
        if "PLAIN" in self.mechanisms:
            users = {f"user_{user}": password for user, password in self.passwords.items()}
            module = JaasModule(MODULES["PLAIN"], "required", users)
            found[f"{listener}.plain.sasl.jaas.config"] = jaas_text(module)
        credentials = [
            f'{mechanism}=[name="{user}",password="{password}"]'
            for mechanism in self.mechanisms
            if mechanism.startswith("SCRAM-")
            for user, password in self.passwords.items()
        ]
        if credentials:
            found["barnabas.scram.credentials"] = ",".join(credentials)
        if TOKENS in self.mechanisms:
            found |= {
                "sasl.oauthbearer.jwks.endpoint.url": f"file://{_token_keys().path}",
                "sasl.oauthbearer.expected.issuer": ISSUER,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
            }
        return found

    def client_settings(
        self, servers: str, user: str | None, password: str | None, mechanism: str | None
    ) -> ClientSettings:
        """Return a user's connection; raises ValueError for an unknown user."""
        if user is None and self.has_login:
            raise ValueError(f"say as which user: {', '.join(self.passwords)}")
        if user is not None and user not in self.passwords and password is None:
            raise ValueError(f"no user is named {user}, only {', '.join(self.passwords) or '-'}")
        shown = None
        if user is not None and self.client_auth != "none":
            shown = client_certificate(user)
        return ClientSettings(
            servers=servers,
            protocol=self.protocol,
            ca_pem=authority().certificate_pem if self.has_tls else None,
            key_pem=None if shown is None else shown.key_pem,
            certificate_pem=None if shown is None else shown.certificate_pem,
            mechanism=(mechanism or self.mechanisms[0]) if self.has_login else None,
            user=user or "",
            password=self.passwords.get(user or "", "") if password is None else password,
        )


NO_SECURITY: Final = Security(protocol="PLAINTEXT")


# ---------------------------------------------------------------------------- once for a process


@cache
def authority() -> Authority:
    """Return the authority of all brokers of this process."""
    return Authority.create("Barnabas test CA")


@cache
def broker_certificate() -> Issued:
    """Return the certificate of all brokers."""
    return authority().issue("localhost", HOSTS)


@cache
def client_certificate(user: str) -> Issued:
    """Return a user's certificate."""
    return authority().issue(user)


class _TokenKeys:
    """Key that signs tokens, and the file with its public part for brokers."""

    _KEY_ID: Final = "test"

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key: EllipticCurvePrivateKey = ec.generate_private_key(ec.SECP256R1())
        directory = tempfile.mkdtemp(prefix="barnabas-keys-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        self.path = os.path.join(directory, "keys.json")
        numbers = self._key.public_key().public_numbers()
        entry = {"kty": "EC", "crv": "P-256", "kid": self._KEY_ID, "alg": "ES256"}
        entry |= {"x": _base64(numbers.x), "y": _base64(numbers.y)}
        keys = json.dumps({"keys": [entry]})
        LocalFileSystem().write_file_atomically(self.path, keys.encode())

    def sign(self, claims: Mapping[str, object]) -> str:
        """Return a token with these claims."""
        import jwt

        return jwt.encode(dict(claims), self._key, "ES256", headers={"kid": self._KEY_ID})


@cache
def _token_keys() -> _TokenKeys:
    return _TokenKeys()


def _base64(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(32)).rstrip(b"=").decode()


def token_of(user: str, lifetime_s: float) -> str:
    """Return a token of a user."""
    now_s = now_seconds()
    times = {"iat": int(now_s), "exp": int(now_s + lifetime_s)}
    return _token_keys().sign({"sub": user, "iss": ISSUER, "aud": AUDIENCE, **times})


# ------------------------------------------------------------------------------------ for clients


def client_config(settings: ClientSettings, style: Style, token: str | None) -> dict[str, Any]:
    """Return settings for a client; raises ValueError for an unknown kind of client."""
    if style in _WITHOUT_TOKENS and token is not None:
        raise ValueError(f"{style} gets its tokens from a URL or a file: see Broker.token")
    if style in {"java", "spark"}:
        prefix = "kafka." if style == "spark" else ""
        return {f"{prefix}{key}": value for key, value in settings.java().items()}
    if style in {"confluent", "librdkafka"}:
        found: dict[str, Any] = {**settings.librdkafka()}
        if token is not None:
            expires_s = now_seconds() + TOKEN_LIFETIME_S
            found["oauth_cb"] = lambda _config: (token, expires_s)
        return found
    if style not in STYLES:
        raise ValueError(f"{style} is none of {', '.join(STYLES)}")
    found = {**settings.kafka_python()}
    if settings.has_tls:
        stores = {key: text for key, text in settings.java().items() if key.startswith("ssl.")}
        found["ssl_context"] = client_context(stores)
    if token is not None:
        found["sasl_oauth_token_provider"] = _token_provider(style, token)
    return found


TOKEN_LIFETIME_S: Final = 3600.0
_PROVIDERS: Final = {"aiokafka": "aiokafka.abc", "kafka-python": "kafka.net.sasl.oauth"}
"""Module of the base class of a client's token provider."""


def _token_provider(style: str, token: str) -> object:
    """Return a provider of one token, in the client's form."""
    base = import_module(_PROVIDERS[style]).AbstractTokenProvider

    async def later(_self: object) -> str:
        return token

    method = later if style == "aiokafka" else lambda _self: token
    return type("TokenProvider", (base,), {"token": method})()
