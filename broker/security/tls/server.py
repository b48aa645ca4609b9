"""TLS of servers: a context for the connections of one listener."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.security.tls.certificates import Certificate
from barnabas.broker.security.tls.contexts import (
    CIPHER_SUITES,
    PROTOCOLS,
    new_context,
    use_key,
    use_trust,
)
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.stores import (
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
"""Maximum number of steps of a handshake with itself, which needs three."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """TLS settings of a listener."""

    key_store: KeyStoreSettings = field(default_factory=KeyStoreSettings)
    trust_store: TrustStoreSettings = field(default_factory=TrustStoreSettings)
    client_auth: str = "none"
    protocols: tuple[str, ...] = PROTOCOLS
    cipher_suites: tuple[str, ...] = ()


Files = tuple[tuple[str, int, int, int] | None, ...]
"""Identity of each store's file, or None if it does not exist."""


class ServerTls(NamedTuple):
    """Context, and the certificates that it shows."""

    context: ssl.SSLContext
    chain: tuple[Certificate, ...]
    key_name: str
    """Setting that they come from."""
    files: Files
    """Identity of the files before they were read."""

    @property
    def not_before_s(self) -> int:
        """Return the latest start of validity of its certificates, in seconds since the epoch."""
        return max(each.not_before_s for each in self.chain)

    @property
    def not_after_s(self) -> int:
        """Return the earliest end of validity of its certificates, in seconds since the epoch."""
        return min(each.not_after_s for each in self.chain)


def server_tls(settings: ServerSettings) -> ServerTls:
    """Return a listener's context, checked by a handshake; raises TlsError."""
    import ssl

    files = files_of(settings)
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
    return ServerTls(context, material.chain, material.chain_name, files)


def files_of(settings: ServerSettings) -> Files:
    """Return the identity of the stores' files, which changes if a file is replaced.

    It includes the target of links: Kubernetes puts a new directory behind the same names.
    """
    locations = (settings.key_store.location, settings.trust_store.location)
    return tuple(_identity(location) for location in locations)


def _identity(location: str | None) -> tuple[str, int, int, int] | None:
    if not location:
        return None
    try:
        target = os.path.realpath(location)
        status = os.stat(target)
    except (OSError, ValueError):
        return None
    return target, status.st_mtime_ns, status.st_size, status.st_ino


def _try_handshake(context: ssl.SSLContext) -> None:
    """Raise TlsError if not even a client that accepts everything could connect."""
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
