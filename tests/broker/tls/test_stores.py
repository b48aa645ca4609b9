"""Key stores and trust stores of every kind, and the errors of invalid ones."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.stores import (
    STORE_BYTES_MAX,
    KeyStoreSettings,
    TrustStoreSettings,
    load_key_store,
    load_trust_store,
)
from tests.certificates import Authority

STORES = Path(__file__).parent / "stores"
SECRET = "store-secret"
NOBODY = 65534
PEM_KEY_ONLY = (
    "SSL key store password cannot be specified with PEM format, only key password may be specified"
)


@pytest.fixture(scope="module")
def authority():
    return Authority("CN=Between", parent=Authority("CN=Root"))


@pytest.fixture(scope="module")
def issued(authority):
    return authority.issue("CN=broker,O=Barn")


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def subjects(certificates):
    return [each.subject for each in certificates]


# -------------------------------------------------------------------------------- what can be read


def test_pem_file(write, issued):
    path = write("store.pem", issued.chain_pem + issued.key_pem())
    material = load_key_store(KeyStoreSettings(type="PEM", location=path))
    assert subjects(material.chain) == ["CN=broker,O=Barn", "CN=Between"]
    assert material.key_pem == issued.key_pem()
    assert material.password is None


def test_store_format_is_read_from_file_not_from_type(write, issued):
    path = write("store.jks", issued.key_pem() + issued.chain_pem)
    assert load_key_store(KeyStoreSettings(type="JKS", location=path)).chain
    path = write("store.p12", issued.pkcs12(SECRET))
    for kind in ("JKS", "PKCS12"):
        assert load_key_store(KeyStoreSettings(type=kind, location=path, password=SECRET)).chain


@pytest.mark.parametrize("traditional", [True, False])
def test_encrypted_key_in_pem(write, issued, traditional):
    text = issued.key_pem("secret", traditional=traditional) + issued.chain_pem
    settings = KeyStoreSettings(location=write("store.pem", text), key_password="secret")
    assert load_key_store(settings).password == "secret"


def test_inline_pem(issued):
    settings = KeyStoreSettings(
        type="PEM",
        key=issued.key_pem().replace("\n", "\\n"),
        certificate_chain=issued.chain_pem.replace("\n", " "),
    )
    assert subjects(load_key_store(settings).chain) == ["CN=broker,O=Barn", "CN=Between"]


def test_pkcs12_in_any_order_with_more_than_the_chain(write, issued, authority):
    store = pkcs12.serialize_key_and_certificates(
        b"x",
        issued.key,
        issued.certificate,
        [Authority("CN=Other").certificate, authority.parent.certificate, authority.certificate],
        serialization.BestAvailableEncryption(SECRET.encode()),
    )
    path = write("store.p12", store)
    material = load_key_store(KeyStoreSettings(location=path, password=SECRET))
    assert subjects(material.chain) == ["CN=broker,O=Barn", "CN=Between", "CN=Root"]


def test_stores_of_keytool():
    path = str(STORES / "pkcs12.jks")
    material = load_key_store(KeyStoreSettings(location=path, password=SECRET))
    assert subjects(material.chain) == ["CN=localhost,OU=keytool,O=Barn", "CN=Keytool CA,O=Barn"]
    trusted = TrustStoreSettings(location=str(STORES / "truststore.p12"), password=SECRET)
    assert subjects(load_trust_store(trusted)) == ["CN=Keytool CA,O=Barn"]


def test_trust_store_of_pem(write, authority):
    path = write("trusted.pem", authority.chain_pem + authority.root_pem)
    assert subjects(load_trust_store(TrustStoreSettings(location=path))) == [
        "CN=Between",
        "CN=Root",
    ]
    inline = TrustStoreSettings(type="PEM", certificates=authority.root_pem)
    assert subjects(load_trust_store(inline)) == ["CN=Root"]


def test_a_key_store_as_trust_store(write, issued):
    path = write("store.p12", issued.pkcs12(SECRET))
    trusted = load_trust_store(TrustStoreSettings(location=path, password=SECRET))
    assert subjects(trusted) == ["CN=broker,O=Barn", "CN=Between"]


def test_nothing():
    assert load_key_store(KeyStoreSettings()) is None
    assert load_trust_store(TrustStoreSettings()) is None


def test_secrets_do_not_show(issued):
    settings = KeyStoreSettings(password="s3cret", key=issued.key_pem())
    assert "s3cret" not in repr(settings)
    assert "PRIVATE" not in repr(settings)


# ----------------------------------------------------------------------------- what cannot be read


def refusal(settings):
    load = load_key_store if isinstance(settings, KeyStoreSettings) else load_trust_store
    with pytest.raises(TlsError) as raised:
        load(settings)
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)
    return raised.value.key, raised.value.reason


@pytest.mark.parametrize(
    ("settings", "key", "reason"),
    [
        (
            KeyStoreSettings(type="PEM", certificate_chain="x"),
            "ssl.keystore.certificate.chain",
            "SSL certificate chain is specified, but private key is not",
        ),
        (
            KeyStoreSettings(type="PEM", key="x"),
            "ssl.keystore.key",
            "SSL private key is specified, but certificate chain is not specified",
        ),
        (
            KeyStoreSettings(type="PKCS12", key="x", certificate_chain="x"),
            "ssl.keystore.key",
            "SSL private key can be specified only for PEM, but key store type is PKCS12",
        ),
        (
            KeyStoreSettings(type="PEM", key="x", certificate_chain="x", location="y"),
            "ssl.keystore.key",
            "Both SSL key store location and separate private key are specified",
        ),
        (
            KeyStoreSettings(type="PEM", key="x", certificate_chain="x", password=SECRET),
            "ssl.keystore.password",
            PEM_KEY_ONLY,
        ),
        (
            KeyStoreSettings(password=SECRET),
            "ssl.keystore.password",
            "SSL key store is not specified, but key store password is specified",
        ),
        (
            KeyStoreSettings(location=str(STORES / "pkcs12.jks")),
            "ssl.keystore.location",
            "SSL key store is specified, but key store password is not specified",
        ),
        (
            TrustStoreSettings(certificates="x"),
            "ssl.truststore.certificates",
            "SSL trust store certs can be specified only for PEM, but trust store type is JKS",
        ),
        (
            TrustStoreSettings(type="PEM", certificates="x", location="y"),
            "ssl.truststore.certificates",
            "Both SSL trust store location and separate trust certificates are specified",
        ),
        (
            TrustStoreSettings(type="PEM", certificates="x", password=SECRET),
            "ssl.truststore.password",
            "SSL trust store password cannot be specified for PEM format",
        ),
        (
            TrustStoreSettings(password=SECRET),
            "ssl.truststore.password",
            "SSL trust store is not specified, but trust store password is specified",
        ),
        (
            TrustStoreSettings(location=str(STORES / "truststore.p12")),
            "ssl.truststore.password",
            "the store needs a password",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused_in_kafkas_words(settings, key, reason):
    assert refusal(settings) == (key, reason)


@pytest.mark.parametrize("name", ["jks.jks", "jceks.jceks"])
@pytest.mark.parametrize("kind", [KeyStoreSettings, TrustStoreSettings])
def test_a_real_jks_is_refused_with_the_command_that_converts_it(name, kind):
    path = str(STORES / name)
    stem, what = path.rpartition(".")[0], name.partition(".")[0].upper()
    key, reason = refusal(kind(location=path, password=SECRET))
    assert key in {"ssl.keystore.location", "ssl.truststore.location"}
    assert reason == (
        f"{path} is a {what} store, which cannot be read; convert it: keytool -importkeystore "
        f"-srckeystore {path} -srcstoretype {what} -destkeystore {stem}.p12 -deststoretype PKCS12"
    )


def test_a_wrong_password(write, issued):
    path = write("store.p12", issued.pkcs12("other"))
    assert refusal(KeyStoreSettings(location=path, password=SECRET)) == (
        "ssl.keystore.location",
        "the password is wrong, or the file is not a PKCS12 store",
    )
    assert refusal(TrustStoreSettings(location=path, password=SECRET))[0] == (
        "ssl.truststore.location"
    )


def test_a_password_of_the_key_alone(write, issued):
    path = write("store.p12", issued.pkcs12(SECRET))
    same = KeyStoreSettings(location=path, password=SECRET, key_password=SECRET)
    assert load_key_store(same).chain
    other = KeyStoreSettings(location=path, password=SECRET, key_password="other")
    assert refusal(other)[0] == "ssl.key.password"


def test_an_encrypted_key_without_its_password(write, issued):
    path = write("store.pem", issued.chain_pem + issued.key_pem("secret"))
    assert refusal(KeyStoreSettings(location=path)) == (
        "ssl.keystore.location",
        "the private key is encrypted, and ssl.key.password is not set",
    )


def test_a_broken_chain(write, issued, authority):
    wrong = issued.key_pem() + issued.chain_pem + Authority("CN=Other").chain_pem
    key, reason = refusal(KeyStoreSettings(location=write("store.pem", wrong)))
    assert key == "ssl.keystore.location"
    assert reason.startswith("the chain is broken: certificate 2 (CN=Between) was not issued by")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "neither PEM nor PKCS12"),
        (b"hello", "neither PEM nor PKCS12"),
        (b"\x30\x03\x02\x01\x03", "the password is wrong, or the file is not a PKCS12 store"),
        (b"x" * (STORE_BYTES_MAX + 1), f"larger than {STORE_BYTES_MAX} bytes"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA", "no PEM: a -----BEGIN is without its -----END"),
    ],
)
def test_a_file_that_is_no_store(write, content, reason):
    path = write("store", content)
    assert refusal(KeyStoreSettings(location=path, password=SECRET))[1].endswith(reason)
    assert refusal(TrustStoreSettings(location=path, password=SECRET))[1].endswith(reason)


def test_files_that_cannot_be_opened(tmp_path):
    missing = str(tmp_path / "missing.pem")
    assert refusal(KeyStoreSettings(location=missing))[1] == f"{missing}: No such file or directory"
    assert refusal(TrustStoreSettings(location=str(tmp_path)))[1].endswith("not a file")
    assert "null byte" in refusal(TrustStoreSettings(location="a\0b"))[1]


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reason = refusal(KeyStoreSettings(location=str(tmp_path / "pipe")))[1]
    assert reason.endswith("pipe: not a file")
    assert refusal(TrustStoreSettings(location="/dev/zero"))[1] == "/dev/zero: not a file"


def test_stores_without_what_is_needed(write, issued, authority):
    both = write("keys.pem", issued.key_pem() + authority.key_pem() + issued.chain_pem)
    assert refusal(KeyStoreSettings(location=both))[1].endswith("there are 2")
    only_chain = write("chain.pem", issued.chain_pem)
    assert refusal(KeyStoreSettings(location=only_chain))[1].endswith("there are 0")
    only_key = write("key.pem", issued.key_pem())
    none = "at least one certificate is expected, there is none"
    assert refusal(KeyStoreSettings(location=only_key))[1] == none
    assert refusal(TrustStoreSettings(location=only_key))[1] == none
    trust = str(STORES / "truststore.p12")
    reason = refusal(KeyStoreSettings(location=trust, password=SECRET))[1]
    assert reason == "the store has no private key"


def test_a_certificate_that_is_none(write):
    text = "-----BEGIN CERTIFICATE-----\nMAMCAQM=\n-----END CERTIFICATE-----\n"
    reason = refusal(TrustStoreSettings(location=write("x.pem", text)))[1]
    assert reason.startswith("certificate 1 cannot be read")


@contextmanager
def without_privileges():
    """Run as a user with limited permissions, since root may read everything."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


def test_a_file_that_may_not_be_read(write):
    path = write("store.pem", "x")
    os.chmod(path, 0)
    with without_privileges():
        assert refusal(KeyStoreSettings(location=path))[1] == f"{path}: Permission denied"
