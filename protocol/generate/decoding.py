"""Emit the function that decodes one layout.

Nested structures are inlined, so that a message is one straight line of code with loops. Adjacent
values of fixed size, and the length that follows them, are read by one ``unpack_from``.
"""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING

from barnabas.protocol.generate.layout import FieldLayout, Layout
from barnabas.protocol.generate.schema import FIXED
from barnabas.protocol.generate.writer import Code, Names, snake_case, struct_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class DecodeEmitter:
    """Emits decode functions into ``code`` and collects the struct bindings they use.

    ``bounded`` code counts what is nested inside arrays and stops at a limit: a frame of requests'
    usual maximum could otherwise hold tens of millions of tiny elements and occupy the loop for a
    minute.
    """

    def __init__(self, code: Code, formats: set[str], *, bounded: bool) -> None:
        self._code = code
        self._formats = formats
        self._bounded = bounded
        self._names = Names()
        self._pending: list[tuple[str, str]] = []
        self._loops = 0
        self._counts_elements = False

    def function(self, name: str, layout: Layout) -> None:
        """Emit ``def name(view, position) -> (message, position)``."""
        self._names = Names()
        self._counts_elements = False
        head = f"def {name}(view: memoryview, position: int) -> tuple[{layout.struct}, int]:"
        with self._code.block(head):
            start = len(self._code.lines)
            arguments = self._structure(layout, snake_case(layout.struct))
            message = f"{layout.struct}({', '.join(arguments)})"
            if len(message) < 75:
                self._code.add(f"return {message}, position")
            else:
                self._code.call(f"message = {layout.struct}(", arguments)
                self._code.add("return message, position")
            if self._counts_elements:
                self._code.lines.insert(start, "    elements = 0")

    def _structure(self, layout: Layout, owner: str) -> list[str]:
        """Emit code that reads one structure; return the arguments of its constructor.

        ``owner`` names the variable of the structure, and distinguishes variables of the same name.
        """
        variables = {
            field.name: self._names.new(field.name, owner)
            for field in (*layout.fields, *layout.tagged)
        }
        for field in layout.fields:
            self._field(field, variables[field.name], f"{layout.struct}.{field.name}")
        if layout.flexible:
            self._tags(layout, variables, owner)
        self._flush()
        return [variables.get(name, default or "") for name, default in layout.members]

    # Runs of fixed size

    def _defer(self, code: str, variable: str) -> None:
        """Add a value of fixed size to those that the next ``_flush`` reads in one call."""
        self._pending.append((code, variable))

    def _flush(self) -> None:
        if not self._pending:
            return
        codes = "".join(code for code, _ in self._pending)
        targets = [variable for _, variable in self._pending]
        self._pending = []
        if codes == "B":
            self._code.add(f"{targets[0]} = view[position]", "position += 1")
            return
        self._formats.add(f"unpack_{codes}")
        call = f"{struct_name('unpack', codes)}(view, position)"
        line = f"{', '.join(targets)} = {call}"
        if len(targets) == 1:
            self._code.add(f"({targets[0]},) = {call}")
        elif self._code.fits(line):
            self._code.add(line)
        else:
            self._code.call("(", targets, f") = {call}")
        self._code.add(f"position += {struct.calcsize('>' + codes)}")

    # Fields

    def _field(self, field: FieldLayout, variable: str, path: str) -> None:
        if field.is_array:
            self._array(field, variable)
        elif field.element is not None:
            self._lone_structure(field, field.element, variable)
        elif field.type in FIXED:
            self._defer(FIXED[field.type][0], variable)
        elif field.compact:
            self._compact_bytes(field, variable)
        else:
            self._classic_bytes(field, variable, path)

    def _compact_bytes(self, field: FieldLayout, variable: str) -> None:
        self._defer("B", "size")
        self._flush()
        if not field.nullable:
            with self._code.block("if not 0 < size < 0x80:"):
                self._code.add("size, position = long_size(view, position, size)")
            self._slice(field, variable, "position + size - 1")
            return
        self._code.add(f"{variable}: {_plain_type(field)} | None = None")
        with self._code.block("if size:"):
            with self._code.block("if size >= 0x80:"):
                self._long_size(field)
            self._slice(field, variable, "position + size - 1")

    def _long_size(self, field: FieldLayout) -> None:
        if field.type != "records":
            self._code.add("size, position = varint_tail(view, position, size)")
            return
        # Record batches nearly always need a length of two or three bytes: no call for those.
        self._code.add("byte = view[position]", "position += 1", "size += (byte << 7) - 0x80")
        with self._code.block("if byte >= 0x80:"):
            self._code.add("byte = view[position]", "position += 1")
            self._code.add("size += (byte << 14) - 0x4000")
            with self._code.block("if byte >= 0x80:"):
                self._code.add("size, position = varint_end(view, position, size)")

    def _classic_bytes(self, field: FieldLayout, variable: str, path: str) -> None:
        self._defer("h" if field.type == "string" else "i", "size")
        self._flush()
        if not field.nullable:
            with self._code.block("if size < 0:"):
                self._code.add(f'raise Malformed("{path}: negative length")')
            self._slice(field, variable, "position + size")
            return
        self._code.add(f"{variable}: {_plain_type(field)} | None = None")
        with self._code.block("if size >= 0:"):
            self._slice(field, variable, "position + size")
        with self._code.block("elif size != -1:"):
            self._code.add(f'raise Malformed("{path}: negative length")')

    def _slice(self, field: FieldLayout, variable: str, end: str) -> None:
        conversion = {"string": ".tobytes().decode()", "bytes": ".tobytes()", "records": ""}
        self._code.add(
            f"end = {end}",
            f"{variable} = view[position:end]{conversion[field.type]}",
            "position = end",
        )

    def _lone_structure(self, field: FieldLayout, element: Layout, variable: str) -> None:
        if not field.nullable:
            self._construct(variable, element)
            return
        present = self._names.new(f"{field.name}_present", variable)
        # A signed byte states whether it is present (-1 for null), but a varint in a tagged field
        # (0).
        tagged = field.tag is not None
        self._defer("B" if tagged else "b", present)
        self._flush()
        self._code.add(f"{variable}: {element.struct} | None = None")
        with self._code.block(f"if {present} {'>' if tagged else '>='} 0:"):
            self._construct(variable, element)

    def _construct(self, variable: str, element: Layout) -> None:
        # A run must not span the boundary of a structure: its arguments are complete only after a
        # flush.
        arguments = self._structure(element, variable)
        self._code.call(f"{variable} = {element.struct}(", arguments)

    # Arrays

    def _array(self, field: FieldLayout, variable: str) -> None:
        self._defer("B" if field.compact else "i", "count")
        self._flush()
        if not field.nullable:
            self._check_count(field)
            self._elements(field, variable, declare=True)
            return
        self._code.add(f"{variable}: {_list_type(field)} | None = None")
        with self._code.block("if count:" if field.compact else "if count != -1:"):
            self._check_count(field)
            self._elements(field, variable, declare=False)

    def _check_count(self, field: FieldLayout) -> None:
        least = field.least_element_bytes
        if field.compact:
            with self._code.block("if not 0 < count < 0x80:"):
                self._code.add(f"count, position = long_count(view, position, count, {least})")
        else:
            with self._code.block("if not 0 <= count < 0x80:"):
                self._code.add(f"check_count(view, position, count, {least})")
        if self._is_counted():
            self._code.add("elements += count - 1" if field.compact else "elements += count")
            with self._code.block("if elements > FEW_ELEMENTS:"):
                self._code.add("check_elements(elements)")

    def _is_counted(self) -> bool:
        """Return whether the next field adds to the number of nested elements."""
        counted = self._bounded and self._loops > 0
        self._counts_elements |= counted
        return counted

    def _elements(self, field: FieldLayout, variable: str, *, declare: bool) -> None:
        count = "count - 1" if field.compact else "count"
        if field.type in FIXED and field.type != "uuid":
            code, size = FIXED[field.type]
            if field.compact:
                self._code.add("count -= 1")
            self._code.add(
                f'{variable} = list(unpack_from(f">{{count}}{code}", view, position))',
                "position += count" + (f" * {size}" if size > 1 else ""),
            )
            return
        self._code.add(f"{variable}: {_list_type(field)} = []" if declare else f"{variable} = []")
        with self._loop(count):
            if field.element is not None:
                self._append_structure(variable, field.element)
                return
            item = self._names.new(f"{variable}_item", field.name)
            self._field(_element(field), item, f"{field.name}[]")
            self._flush()
            self._code.add(f"{variable}.append({item})")

    @contextlib.contextmanager
    def _loop(self, count: str) -> Iterator[None]:
        with self._code.block(f"for _ in range({count}):"):
            self._loops += 1
            yield
            self._loops -= 1

    def _append_structure(self, variable: str, element: Layout) -> None:
        arguments = self._structure(element, variable)
        line = f"{variable}.append({element.struct}({', '.join(arguments)}))"
        if self._code.fits(line):
            self._code.add(line)
            return
        with self._code.block(f"{variable}.append("):
            self._code.call(f"{element.struct}(", arguments)
        self._code.add(")")

    # Tagged fields

    def _tags(self, layout: Layout, variables: dict[str, str], owner: str) -> None:
        if not layout.tagged:
            self._defer("B", "tags")
            self._flush()
            with self._code.block("if tags:"):
                if self._is_counted():
                    self._code.add("elements = add_tags(view, position, tags, elements)")
                self._code.add("position = skip_tags(view, position, tags)")
            return
        tags = self._names.new(f"{owner}_tags", "known")
        self._defer("B", tags)
        self._flush()
        for field in layout.tagged:
            self._declare_tagged(field, variables[field.name])
        with self._code.block(f"if {tags}:"):
            if self._is_counted():
                self._code.add(f"elements = add_tags(view, position, {tags}, elements)")
            self._code.add(f"{tags}, position = tag_count(view, position, {tags})")
            with self._loop(tags):
                self._tag_choices(layout.tagged, variables, owner)

    def _declare_tagged(self, field: FieldLayout, variable: str) -> None:
        if field.is_array:
            kind = _list_type(field)
        elif field.element is not None:
            kind = field.element.struct
        else:
            kind = _plain_type(field)
        if field.optional:
            kind += " | None"
        self._code.add(f"{variable}: {kind} = {field.default}")

    def _tag_choices(
        self, tagged: Sequence[FieldLayout], variables: dict[str, str], owner: str
    ) -> None:
        end = self._names.new(f"{owner}_tag_end", "known")
        self._code.add(f"tag, position, {end} = read_tag(view, position)")
        choice = "if"
        for field in tagged:
            with self._code.block(f"{choice} tag == {field.tag}:"):
                self._tagged_field(field, variables[field.name])
                with self._code.block(f"if position != {end}:"):
                    self._code.add(f"raise wrong_tag_size({field.tag})")
            choice = "elif"
        self._code.add(f"position = {end}")

    def _tagged_field(self, field: FieldLayout, variable: str) -> None:
        # The variable is declared with its default, so what is read goes through a name of its own
        # where reading would declare it a second time.
        if field.nullable or (field.is_array and field.type not in FIXED):
            inner = self._names.new(f"tagged_{variable}", variable)
            self._field(field, inner, field.name)
            self._flush()
            self._code.add(f"{variable} = {inner}")
        else:
            self._field(field, variable, field.name)
            self._flush()


def _element(field: FieldLayout) -> FieldLayout:
    """Return the layout of one element of an array of scalars."""
    return FieldLayout(
        name=field.name,
        type=field.type,
        is_array=False,
        nullable=False,
        optional=False,
        compact=field.compact,
        tag=None,
        element=None,
        default="",
    )


def _plain_type(field: FieldLayout) -> str:
    names = {
        "string": "str",
        "bytes": "bytes",
        "records": "memoryview",
        "uuid": "bytes",
        "bool": "bool",
        "float64": "float",
    }
    return names.get(field.type, "int")


def _list_type(field: FieldLayout) -> str:
    return f"list[{field.element.struct if field.element else _plain_type(field)}]"
