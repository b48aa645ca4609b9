"""The client's side, in both spellings."""

import hashlib
import ssl

import pytest

from barnabas.broker.security.tls.client import CLIENT_KEYS, client_context
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.server import ServerSettings, server_tls
from barnabas.broker.security.tls.stores import KeyStoreSettings, TrustStoreSettings
from tests.broker.tls.handshakes import Pair
from tests.certificates import Authority, self_signed


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def server(authority):
    """A listener that asks for certificates and can do without."""
    issued = authority.issue("CN=broker", hosts=("broker.example", "10.1.2.3"))
    store = KeyStoreSettings(type="PEM", key=issued.key_pem(), certificate_chain=issued.chain_pem)
    trust = TrustStoreSettings(type="PEM", certificates=authority.root_pem)
    return server_tls(ServerSettings(store, trust, client_auth="requested")).context


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def shake(server, settings, host="broker.example"):
    return Pair(server, client_context(settings), host).shake()


def test_trust_stores(server, authority, write):
    pem, p12 = write("ca.pem", authority.root_pem), write("ca.p12", authority.pkcs12("pw"))
    for settings in (
        {"ssl.truststore.location": pem},
        {"ssl.truststore.location": pem, "ssl.truststore.type": "pem"},
        {"ssl.truststore.location": p12, "ssl.truststore.password": "pw"},
        {"ssl.truststore.certificates": authority.root_pem, "ssl.truststore.type": "PEM"},
        {"ssl.ca.location": pem},
        {"ssl.ca.pem": authority.root_pem.replace("\n", "\\n")},
    ):
        assert shake(server, settings).server.getpeercert() is None


def test_a_directory_of_authorities(server, authority, tmp_path):
    """By the hash of each name, as `openssl rehash` makes it."""
    # OpenSSL hashes the name in lower case, without the outermost tag.
    canonical = b"\x31\x10\x30\x0e\x06\x03\x55\x04\x03\x0c\x07test ca"
    digest = int.from_bytes(hashlib.sha1(canonical).digest()[:4], "little")
    (tmp_path / f"{digest:08x}.0").write_text(authority.root_pem)
    shake(server, {"ssl.ca.location": str(tmp_path)})


def test_client_certificates(server, authority, write):
    alice = authority.issue("CN=alice")
    trust = {"ssl.ca.pem": authority.root_pem}
    both = write("both.pem", alice.key_pem() + alice.chain_pem)
    key, locked = write("key.pem", alice.key_pem()), write("locked.pem", alice.key_pem("pw"))
    chain, p12 = write("chain.pem", alice.chain_pem), write("alice.p12", alice.pkcs12("pw"))
    for settings in (
        {"ssl.keystore.location": both},
        {"ssl.keystore.location": p12, "ssl.keystore.password": "pw"},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": alice.key_pem(),
            "ssl.keystore.certificate.chain": alice.chain_pem,
        },
        {"ssl.key.location": key, "ssl.certificate.location": chain},
        {"ssl.key.pem": alice.key_pem(), "ssl.certificate.pem": alice.chain_pem},
        {
            "ssl.key.location": locked,
            "ssl.key.password": "pw",
            "ssl.certificate.pem": alice.chain_pem,
        },
    ):
        pair = shake(server, trust | settings)
        assert pair.server.getpeercert(binary_form=True) == alice.der


def test_names_of_hosts(server, authority):
    trust = {"ssl.ca.pem": authority.root_pem}
    shake(server, trust, "10.1.2.3")
    for checked in ({}, {"ssl.endpoint.identification.algorithm": "HTTPS"}):
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            shake(server, trust | checked, "other.example")
    for unchecked in ("", "none"):
        settings = trust | {"ssl.endpoint.identification.algorithm": unchecked}
        shake(server, settings, "other.example")


def test_client_refuses_untrusted_server(server, authority):
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server, {"ssl.ca.pem": Authority("CN=Other").root_pem})
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server, {})
    shake(server, {"enable.ssl.certificate.verification": "false"}, "other.example")


def test_protocols_and_suites(server, authority):
    trust = {"ssl.ca.pem": authority.root_pem}
    pair = shake(server, trust | {"ssl.enabled.protocols": "TLSv1.2"})
    assert pair.client.version() == "TLSv1.2"
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    pair = shake(server, trust | {"ssl.cipher.suites": suite})
    assert pair.client.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"


def test_self_signed_servers_are_trusted_by_themselves(authority):
    own = self_signed()
    store = KeyStoreSettings(type="PEM", key=own.key_pem(), certificate_chain=own.chain_pem)
    server = server_tls(ServerSettings(store)).context
    shake(server, {"ssl.ca.pem": own.chain_pem}, "localhost")


@pytest.mark.parametrize(
    ("settings", "key", "reason"),
    [
        ({"ssl.ca.locatoin": "x"}, "ssl.ca.locatoin", "unknown; these are known: enable.ssl"),
        ({"ssl.ca.location": "/nowhere"}, "ssl.ca.location", "/nowhere: No such file"),
        ({"ssl.ca.pem": "x"}, "ssl.ca.pem", "at least one certificate"),
        ({"ssl.key.location": "/nowhere"}, "ssl.key.location", "/nowhere: No such file"),
        ({"ssl.key.pem": "x"}, "ssl.key.pem", "SSL private key is specified, but certificate"),
        ({"ssl.certificate.pem": "x"}, "ssl.certificate.pem", "SSL certificate chain is specified"),
        (
            {"ssl.ca.pem": "x", "ssl.truststore.certificates": "x"},
            "ssl.ca.pem",
            "ssl.truststore.certificates says the same",
        ),
        (
            {"ssl.ca.pem": "x", "ssl.ca.location": "/nowhere"},
            "ssl.ca.pem",
            "Both SSL trust store location and",
        ),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type", "BKS is none of JKS, PKCS12, PEM"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols", "TLSv1.1 is none of"),
        ({"ssl.cipher.suites": "AES"}, "ssl.cipher.suites", "AES is not available"),
        (
            {"ssl.endpoint.identification.algorithm": "http"},
            "ssl.endpoint.identification.algorithm",
            "http is none of https, none",
        ),
        (
            {"enable.ssl.certificate.verification": "no"},
            "enable.ssl.certificate.verification",
            "must be true or false",
        ),
    ],
)
def test_invalid_client_tls_setting_is_refused(settings, key, reason):
    with pytest.raises(TlsError) as raised:
        client_context(settings)
    assert (raised.value.key, raised.value.reason[: len(reason)]) == (key, reason)


def test_keys_of_a_jvm_are_taken_without_effect():
    assert client_context({"ssl.provider": "SunJSSE", "ssl.protocol": "TLSv1.3"})


def test_all_keys_are_keys_of_tls():
    assert all(".ssl." in f".{key}" for key in CLIENT_KEYS)
