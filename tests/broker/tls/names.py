"""Names of certificates in DER, odd ones too."""

OBJECT_IDENTIFIERS = {
    "CN": "2.5.4.3",
    "C": "2.5.4.6",
    "L": "2.5.4.7",
    "ST": "2.5.4.8",
    "STREET": "2.5.4.9",
    "O": "2.5.4.10",
    "OU": "2.5.4.11",
    "DC": "0.9.2342.19200300.100.1.25",
    "UID": "0.9.2342.19200300.100.1.1",
    "e-mail": "1.2.840.113549.1.9.1",
    "surname": "2.5.4.4",
    "serial number": "2.5.4.5",
    "title": "2.5.4.12",
    "description": "2.5.4.13",
    "postal code": "2.5.4.17",
    "given name": "2.5.4.42",
    "initials": "2.5.4.43",
    "generation": "2.5.4.44",
    "qualifier": "2.5.4.46",
    "organisation identifier": "2.5.4.97",
    "jurisdiction": "1.3.6.1.4.1.311.60.2.1.3",
}
UTF8, NUMERIC, PRINTABLE, T61, IA5, VISIBLE, GENERAL, UNIVERSAL, BMP = (
    0x0C,
    0x12,
    0x13,
    0x14,
    0x16,
    0x1A,
    0x1B,
    0x1C,
    0x1E,
)
_CODECS = {UTF8: "utf-8", BMP: "utf-16-be", UNIVERSAL: "utf-32-be"}


def tlv(tag: int, content: bytes) -> bytes:
    """A value in DER."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def object_identifier(text: str) -> bytes:
    """An object identifier in DER."""
    first, second, *arcs = map(int, text.split("."))
    content = b""
    for arc in (40 * first + second, *arcs):
        octets = [arc & 0x7F]
        rest = arc >> 7
        while rest:
            octets.append(0x80 | rest & 0x7F)
            rest >>= 7
        content += bytes(reversed(octets))
    return tlv(0x06, content)


def attribute(kind: str, value: str | bytes, tag: int = UTF8) -> bytes:
    """One part of a name."""
    if isinstance(value, str):
        value = value.encode(_CODECS.get(tag, "latin-1"))
    return tlv(0x30, object_identifier(OBJECT_IDENTIFIERS.get(kind, kind)) + tlv(tag, value))


def name(*parts: bytes | list[bytes]) -> bytes:
    """A name; a list is a part with several attributes."""
    sets = [tlv(0x31, b"".join(part) if isinstance(part, list) else part) for part in parts]
    return tlv(0x30, b"".join(sets))
