"""Put one generated module, and the registry of all of them, together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from barnabas.protocol.generate.decoding import DecodeEmitter
from barnabas.protocol.generate.encoding import EncodeEmitter
from barnabas.protocol.generate.fields import FieldCodecs
from barnabas.protocol.generate.layout import Layout, annotation, default_literal, distinct_layouts
from barnabas.protocol.generate.schema import Field, Schema, Struct, Versions
from barnabas.protocol.generate.writer import Code, snake_case, struct_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Lines: TypeAlias = list[str]

HELPERS = (
    "ABSENT",
    "FEW_ELEMENTS",
    "ZERO_UUID",
    "Chunks",
    "Structure",
    "add_tags",
    "check_count",
    "check_elements",
    "long_count",
    "long_size",
    "null_value",
    "put_tag",
    "put_varint",
    "read_tag",
    "skip_tags",
    "tag_count",
    "varint_end",
    "varint_tail",
    "wrong_tag_size",
)

RECORD_TOPICS: dict[str, Callable[[Schema], bool]] = {
    "__consumer_offsets": lambda schema: schema.name != "TransactionLog",
    "__transaction_state": lambda schema: schema.name == "TransactionLog",
}

STRAIGHT = {
    *("add_partitions_to_txn", "end_txn", "fetch", "init_producer_id", "offset_commit"),
    "offset_commit_record",
    *("produce", "request_header", "transaction_log_record", "txn_offset_commit"),
}
"""Modules with straight-line code for each version: their messages come with each record or
transaction."""

# Modules that have a hand-tuned one of the same name in barnabas.protocol.tuned.
TUNED = {"fetch", "produce", "transaction_log_record"}


def constant_name(schema: Schema) -> str:
    """Return the name of a module's main constant: ``PRODUCE``, ``OFFSET_COMMIT_RECORD``."""
    suffix = "_RECORD" if schema.kind == "record" else ""
    return snake_case(schema.name).upper() + suffix


def module_text(schema: Schema, name: str, *, is_straight: bool) -> str:
    """Return the whole text of the module generated from ``name``.schema."""
    body = Code()
    for struct in schema.structs:
        _add_class(body, struct, schema)
    formats: set[str] = set()
    codecs = Code()
    (_add_straight_codecs if is_straight else _add_field_codecs)(codecs, formats, schema)
    if name in TUNED:
        codecs.add("", "# Puts hand-tuned functions in the place of some of the above.")
        codecs.add(f"import barnabas.protocol.tuned.{name}  # noqa: E402, F401")
    bindings = Code()
    if formats:
        bindings.add("", *_struct_lines(formats))
    text = bindings.text() + body.text() + codecs.text()
    return _head(schema, name, text) + text


def _section_versions(schema: Schema, section: str) -> tuple[Versions, int | None]:
    """Return the versions of a section; keys of coordinator records only have version 0."""
    if section == "key":
        return Versions(0, 0), None
    return schema.versions, schema.flexible_from


def _add_class(code: Code, struct: Struct, schema: Schema) -> None:
    """Emit one dataclass whose methods need no exec at a start."""
    code.add("", "", "@dataclass(slots=True, init=False, repr=False, eq=False)")
    with code.block(f"class {struct.name}(Structure):"):
        versions = f"{schema.versions.first}-{schema.versions.last}"
        top = struct in schema.sections.values()
        code.add(
            f'"""{schema.name}, versions {versions}."""' if top else f'"""Part of {schema.name}."""'
        )
        if struct.fields:
            code.add("", *(f"{field.name}: {annotation(field)}" for field in struct.fields), "")
            _add_constructor(code, struct)


def _add_constructor(code: Code, struct: Struct) -> None:
    parameters = ["self"]
    for field in struct.fields:
        default = "ABSENT" if _is_mutable(field) else default_literal(field)
        parameters.append(f"{field.name}: {annotation(field)} = {default}")
    code.filled("def __init__(", parameters, ") -> None:")
    with code.indented():
        for field in struct.fields:
            name = field.name
            value = f"{default_literal(field)} if {name} is ABSENT else {name}"
            code.add(f"self.{name} = {value if _is_mutable(field) else name}")


def _is_mutable(field: Field) -> bool:
    """Return whether every instance needs its own default object."""
    return default_literal(field) == "[]" or default_literal(field).endswith("()")


def _add_straight_codecs(code: Code, formats: set[str], schema: Schema) -> None:
    """Emit two functions for each layout, and the constant with all of them."""
    messages = {}
    for section, struct in schema.sections.items():
        layouts = distinct_layouts(struct, *_section_versions(schema, section))
        _add_codecs(code, formats, section, layouts)
        messages[section] = _straight_message(schema, section, layouts)
    _add_constant(code, schema, messages)


def _add_codecs(code: Code, formats: set[str], section: str, layouts: Mapping[int, Layout]) -> None:
    for version, layout in layouts.items():
        code.add("", "")
        decoder = DecodeEmitter(code, formats, bounded=section == "request")
        decoder.function(_function("decode", section, version), layout)
        code.add("", "")
        EncodeEmitter(code, formats).function(_function("encode", section, version), layout)


def _function(verb: str, section: str, version: int) -> str:
    return f"{verb}_v{version}" if section == "fields" else f"{verb}_{section}_v{version}"


