"""The shapes of the console's API as TypeScript, out of its OpenAPI document: for JSDoc.

`@param {import("../api.d.ts").Overview} state` in a script is checked against what the broker
answers. The file is there while the compiler looks, and nowhere else.
"""

from __future__ import annotations

from typing import Any

from barnabas.broker.console import openapi

_PLAIN = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}

Schema = dict[str, Any]


def declarations() -> str:
    """Return an interface for each shape."""
    schemas = openapi.document()["components"]["schemas"]
    return "\n".join(_interface(name, schema) for name, schema in schemas.items())


def _interface(name: str, schema: Schema) -> str:
    required = schema.get("required", [])
    fields = "".join(
        f"{_comment(field, '  ')}  {key}{'' if key in required else '?'}: {type_of(field)};\n"
        for key, field in schema["properties"].items()
    )
    return f"{_comment(schema)}export interface {name} {{\n{fields}}}\n"


def _comment(schema: Schema, margin: str = "") -> str:
    words = schema.get("description", "").replace("*/", "* /")
    return f"{margin}/** {words} */\n" if words else ""


def type_of(schema: Schema) -> str:
    """Return a schema as a type; raises KeyError for what the API does not use yet."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(type_of(each) for each in schema["anyOf"])
    kind = schema["type"]
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": each}) for each in kind)
    if kind == "null":
        return "null"
    if kind == "array":
        return f"({type_of(schema['items'])})[]"
    if kind == "object":
        return f"Record<string, {type_of(schema['additionalProperties'])}>"
    return _PLAIN[kind]
