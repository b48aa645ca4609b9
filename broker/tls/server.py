"""The server's side: a context for the connections of one listener."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.tls.certificates import Certificate
from barnabas.broker.tls.contexts import CIPHER_SUITES, PROTOCOLS, new_context, use_key, use_trust
from barnabas.broker.tls.errors import TlsError
from barnabas.broker.tls.stores import (
    KEY_STORE,
    KeyStoreSettings,
    TrustStoreSettings,
    load_key_store,
    load_trust_store,
)

if TYPE_CHECKING:
    import ssl

CLIENT_AUTH: Final = ("none", "requested", "required")

_TRIES_MAX: Final = 10
"""Steps of a handshake with oneself; it takes three."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a listener says about TLS."""

    key_store: KeyStoreSettings = field(default_factory=KeyStoreSettings)
    trust_store: TrustStoreSettings = field(default_factory=TrustStoreSettings)
    client_auth: str = "none"
    protocols: tuple[str, ...] = PROTOCOLS
    cipher_suites: tuple[str, ...] = ()


class ServerTls(NamedTuple):
    """A context, and the certificates that it shows."""

    context: ssl.SSLContext
    chain: tuple[Certificate, ...]

    @property
    def not_after_s(self) -> int:
        """When the first of its certificates ends, in seconds since the epoch."""
        return min(each.not_after_s for each in self.chain)


def server_tls(settings: ServerSettings) -> ServerTls:
    """Return what a listener needs, tried by a handshake; raises TlsError."""
    import ssl

    material = load_key_store(settings.key_store)
    if material is None:
        raise TlsError(KEY_STORE, "a listener with TLS needs a private key and its certificate")
    context = new_context(settings.protocols, settings.cipher_suites, is_server=True)
    use_key(context, material)
    trusted = load_trust_store(settings.trust_store)
    context.verify_mode = {
        "none": ssl.CERT_NONE,
        "requested": ssl.CERT_OPTIONAL,
        "required": ssl.CERT_REQUIRED,
    }[settings.client_auth]
    if settings.client_auth != "none":
        use_trust(context, trusted)
    _try_handshake(context)
    return ServerTls(context, material.chain)


def _try_handshake(context: ssl.SSLContext) -> None:
    """Raise TlsError where not even a client that accepts everything could connect."""
    import ssl

    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.verify_mode = ssl.CERT_NONE
    client_context.set_ciphers("ALL")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    is_done = False
    for _ in range(_TRIES_MAX):
        for end in (client, server):
            try:
                end.do_handshake()
                is_done = is_done or end is server
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
                    return  # So far did it come: this client has none.
                reason = f"no client could connect: {error.reason or error}"
                raise TlsError(CIPHER_SUITES, reason) from None
        if is_done:
            return
    raise TlsError(CIPHER_SUITES, "no client could connect")
