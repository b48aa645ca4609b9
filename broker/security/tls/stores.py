"""Key stores and trust stores: from settings to a key, its certificates, and trusted authorities.

The first bytes of a file determine its type, not the configuration: today's keytool writes PKCS12
and calls it JKS. Rules about several settings, and their messages, are Apache Kafka's
(DefaultSslEngineFactory). Keys of TlsError are those of brokers and Java clients.
"""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from barnabas.broker.security.tls.certificates import Certificate
from barnabas.broker.security.tls.der import MalformedDer
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.pem import (
    MalformedPem,
    PemBlock,
    certificates,
    pem_blocks,
    private_keys,
)
from barnabas.broker.security.tls.pkcs12 import Pkcs12Refused, read_pkcs12

KEY_STORE: Final = "ssl.keystore.location"
KEY_STORE_PASSWORD: Final = "ssl.keystore.password"  # noqa: S105  the name of a setting
KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105  the name of a setting
KEY: Final = "ssl.keystore.key"
CHAIN: Final = "ssl.keystore.certificate.chain"
TRUST_STORE: Final = "ssl.truststore.location"
TRUST_STORE_PASSWORD: Final = "ssl.truststore.password"  # noqa: S105  the name of a setting
TRUSTED: Final = "ssl.truststore.certificates"

STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
STORE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Maximum size of a store; a store with all authorities of the browsers has a quarter of a
megabyte."""

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_DER: Final = b"\x30"
_PEM_KEY_ONLY: Final = (
    "SSL key store password cannot be specified with PEM format, only key password may be specified"
)
_PEM_NEEDS_NONE: Final = "SSL trust store password cannot be specified for PEM format"


@dataclass(frozen=True, slots=True, repr=False)
class KeyStoreSettings:
    """Location of a key and its certificates."""

    type: str = "JKS"
    location: str | None = None
    password: str | None = None
    key_password: str | None = None
    key: str | None = None
    certificate_chain: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class TrustStoreSettings:
    """Location of the certificates that verify the peer's."""

    type: str = "JKS"
    location: str | None = None
    password: str | None = None
    certificates: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class KeyMaterial:
    """Private key and its certificates, its own first."""

    key_pem: str
    password: str | None
    """Password of ``key_pem``, or None if it is not encrypted."""
    chain: tuple[Certificate, ...]
    key_name: str = KEY_STORE
    """Setting that the key comes from."""
    chain_name: str = KEY_STORE


def load_key_store(settings: KeyStoreSettings) -> KeyMaterial | None:
    """Return the key and certificates of a key store, or None without one; raises TlsError."""
    if settings.key or settings.certificate_chain:
        return _inline_key_store(settings)
    if not settings.location:
        if settings.password:
            reason = "SSL key store is not specified, but key store password is specified"
            raise TlsError(KEY_STORE_PASSWORD, reason)
        return None
    data = read_file(KEY_STORE, settings.location)
    if data.startswith(_DER) and settings.type != "PEM":
        return _pkcs12_key_store(data, settings)
    blocks = _blocks_of_file(KEY_STORE, settings.location, data)
    if settings.password:
        raise TlsError(KEY_STORE_PASSWORD, _PEM_KEY_ONLY)
    return _pem_key(blocks, settings, KEY_STORE, KEY_STORE)


def load_trust_store(settings: TrustStoreSettings) -> tuple[Certificate, ...] | None:
    """Return the trusted authorities, or None if none are configured; raises TlsError."""
    if settings.certificates:
        if settings.type != "PEM":
            raise TlsError(TRUSTED, _not_pem("SSL trust store certs", "trust", settings.type))
        if settings.location:
            reason = "Both SSL trust store location and separate trust certificates are specified"
            raise TlsError(TRUSTED, reason)
        if settings.password:
            raise TlsError(TRUST_STORE_PASSWORD, _PEM_NEEDS_NONE)
        found = certificates(_blocks(TRUSTED, settings.certificates))
        return _certificates(TRUSTED, found)
    if not settings.location:
        if settings.password:
            reason = "SSL trust store is not specified, but trust store password is specified"
            raise TlsError(TRUST_STORE_PASSWORD, reason)
        return None
    data = read_file(TRUST_STORE, settings.location)
    if data.startswith(_DER) and settings.type != "PEM":
        try:
            store = read_pkcs12(data, settings.password)
        except Pkcs12Refused as error:
            raise _refused(error, TRUST_STORE, TRUST_STORE_PASSWORD) from None
        return _certificates(TRUST_STORE, [*store.chain, *store.others])
    blocks = _blocks_of_file(TRUST_STORE, settings.location, data)
    if settings.password:
        raise TlsError(TRUST_STORE_PASSWORD, _PEM_NEEDS_NONE)
    return _certificates(TRUST_STORE, certificates(blocks))


# ---------------------------------------------------------------------------------- key stores


