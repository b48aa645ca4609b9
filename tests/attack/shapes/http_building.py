"""Requests over HTTP as bytes, and shapes that every route or action has."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from barnabas.broker.console.actions.fields import HEADERS, INTEGER, MAP, ONCE, Field
from barnabas.broker.console.actions.table import ACTIONS, Action
from barnabas.broker.console.parameters import Parameter
from barnabas.broker.console.route import Route
from barnabas.broker.console.routes import ROUTES
from tests.attack.shapes.building import REGEX
from tests.attack.shapes.shape import ORDINARY, Shape
from tests.attack.shapes.world import BATCHES, RECORDS, TRANSACTION, WIDE_GROUP, World
from tests.broker.security.access_users import PASSWORD

TARGET_CHARACTERS = 4_000
"""Just below what the target of a request may have."""
BODY_BYTES = 1024 * 1024
BODY_TEXT_CHARACTERS = BODY_BYTES - 2_000
NAMES = {
    "topic": RECORDS,
    "group": WIDE_GROUP,
    "transactional_id": TRANSACTION,
    "partition": str(BATCHES),
    "offset": "0",
    "address": "127.0.0.1:1",
    "user": ORDINARY,
    "principal": f"User:{ORDINARY}",
}
"""Values of the names in a path: a thing that exists is more work than one that does not."""
DEEP = b"[" * (BODY_BYTES // 2 - 10) + b"]" * (BODY_BYTES // 2 - 10)
NUMBERS = b'{"a":' + b"9" * (BODY_BYTES - 20) + b"}"
EXPONENT = b'{"a":1e' + b"9" * (BODY_BYTES - 20) + b"}"
MANY_KEYS = b"{" + b",".join(b'"k%d":0' % number for number in range(80_000)) + b"}"
ESCAPES = b'{"a":"' + rb"\u00df" * (BODY_BYTES // 6 - 10) + b'"}'
ODD_BODIES = (DEEP, NUMBERS, EXPONENT, MANY_KEYS, ESCAPES)


def request(
    method: str,
    target: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    user: str = ORDINARY,
) -> bytes:
    """Return a whole request that closes its connection."""
    given = {"Host": "localhost", "Connection": "close", **(headers or {})}
    if user:
        credentials = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
        given["Authorization"] = f"Basic {credentials}"
    if body is not None:
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join((*lines, "", "")).encode() + (body or b"")


def path_of(template: str, **names: str) -> str:
    """Return a path in which each name stands for something that exists."""
    for name, value in {**NAMES, **names}.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template


def target_of(template: str, query: Mapping[str, str], **names: str) -> str:
    """Return path and query, as much of it as a target may have."""
    path = path_of(template, **names)
    return f"{path}?{urlencode(query)}"[:TARGET_CHARACTERS] if query else path


def asked(name: str, *requests: bytes, is_read: bool = True) -> Shape:
    """Return a shape of requests that are always the same."""
    return Shape(name, lambda _world: requests, is_read=is_read)


def gets(name: str, template: str, *queries: Mapping[str, str], **names: str) -> Shape:
    """Return a shape of one GET for each query."""
    return asked(name, *(request("GET", target_of(template, each, **names)) for each in queries))


def unread_get(template: str, query: Mapping[str, str] | None = None, **names: str) -> Shape:
    """Return a shape of a GET whose response is never read."""
    sent = request("GET", target_of(template, query or {}, **names))
    return asked("unread", sent, is_read=False)


# ----------------------------------------------------------------------------------------- routes


def of_route(key: str, **always: str) -> list[Shape]:
    """Return the shapes of each route: the longest texts, every choice, odd cursors.

    ``always`` is in each query that has nothing else of that name.
    """
    route = next(each for each in ROUTES if key == f"{each.method} {each.template}")
    shapes = [gets("as it is", route.template, always)]
    if names := names_of(route.template):
        long_name = {names[0]: "x" * (TARGET_CHARACTERS - 200)}
        shapes.append(gets("a long name", route.template, {}, **long_name))
    if longest := [*_longest(route, always)]:
        shapes.append(gets("the longest parameters", route.template, *longest))
    if route.parameters:
        choices = [
            {**always, each.name: choice} for each in route.parameters for choice in each.choices
        ]
        if choices:
            shapes.append(gets("every choice", route.template, *choices))
    if any(each.name == "after" for each in route.parameters):
        shapes.append(
            gets("odd cursors", route.template, *({"after": each} for each in _cursors()))
        )
    return shapes


def names_of(template: str) -> list[str]:
    """Return the names in the path of a template."""
    return [each[1:-1] for each in template.split("/") if each.startswith("{")]


def _longest(route: Route, always: Mapping[str, str]) -> Iterable[dict[str, str]]:
    for each in route.parameters:
        for value in _values(each):
            yield {**always, each.name: value}


def _values(parameter: Parameter) -> Iterable[str]:
    if parameter.kind is int:
        yield str(parameter.most)
        yield "9" * TARGET_CHARACTERS
    elif not parameter.choices and parameter.kind is str:
        most = min(parameter.length_most, TARGET_CHARACTERS)
        yield "x" * most
        yield ",".join("0" for _ in range(most // 2))
        yield "/" + "x{0,1000}" * ((most - 2) // 9) + "/"


def _cursors() -> Iterable[str]:
    for text in (
        "[" * 2_900,
        '["topic",' + "9" * 2_800 + "]",
        '["topic",1e' + "9" * 2_800 + "]",
        '["topic",' + "[" * 1_400 + "]" * 1_400 + "]",
        '{"a":' * 550,
    ):
        yield base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


# ---------------------------------------------------------------------------------------- actions


def of_action(key: str) -> list[Shape]:
    """Return the shapes of each action: each field as large as can be, and bodies of odd JSON."""
    action = next(each for each in ACTIONS if key == f"{each.method} {each.template}")
    shapes = [
        sends(f"{field.name}: {what}", action, {field.name: value})
        for field in action.fields
        for what, value in _large(field.kind, has_choices=bool(field.choices)).items()
    ]

    def bodies(_world: World) -> Iterable[bytes]:
        return [request(action.method, _dry(action), body) for body in ODD_BODIES]

    return [*shapes, Shape("odd bodies", bodies)]


def sends(name: str, action: Action, values: Mapping[str, Any], *, is_dry: bool = True) -> Shape:
    """Return a shape of one request for an action, which is encoded when it is sent."""
    return Shape(name, lambda _world: [send(action, values, is_dry=is_dry)])


def send(action: Action, values: Mapping[str, Any], *, is_dry: bool = True) -> bytes:
    """Return a request for an action; of the other fields those that it needs are plausible."""
    body = {each.name: _plausible(each) for each in action.fields if each.required}
    target = _dry(action) if is_dry else path_of(action.template)
    data = json.dumps({**body, **values}, separators=(",", ":")).encode()
    return request(action.method, target, data[:BODY_BYTES])


def _dry(action: Action) -> str:
    return f"{path_of(action.template)}?dry_run=true"


def _plausible(field: Field) -> Any:
    if field.kind == INTEGER:
        return 1
    if field.kind == MAP:
        return {"retention.ms": "1"}
    return field.choices[0] if field.choices else NAMES.get(field.name, RECORDS)


@cache
def _large(kind: str, *, has_choices: bool) -> dict[str, Any]:
    """Return the largest values of a kind of field, by what they are."""
    most = BODY_TEXT_CHARACTERS
    if kind == INTEGER:
        return {"digits": "9" * most}
    if kind == MAP:
        entries = {f"key-{number}": "v" for number in range(9_999)}
        return {"9,999 entries": entries, "a long entry": {"k" * (most // 2): "v" * (most // 2)}}
    if kind == HEADERS:
        headers = [{"key": "k", "value": {"base64": "AAAA"}} for _ in range(9_999)]
        return {"9,999 headers": headers, "many headers": [{"key": ""}] * (most // 12)}
    if kind == ONCE or has_choices:
        return {"a long text": "x" * most}
    return {
        "a long text": "x" * most,
        "words": "a " * (most // 2),
        "numbers": "0," * (most // 2),
        "places": "0:1 " * (most // 4),
        "regular expressions": "/a/ " * (most // 4),
        "repetitions": "/" + REGEX * (most // len(REGEX)) + "/",
        "quotes": '"' * (most // 2),
        "escapes": "\\" * (most // 2),
        "steps": "value" + ".a" * (most // 3),
    }
