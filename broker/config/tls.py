"""Settings of TLS, under Kafka's keys; each may be set for one listener alone.

What may change while the broker runs (``PER_BROKER``) does so for a listener only, in Kafka, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.connection_limits import ConnectionLimitsConfig
from barnabas.broker.config.fields import setting
from barnabas.broker.config.types import ConfigType, Matches, OneOf, UpdateMode, at_least

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LIST, PASSWORD = ConfigType.LIST, ConfigType.PASSWORD
PER_BROKER = UpdateMode.PER_BROKER

STORE_TYPES = Matches(r"(?i)JKS|PKCS12|PEM", "one of JKS, PKCS12, PEM")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True, slots=True)
class TlsConfig(ConnectionLimitsConfig):
    """Certificates of listeners with TLS, and the certificates of clients."""

    ssl_keystore_type: str = setting(
        "ssl.keystore.type", STRING, "JKS", STORE_TYPES, update=PER_BROKER
    )
    """Format of the store with the broker's key and certificate; the broker detects the real format
    of a file."""
    ssl_keystore_location: str | None = setting(
        "ssl.keystore.location", STRING, None, update=PER_BROKER
    )
    """File with the broker's key and certificate chain."""
    ssl_keystore_password: str | None = setting(
        "ssl.keystore.password", PASSWORD, None, update=PER_BROKER
    )
    """Password of that file."""
    ssl_keystore_key: str | None = setting("ssl.keystore.key", PASSWORD, None, update=PER_BROKER)
    """The broker's private key in PEM, instead of a file."""
    ssl_keystore_certificate_chain: str | None = setting(
        "ssl.keystore.certificate.chain", PASSWORD, None, update=PER_BROKER
    )
    """The broker's certificate chain in PEM, instead of a file."""
    ssl_key_password: str | None = setting("ssl.key.password", PASSWORD, None, update=PER_BROKER)
    """Password of the private key itself."""
    ssl_truststore_type: str = setting(
        "ssl.truststore.type", STRING, "JKS", STORE_TYPES, update=PER_BROKER
    )
    """Kind of the store with the certificates that clients' are verified by."""
    ssl_truststore_location: str | None = setting(
        "ssl.truststore.location", STRING, None, update=PER_BROKER
    )
    """File with the certificates that clients' are verified by."""
    ssl_truststore_password: str | None = setting(
        "ssl.truststore.password", PASSWORD, None, update=PER_BROKER
    )
    """Password of that file."""
    ssl_truststore_certificates: str | None = setting(
        "ssl.truststore.certificates", PASSWORD, None, update=PER_BROKER
    )
    """The certificates that clients' are verified by in PEM, instead of a file."""
    ssl_client_auth: str = setting(
        "ssl.client.auth", STRING, "none", OneOf(("required", "requested", "none"))
    )
    """Whether client certificates are requested. On SASL listeners only with the listener's own
    prefix, as in Kafka."""
    ssl_protocol: str = setting(
        "ssl.protocol", STRING, "TLSv1.3", OneOf(TLS_VERSIONS), update=PER_BROKER
    )
    """Newest version of TLS."""
    ssl_enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols", LIST, TLS_VERSIONS, OneOf(TLS_VERSIONS), update=PER_BROKER
    )
    """Versions of TLS that clients may use."""
    ssl_cipher_suites: tuple[str, ...] = setting("ssl.cipher.suites", LIST, (), update=PER_BROKER)
    """Cipher suites of TLS 1.2 by their IANA names; if empty, OpenSSL's choice."""
    ssl_principal_mapping_rules: str = setting("ssl.principal.mapping.rules", STRING, "DEFAULT")
    """Rules that map the name in a client's certificate to the name of its user."""
    ssl_allow_dn_changes: bool = setting("ssl.allow.dn.changes", BOOLEAN, False)
    """Whether a certificate may be replaced by one of another name while the broker runs."""
    ssl_allow_san_changes: bool = setting("ssl.allow.san.changes", BOOLEAN, False)
    """Whether a certificate may be replaced by one with fewer alternative names."""
    tls_handshakes_max: int = setting("barnabas.tls.handshakes.max", INT, 1000, at_least(1))
    """Maximum number of TLS handshakes in progress. Beyond it, the oldest handshake of the address
    with the most handshakes is ended."""
