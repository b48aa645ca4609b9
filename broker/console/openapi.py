"""The API in OpenAPI 3.1, made from the table of routes and the shapes: `GET /api/openapi.json`."""

from __future__ import annotations

import inspect
import json
import re
import types
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from barnabas.broker.api.checks import Denial
from barnabas.broker.config.attribute_docs import attribute_docs
from barnabas.broker.console import shapes
from barnabas.broker.console.actions.effect import OLD_FIGURES, Effect
from barnabas.broker.console.actions.fields import BASED_ON, CONFIRM, TEXTS, Field
from barnabas.broker.console.actions.performing import PARAMETERS as DRY_RUN
from barnabas.broker.console.actions.table import ACTIONS, Action
from barnabas.broker.console.encoding import keys_of
from barnabas.broker.console.lengths import (
    ENTRIES_MOST,
    ENTRY_NAME_MOST,
    ENTRY_VALUE_MOST,
    LENGTHS,
)
from barnabas.broker.console.parameters import Parameter
from barnabas.broker.console.route import Route
from barnabas.broker.console.routes import LIVE, ROUTES
from barnabas.broker.security.acls.operations import shown

ERRORS: Final = {
    "400": "A parameter is invalid.",
    "401": "The request needs authentication.",
    "403": "The user lacks a permission.",
    "404": "The object does not exist.",
    "429": "Too many requests, or a quota is exceeded; retry later.",
    "503": "The broker recovers, loads or has failed.",
}
_PLAIN: Final[dict[object, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "binary"},
    type(None): {"type": "null"},
}
_WIDE: Final = {"type": ["integer", "string"], "pattern": "^-?[0-9]+$"}
ERRORS_OF_CHANGES: Final = {
    "409": "The object has changed since the dry run, or its state does not allow the change.",
    "415": "The body is not application/json.",
}
_BYTES: Final = {
    "description": "A text, null, or bytes in Base64.",
    "anyOf": [
        {"type": ["string", "null"], "maxLength": ENTRY_VALUE_MOST},
        {
            "type": "object",
            "properties": {"base64": {"type": "string", "maxLength": ENTRY_VALUE_MOST}},
            "required": ["base64"],
        },
    ],
}
_KINDS: Final[dict[str, dict[str, Any]]] = {
    **{kind: {"type": "string"} for kind in ("text", "long", "once")},
    "password": {"type": "string", "format": "password"},
    "integer": _WIDE,
    "headers": {
        "type": "array",
        "maxItems": ENTRIES_MOST,
        "items": {
            "type": "object",
            "properties": {
                "key": {"type": "string", "maxLength": ENTRY_NAME_MOST},
                "value": _BYTES,
            },
            "required": ["key"],
        },
    },
    "map": {
        "type": "object",
        "maxProperties": ENTRIES_MOST,
        "propertyNames": {"maxLength": ENTRY_NAME_MOST},
        "additionalProperties": {"type": ["string", "null"], "maxLength": ENTRY_VALUE_MOST},
    },
}
_CONFIRMATION: Final = {
    CONFIRM: {
        "type": "string",
        "description": "Name of the object, again.",
        "maxLength": LENGTHS[CONFIRM],
    },
    BASED_ON: {
        "type": "string",
        "description": "`based_on` of a dry run.",
        "maxLength": LENGTHS[BASED_ON],
    },
}
_NAME_IN_PATH: Final = re.compile(r"\{(\w+)\}")


def document() -> dict[str, Any]:
    """Return the whole document."""
    used: dict[str, type] = {}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, used)
    for action in ACTIONS:
        paths.setdefault(action.template, {})[action.method.lower()] = _change(action, used)
    paths[LIVE.template] = {"get": _stream(used)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Barnabas",
            "version": "v1",
            "description": "State of a broker, and changes. Times are in milliseconds since 1970.",
        },
        "paths": paths,
        "components": {"schemas": _schemas(used)},
    }


def _operation(route: Route, used: dict[str, type]) -> dict[str, Any]:
    check = route.check
    needs = f"{shown(check.operation)} on {shown(check.resource_type)}"
    rows = check.denial is Denial.LEFT_OUT
    return {
        "summary": route.summary,
        "description": f"Rows that need {needs}." if rows else f"Needs {needs}.",
        "parameters": [
            *(_path_parameter(name) for name in _NAME_IN_PATH.findall(route.template)),
            *(_query_parameter(each) for each in route.parameters),
        ],
        "responses": {
            "200": _response("The result.", route.shape, used),
            **_refusals(ERRORS, used),
        },
    }


