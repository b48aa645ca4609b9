"""PEM in every spelling that a configuration has."""

import pytest

from barnabas.broker.tls.pem import MalformedPem, certificates, pem_blocks, private_keys
from tests.broker.tls.authority import Authority


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
def test_encrypted_keys_are_told_apart(issued, traditional):
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
        ("-----BEGIN PRIVATE KEY-----\nsecre\n-----END PRIVATE KEY-----", "no base64"),
    ],
)
def test_what_is_no_pem(text, reason):
    with pytest.raises(MalformedPem, match=reason) as raised:
        pem_blocks(text)
    assert "cret" not in str(raised.value)


def test_nothing():
    assert pem_blocks("") == []
    assert pem_blocks("no PEM at all") == []
