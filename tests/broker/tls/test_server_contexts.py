"""TLS of a listener, shown by handshakes."""

import ssl

import pytest

from barnabas.broker.security.tls.cipher_suites import TLS12_SUITES, TLS13_SUITES
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.server import ServerSettings, server_tls
from barnabas.broker.security.tls.stores import KeyStoreSettings, TrustStoreSettings
from tests.broker.descriptors import left_open_since, open_descriptors
from tests.broker.tls.handshakes import Pair, anyone, with_certificate
from tests.certificates import Authority, rsa_key, self_signed

TLS12 = {"maximum_version": ssl.TLSVersion.TLSv1_2}
TLS13 = {"minimum_version": ssl.TLSVersion.TLSv1_3}


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def issued(authority):
    return authority.issue("CN=broker")


def inline(credential, password=None):
    return KeyStoreSettings(
        type="PEM",
        key=credential.key_pem(password),
        certificate_chain=credential.chain_pem,
        key_password=password,
    )


def settings(credential, **others):
    return ServerSettings(key_store=inline(credential), **others)


def trusting(authority):
    return TrustStoreSettings(type="PEM", certificates=authority.root_pem)


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_handshake(issued, version):
    tls = server_tls(settings(issued))
    pair = Pair(tls.context, anyone(**version)).shake()
    assert pair.client.getpeercert(binary_form=True) == issued.der
    assert tls.not_after_s == int(issued.certificate.not_valid_after_utc.timestamp())
    assert pair.server.compression() is None


def test_renegotiation_is_off(issued):
    assert server_tls(settings(issued)).context.options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.parametrize("kind", ["PKCS8", "traditional", "encrypted", "RSA"])
def test_kinds_of_keys(authority, issued, kind):
    store = inline(issued)
    if kind == "traditional":
        text = issued.key_pem(traditional=True)
        store = KeyStoreSettings(type="PEM", key=text, certificate_chain=issued.chain_pem)
    elif kind == "encrypted":
        store = inline(issued, "secret")
    elif kind == "RSA":
        store = inline(authority.issue(key=rsa_key()))
    Pair(server_tls(ServerSettings(key_store=store)).context, anyone()).shake()


def test_nothing_is_left_open(issued):
    before = open_descriptors()
    server_tls(settings(issued))
    assert not left_open_since(before)


@pytest.mark.parametrize(
    ("protocols", "refused"),
    [(("TLSv1.2",), TLS13), (("TLSv1.3",), TLS12)],
)
def test_protocols(issued, protocols, refused):
    context = server_tls(settings(issued, protocols=protocols)).context
    Pair(context, anyone()).shake()
    with pytest.raises(ssl.SSLError):
        Pair(context, anyone(**refused)).shake()


def test_a_suite_of_tls_12_leaves_no_other_and_no_tls_13(issued):
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)
    context = server_tls(settings(issued, cipher_suites=suites)).context
    pair = Pair(context, anyone()).shake()
    assert pair.client.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
    with pytest.raises(ssl.SSLError):
        Pair(context, anyone(**TLS13)).shake()


def test_all_suites_of_tls_13_leave_no_tls_12(issued):
    context = server_tls(settings(issued, cipher_suites=TLS13_SUITES)).context
    Pair(context, anyone()).shake()
    with pytest.raises(ssl.SSLError):
        Pair(context, anyone(**TLS12)).shake()


