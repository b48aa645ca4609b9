"""The layout of one version of a structure: its fields, resolved, and nothing else.

Layouts compare by value, so versions that look alike share one generated function.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from barnabas.protocol.generate.schema import FIXED

if TYPE_CHECKING:
    from barnabas.protocol.generate.schema import Field, Struct, Versions


FALSY = ("[]", '""', 'b""', "False", "0", "0.0")
"""Defaults that are false in Python."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldLayout:
    """A field as one version has it. ``element`` is the layout of its structure, if it has one."""

    name: str
    type: str
    is_array: bool
    nullable: bool
    # Whether the field of the class may be None, in this version or in another.
    optional: bool
    compact: bool
    tag: int | None
    element: Layout | None
    default: str

    @property
    def is_fixed(self) -> bool:
        """Whether the field always takes the same number of bytes."""
        return not self.is_array and self.type in FIXED

    @property
    def least_bytes(self) -> int:
        """The fewest bytes the field can take."""
        if self.is_array or self.type in ("string", "bytes", "records"):
            return 1 if self.compact else 2 if self.type == "string" and not self.is_array else 4
        if self.nullable:
            return 1
        return self.least_element_bytes

    @property
    def least_element_bytes(self) -> int:
        """The fewest bytes that one value (one element of an array) can take."""
        if self.element is not None:
            return self.element.least_bytes
        if self.type == "string":
            return 1 if self.compact else 2
        return FIXED[self.type][1]


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """A structure as one version has it: fields in order, then tagged fields by tag."""

    struct: str
    flexible: bool
    fields: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]
    # For every field of the class, in order: its name, and its default when this version lacks it.
    members: tuple[tuple[str, str | None], ...]

    @property
    def least_bytes(self) -> int:
        """The fewest bytes the structure can take."""
        return sum(field.least_bytes for field in self.fields) + self.flexible

    @property
    def has_records(self) -> bool:
        """Whether a field holds record batches, which are encoded by reference."""
        return any(
            field.type == "records" or (field.element is not None and field.element.has_records)
            for field in self.fields
        )


def lay_out(struct: Struct, version: int, *, flexible: bool) -> Layout:
    """Resolve ``struct`` for one version."""
    present = [
        (field, _lay_out_field(field, version, flexible=flexible))
        for field in struct.fields
        if version in field.versions
    ]
    names = {field.name for field, _ in present}
    tagged = sorted((laid for _, laid in present if laid.tag is not None), key=lambda f: f.tag or 0)
    return Layout(
        struct=struct.name,
        flexible=flexible,
        fields=tuple(laid for _, laid in present if laid.tag is None),
        tagged=tuple(tagged),
        members=tuple(
            (field.name, None if field.name in names else default_literal(field))
            for field in struct.fields
        ),
    )


def _lay_out_field(field: Field, version: int, *, flexible: bool) -> FieldLayout:
    return FieldLayout(
        name=field.name,
        type=field.type,
        is_array=field.is_array,
        nullable=field.nullable is not None and version in field.nullable,
        optional=annotation(field).endswith("None"),
        compact=flexible and not field.inflexible,
        tag=field.tag,
        element=lay_out(field.struct, version, flexible=flexible) if field.struct else None,
        default=default_literal(field),
    )


def distinct_layouts(
    struct: Struct, versions: Versions, flexible_from: int | None
) -> dict[int, Layout]:
    """Map the first version of every run of equal layouts to that layout."""
    found: dict[int, Layout] = {}
    last: Layout | None = None
    for version in range(versions.first, versions.last + 1):
        flexible = flexible_from is not None and version >= flexible_from
        layout = lay_out(struct, version, flexible=flexible)
        if layout != last:
            found[version] = last = layout
    return found


def default_literal(field: Field) -> str:
    """Return the Python expression of a field's default value.

    A tagged structure that may not be null and is absent is None here, where Kafka has a structure
    full of defaults: "not sent" is what both mean, and three empty objects per fetched partition
    cost more than the partition.
    """
    lone_tagged = field.struct and field.tag is not None and not field.is_array
    if field.default == "null" or (lone_tagged and field.nullable is None):
        return "None"
    if field.is_array:
        return "[]"
    if field.struct is not None:
        return f"{field.struct.name}()"
    plain = {
        "string": '""',
        "bytes": 'b""',
        "records": "None",
        "uuid": "ZERO_UUID",
        "bool": "False",
        "float64": "0.0",
    }
    literal = field.default or plain.get(field.type, "0")
    return {"true": "True", "false": "False"}.get(literal, literal)


def annotation(field: Field) -> str:
    """Return the Python type of a field over all versions."""
    plain = {
        "string": "str",
        "bytes": "bytes",
        "records": "memoryview",
        "uuid": "bytes",
        "bool": "bool",
        "float64": "float",
    }
    name = field.struct.name if field.struct else plain.get(field.type, "int")
    if field.is_array:
        name = f"list[{name}]"
    return f"{name} | None" if field.nullable or default_literal(field) == "None" else name
