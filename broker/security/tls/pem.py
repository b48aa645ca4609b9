"""PEM (RFC 7468) in the spellings that configurations have.

In a properties file or a variable, line ends are written as a backslash and an n, as a backslash at
the end of the line, or as spaces. So, as in Apache Kafka, only the text between the markers counts,
with any white space in it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_BEGIN: Final = re.compile(r"-----BEGIN ")
_HEADER: Final = re.compile(r"\s*([A-Za-z0-9-]+: [^\n]*)\n")
_NOT_LINE_ENDS: Final = re.compile(r"\\(?=\s|$)")
_COLUMNS: Final = 64

CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE")
PRIVATE_KEY: Final = "PRIVATE KEY"
"""Suffix of the labels of private keys."""
_ENCRYPTED: Final = "ENCRYPTED"


class MalformedPem(Exception):
    """Invalid PEM; the message contains no part of it."""


class PemBlock(NamedTuple):
    """Content between a pair of markers."""

    label: str
    headers: tuple[str, ...]
    """Headers of keys that are encrypted in the old way (RFC 1421)."""
    data: bytes

    @property
    def is_encrypted_key(self) -> bool:
        """Whether reading it needs a password."""
        return self.label.startswith(_ENCRYPTED) or any(_ENCRYPTED in each for each in self.headers)

    @property
    def text(self) -> str:
        """Return the block in the form that every reader accepts."""
        body = base64.b64encode(self.data).decode()
        lines = [body[at : at + _COLUMNS] for at in range(0, len(body), _COLUMNS)]
        head = [*self.headers, ""] if self.headers else []
        marks = f"-----BEGIN {self.label}-----", f"-----END {self.label}-----"
        return "\n".join((marks[0], *head, *lines, marks[1], ""))


def pem_blocks(text: str) -> list[PemBlock]:
    """Return the blocks of a text, in order; raises MalformedPem."""
    text = text.replace("\\r", "").replace("\\n", "\n")
    text = _NOT_LINE_ENDS.sub("", text)
    blocks = [_block(match[1], match[2]) for match in _BLOCK.finditer(text)]
    if len(blocks) < len(_BEGIN.findall(text)):
        raise MalformedPem("a -----BEGIN is without its -----END")
    return blocks


def private_keys(blocks: Iterable[PemBlock]) -> list[PemBlock]:
    """Return the private keys among blocks."""
    return [block for block in blocks if block.label.endswith(PRIVATE_KEY)]


def certificates(blocks: Iterable[PemBlock]) -> list[bytes]:
    """Return the certificates among blocks, in DER."""
    return [block.data for block in blocks if block.label in CERTIFICATES]


def _block(label: str, inside: str) -> PemBlock:
    headers = []
    while header := _HEADER.match(inside):
        headers.append(header[1].strip())
        inside = inside[header.end() :]
    try:
        data = base64.b64decode("".join(inside.split()), validate=True)
    except ValueError:  # binascii.Error is one; characters beyond ASCII are another.
        raise MalformedPem(f"a {label} is no base64") from None
    return PemBlock(label, tuple(headers), data)