def _change(action: Action, used: dict[str, type]) -> dict[str, Any]:
    check = action.check
    confirmation = _CONFIRMATION if action.is_destructive else {}
    properties = {each.name: _field(each) for each in action.fields} | confirmation
    body = {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in action.fields if each.required],
        "additionalProperties": False,
    }
    return {
        "summary": action.title,
        "description": f"Needs {shown(check.operation)} on {shown(check.resource_type)}.",
        "parameters": [
            *(_path_parameter(name) for name in _NAME_IN_PATH.findall(action.template)),
            *(_query_parameter(each) for each in DRY_RUN),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": _response("The effect of the change, or of the dry run.", Effect, used),
            **_refusals(ERRORS | ERRORS_OF_CHANGES, used),
        },
    }


def _field(field: Field) -> dict[str, Any]:
    schema = dict(_KINDS[field.kind]) | {"description": field.doc}
    if field.choices:
        return schema | {"enum": list(field.choices)}
    return schema | ({"maxLength": field.length_most} if field.kind in TEXTS else {})


def _stream(used: dict[str, type]) -> dict[str, Any]:
    return {
        "summary": LIVE.summary,
        "description": "Needs the permissions of the watched objects. An event `state` has the "
        "name of an object and its state, in the shape of its own path. An event `refused` has an "
        "error.",
        "parameters": [_query_parameter(each) for each in LIVE.parameters],
        "responses": {
            "200": {
                "description": "Events.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **_refusals(ERRORS, used),
        },
    }


def _path_parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": "Percent-encoded, slashes too.",
        "schema": {"type": "string", "maxLength": LENGTHS[name]},
    }


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    schema = dict(_PLAIN[parameter.kind])
    if parameter.choices:
        schema["enum"] = [parameter.read(each) for each in parameter.choices]
    elif parameter.kind is int:
        schema |= {"minimum": parameter.least, "maximum": parameter.most}
    elif parameter.kind is str:
        schema["maxLength"] = parameter.length_most
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.doc,
        "schema": schema,
    }


def _refusals(errors: dict[str, str], used: dict[str, type]) -> dict[str, Any]:
    return {
        code: _response(words, shapes.LoginNeeded if code == "401" else shapes.Error, used)
        for code, words in errors.items()
    }


def _response(words: str, shape: type, used: dict[str, type]) -> dict[str, Any]:
    content_type = "application/octet-stream" if shape is bytes else "application/json"
    return {
        "description": words,
        "content": {content_type: {"schema": schema_of(shape, used)}},
    }


def schema_of(hint: object, used: dict[str, type]) -> dict[str, Any]:
    """Return the schema of a type; the shapes that it names are put into ``used``."""
    if get_origin(hint) is Annotated:
        return dict(_WIDE)
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    parts = get_args(hint)
    if isinstance(hint, types.UnionType) or get_origin(hint) is not None:
        if get_origin(hint) is tuple:
            return {"type": "array", "items": schema_of(parts[0], used)}
        if get_origin(hint) is dict:
            return {"type": "object", "additionalProperties": schema_of(parts[1], used)}
        return {"anyOf": [schema_of(each, used) for each in parts]}
    assert isinstance(hint, type), hint
    used[hint.__name__] = hint
    return {"$ref": f"#/components/schemas/{hint.__name__}"}


def _schemas(used: dict[str, type]) -> dict[str, Any]:
    """Return the schemas of shapes, and of the shapes that these name in turn."""
    schemas: dict[str, Any] = {}
    while left := used.keys() - schemas.keys():
        for name in left:
            schemas[name] = _schema(used[name], used)
    return dict(sorted(schemas.items()))


def _schema(shape: type, used: dict[str, type]) -> dict[str, Any]:
    hints = get_type_hints(shape, include_extras=True)
    docs = attribute_docs(shape)
    properties = {}
    for key, name in keys_of(shape):
        properties[key] = schema_of(hints[name], used)
        if key != name:
            properties[key] |= {"description": f"Old name of {name}.", "deprecated": True}
        elif name in docs:
            properties[key]["description"] = docs[name]
    if shape is Effect:
        properties["figures"]["properties"] = {
            old: {**_WIDE, "description": f"Old name of {name}.", "deprecated": True}
            for name, old in OLD_FIGURES.items()
        }
    return {
        "type": "object",
        "description": inspect.getdoc(shape),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@cache
def text() -> str:
    """Return the document as JSON."""
    return json.dumps(document(), indent=2) + "\n"
