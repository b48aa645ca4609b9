"""Private certificate authority, for tests and for a first broker with TLS.

Keys are of P-256: fast to create, small, and supported by every client. ``cryptography`` is
imported when a certificate is issued, so that other brokers do not load it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self

from barnabas.storage.runtime.chance import random_bytes
from barnabas.storage.runtime.clock import now_seconds

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 825
"""Validity of a certificate, in days: the longest that every client accepts (Apple's limit)."""
_CLOCKS_DIFFER: Final = timedelta(hours=1)
"""Time by which a certificate is valid before its creation, for clocks that are behind."""


class CannotIssue(Exception):
    """Certificate that cannot be issued; the message is the reason, for a user."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A private key and its certificate, in PEM."""

    key_pem: str = field(repr=False)
    """PKCS #8, not encrypted: the caller must restrict the access to its file."""
    certificate_pem: str
    not_after: datetime
    """Time until which it is valid, in UTC."""


class Authority:
    """Issuer of certificates."""

    def __init__(self, certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, name: str) -> Self:
        """Create an authority with the common name ``name``; the rest of its subject is random.

        Clients would confuse two authorities with one name in a trust store.
        """
        key = _new_key()
        subject = _name(f"{name} {random_bytes(4).hex()}")
        builder = _builder(subject, subject, key, AUTHORITY_DAYS)
        return cls(_signed_as_authority(builder, key), key)

    @classmethod
    def load(cls, certificate_pem: str, key_pem: str) -> Self:
        """Read an authority that was created before; raises CannotIssue."""
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        certificate = _certificate_in(certificate_pem)
        try:
            key = load_pem_private_key(key_pem.encode(), None)
        except (ValueError, TypeError):
            raise CannotIssue("no unencrypted private key was found") from None
        if not isinstance(key, EllipticCurvePrivateKey):
            raise CannotIssue("the private key is not of an elliptic curve, as Barnabas makes them")
        if key.public_key() != certificate.public_key():
            raise CannotIssue("the private key is not that of the certificate")
        return cls(certificate, key)

    @property
    def certificate_pem(self) -> str:
        """Return the certificate that clients must trust."""
        return _pem(self._certificate)

    @property
    def key_pem(self) -> str:
        """Return the private key, which can sign certificates that clients trust."""
        return _key_pem(self._key)

    def issue(self, common_name: str, hosts: Sequence[str] = ()) -> Issued:
        """Return the certificate of a server with these host names, or of a client.

        Hosts are DNS names or addresses. Raises ValueError for a name that no certificate can hold.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        ends = self._certificate.not_valid_after_utc
        subject = _name(common_name)
        builder = _builder(self._certificate.subject, subject, key, CERTIFICATE_DAYS, ends)
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Issued(_key_pem(key), _pem(certificate), certificate.not_valid_after_utc)

    def renew(self, certificate_pem: str, more_hosts: Sequence[str] = ()) -> Issued:
        """Return a new certificate for the names in a server's certificate; raises CannotIssue."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature
        from cryptography.x509.oid import NameOID

        before = _certificate_in(certificate_pem)
        try:
            before.verify_directly_issued_by(self._certificate)
        except (InvalidSignature, ValueError, TypeError):
            raise CannotIssue("the certificate is not signed by this authority") from None
        if self._certificate.not_valid_after_utc <= _now():
            raise CannotIssue("the authority itself is not valid any more: clients need a new one")
        names = before.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        try:
            found = before.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            raise CannotIssue("the certificate has no host name") from None
        hosts = [
            *found.get_values_for_type(x509.DNSName),
            *map(str, found.get_values_for_type(x509.IPAddress)),
        ]
        if len(names) != 1 or len(before.subject) != 1 or len(hosts) != len(list(found)):
            raise CannotIssue("the certificate was not created by 'barnabas init'")
        return self.issue(str(names[0].value), list(dict.fromkeys([*hosts, *more_hosts])))


def _builder(
    issuer: x509.Name,
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    days: int,
    ends: datetime | None = None,
) -> x509.CertificateBuilder:
    """Return the parts of every certificate; it is valid for ``days``, but not beyond ``ends``."""
    from cryptography import x509

    now = _now()
    last = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(last if ends is None else min(last, ends))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _now() -> datetime:
    return datetime.fromtimestamp(now_seconds(), UTC)


def _certificate_in(text: str) -> x509.Certificate:
    """Return the first certificate of a text that may have a key, too."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(text.encode())[0]
    except ValueError:
        raise CannotIssue("no certificate in PEM was found") from None


def _signed_as_authority(
    builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
