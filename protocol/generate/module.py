"""Put one generated module, and the registry of all of them, together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from barnabas.protocol.generate.decoding import DecodeEmitter
from barnabas.protocol.generate.encoding import EncodeEmitter
from barnabas.protocol.generate.layout import Layout, annotation, default_literal, distinct_layouts
from barnabas.protocol.generate.schema import Field, Schema, Struct, Versions
from barnabas.protocol.generate.writer import Code, snake_case, struct_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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

# Modules that have a hand-tuned one of the same name in barnabas.protocol.tuned.
TUNED = {"fetch", "produce", "transaction_log_record"}


def constant_name(schema: Schema) -> str:
    """The constant a module is there for: ``PRODUCE``, ``OFFSET_COMMIT_RECORD``."""
    suffix = "_RECORD" if schema.kind == "record" else ""
    return snake_case(schema.name).upper() + suffix


def module_text(schema: Schema, name: str) -> str:
    """The whole text of the module generated from ``name``.schema."""
    body = Code()
    for struct in schema.structs:
        _add_class(body, struct, schema)
    formats: set[str] = set()
    codecs = Code()
    layouts = {
        section: distinct_layouts(struct, *_section_versions(schema, section))
        for section, struct in schema.sections.items()
    }
    for section, found in layouts.items():
        _add_codecs(codecs, formats, section, found)
    _add_constant(codecs, schema, layouts)
    if name in TUNED:
        codecs.add("", "# Puts hand-tuned functions in the place of some of the above.")
        codecs.add(f"import barnabas.protocol.tuned.{name}  # noqa: E402, F401")
    bindings = Code()
    if formats:
        bindings.add("", *_struct_lines(formats))
    text = bindings.text() + body.text() + codecs.text()
    return _head(schema, name, text) + text


def _section_versions(schema: Schema, section: str) -> tuple[Versions, int | None]:
    """Keys of coordinator records have version 0 only, never flexible."""
    if section == "key":
        return Versions(0, 0), None
    return schema.versions, schema.flexible_from


def _add_class(code: Code, struct: Struct, schema: Schema) -> None:
    """Emit one class: a dataclass whose methods are not built by exec at every start."""
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
    with code.block("def __init__("):
        code.add("self,")
        for field in struct.fields:
            default = "ABSENT" if _is_mutable(field) else default_literal(field)
            code.add(f"{field.name}: {annotation(field)} = {default},")
    with code.block(") -> None:"):
        for field in struct.fields:
            name = field.name
            value = f"{default_literal(field)} if {name} is ABSENT else {name}"
            code.add(f"self.{name} = {value if _is_mutable(field) else name}")


def _is_mutable(field: Field) -> bool:
    """Whether the default is an object of its own for every instance."""
    return default_literal(field) == "[]" or default_literal(field).endswith("()")


def _add_codecs(code: Code, formats: set[str], section: str, layouts: Mapping[int, Layout]) -> None:
    for version, layout in layouts.items():
        code.add("", "")
        decoder = DecodeEmitter(code, formats, bounded=section == "request")
        decoder.function(_function("decode", section, version), layout)
        code.add("", "")
        EncodeEmitter(code, formats).function(_function("encode", section, version), layout)


def _function(verb: str, section: str, version: int) -> str:
    return f"{verb}_v{version}" if section == "fields" else f"{verb}_{section}_v{version}"


def _add_constant(code: Code, schema: Schema, layouts: Mapping[str, Mapping[int, Layout]]) -> None:
    code.add("", "")
    constant = constant_name(schema)
    if schema.kind == "data":
        with code.block(f"{constant} = Message("):
            _add_message_arguments(code, schema, "fields", layouts["fields"])
        code.add(")")
        return
    with code.block(f"{constant} = {'Api' if schema.kind == 'api' else 'RecordType'}("):
        code.add(f"{schema.key},", f'"{schema.name}",')
        for section, found in layouts.items():
            with code.block("Message("):
                _add_message_arguments(code, schema, section, found)
            code.add("),")
    code.add(")")


def _add_message_arguments(
    code: Code, schema: Schema, section: str, layouts: Mapping[int, Layout]
) -> None:
    versions, flexible_from = _section_versions(schema, section)
    code.add(
        f'"{schema.sections[section].name}",',
        f"({versions.first}, {versions.last}),",
        f"{'NEVER' if flexible_from is None else flexible_from},",
    )
    with code.block("{"):
        for version in layouts:
            decode, encode = (_function(verb, section, version) for verb in ("decode", "encode"))
            code.add(f"{version}: ({decode}, {encode}),")
    code.add("},")


def _struct_lines(used: Iterable[str]) -> list[str]:
    """Bind pack or unpack_from of every struct format in use, as module constants."""
    methods = {"pack": "pack", "unpack": "unpack_from"}
    lines = []
    for verb, codes in sorted(name.split("_") for name in used):
        lines.append(f'{struct_name(verb, codes)} = Struct(">{codes}").{methods[verb]}')
    return lines


def _head(schema: Schema, name: str, text: str) -> str:
    """The docstring and the imports that ``text`` needs."""
    words = set(re.findall(r"\w+", text))
    kind = {"api": "Api", "record": "RecordType", "data": "Message"}[schema.kind]
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
    code.import_names("barnabas.protocol.api", [*({"NEVER"} & words), *sorted({kind, "Message"})])
    code.import_names(
        "barnabas.protocol.errors", [word for word in ("Malformed",) if word in words]
    )
    code.import_names("barnabas.protocol.wire", [word for word in HELPERS if word in words])
    return code.text()


def _is_called(word: str, text: str) -> bool:
    """Whether ``word`` is called by its own name, not as a method."""
    return re.search(rf"(?<![.\w]){word}\(", text) is not None


def registry_text(schemas: Mapping[str, Schema]) -> str:
    """The table of all APIs and record types by module name, so that a module is imported when it
    is needed.
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
