"""Settings of SASL and access control, under Kafka's keys.

A key that protects something either works or stops the start: what cannot be honoured here is
refused by its validator or by ``broker/config/protection.py``, never passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.broker.config.fields import setting
from barnabas.broker.config.oauth import OAuthConfig
from barnabas.broker.config.scram_credentials import ScramCredentials
from barnabas.broker.config.types import Between, ConfigType, Matches, Value, at_least
from barnabas.protocol.sasl.scram import ITERATIONS_MAX, ITERATIONS_MIN

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST, PASSWORD = ConfigType.LIST, ConfigType.PASSWORD

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# Kafka 4.0 removed the last two, which have the same rules.
AUTHORIZERS = (
    rf"|{STANDARD_AUTHORIZER}|kafka\.security\.authorizer\.AclAuthorizer"
    r"|kafka\.security\.auth\.SimpleAclAuthorizer"
)


_SUPER_USER = re.compile(r"User:.+")


def super_users_of(text: str) -> list[str]:
    """Split ``super.users`` at semicolons, since names may have commas."""
    return [name.strip() for name in text.split(";") if name.strip()]


@dataclass(frozen=True, slots=True)
class SuperUsers:
    """Validator of ``super.users``: an invalid principal would have no effect and no message."""

    def problem(self, value: Value) -> str | None:
        """Return the first text that is no principal."""
        for name in super_users_of(str(value)):
            if not _SUPER_USER.fullmatch(name):
                return f"{name} must be User:name, in this spelling"
        return None

    @property
    def accepted(self) -> str:
        """Description of the accepted form."""
        return "User:name, separated by semicolons"


@dataclass(frozen=True, slots=True)
class SecurityConfig(OAuthConfig):
    """Authentication, authorization and audit."""

    # ---------- SASL
    sasl_enabled_mechanisms: tuple[str, ...] = setting("sasl.enabled.mechanisms", LIST, ("GSSAPI",))
    """Mechanisms of SASL listeners: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. GSSAPI is not
    available."""
    sasl_jaas_config: str | None = setting("sasl.jaas.config", PASSWORD, None)
    """Users of one mechanism of a listener. A broker ignores it without the prefix of listener and
    mechanism."""
    sasl_server_max_receive_size: int = setting(
        "sasl.server.max.receive.size", INT, 524_288, at_least(1024)
    )
    """Largest request before a client has logged in."""
    connections_max_reauth_ms: int = setting("connections.max.reauth.ms", LONG, 0, at_least(0))
    """Lifetime of an authentication before the client must repeat it; 0 means no limit."""
    connection_failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms", INT, 100, at_least(0)
    )
    """Delay of the response to a failed authentication."""
    login_failures_per_address_max: int = setting(
        "barnabas.login.failures.per.address.max", INT, 300, at_least(1)
    )
    """Failed logins from one address (of IPv6: one network of 64 bits) in a minute. More
    connections from there are closed until it is fewer."""
    login_failures_delayed_max: int = setting(
        "barnabas.login.failures.delayed.max", INT, 1000, at_least(0)
    )
    """Maximum number of failed authentications with a delayed response; further ones are not
    delayed."""
    sasl_jaas_file: str | None = setting("barnabas.sasl.jaas.file", STRING, None)
    """JAAS file with the users of listeners that have no sasl.jaas.config: a section <listener in
    lower case>.KafkaServer, or KafkaServer. Also set by KAFKA_OPTS with
    -Djava.security.auth.login.config=<file>."""
    scram_credentials: str | None = setting(
        "barnabas.scram.credentials", PASSWORD, None, ScramCredentials()
    )
    """Users of SCRAM to create at a start unless they exist, as for kafka-storage --add-scram:
    SCRAM-SHA-256=[name=admin,password=...], separated by commas."""
    scram_iterations: int = setting(
        "barnabas.scram.iterations", INT, ITERATIONS_MIN, Between(ITERATIONS_MIN, ITERATIONS_MAX)
    )
    """Iterations of the users that are created at a start, and of the responses for unknown users:
    equal, since a difference would reveal which users exist."""
    login_timeout_ms: int = setting("barnabas.login.timeout.ms", LONG, 10_000, at_least(1))
    """Time for the TLS handshake and for the authentication, each."""

    # ---------- access control
    authorizer_class_name: str = setting(
        "authorizer.class.name",
        STRING,
        "",
        Matches(AUTHORIZERS, f"empty or {STANDARD_AUTHORIZER}; no other class can be loaded"),
    )
    """Access control by ACLs: org.apache.kafka.metadata.authorizer.StandardAuthorizer. If empty,
    every client has all permissions."""
    super_users: str = setting("super.users", STRING, "", SuperUsers())
    """Users with all permissions regardless of ACLs: User:name, separated by semicolons."""
    allow_everyone_if_no_acl_found: bool = setting("allow.everyone.if.no.acl.found", BOOLEAN, False)
    """Whether all clients have all permissions on a resource without an ACL."""

    # ---------- quotas
    quota_window_num: int = setting("quota.window.num", INT, 11, at_least(1))
    """Windows over which the bytes and the time of a client with a quota are counted."""
    quota_window_size_seconds: int = setting("quota.window.size.seconds", INT, 1, at_least(1))
    """Length of one window of a quota, in seconds."""
    controller_quota_window_num: int = setting("controller.quota.window.num", INT, 11, at_least(1))
    """Windows whose changes of partitions a client with a quota may make at once."""
    controller_quota_window_size_seconds: int = setting(
        "controller.quota.window.size.seconds", INT, 1, at_least(1)
    )
    """Length of one window in which controller mutations are counted."""

    # ---------- HTTP
    http_bearer_token: str | None = setting(
        "barnabas.http.bearer.token", PASSWORD, None, Matches(r"(?s).+", "at least one character")
    )
    """Token that a request over HTTP must present, as in Authorization: Bearer TOKEN, except for
    probes and for users of a SASL listener. Without one, a port on a loopback address requires
    nothing, and any other port requires such a user."""
    http_allowed_hosts: tuple[str, ...] = setting("barnabas.http.allowed.hosts", LIST, ())
    """Names by which browsers may call the HTTP port, besides localhost, addresses, and the names
    of listeners."""

    # ---------- audit
    audit_log: str = setting("barnabas.audit.log", STRING, "")
    """File for the audit log, one JSON object a line; if empty, audit lines are among the other log
    lines."""
    audit_allowed: bool = setting("barnabas.audit.allowed", BOOLEAN, False)
    """Whether the audit log also contains allowed requests to read, write and describe."""

    # ---------- secrets
    config_providers: tuple[str, ...] = setting("config.providers", LIST, ())
    """Names of the config providers for references such as ${file:/path:key}; each has a
    config.providers.<name>.class."""
