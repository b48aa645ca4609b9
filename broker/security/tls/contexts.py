"""Contexts for ``ssl``: complete, with the pair of key and certificate tried, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.tls.cipher_suites import TLS12_SUITES, TLS13_SUITES
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.stores import KEY_PASSWORD, KeyMaterial

if TYPE_CHECKING:
    import ssl

    from barnabas.broker.security.tls.certificates import Certificate

PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
"""Older ones are broken (RFC 8996)."""
ENABLED_PROTOCOLS: Final = "ssl.enabled.protocols"
CIPHER_SUITES: Final = "ssl.cipher.suites"


def new_context(
    protocols: Sequence[str], suites: Sequence[str], *, is_server: bool
) -> ssl.SSLContext:
    """Return a context of some protocols and cipher suites; raises TlsError.

    ``suites`` are named as IANA does; none: those that Python and OpenSSL hold to be safe.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A root is not needed where the certificate in between is trusted by itself, as in Java.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if suites:
        protocols = _use_suites(context, protocols, suites)
    versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    chosen = [versions[each] for each in PROTOCOLS if each in protocols]
    context.minimum_version, context.maximum_version = chosen[0], chosen[-1]
    return context


def _use_suites(
    context: ssl.SSLContext, protocols: Sequence[str], suites: Sequence[str]
) -> list[str]:
    """Set the cipher suites; return the protocols that have one of them."""
    import ssl

    newer = [each for each in suites if each in TLS13_SUITES]
    older = [TLS12_SUITES[each] for each in suites if each in TLS12_SUITES]
    unknown = [each for each in suites if each not in TLS12_SUITES and each not in newer]
    if unknown:
        raise TlsError(CIPHER_SUITES, f"{unknown[0]} is not available")
    wants_newer = "TLSv1.3" in protocols and newer
    if wants_newer and set(newer) != set(TLS13_SUITES):
        if not hasattr(context, "set_ciphersuites"):
            reason = (
                "Python before 3.15 cannot choose among the suites of TLS 1.3: name all of "
                f"{', '.join(TLS13_SUITES)}, or take TLSv1.3 out of {ENABLED_PROTOCOLS}"
            )
            raise TlsError(CIPHER_SUITES, reason)
        context.set_ciphersuites(":".join(newer))
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise TlsError(CIPHER_SUITES, "OpenSSL has none of these suites") from None
    served = []
    if "TLSv1.2" in protocols and older:
        served.append("TLSv1.2")
    if wants_newer:
        served.append("TLSv1.3")
    if not served:
        raise TlsError(CIPHER_SUITES, f"none of these suites belongs to {', '.join(protocols)}")
    return served


def use_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """Give a context its key and certificates; raises TlsError."""
    import ssl

    chain = "".join(ssl.DER_cert_to_PEM_cert(each.der) for each in material.chain)

    def password() -> str:
        # Asked only for a key that is encrypted; without this OpenSSL would ask the terminal.
        return material.password or ""

    with _secret_file(f"{material.key_pem}{chain}") as path:
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            raise _key_refused(error, material) from None
        except ValueError as error:  # a password that is too long
            raise TlsError(KEY_PASSWORD, str(error)) from None


def _key_refused(error: ssl.SSLError, material: KeyMaterial) -> TlsError:
    reason = error.reason or ""
    # The second where one is of RSA and the other is not.
    if reason in {"KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED"}:
        text = "the private key does not belong to the certificate"
        return TlsError(material.chain_name, text)
    if reason in {"EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"}:
        words = reason.lower().replace("_", " ")
        text = f"OpenSSL holds the certificate to be too weak: {words}"
        return TlsError(material.chain_name, text)
    if material.password is not None:
        return TlsError(KEY_PASSWORD, "the private key cannot be opened by this password")
    text = f"the private key cannot be read: {reason or 'not a known form'}"
    return TlsError(material.key_name, text)


@contextmanager
def _secret_file(text: str) -> Iterator[str]:
    """Lend the name of a file with ``text``, since ``ssl`` reads keys from files only.

    The file is in memory where the system has such files, so that no key touches a disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("barnabas-key")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "w", closefd=False) as file:
            file.write(text)
        yield path
    finally:
        os.close(descriptor)
        if not hasattr(os, "memfd_create"):
            os.unlink(path)


def use_trust(context: ssl.SSLContext, trusted: Sequence[Certificate] | None) -> None:
    """Set the authorities that a context trusts, or the system's if ``trusted`` is None."""
    import ssl

    if trusted is None:
        server_side = context.protocol is ssl.PROTOCOL_TLS_SERVER
        purpose = ssl.Purpose.CLIENT_AUTH if server_side else ssl.Purpose.SERVER_AUTH
        context.load_default_certs(purpose)
    else:
        pem = "".join(ssl.DER_cert_to_PEM_cert(each.der) for each in trusted)
        context.load_verify_locations(cadata=pem)
