"""Read the protocol definitions inside Apache Kafka's jars, in the terms of Barnabas' schemas."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.protocol.generate.schema import Schema, Struct, Versions

COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
WORD_START = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NUMERIC = {"int8", "int16", "uint16", "int32", "int64"}
JARS = ("kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator")


class Row(NamedTuple):
    """One field, with everything that decides its bytes. Names of structures decide nothing."""

    path: str
    type: str
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: str | None
    inflexible: bool


class Definition(NamedTuple):
    """One message as Kafka defines it."""

    key: int | None
    versions: Versions
    flexible_from: int | None
    rows: list[Row]


def read_definitions(jars: Path) -> dict[str, dict[str, Any]]:
    """Every JSON definition by name, from the jars with client-facing messages or records."""
    found = {}
    for jar in JARS:
        (path,) = jars.glob(f"{jar}-[0-9]*.jar")
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("common/message/") and name.endswith(".json"):
                    text = archive.read(name).decode()
                    document = json.loads(COMMENT.sub(lambda match: match[1] or "", text))
                    found[document["name"]] = document
    return found


def definition(document: dict[str, Any]) -> Definition:
    """Normalise one JSON definition: version ranges are cut to the versions that are valid."""
    versions = _versions(document["validVersions"], last=0)
    assert versions is not None
    flexible = _versions(document["flexibleVersions"], versions.last)
    flexible = flexible and _meet(flexible, versions)
    structs = {struct["name"]: struct["fields"] for struct in document.get("commonStructs", [])}
    rows = list(_document_rows(document["fields"], versions, versions.last, structs, ""))
    key = document.get("apiKey")
    return Definition(key, versions, flexible.first if flexible else None, rows)


def _document_rows(
    fields: list[dict[str, Any]], scope: Versions, last: int, structs: dict[str, Any], path: str
) -> Iterator[Row]:
    for field in fields:
        written = _versions(field.get("versions", field.get("taggedVersions")), last)
        versions = written and _meet(written, scope)
        if versions is None:
            continue
        kind = field["type"].removeprefix("[]")
        is_struct = kind[0].isupper()
        name = path + WORD_START.sub("_", field["name"]).lower()
        nullable = _versions(field.get("nullableVersions", "none"), last)
        tagged = _versions(field.get("taggedVersions", "none"), last)
        assert (tagged and _meet(tagged, scope)) == (versions if "tag" in field else None)
        yield Row(
            path=name,
            type=field["type"].replace(kind, "struct") if is_struct else field["type"],
            versions=versions,
            nullable=nullable and _meet(nullable, versions),
            tag=field.get("tag"),
            default=_document_default(field),
            inflexible=field.get("flexibleVersions") == "none",
        )
        if is_struct:
            inner = field["fields"] if "fields" in field else structs[kind]
            yield from _document_rows(inner, versions, last, structs, f"{name}.")


def _document_default(field: dict[str, Any]) -> str | None:
    """The default as text, or None where it is the natural one of the type (zero, empty, false)."""
    default = field.get("default", "")
    if default == "null":
        return "null"
    # A bare null in the JSON is no default stated: Kafka starts with an empty list.
    if default is None:
        return None
    kind = field["type"]
    if kind in NUMERIC:
        return str(int(str(default or 0), 0)) if default not in ("", 0, "0") else None
    if kind == "bool":
        return "true" if str(default).lower() == "true" else None
    assert not default or kind == "string", field
    return f'"{default}"' if default else None


def schema_definition(schema: Schema, section: str) -> Definition:
    """One section of one of our schemas in the same form."""
    versions = Versions(0, 0) if section == "key" else schema.versions
    flexible_from = None if section == "key" else schema.flexible_from
    rows = list(_schema_rows(schema.sections[section], versions, ""))
    return Definition(schema.key, versions, flexible_from, rows)


def _schema_rows(struct: Struct, scope: Versions, path: str) -> Iterator[Row]:
    for field in struct.fields:
        # A structure spelled out once may be used by a field that fewer versions have.
        versions = _meet(field.versions, scope)
        if versions is None:
            continue
        kind = "struct" if field.struct else field.type
        yield Row(
            path=path + field.name,
            type=f"[]{kind}" if field.is_array else kind,
            versions=versions,
            nullable=field.nullable and _meet(field.nullable, versions),
            tag=field.tag,
            default=field.default,
            inflexible=field.inflexible,
        )
        if field.struct:
            yield from _schema_rows(field.struct, versions, f"{path}{field.name}.")


def _versions(text: str, last: int) -> Versions | None:
    if text == "none":
        return None
    first, dash, end = text.rstrip("+").partition("-")
    if text.endswith("+"):
        return Versions(int(first), last)
    return Versions(int(first), int(end) if dash else int(first))


def _meet(one: Versions, other: Versions) -> Versions | None:
    first, last = max(one.first, other.first), min(one.last, other.last)
    return Versions(first, last) if first <= last else None
