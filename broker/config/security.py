"""Settings of SASL and access control, under Kafka's keys.

A key that protects something either works or stops the start: what cannot be honoured here is
refused by its validator or by ``broker/config/protection.py``, never passed over.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.fields import setting
from barnabas.broker.config.tls import TlsConfig
from barnabas.broker.config.types import ConfigType, Matches, at_least

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST, PASSWORD = ConfigType.LIST, ConfigType.PASSWORD

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# The last two are gone since Kafka 4.0, and mean the same rules.
AUTHORIZERS = (
    rf"|{STANDARD_AUTHORIZER}|kafka\.security\.authorizer\.AclAuthorizer"
    r"|kafka\.security\.auth\.SimpleAclAuthorizer"
)


@dataclass(frozen=True, slots=True)
class SecurityConfig(TlsConfig):
    """Who may connect, as whom, and what for."""

    # ---------- SASL
    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        "Mechanisms of SASL listeners: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. GSSAPI is "
        "not available.",
    )
    sasl_jaas_config: str | None = setting(
        "sasl.jaas.config",
        PASSWORD,
        None,
        "Users of one mechanism of a listener; without that prefix it has no effect on a broker.",
    )
    sasl_server_max_receive_size: int = setting(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        "Largest request before a client has logged in.",
        at_least(1024),
    )
    connections_max_reauth_ms: int = setting(
        "connections.max.reauth.ms",
        LONG,
        0,
        "How long a login holds before the client has to repeat it; 0 is for ever.",
        at_least(0),
    )
    connection_failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long a failed login waits for its answer.",
        at_least(0),
    )
    login_timeout_ms: int = setting(
        "barnabas.login.timeout.ms",
        LONG,
        10_000,
        "How long a client may take for the TLS handshake and for its login, each.",
        at_least(1),
    )

    # ---------- access control
    authorizer_class_name: str = setting(
        "authorizer.class.name",
        STRING,
        "",
        "Access control by ACLs: org.apache.kafka.metadata.authorizer.StandardAuthorizer. Empty: "
        "every client may do everything.",
        Matches(AUTHORIZERS, f"empty or {STANDARD_AUTHORIZER}; no other class can be loaded"),
    )
    super_users: str = setting(
        "super.users",
        STRING,
        "",
        "Who may do everything whatever ACLs say: User:name, separated by semicolons.",
    )
    allow_everyone_if_no_acl_found: bool = setting(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Whether every client may do everything to what no ACL applies to.",
    )
