"""Read the compact schema files of ``protocol/schemas``.

A file describes one API (``api``), one kind of coordinator record (``record``) or one lone
structure (``data``)::

    api 0 Produce versions 3-13 flexible 9+

    request
      transactional_id  string?  = null
      topic_data        [TopicProduceData]
        name            string              3-12
        records         records?

Each field line is: name, type, then optionally the versions that have it (all those of the
enclosing structure if left out), ``tag N`` and ``= default``. ``[T]`` is an array. ``?`` after the
type makes it nullable, ``?9+`` only from version 9 on. A structure is spelled out by the indented
lines below its first mention, or once for all in a ``struct`` section. ``inflexible`` keeps the
classic length prefix in flexible versions (only the client id of the request header needs it).
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

# struct format and size of what has a fixed size.
FIXED = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
SCALARS = frozenset(FIXED) | {"string", "bytes", "records"}
SECTIONS = {"api": ("request", "response"), "record": ("key", "value"), "data": ("fields",)}

HEADLINE = re.compile(
    r"(?:(?P<keyed>api|record) (?P<key>\d+)|(?P<plain>data)) (?P<name>\w+)"
    r" versions (?P<versions>[\d-]+)(?: flexible (?P<flexible>\d+)\+)?"
)
FIELD = re.compile(
    r"(?P<name>[a-z]\w*) +(?P<open>\[?)(?P<type>\w+)(?P<close>]?)"
    r"(?P<nullable>\?(?P<nullable_versions>\d[\d+-]*)?)?(?P<inflexible> inflexible)?"
    r"(?: +(?P<versions>\d[\d+-]*))?(?: +tag (?P<tag>\d+))?(?: +=\s(?P<default>.+))?"
)


class SchemaError(Exception):
    """A schema file that cannot be understood."""


class Versions(NamedTuple):
    """A range of versions, both ends included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field; ``struct`` is set when its type, or its element type, is a structure."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: str | None
    inflexible: bool
    struct: Struct | None


@dataclasses.dataclass(frozen=True, slots=True)
class Struct:
    """A named list of fields."""

    name: str
    fields: tuple[Field, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Schema:
    """One schema file. Without flexible versions ``flexible_from`` is None."""

    kind: str
    key: int | None
    name: str
    versions: Versions
    flexible_from: int | None
    sections: dict[str, Struct]

    @property
    def structs(self) -> list[Struct]:
        """Return every structure once, first those that others use."""
        found: dict[str, Struct] = {}
        for section in self.sections.values():
            _collect(section, found)
        return list(found.values())


def _collect(struct: Struct, found: dict[str, Struct]) -> None:
    for field in struct.fields:
        if field.struct is not None:
            _collect(field.struct, found)
    if found.setdefault(struct.name, struct) != struct:
        raise SchemaError(f"two different structures are called {struct.name}")


def read_schema(path: Path) -> Schema:
    """Read one schema file; raises SchemaError with file and line if it is invalid."""
    return parse_schema(path.read_text(encoding="utf-8"), path.name)


def parse_schema(text: str, origin: str) -> Schema:
    """Parse the text of a schema file; ``origin`` is its name in error messages."""
    return _Parser(text, origin).parse()


class _Line(NamedTuple):
    number: int
    indent: int
    text: str


class _Parser:
    """Recursive descent over indented lines."""

    def __init__(self, text: str, origin: str) -> None:
        self._origin = origin
        self._lines = [
            _Line(number, len(line) - len(line.lstrip(" ")), line.strip())
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip()
        ]
        self._next = 0
        self._structs: dict[str, Struct] = {}
        self._last = 0

    def parse(self) -> Schema:
        head = self._match(HEADLINE, self._take())
        kind = head["keyed"] or head["plain"]
        versions = _range(head["versions"], last=None)
        self._last = versions.last
        sections: dict[str, Struct] = {}
        while self._next < len(self._lines):
            line = self._take()
            word, _, name = line.text.partition(" ")
            # Keys of coordinator records have one version only, even if their values have several.
            scope = Versions(0, 0) if word == "key" else versions
            if word == "struct":
                self._structs[name] = Struct(name, self._fields(line, scope))
            elif word in SECTIONS[kind] and not name:
                sections[word] = Struct(
                    _section_name(head["name"], kind, word), self._fields(line, scope)
                )
            else:
                raise self._error(line, "expected a section")
        if tuple(sections) != SECTIONS[kind]:
            raise SchemaError(f"{self._origin}: needs the sections {SECTIONS[kind]}")
        return Schema(
            kind=kind,
            key=int(head["key"]) if head["key"] else None,
            name=head["name"],
            versions=versions,
            flexible_from=int(head["flexible"]) if head["flexible"] else None,
            sections=sections,
        )

    def _fields(self, parent: _Line, scope: Versions) -> tuple[Field, ...]:
        fields = []
        while self._next < len(self._lines) and self._lines[self._next].indent > parent.indent:
            fields.append(self._field(scope))
        names = [field.name for field in fields]
        if len(set(names)) != len(names):
            raise self._error(parent, "a field is named twice")
        return tuple(fields)

    def _field(self, scope: Versions) -> Field:
        line = self._take()
        parts = self._match(FIELD, line)
        if bool(parts["open"]) != bool(parts["close"]):
            raise self._error(line, "unbalanced bracket")
        versions = _range(parts["versions"], self._last) if parts["versions"] else scope
        nullable = None
        if parts["nullable"]:
            wanted = parts["nullable_versions"]
            nullable = _range(wanted, self._last) if wanted else versions
        return Field(
            name=parts["name"],
            type=parts["type"],
            is_array=bool(parts["open"]),
            versions=versions,
            nullable=nullable,
            tag=int(parts["tag"]) if parts["tag"] else None,
            default=parts["default"],
            inflexible=bool(parts["inflexible"]),
            struct=None
            if parts["type"] in SCALARS
            else self._struct(line, parts["type"], versions),
        )

    def _struct(self, line: _Line, name: str, versions: Versions) -> Struct:
        fields = self._fields(line, versions)
        if fields and name not in self._structs:
            return Struct(name, fields)
        if fields or name not in self._structs:
            raise self._error(line, f"structure {name} must be spelled out once")
        return self._structs[name]

    def _take(self) -> _Line:
        if self._next == len(self._lines):
            raise SchemaError(f"{self._origin}: is empty")
        self._next += 1
        return self._lines[self._next - 1]

    def _match(self, pattern: re.Pattern[str], line: _Line) -> re.Match[str]:
        match = pattern.fullmatch(line.text)
        if match is None:
            raise self._error(line, "cannot be understood")
        return match

    def _error(self, line: _Line, problem: str) -> SchemaError:
        return SchemaError(f"{self._origin}, line {line.number}: {problem}: {line.text}")


def _section_name(name: str, kind: str, section: str) -> str:
    return name if kind == "data" else name + section.capitalize()


def _range(text: str, last: int | None) -> Versions:
    """Parse ``3``, ``3-13`` or, with a known last version, ``3+``."""
    if text.endswith("+") and last is not None:
        return Versions(int(text[:-1]), last)
    first, _, end = text.partition("-")
    return Versions(int(first), int(end or first))
