"""Names in certificates as Java writes them: ``X500Principal.getName()``, which is RFC 2253.

ACLs of users from Apache Kafka depend on these bytes, so Java's deviations from the RFC count.
Every attribute except nine is the hex of its DER, BMPString is read as UTF-8, and ``=`` and ``#``
are escaped everywhere. Java has written tests/broker/tls/java_names.txt.
"""

from __future__ import annotations

import codecs
from typing import Final

from barnabas.broker.security.tls.der import (
    OBJECT_IDENTIFIER,
    SET,
    DerReader,
    Element,
    object_identifier,
)

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
_TEXT: Final = frozenset((_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP))
_ESCAPES: Final = str.maketrans({**{each: f"\\{each}" for each in ',=+<>#;"\\'}, "\0": "\\00"})
_EDGE_SPACE: Final = " \r"


def distinguished_name(encoded: bytes) -> str:
    """Return the text of a Name in DER, most specific part first; raises MalformedDer."""
    parts = []
    names = DerReader(encoded).enter()
    while not names.at_end:
        attributes = names.enter(SET)
        part = []
        while not attributes.at_end:
            attribute = attributes.enter()
            kind = object_identifier(attribute.next(OBJECT_IDENTIFIER).content)
            part.append(_attribute(kind, attribute.next()))
        parts.append("+".join(part))
    return ",".join(reversed(parts))


def _attribute(kind: str, value: Element) -> str:
    keyword = _KEYWORDS.get(kind)
    if keyword is None or value.tag not in _TEXT:
        return f"{keyword or kind}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'java-replace'))}"


def _escaped(text: str) -> str:
    """Escape the special characters of RFC 2253, and blanks at either end."""
    inner = text.lstrip(_EDGE_SPACE)
    front = text[: len(text) - len(inner)]
    core = inner.rstrip(_EDGE_SPACE)
    back = inner[len(core) :]
    space = "".join(f"\\{each}" for each in front), "".join(f"\\{each}" for each in back)
    return f"{space[0]}{core.translate(_ESCAPES)}{space[1]}"


def _replace_like_java(error: UnicodeError) -> tuple[str, int]:
    """Replace an encoded surrogate by one character, where Python makes several of it."""
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.start + 3]
    if len(wrong) > 1 and wrong[0] == 0xED and wrong[1] & 0xE0 == 0xA0:
        is_whole = len(wrong) == 3 and wrong[2] & 0xC0 == 0x80
        return "\ufffd", error.start + (3 if is_whole else 2)
    return "\ufffd", error.end


codecs.register_error("java-replace", _replace_like_java)
