"""Certificates that Barnabas issues: every client accepts them, and no other authority's."""

from __future__ import annotations

import ipaddress
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from barnabas.broker.security.tls.client import client_context
from barnabas.broker.security.tls.issuing import AUTHORITY_DAYS, CERTIFICATE_DAYS, Authority
from barnabas.broker.security.tls.server import ServerSettings, server_tls
from barnabas.broker.security.tls.stores import KeyStoreSettings, TrustStoreSettings
from tests.checkout import SOURCES


@pytest.fixture(scope="module")
def authority():
    return Authority.create("Test CA")


@pytest.fixture(scope="module")
def server(authority):
    return authority.issue("broker", ("localhost", "127.0.0.1", "::1"))


def parsed(pem):
    return x509.load_pem_x509_certificate(pem.encode())


def extension(certificate, kind):
    return certificate.extensions.get_extension_for_class(kind)


def test_issued_certificates_have_expected_extensions(authority, server):
    root, leaf = parsed(authority.certificate_pem), parsed(server.certificate_pem)
    leaf.verify_directly_issued_by(root)
    assert extension(root, x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert extension(root, x509.KeyUsage).value.key_cert_sign
    assert extension(leaf, x509.BasicConstraints).value == x509.BasicConstraints(False, None)
    assert not extension(leaf, x509.KeyUsage).value.key_cert_sign
    names = extension(leaf, x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    ]
    # Python 3.13 and newer verify strictly, and want these two.
    identifier = extension(root, x509.SubjectKeyIdentifier).value.digest
    assert extension(leaf, x509.AuthorityKeyIdentifier).value.key_identifier == identifier
    for certificate, days in ((root, AUTHORITY_DAYS), (leaf, CERTIFICATE_DAYS)):
        left = certificate.not_valid_after_utc - datetime.now(UTC)
        assert timedelta(days=days - 1) < left <= timedelta(days=days)


def test_a_client_may_not_be_a_server(authority, server):
    client = authority.issue("alice")
    usages = [
        list(extension(parsed(each.certificate_pem), x509.ExtendedKeyUsage).value)
        for each in (client, server)
    ]
    oid = x509.oid.ExtendedKeyUsageOID
    assert usages == [[oid.CLIENT_AUTH], [oid.SERVER_AUTH]]


def test_two_authorities_of_one_name_are_two():
    first, second = (parsed(Authority.create("CA").certificate_pem) for _ in range(2))
    assert first.subject != second.subject


def handshake(server, client, hostname="localhost"):
    """Run a handshake between two contexts; raises the error of the client or the server."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=hostname),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends


def contexts(authority, server, shown=None):
    settings = ServerSettings(
        key_store=KeyStoreSettings(
            type="PEM", key=server.key_pem, certificate_chain=server.certificate_pem
        ),
        trust_store=TrustStoreSettings(type="PEM", certificates=authority.certificate_pem),
        client_auth="required" if shown else "none",
    )
    keys = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate_pem}
    if shown:
        keys |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": shown.key_pem,
            "ssl.keystore.certificate.chain": shown.certificate_pem,
        }
    client = client_context(keys)
    # What Python 3.13 does by itself.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    return server_tls(settings).context, client


@pytest.mark.parametrize("hostname", ["localhost", "127.0.0.1", "::1"])
def test_both_sides_take_them(authority, server, hostname):
    ends = handshake(*contexts(authority, server, authority.issue("alice")), hostname)
    assert ends[1].getpeercert()["subject"] == ((("commonName", "alice"),),)


def test_certificates_of_other_authority_are_refused(authority, server):
    other = Authority.create("Test CA")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(*contexts(other, server))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(*contexts(authority, server), hostname="elsewhere")


def test_a_name_that_fits_into_no_certificate(authority):
    with pytest.raises(ValueError):
        authority.issue("x" * 65)
    with pytest.raises(ValueError):
        authority.issue("broker", ["bücher.example"])


def test_the_module_costs_nothing_until_it_is_used():
    code = (
        "import sys; import barnabas.broker.security.tls.issuing; "
        "sys.exit('cryptography' in sys.modules or 'ssl' in sys.modules)"
    )
    environment = {"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
