"""Emit the function that encodes one layout.

Values go into one bytearray; adjacent values of fixed size, and a classic length that follows them,
by one ``pack``. Record batches are passed on by reference: they split the output into several
buffers.
"""

from __future__ import annotations

import dataclasses

from barnabas.protocol.generate.layout import FALSY, FieldLayout, Layout
from barnabas.protocol.generate.schema import FIXED
from barnabas.protocol.generate.writer import Code, Names, snake_case, struct_name


class EncodeEmitter:
    """Emits encode functions into ``code`` and collects the struct bindings they use."""

    def __init__(self, code: Code, formats: set[str]) -> None:
        self._code = code
        self._formats = formats
        self._names = Names()
        self._pending: list[tuple[str, str]] = []
        self._out = "out"

    def function(self, name: str, layout: Layout) -> None:
        """Emit ``def name(message, out) -> list of buffers``."""
        self._names = Names()
        head = f"def {name}(message: {layout.struct}, out: bytearray) -> Chunks:"
        with self._code.block(head):
            if layout.has_records:
                self._code.add("chunks: Chunks = []")
            self._structure(layout, "message")
            self._flush()
            if layout.has_records:
                self._code.add("chunks.append(out)", "return chunks")
            else:
                self._code.add("return [out]")

    def _structure(self, layout: Layout, value: str) -> None:
        for field in layout.fields:
            self._field(field, f"{value}.{field.name}", f"{layout.struct}.{field.name}")
        if layout.tagged:
            self._tags(layout, value)
        elif layout.flexible:
            self._defer("x")

    # Runs of fixed size

    def _defer(self, code: str, expression: str | None = None) -> None:
        """Add a value of fixed size to those that the next ``_flush`` writes in one call.

        ``code`` is that of ``struct``; ``x``, without an expression, is a zero byte.
        """
        self._pending.append((code, expression or ""))

    def _flush(self) -> None:
        if not self._pending:
            return
        codes = "".join(code for code, _ in self._pending)
        arguments = [expression for _, expression in self._pending if expression]
        self._pending = []
        if codes == "x":
            self._code.add(f"{self._out}.append(0)")
            return
        self._formats.add(f"pack_{codes}")
        self._code.call(f"{self._out} += {struct_name('pack', codes)}(", arguments)

    # Fields

    def _field(self, field: FieldLayout, value: str, path: str) -> None:
        if field.is_fixed:
            self._defer(FIXED[field.type][0], value)
            return
        # A field that other versions may leave None has a type that includes None, and must be
        # checked in this one.
        checked = field.optional and not field.nullable and field.tag is None
        if field.is_array or field.element is None or field.nullable or checked:
            value = self._bind(field, value)
        if checked:
            with self._code.block(f"if {value} is None:"):
                self._code.add(f'raise null_value("{path}")')
        if field.is_array:
            self._array(field, value)
        elif field.element is not None:
            self._lone_structure(field, field.element, value)
        elif field.compact:
            self._compact_bytes(field, value)
        else:
            self._classic_bytes(field, value)

    def _bind(self, field: FieldLayout, value: str) -> str:
        """Assign an attribute that is used more than once to a local variable."""
        if "." not in value:
            return value
        variable = self._names.new(field.name, value.partition(".")[0])
        self._code.add(f"{variable} = {value}")
        return variable

    def _compact_bytes(self, field: FieldLayout, value: str) -> None:
        self._flush()
        if not field.nullable:
            self._compact_value(field, value)
            return
        with self._code.block(f"if {value} is None:"):
            self._code.add(f"{self._out}.append(0)")
        with self._code.block("else:"):
            self._compact_value(field, value)

    def _compact_value(self, field: FieldLayout, value: str) -> None:
        data = value
        if field.type == "string":
            self._code.add(f"data = {value}.encode()")
            data = "data"
        self._compact_length(data)
        self._raw(field, data)

    def _compact_length(self, value: str) -> None:
        self._code.add(f"size = len({value}) + 1")
        with self._code.block("if size < 0x80:"):
            self._code.add(f"{self._out}.append(size)")
        with self._code.block("else:"):
            self._code.add(f"put_varint({self._out}, size)")

    def _classic_bytes(self, field: FieldLayout, value: str) -> None:
        code = "h" if field.type == "string" else "i"
        missing = f"-1 if {value} is None else " if field.nullable else ""
        if field.type == "string":
            empty = f'b"" if {value} is None else ' if field.nullable else ""
            self._code.add(f"data = {empty}{value}.encode()")
            self._defer(code, f"{missing}len(data)")
            self._flush()
            self._code.add(f"{self._out} += data")
            return
        self._defer(code, f"{missing}len({value})")
        self._flush()
        if not field.nullable:
            self._raw(field, value)
            return
        with self._code.block(f"if {value} is not None:"):
            self._raw(field, value)

    def _raw(self, field: FieldLayout, data: str) -> None:
        if field.type == "records":
            self._code.add("chunks.append(out)", f"chunks.append({data})", "out = bytearray()")
        else:
            self._code.add(f"{self._out} += {data}")

    def _lone_structure(self, field: FieldLayout, element: Layout, value: str) -> None:
        if not field.nullable:
            self._structure(element, value)
            return
        self._flush()
        with self._code.block(f"if {value} is None:"):
            # Null is -1 in a signed byte, but 0 in a varint where the field is tagged.
            self._code.add(f"{self._out}.append({'0xFF' if field.tag is None else '0'})")
        with self._code.block("else:"):
            self._code.add(f"{self._out}.append(1)")
            self._structure(element, value)
            self._flush()

    # Arrays

    def _array(self, field: FieldLayout, value: str) -> None:
        if not field.compact:
            missing = f"-1 if {value} is None else " if field.nullable else ""
            self._defer("i", f"{missing}len({value})")
            self._flush()
            self._elements(field, value, maybe_none=field.nullable)
            return
        self._flush()
        if not field.nullable:
            self._compact_length(value)
            self._elements(field, value, maybe_none=False)
            return
        with self._code.block(f"if {value} is None:"):
            self._code.add(f"{self._out}.append(0)")
        with self._code.block("else:"):
            self._compact_length(value)
            self._elements(field, value, maybe_none=False)

    def _elements(self, field: FieldLayout, value: str, *, maybe_none: bool) -> None:
        if field.type in FIXED and field.type != "uuid":
            line = f'{self._out} += pack(f">{{len({value})}}{FIXED[field.type][0]}", *{value})'
            if maybe_none:
                with self._code.block(f"if {value}:"):
                    self._code.add(line)
            else:
                self._code.add(line)
            return
        base = snake_case(field.element.struct) if field.element else f"{value}_item"
        item = self._names.new(base, field.name)
        with self._code.block(f"for {item} in {value}{' or ()' if maybe_none else ''}:"):
            if field.element is not None:
                self._structure(field.element, item)
            elif field.type == "uuid":
                self._code.add(f"{self._out} += {item}")
            else:
                self._scalar_element(field, item)
            self._flush()

    def _scalar_element(self, field: FieldLayout, item: str) -> None:
        if field.compact:
            self._compact_value(field, item)
            return
        self._code.add(f"data = {item}.encode()")
        self._defer("h", "len(data)")
        self._flush()
        self._code.add(f"{self._out} += data")

    # Tagged fields

    def _tags(self, layout: Layout, value: str) -> None:
        self._flush()
        conditions = [_is_default(field, f"{value}.{field.name}") for field in layout.tagged]
        self._if_all(conditions)
        with self._code.indented():
            self._code.add(f"{self._out}.append(0)")
        with self._code.block("else:"):
            self._tag_section(layout, value)

    def _if_all(self, conditions: list[str]) -> None:
        line = f"if {' and '.join(conditions)}:"
        if self._code.fits(line):
            self._code.add(line)
            return
        self._code.add("if (", f"    {conditions[0]}")
        self._code.add(*(f"    and {condition}" for condition in conditions[1:]), "):")

    def _tag_section(self, layout: Layout, value: str) -> None:
        owner = snake_case(layout.struct)
        count = self._names.new(f"{owner}_tags", "known")
        section = self._names.new(f"{owner}_tagged", "known")
        self._code.add(f"{count} = 0", f"{section} = bytearray()")
        for field in layout.tagged:
            attribute = f"{value}.{field.name}"
            with self._code.block(f"if {_is_set(field, attribute)}:"):
                self._code.add(f"{count} += 1")
                self._tagged_field(field, attribute, section)
        self._code.add(f"{self._out}.append({count})", f"{self._out} += {section}")

    def _tagged_field(self, field: FieldLayout, value: str, section: str) -> None:
        body = self._names.new(f"{field.name}_body", "tagged")
        self._code.add(f"{body} = bytearray()")
        outer, self._out = self._out, body
        value = self._bind(field, value)
        if field.default == "None":
            # What is None is left out, so what is sent is not null.
            if field.nullable and field.element is not None and not field.is_array:
                self._code.add(f"{body}.append(1)")
            field = dataclasses.replace(field, nullable=False)
        self._field(field, value, field.name)
        self._flush()
        self._out = outer
        self._code.add(f"put_tag({section}, {field.tag}, {body})")


def _is_default(field: FieldLayout, value: str) -> str:
    """Return the condition under which a tagged field has its default value and is not sent."""
    if field.default == "None":
        return f"{value} is None"
    # None is no default here: it is sent as null.
    return f"not {value}" if _is_falsy(field) else f"{value} == {field.default}"


def _is_set(field: FieldLayout, value: str) -> str:
    if field.default == "None":
        return f"{value} is not None"
    return value if _is_falsy(field) else f"{value} != {field.default}"


def _is_falsy(field: FieldLayout) -> bool:
    return not field.nullable and field.default in FALSY
