"""Names of certificates, byte for byte as Java writes them."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.broker.security.tls.der import MalformedDer
from barnabas.broker.security.tls.distinguished_names import distinguished_name
from tests.broker.tls.names import attribute, name

LINES = (Path(__file__).parent / "java_names.txt").read_text().splitlines()


def test_all_are_what_java_writes():
    wrong = []
    for line in LINES:
        encoded, text = line.split(" ", 1)
        if distinguished_name(bytes.fromhex(encoded)) != json.loads(text):
            wrong.append((encoded, distinguished_name(bytes.fromhex(encoded)), json.loads(text)))
    assert wrong == []
    assert len(LINES) > 500


def test_a_name_that_is_cut_off_or_longer_than_it_says_is_refused():
    whole = name(attribute("C", "CH"), attribute("CN", "alice"))
    for size in range(len(whole)):
        with pytest.raises(MalformedDer):
            distinguished_name(whole[:size])


@pytest.mark.parametrize(
    "encoded",
    [b"\x30\x80\x00\x00", b"\x30\x85\x01\0\0\0\0", b"\x31\x00", b"\x30\x03\x31\x01\x30"],
)
def test_invalid_distinguished_name_is_refused(encoded):
    with pytest.raises(MalformedDer):
        distinguished_name(encoded)


def test_changed_bytes_give_a_name_or_are_refused():
    whole = name(attribute("C", "CH"), [attribute("CN", "alice"), attribute("UID", "1")])
    for position in range(len(whole)):
        for value in range(256):
            changed = whole[:position] + bytes([value]) + whole[position + 1 :]
            with suppress(MalformedDer):
                assert isinstance(distinguished_name(changed), str)
