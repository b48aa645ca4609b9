"""Parsed certificates have the content of the originals."""

import random
from contextlib import suppress
from datetime import timedelta

import pytest
from cryptography import x509

from barnabas.broker.security.tls.certificates import Certificate, describe_time
from barnabas.broker.security.tls.der import MalformedDer
from tests.certificates import DAY, Authority, rsa_key


@pytest.fixture(scope="module")
def authority():
    return Authority("CN=Root,O=Barn,C=CH")


def test_a_certificate(authority):
    issued = authority.issue("CN=broker,OU=eng,O=Barn,C=CH", hosts=("a.example", "10.0.0.1"))
    read = Certificate(issued.der)
    assert read.subject == "CN=broker,OU=eng,O=Barn,C=CH"
    assert read.not_before_s == int(issued.certificate.not_valid_before_utc.timestamp())
    assert read.not_after_s == int(issued.certificate.not_valid_after_utc.timestamp())
    assert read.alternative_names == {b"\x82\x09a.example", b"\x87\x04\x0a\x00\x00\x01"}
    assert read.issuer_der == Certificate(authority.der).subject_der
    assert not read.is_self_issued
    assert Certificate(authority.der).is_self_issued
    assert repr(read) == "Certificate(CN=broker,OU=eng,O=Barn,C=CH)"


def test_one_without_alternative_names(authority):
    assert Certificate(authority.issue(hosts=()).der).alternative_names == frozenset()


def test_one_for_long(authority):
    """Years from 2050 on have four digits."""
    issued = authority.issue(ends=timedelta(days=40 * 365), key=rsa_key())
    assert Certificate(issued.der).not_after_s == int(
        issued.certificate.not_valid_after_utc.timestamp()
    )


def test_one_of_the_last_century(authority):
    issued = authority.issue(begins=-timedelta(days=36 * 365), ends=-DAY)
    assert Certificate(issued.der).not_before_s == int(
        issued.certificate.not_valid_before_utc.timestamp()
    )


def test_equality(authority):
    issued, other = authority.issue(), authority.issue()
    assert {Certificate(issued.der), Certificate(issued.der)} == {Certificate(issued.der)}
    assert Certificate(issued.der) != Certificate(other.der)
    assert Certificate(issued.der) != issued.der


def test_times_as_people_read_them():
    assert describe_time(1_700_000_000) == "2023-11-14T22:13:20Z"


def test_cut_off_anywhere_it_is_refused(authority):
    der = authority.issue().der
    for size in range(len(der)):
        with pytest.raises(MalformedDer):
            Certificate(der[:size])


def test_mutilated_it_is_read_or_refused(authority):
    der = bytearray(authority.issue().der)
    draw = random.Random(5280)
    for _ in range(3000):
        changed = bytearray(der)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(der))] = draw.randrange(256)
        with suppress(MalformedDer):
            assert isinstance(Certificate(bytes(changed)), Certificate)


def test_names_are_those_that_cryptography_reads(authority):
    issued = authority.issue("CN=x,DC=example,DC=com")
    assert isinstance(issued.certificate, x509.Certificate)
    assert Certificate(issued.der).subject == issued.certificate.subject.rfc4514_string()