def _inline_key_store(settings: KeyStoreSettings) -> KeyMaterial:
    if not settings.key:
        raise TlsError(CHAIN, "SSL certificate chain is specified, but private key is not")
    if settings.type != "PEM":
        raise TlsError(KEY, _not_pem("SSL private key", "key", settings.type))
    if not settings.certificate_chain:
        raise TlsError(KEY, "SSL private key is specified, but certificate chain is not specified")
    if settings.location:
        raise TlsError(KEY, "Both SSL key store location and separate private key are specified")
    if settings.password:
        raise TlsError(KEY_STORE_PASSWORD, _PEM_KEY_ONLY)
    blocks = [*_blocks(KEY, settings.key), *_blocks(CHAIN, settings.certificate_chain)]
    return _pem_key(blocks, settings, KEY, CHAIN)


def _not_pem(subject: str, store: str, kind: str) -> str:
    return f"{subject} can be specified only for PEM, but {store} store type is {kind}"


def _pem_key(
    blocks: list[PemBlock], settings: KeyStoreSettings, key_name: str, chain_name: str
) -> KeyMaterial:
    keys = private_keys(blocks)
    if len(keys) != 1:
        raise TlsError(key_name, f"exactly one private key is expected, there are {len(keys)}")
    password = settings.key_password or None
    if keys[0].is_encrypted_key and password is None:
        raise TlsError(key_name, f"the private key is encrypted, and {KEY_PASSWORD} is not set")
    chain = _certificates(chain_name, certificates(blocks))
    return KeyMaterial(keys[0].text, password, _checked(chain, chain_name), key_name, chain_name)


def _pkcs12_key_store(data: bytes, settings: KeyStoreSettings) -> KeyMaterial:
    if not settings.password:
        reason = "SSL key store is specified, but key store password is not specified"
        raise TlsError(KEY_STORE, reason)
    if settings.key_password not in {None, "", settings.password}:
        reason = f"a PKCS12 store has one password for all: set it to that of {KEY_STORE_PASSWORD}"
        raise TlsError(KEY_PASSWORD, reason)
    try:
        store = read_pkcs12(data, settings.password)
    except Pkcs12Refused as error:
        raise _refused(error, KEY_STORE, KEY_STORE_PASSWORD) from None
    if store.key_pem is None:
        raise TlsError(KEY_STORE, "the store has no private key")
    others = _certificates(KEY_STORE, store.others) if store.others else ()
    chain = _ordered(_certificates(KEY_STORE, store.chain), others)
    return KeyMaterial(store.key_pem, None, chain)


def _ordered(
    own: tuple[Certificate, ...], others: tuple[Certificate, ...]
) -> tuple[Certificate, ...]:
    """Order the certificates, each before its issuer; a store may hold unrelated ones."""
    by_subject = {each.subject_der: each for each in others}
    chain = list(own)
    while not chain[-1].is_self_issued and len(chain) <= len(others):
        issuer = by_subject.get(chain[-1].issuer_der)
        if issuer is None:
            break
        chain.append(issuer)
    return tuple(chain)


def _checked(chain: tuple[Certificate, ...], name: str) -> tuple[Certificate, ...]:
    """Return a chain in which each certificate issues the previous one; raises TlsError."""
    for number, (each, issuer) in enumerate(pairwise(chain), 1):
        if each.issuer_der != issuer.subject_der:
            raise TlsError(
                name,
                f"the chain is broken: certificate {number} ({each.subject}) was not issued by "
                f"certificate {number + 1} ({issuer.subject}); the broker's own comes first",
            )
    return chain


# ---------------------------------------------------------------------------------- both kinds


def read_file(name: str, path: str) -> bytes:
    """Read a regular file, not a pipe or a device, which may have no end; raises TlsError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise TlsError(name, f"{path}: not a file")
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(STORE_BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise TlsError(name, f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > STORE_BYTES_MAX:
        raise TlsError(name, f"{path}: larger than {STORE_BYTES_MAX} bytes")
    return data


def _blocks_of_file(name: str, path: str, data: bytes) -> list[PemBlock]:
    if data.startswith((_JKS, _JCEKS)):
        raise TlsError(name, _conversion(path, "JKS" if data.startswith(_JKS) else "JCEKS"))
    text = data.decode("utf-8", "replace")
    if "-----BEGIN " not in text:
        raise TlsError(name, f"{path}: neither PEM nor PKCS12")
    return _blocks(name, text)


def _conversion(path: str, kind: str) -> str:
    target = f"{path.removesuffix('.jks').removesuffix('.jceks')}.p12"
    command = shlex.join(
        [
            *("keytool", "-importkeystore", "-srckeystore", path, "-srcstoretype", kind),
            *("-destkeystore", target, "-deststoretype", "PKCS12"),
        ]
    )
    return f"{path} is a {kind} store, which cannot be read; convert it: {command}"


def _blocks(name: str, text: str) -> list[PemBlock]:
    try:
        return pem_blocks(text)
    except MalformedPem as error:
        raise TlsError(name, f"no PEM: {error}") from None


def _certificates(name: str, encoded: list[bytes]) -> tuple[Certificate, ...]:
    if not encoded:
        raise TlsError(name, "at least one certificate is expected, there is none")
    found = []
    for number, each in enumerate(encoded, 1):
        try:
            found.append(Certificate(each))
        except MalformedDer as error:
            raise TlsError(name, f"certificate {number} cannot be read: {error}") from None
    return tuple(found)


def _refused(error: Pkcs12Refused, name: str, password_name: str) -> TlsError:
    return TlsError(password_name if error.wants_password else name, str(error))
