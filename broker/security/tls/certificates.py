"""What is in a certificate (RFC 5280), as far as a broker looks at it."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from barnabas.broker.security.tls.der import (
    BOOLEAN,
    GENERALIZED_TIME,
    INTEGER,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    UTC_TIME,
    DerReader,
    MalformedDer,
    object_identifier,
)
from barnabas.broker.security.tls.distinguished_names import distinguished_name

_VERSION: Final = 0xA0
_ISSUER_ID, _SUBJECT_ID, _EXTENSIONS = 0x81, 0x82, 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_HOST_NAME, _ADDRESS = 0x82, 0x87
_CENTURY_BEGINS: Final = 50
"""Years of two digits from this on are those of the 20th century."""


class Certificate:
    """One X.509 certificate."""

    __slots__ = (
        "alternative_names",
        "der",
        "issuer_der",
        "not_after_s",
        "not_before_s",
        "subject",
        "subject_der",
    )

    def __init__(self, der: bytes) -> None:
        """Read it; raises MalformedDer."""
        self.der = der
        fields = DerReader(der).enter().enter()
        fields.skip(_VERSION)
        fields.next(INTEGER)  # serial number
        fields.next()  # how it is signed
        self.issuer_der = fields.next().encoded
        validity = fields.enter()
        self.not_before_s = _seconds(validity)
        """From when it is valid, in seconds since the epoch."""
        self.not_after_s = _seconds(validity)
        self.subject_der = fields.next().encoded
        self.subject = distinguished_name(self.subject_der)
        """Whose it is, as Java writes it."""
        fields.next()  # public key
        fields.skip(_ISSUER_ID)
        fields.skip(_SUBJECT_ID)
        self.alternative_names = _alternative_names(fields)
        """Each in DER: a host's name, an address and so on."""

    @property
    def is_self_issued(self) -> bool:
        """Whether its issuer has the same name: a root, or one that nobody vouches for."""
        return self.issuer_der == self.subject_der

    @property
    def hosts(self) -> list[str]:
        """Its alternative names as people read them."""
        return sorted(map(_shown, self.alternative_names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.der == other.der

    def __hash__(self) -> int:
        return hash(self.der)

    def __repr__(self) -> str:
        return f"Certificate({self.subject})"


def describe_time(time_s: int) -> str:
    """Return a time as people read it."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(name: bytes) -> str:
    element = DerReader(name).next()
    if element.tag == _HOST_NAME:
        return element.content.decode("ascii", "replace")
    if element.tag == _ADDRESS and len(element.content) in {4, 16}:
        return str(ip_address(element.content))
    return name.hex()


def _seconds(reader: DerReader) -> int:
    """Read a time; RFC 5280 wants seconds and Z."""
    element = reader.next()
    text = element.content.decode("ascii", "replace")
    if element.tag == UTC_TIME:
        text = f"{19 if text[:2] >= str(_CENTURY_BEGINS) else 20}{text}"
    elif element.tag != GENERALIZED_TIME:
        raise MalformedDer("the certificate's validity has no times")
    try:
        time = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise MalformedDer(f"invalid time {text!r} in the certificate's validity") from None
    return int(time.timestamp())


def _alternative_names(fields: DerReader) -> frozenset[bytes]:
    if fields.tag != _EXTENSIONS:
        return frozenset()
    extensions = fields.enter(_EXTENSIONS).enter()
    while not extensions.at_end:
        extension = extensions.enter()
        kind = object_identifier(extension.next(OBJECT_IDENTIFIER).content)
        extension.skip(BOOLEAN)
        value = extension.next(OCTET_STRING).content
        if kind == _ALTERNATIVE_NAMES:
            names = DerReader(value).enter()
            found = set()
            while not names.at_end:
                found.add(names.next().encoded)
            return frozenset(found)
    return frozenset()