@pytest.mark.parametrize("name", TLS12_SUITES)
def test_every_suite_is_known_to_openssl(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(f"{TLS12_SUITES[name]}:@SECLEVEL=0")
    (found,) = [each for each in context.get_ciphers() if each["name"] == TLS12_SUITES[name]]
    # OpenSSL knows IANA's two octets of each: those of the standard.
    assert found["id"] & 0xFFFF in STANDARD_IDS


STANDARD_IDS = {
    *(0x2F, 0x35, 0x3C, 0x3D, 0x9C, 0x9D),
    *(0xC009, 0xC00A, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028),
    *(0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9),
}


def test_the_table_is_complete():
    assert len(TLS12_SUITES) == len(STANDARD_IDS)


def refusal(tls_settings):
    with pytest.raises(TlsError) as raised:
        server_tls(tls_settings)
    return raised.value.key, raised.value.reason


def test_suites_that_cannot_be_honoured(issued):
    def of(*suites, **others):
        return refusal(settings(issued, cipher_suites=suites, **others))

    assert of("TLS_DHE_RSA_WITH_AES_128_CBC_SHA") == (
        "ssl.cipher.suites",
        "TLS_DHE_RSA_WITH_AES_128_CBC_SHA is not available",
    )
    if not hasattr(ssl.SSLContext, "set_ciphersuites"):
        assert "cannot choose among the suites of TLS 1.3" in of("TLS_AES_256_GCM_SHA384")[1]
    assert of("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256") == (
        "ssl.cipher.suites",
        "no client could connect: NO_SHARED_CIPHER",
    )
    assert of(*TLS13_SUITES, protocols=("TLSv1.2",)) == (
        "ssl.cipher.suites",
        "none of these suites belongs to TLSv1.2",
    )


def test_keys_that_do_not_fit(authority, issued):
    other = authority.issue()
    store = KeyStoreSettings(type="PEM", key=other.key_pem(), certificate_chain=issued.chain_pem)
    assert refusal(ServerSettings(key_store=store)) == (
        "ssl.keystore.certificate.chain",
        "the private key does not belong to the certificate",
    )
    of_another_kind = authority.issue(key=rsa_key())
    store = KeyStoreSettings(
        type="PEM", key=of_another_kind.key_pem(), certificate_chain=issued.chain_pem
    )
    assert "does not belong" in refusal(ServerSettings(key_store=store))[1]


def test_a_key_that_is_too_short(authority):
    weak = authority.issue(key=rsa_key(size=1024))
    key, reason = refusal(settings(weak))
    assert key == "ssl.keystore.certificate.chain"
    assert reason == "OpenSSL holds the certificate to be too weak: ee key too small"


def test_a_password_that_is_wrong(issued):
    store = KeyStoreSettings(
        type="PEM",
        key=issued.key_pem("secret"),
        certificate_chain=issued.chain_pem,
        key_password="wrong",
    )
    assert refusal(ServerSettings(key_store=store)) == (
        "ssl.key.password",
        "the private key cannot be opened by this password",
    )


def test_a_key_that_is_none(issued):
    key = "-----BEGIN PRIVATE KEY-----\nMAMCAQM=\n-----END PRIVATE KEY-----\n"
    store = KeyStoreSettings(type="PEM", key=key, certificate_chain=issued.chain_pem)
    key, reason = refusal(ServerSettings(key_store=store))
    assert key == "ssl.keystore.key"
    assert reason.startswith("the private key cannot be read")


def test_no_key_at_all():
    assert refusal(ServerSettings()) == (
        "ssl.keystore.location",
        "a listener with TLS needs a private key and its certificate",
    )


def test_client_certificates(authority, issued):
    alice = authority.issue("CN=alice")
    mallory = Authority("CN=Other CA").issue("CN=alice")
    for asked in ("none", "requested", "required"):
        context = server_tls(
            settings(issued, client_auth=asked, trust_store=trusting(authority))
        ).context
        pair = Pair(context, with_certificate(alice)).shake()
        expected = None if asked == "none" else alice.der
        assert pair.server.getpeercert(binary_form=True) == expected
        if asked == "none":
            Pair(context, with_certificate(mallory)).shake()
        else:
            with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
                Pair(context, with_certificate(mallory)).shake()
        if asked == "required":
            with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
                Pair(context, anyone()).shake()
        else:
            Pair(context, anyone()).shake()


def test_a_certificate_may_be_trusted_by_itself(issued):
    """A certificate in the trust store needs no issuer there, as in Java."""
    parent = Authority("CN=Between", parent=Authority("CN=Root"))
    alice = parent.issue("CN=alice")
    trust = TrustStoreSettings(type="PEM", certificates=parent.chain_pem)
    context = server_tls(settings(issued, client_auth="required", trust_store=trust)).context
    Pair(context, with_certificate(alice)).shake()
    own = self_signed("CN=alice")
    trust = TrustStoreSettings(type="PEM", certificates=own.chain_pem)
    context = server_tls(settings(issued, client_auth="required", trust_store=trust)).context
    Pair(context, with_certificate(own)).shake()


def test_unreadable_trust_store_is_refused_without_client_auth(issued):
    trust = TrustStoreSettings(location="/nowhere.pem")
    assert refusal(settings(issued, trust_store=trust))[0] == "ssl.truststore.location"
