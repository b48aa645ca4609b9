r"""``server.properties``, read and written: Java's properties format, which is what Kafka reads.

Rules that are easy to miss: a key ends at the first unescaped ``=``, ``:`` or white space; a line
that ends in an odd number of backslashes continues in the next one, whose leading white space is
ignored; ``#`` and ``!`` start a comment only at the beginning of a line, and a comment never
continues; a backslash before any other character is dropped (``C\:``), and ``\uXXXX`` is a UTF-16
unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {ord("\\"): r"\\", **{ord(value): f"\\{key}" for key, value in _ESCAPES.items()}}


class Property(NamedTuple):
    """One key of a properties file."""

    key: str
    value: str
    line: int
    """Line number of the key, counted from 1."""


class MalformedProperties(Exception):
    """The text is not in the properties format."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {problem}")


def parse_properties(text: str) -> list[Property]:
    r"""Return the properties in the order of the file, repeated keys included.

    Raises MalformedProperties for a broken ``\uXXXX``, the only mistake that the format knows.
    """
    result = []
    for line, logical in _logical_lines(text):
        key, value = _split(logical)
        result.append(Property(_unescape(key, line), _unescape(value, line), line))
    return result


def properties_text(properties: Mapping[str, str]) -> str:
    r"""Return a file with these properties, in their order.

    In ASCII, with ``\uXXXX`` for the rest: Java's tools read such files as Latin-1.
    """
    return "".join(f"{_key(key)}={_value(value)}\n" for key, value in properties.items())


def _key(text: str) -> str:
    return "".join(f"\\{each}" if each in "=: #!" else each for each in _escaped(text))


def _value(text: str) -> str:
    escaped = _escaped(text)
    # Space at the end stays, at the beginning it would not.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(text: str) -> str:
    units = text.translate(_ESCAPED).encode("utf-16-be", "surrogatepass")
    numbers = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(each) if each < 0x7F else f"\\u{each:04X}" for each in numbers)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    number = 0
    while number < len(lines):
        first = number + 1
        logical = lines[number].lstrip(_BLANK)
        number += 1
        if not logical or logical[0] in "#!":
            continue
        while _is_continued(logical):
            logical = logical[:-1]
            if not logical or number == len(lines):
                break  # a lone backslash: what follows is a line of its own
            logical += lines[number].lstrip(_BLANK)
            number += 1
        if logical:
            yield first, logical


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Split at the end of the key: "key = value", "key: value" and "key value" are the same."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANK:
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            characters.append(character)
            continue
        character = text[position : position + 1]
        position += 1
        if character != "u":
            characters.append(_ESCAPES.get(character, character))
            continue
        digits = text[position : position + 4]
        position += 4
        if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            raise MalformedProperties(line, "malformed \\uXXXX escape")
        characters.append(chr(int(digits, 16)))
    # Two units of UTF-16 make one character beyond the first plane.
    return "".join(characters).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
