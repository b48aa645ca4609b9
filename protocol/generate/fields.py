"""Emit codecs that read and write one field after the other: one function each for a structure.

What differs between versions is a condition on ``version``. The code is a third of the straight
lines of ``decoding.py`` and ``encoding.py``, which are for the messages that each record needs.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from barnabas.protocol.generate.layout import FALSY, annotation, default_literal, lay_out
from barnabas.protocol.generate.schema import FIXED, Versions
from barnabas.protocol.generate.writer import snake_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from barnabas.protocol.generate.schema import Field, Struct
    from barnabas.protocol.generate.writer import Code

METHODS = {"bool": "boolean", "bytes": "blob"}
"""Methods of Reader and Writer that have another name than the type."""


class FieldCodecs:
    """Emits the functions of the structures of messages that have the same versions."""

    def __init__(self, code: Code, versions: Versions, flexible_from: int | None) -> None:
        self._code = code
        self._versions = versions
        self._flexible_from = flexible_from

    def functions(self, messages: Iterable[Struct]) -> None:
        """Emit the functions of ``messages`` and of all structures in them, each once."""
        scopes: dict[Struct, Versions] = {}
        for message in messages:
            _visit(message, self._versions, scopes)
        for struct, scope in scopes.items():
            self._read(struct, scope)
            self._write(struct, scope)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, struct: Struct, scope: Versions) -> None:
        code = self._code
        tagged = _tagged(struct)
        is_flexible = self._is_flexible(scope)
        code.add("", "")
        code.filled(
            f"def read_{snake_case(struct.name)}(",
            ["reader: Reader", "version: int"],
            f") -> {struct.name}:",
        )
        with code.indented():
            arguments = list(self._arguments(struct, scope))
            if not is_flexible:
                code.call(f"return {struct.name}(", arguments)
                return
            code.call(f"message = {struct.name}(", arguments)
            if tagged:
                self._read_tags(tagged, self._flexible(scope))
            else:
                code.add("reader.skip_tags()")
            code.add("return message")

    def _arguments(self, struct: Struct, scope: Versions) -> Iterator[str]:
        by_name = False
        for field in struct.fields:
            if field.tag is not None:
                by_name = True
                continue
            value = self._value(field, scope)
            yield f"{field.name}={value}" if by_name else value

    def _value(self, field: Field, scope: Versions) -> str:
        """Return the expression that reads a field, or has its default."""
        value = self._present(field, scope)
        condition = within(field.versions, scope)
        return f"{value} if {condition} else {default_literal(field)}" if condition else value

    def _present(self, field: Field, scope: Versions) -> str:
        scope = common(field.versions, scope)
        if field.nullable is None:
            return self._call(field, scope, optional=False)
        condition = within(field.nullable, scope)
        optional = self._call(field, scope, optional=True)
        if not condition:
            return optional
        return f"({optional} if {condition} else {self._call(field, scope, optional=False)})"

    def _call(self, field: Field, scope: Versions, *, optional: bool) -> str:
        how = _method(field, optional=optional)
        read = f"read_{snake_case(field.struct.name)}" if field.struct else ""
        if field.is_array:
            given = f"{read}, version" if read else f"reader.{_name(field)}"
            return f"reader.{how}({given}, {self._least_bytes(field, scope)})"
        if not read:
            return f"reader.{how}()"
        return f"reader.{how}({read}, version)" if optional else f"{read}(reader, version)"

    def _least_bytes(self, field: Field, scope: Versions) -> int:
        """Return the fewest bytes of one element, in any of the versions."""
        least = []
        for version in range(scope.first, scope.last + 1):
            flexible = self._flexible_from is not None and version >= self._flexible_from
            if field.struct is not None:
                least.append(lay_out(field.struct, version, flexible=flexible).least_bytes)
            elif field.type in FIXED:
                least.append(FIXED[field.type][1])
            else:
                least.append(1 if flexible else 2)
        return min(least)

    def _read_tags(self, tagged: Iterable[Field], scope: Versions) -> None:
        code = self._code
        with code.block("for _ in range(reader.tags()):"):
            code.add("tag, end = reader.tag()")
            word = "if"
            for field in tagged:
                condition = within(field.versions, scope)
                also = f" and {condition}" if condition else ""
                with code.block(f"{word} tag == {field.tag}{also}:"):
                    code.add(f"message.{field.name} = {self._present(field, scope)}")
                word = "elif"
            with code.block("else:"):
                code.add("reader.position = end")
            code.add("reader.end_tag(tag, end)")

    # -- writing -----------------------------------------------------------------------------------

    def _write(self, struct: Struct, scope: Versions) -> None:
        code = self._code
        tagged = _tagged(struct)
        code.add("", "")
        code.filled(
            f"def write_{snake_case(struct.name)}(",
            ["writer: Writer", f"message: {struct.name}", "version: int"],
            ") -> None:",
        )
        with code.indented():
            for field in struct.fields:
                if field.tag is None:
                    with self._when(within(field.versions, scope)):
                        path = f"{struct.name}.{field.name}"
                        self._write_field(field, path, common(field.versions, scope))
            if self._is_flexible(scope):
                if tagged:
                    self._write_tags(tagged, self._flexible(scope))
                else:
                    code.add("writer.no_tags()")
            elif not struct.fields:
                code.add("pass")

    @contextlib.contextmanager
    def _when(self, condition: str) -> Iterator[None]:
        if not condition:
            yield
            return
        with self._code.block(f"if {condition}:"):
            yield

    def _write_field(self, field: Field, path: str, scope: Versions) -> None:
        value = f"message.{field.name}"
        may_be_null = within(field.nullable, scope) if field.nullable else "never"
        optional = _put("writer", field, value, optional=True)
        if not may_be_null:
            self._code.add(optional)
            return
        if annotation(field).endswith("None"):
            value = f'required({value}, "{path}")'
        required = _put("writer", field, value, optional=False)
        if not field.nullable:
            self._code.add(required)
            return
        with self._code.block(f"if {may_be_null}:"):
            self._code.add(optional)
        with self._code.block("else:"):
            self._code.add(required)

    def _write_tags(self, tagged: Iterable[Field], scope: Versions) -> None:
        code = self._code
        code.add("tagged = TaggedFields()")
        for field in tagged:
            value = f"message.{field.name}"
            conditions = [within(field.versions, scope), _is_set(field, value)]
            with code.block(f"if {' and '.join(each for each in conditions if each)}:"):
                # What is None by default and not sent is not null where it is sent.
                optional = field.nullable is not None
                if default_literal(field) == "None" and not (field.struct and not field.is_array):
                    optional = False
                code.add(_put("tagged", field, value, optional=optional))
                code.add(f"tagged.end({field.tag})")
        code.add("writer.tags(tagged)")

    # -- versions ----------------------------------------------------------------------------------

    def _is_flexible(self, scope: Versions) -> bool:
        return self._flexible_from is not None and scope.last >= self._flexible_from

    def _flexible(self, scope: Versions) -> Versions:
        """Return the flexible versions of a scope: only these have tagged fields."""
        assert self._flexible_from is not None
        return Versions(max(scope.first, self._flexible_from), scope.last)


def _tagged(struct: Struct) -> list[Field]:
    return sorted(
        (field for field in struct.fields if field.tag is not None), key=lambda each: each.tag or 0
    )


def common(versions: Versions, scope: Versions) -> Versions:
    """Return the versions that are in both ranges."""
    return Versions(max(versions.first, scope.first), min(versions.last, scope.last))


def within(versions: Versions, scope: Versions) -> str:
    """Return the condition that a version of ``scope`` is in ``versions``; "" if all are."""
    begins = versions.first > scope.first
    ends = versions.last < scope.last
    if begins and ends:
        if versions.first == versions.last:
            return f"version == {versions.first}"
        return f"{versions.first} <= version <= {versions.last}"
    if begins:
        return f"version >= {versions.first}"
    return f"version <= {versions.last}" if ends else ""


def _is_set(field: Field, value: str) -> str:
    default = default_literal(field)
    if default == "None":
        return f"{value} is not None"
    if field.nullable is None and default in FALSY:
        return value
    return f"{value} != {default}"


def _put(writer: str, field: Field, value: str, *, optional: bool) -> str:
    how = _method(field, optional=optional)
    write = f"write_{snake_case(field.struct.name)}" if field.struct else ""
    if field.is_array:
        given = f"{write}, version" if write else f"{writer}.{_name(field)}"
        return f"{writer}.{how}({value}, {given})"
    if not write:
        return f"{writer}.{how}({value})"
    if optional:
        return f"{writer}.{how}({value}, {write}, version)"
    return f"{write}({writer}, {value}, version)"


def _method(field: Field, *, optional: bool) -> str:
    """Return the method of Reader and Writer for a field; required structures have none."""
    if field.is_array:
        name = "values" if field.struct is None else "array"
    elif field.struct is None:
        name = _name(field)
    else:
        return "optional" if field.tag is None else "optional_tagged"
    return f"optional_{name}" if optional else name


def _name(field: Field) -> str:
    return METHODS.get(field.type, field.type)


def _visit(struct: Struct, scope: Versions, scopes: dict[Struct, Versions]) -> None:
    """Record the versions of each structure, first those that others use."""
    known = scopes.get(struct, scope)
    scope = Versions(min(known.first, scope.first), max(known.last, scope.last))
    for field in struct.fields:
        if field.struct is not None:
            _visit(field.struct, common(field.versions, scope), scopes)
    scopes[struct] = scope
