"""PEM in every spelling that a configuration has."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.pem import MalformedPem, certificates, pem_blocks, private_keys
from barnabas.broker.security.tls.server import ServerSettings, server_tls
from barnabas.broker.security.tls.stores import KeyStoreSettings
from tests.certificates import Authority, self_signed
from tests.protocol.mutilation import MUTATORS

_OWN = self_signed()
SPOILT_FROM = _OWN.key_pem() + _OWN.chain_pem


@pytest.fixture(scope="module")
def issued():
    return Authority(parent=Authority("CN=Root")).issue()


SPELLINGS = {
    "lines": lambda text: text,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "one line": lambda text: text.replace("\n", " "),
    "literal": lambda text: text.replace("\n", "\\n"),
    "literal windows": lambda text: text.replace("\n", "\\r\\n"),
    "continued": lambda text: text.replace("\n", "\\\n"),
    "continued, with a space": lambda text: text.replace("\n", " \\\n  "),
    "no white space": lambda text: text.replace("\n", ""),
    "words between": lambda text: f"Bag Attributes\n    friendlyName: x\n{text}subject=x\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(issued, spelling):
    blocks = pem_blocks(SPELLINGS[spelling](issued.chain_pem + issued.key_pem()))
    assert certificates(blocks)[0] == issued.der
    assert len(certificates(blocks)) == 2
    (key,) = private_keys(blocks)
    assert key.text == issued.key_pem()
    assert not key.is_encrypted_key


@pytest.mark.parametrize("traditional", [True, False])
def test_encrypted_keys_are_recognized(issued, traditional):
    text = issued.key_pem("secret", traditional=traditional)
    (key,) = private_keys(pem_blocks(text))
    assert key.is_encrypted_key
    assert key.text == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-----BEGIN CERTIFICATE-----\nAAAA", "without its -----END"),
        ("-----BEGIN A-----\nAAAA\n-----END B-----", "without its -----END"),
        ("-----BEGIN PRIVATE KEY-----\nse!cret\n-----END PRIVATE KEY-----", "no base64"),
        ("-----BEGIN PRIVATE KEY-----\nsécret==\n-----END PRIVATE KEY-----", "no base64"),
        ("-----BEGIN PRIVATE KEY-----\nsecre\n-----END PRIVATE KEY-----", "no base64"),
    ],
)
def test_invalid_pem_is_refused(text, reason):
    with pytest.raises(MalformedPem, match=reason) as raised:
        pem_blocks(text)
    assert "cret" not in str(raised.value)


@given(st.sampled_from(MUTATORS), st.randoms(use_true_random=False))
def test_a_store_that_was_spoilt_is_read_or_refused(mutate, draw):
    spoilt = mutate(SPOILT_FROM.encode(), draw).decode("latin-1")
    settings = KeyStoreSettings(type="PEM", key=spoilt, certificate_chain=spoilt)
    with contextlib.suppress(TlsError):
        assert server_tls(ServerSettings(key_store=settings)).chain


def test_nothing():
    assert pem_blocks("") == []
    assert pem_blocks("no PEM at all") == []
