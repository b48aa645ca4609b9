"""Certificates for tests, made here and now."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

HOSTS = ("localhost", "127.0.0.1", "::1")
DAY = timedelta(days=1)


@cache
def rsa_key(number: int = 0, size: int = 2048):
    """A key that takes long to make, made once."""
    return rsa.generate_private_key(65537, size)


def subject(text: str) -> x509.Name:
    """A name from "CN=alice,O=Barn", written into the certificate in the reverse order."""
    return x509.Name.from_rfc4514_string(text)


class Credential:
    """A key, its certificate, and those of who vouches for it."""

    def __init__(self, key, certificate, issuers=()):
        self.key = key
        self.certificate = certificate
        self.issuers = tuple(issuers)

    @property
    def chain(self):
        return (self.certificate, *self.issuers)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def chain_pem(self) -> str:
        return "".join(map(pem, self.chain))

    def key_pem(self, password: str | None = None, *, traditional: bool = False) -> str:
        form = serialization.PrivateFormat
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            form.TraditionalOpenSSL if traditional else form.PKCS8,
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode()),
        ).decode()

    def pkcs12(self, password: str) -> bytes:
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"broker", self.key, self.certificate, self.issuers or None, encryption
        )


def pem(certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


class Authority(Credential):
    """Who signs certificates: a root, or what a root has signed."""

    def __init__(self, name: str = "CN=Test CA", parent: Authority | None = None):
        key = ec.generate_private_key(ec.SECP256R1())
        made = _made(subject(name), key, parent, key, is_authority=True)
        issuers = () if parent is None or parent.parent is None else parent.chain
        super().__init__(key, made, issuers)
        self.parent = parent

    @property
    def root_pem(self) -> str:
        return pem(self.certificate) if self.parent is None else self.parent.root_pem

    def issue(
        self,
        name: str = "CN=localhost",
        *,
        hosts=HOSTS,
        begins: timedelta = -DAY,
        ends: timedelta = 30 * DAY,
        key=None,
    ) -> Credential:
        key = key or ec.generate_private_key(ec.SECP256R1())
        made = _made(subject(name), key, self, self.key, hosts=hosts, begins=begins, ends=ends)
        return Credential(key, made, self.chain if self.parent is not None else ())


def self_signed(name: str = "CN=localhost", *, hosts=HOSTS) -> Credential:
    key = ec.generate_private_key(ec.SECP256R1())
    return Credential(key, _made(subject(name), key, None, key, hosts=hosts))


def _made(name, key, issuer, signer, *, is_authority=False, hosts=(), begins=-DAY, ends=30 * DAY):
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
    )
    if is_authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    if hosts:
        names = [_general_name(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
    return builder.sign(signer, hashes.SHA256())


def _general_name(host):
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