def _straight_message(schema: Schema, section: str, layouts: Mapping[int, Layout]) -> Lines:
    lines = ["Message(", *(f"    {each}," for each in _message_head(schema, section)), "    {"]
    for version in layouts:
        decode, encode = (_function(verb, section, version) for verb in ("decode", "encode"))
        lines.append(f"        {version}: ({decode}, {encode}),")
    return [*lines, "    },", ")"]


def _add_field_codecs(code: Code, _formats: set[str], schema: Schema) -> None:
    """Emit two functions for each structure, and the constant with those of its messages."""
    messages = {}
    together: dict[tuple[Versions, int | None], list[Struct]] = {}
    for section, struct in schema.sections.items():
        together.setdefault(_section_versions(schema, section), []).append(struct)
        name = snake_case(struct.name)
        arguments = [*_message_head(schema, section), f"read_{name}", f"write_{name}"]
        if section == "request":
            arguments.append("bounded=True")
        call = Code()
        call.filled("message_of_fields(", arguments, ")")
        messages[section] = call.lines
    for (versions, flexible_from), structs in together.items():
        FieldCodecs(code, versions, flexible_from).functions(structs)
    _add_constant(code, schema, messages)


def _message_head(schema: Schema, section: str) -> Lines:
    """Return the arguments that name a message and its versions."""
    versions, flexible_from = _section_versions(schema, section)
    return [
        f'"{schema.sections[section].name}"',
        f"({versions.first}, {versions.last})",
        "NEVER" if flexible_from is None else str(flexible_from),
    ]


def _add_constant(code: Code, schema: Schema, messages: Mapping[str, Lines]) -> None:
    code.add("", "")
    constant = constant_name(schema)
    if schema.kind == "data":
        first, *rest = messages["fields"]
        code.add(f"{constant} = {first}", *rest)
        return
    with code.block(f"{constant} = {'Api' if schema.kind == 'api' else 'RecordType'}("):
        code.add(f"{schema.key},", f'"{schema.name}",')
        for lines in messages.values():
            *most, last = lines
            code.add(*most, f"{last},")
    code.add(")")


def _struct_lines(used: Iterable[str]) -> list[str]:
    """Emit module constants with pack or unpack_from of every used struct format."""
    methods = {"pack": "pack", "unpack": "unpack_from"}
    lines = []
    for verb, codes in sorted(name.split("_") for name in used):
        lines.append(f'{struct_name(verb, codes)} = Struct(">{codes}").{methods[verb]}')
    return lines


def _head(schema: Schema, name: str, text: str) -> str:
    """Return the docstring and the imports that ``text`` needs."""
    words = set(re.findall(r"\w+", text))
    code = Code()
    code.add(
        f'"""{schema.name}: generated from {name}.schema by protocol/generate. Do not edit."""'
    )
    code.add("", "from __future__ import annotations", "")
    code.import_names("dataclasses", ["dataclass"])
    code.import_names(
        "struct", [word for word in ("Struct", "pack", "unpack_from") if _is_called(word, text)]
    )
    code.add("")
    code.import_names(
        "barnabas.protocol.api",
        [each for each in ("NEVER", "Api", "Message", "RecordType") if _is_used(each, text)],
    )
    code.import_names(
        "barnabas.protocol.errors", [word for word in ("Malformed",) if word in words]
    )
    code.import_names(
        "barnabas.protocol.field_codecs",
        [word for word in ("message_of_fields",) if word in words],
    )
    code.import_names("barnabas.protocol.reader", [word for word in ("Reader",) if word in words])
    code.import_names("barnabas.protocol.wire", [word for word in HELPERS if word in words])
    code.import_names(
        "barnabas.protocol.writer",
        [word for word in ("TaggedFields", "Writer", "required") if word in words],
    )
    return code.text()


def _is_used(word: str, text: str) -> bool:
    """Return whether a name is called or is an argument."""
    return re.search(rf"(?<![.\w\"]){word}[(,]", text) is not None


def _is_called(word: str, text: str) -> bool:
    """Return whether ``word`` is called as a function, not as a method."""
    return re.search(rf"(?<![.\w]){word}\(", text) is not None


def registry_text(schemas: Mapping[str, Schema]) -> str:
    """Return the table of all APIs and record types by module name.

    With it a module is imported when it is needed.
    """
    code = Code()
    code.add('"""Every generated module: generated by protocol/generate. Do not edit."""', "")
    code.add("from barnabas.protocol.api import NEVER, ApiEntry", "")
    apis = sorted(
        (schema.key or 0, name) for name, schema in schemas.items() if schema.kind == "api"
    )
    with code.block("APIS = ("):
        for key, name in apis:
            schema = schemas[name]
            flexible = "NEVER" if schema.flexible_from is None else str(schema.flexible_from)
            first, last = schema.versions
            code.add(f'ApiEntry({key}, "{schema.name}", "{name}", {first}, {last}, {flexible}),')
    code.add(")", "")
    code.add("# By topic and by the type that starts the record's key.")
    with code.block("RECORDS = {"):
        for topic, choose in RECORD_TOPICS.items():
            with code.block(f'"{topic}": {{'):
                records = (
                    (schema.key or 0, name)
                    for name, schema in schemas.items()
                    if schema.kind == "record"
                )
                for key, name in sorted(records):
                    if choose(schemas[name]):
                        code.add(f'{key}: "{name}",')
            code.add("},")
    code.add("}")
    return code.text()
