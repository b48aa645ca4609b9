"""Asking a broker's console over its socket, and comparing the answer with what is promised."""

from __future__ import annotations

import json
import re
from functools import cache
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request

from barnabas.broker.console import openapi
from barnabas.broker.console.routes import match
from tests.broker.http.test_server import get
from tests.http_client import urlopen

HTTP = {"barnabas.http.listener": "127.0.0.1:0"}


@cache
def document():
    """Return the OpenAPI document, built once for all checks of responses."""
    return openapi.document()


def _part(text):
    """Return a name as a part of a path; browsers take "." and ".." away, so they are marked."""
    return quote(f"~{text}" if re.fullmatch(r"~*\.{1,2}", text) else text, safe="")


def path(*parts, **query):
    """Return a path of the API; each part is percent-encoded."""
    asked = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
    return "/api/v1/" + "/".join(map(_part, parts)) + ("?" + asked if asked else "")


async def ask_api(broker, *parts, expected=200, **query):
    """Request a path; return its JSON after a check against the OpenAPI schema."""
    asked = path(*parts, **query)
    status, headers, body = await get(broker.server.http.address, asked)
    assert headers["content-type"] == "application/json", body
    assert status == expected, body
    return checked(parts, status, json.loads(body))


def fetch(broker, *parts, expected=200, authorization=None, **query):
    """Send the request of `ask_api` without a loop, with a user's credentials."""
    host, port = broker.server.http.address
    headers = {} if authorization is None else {"Authorization": authorization}
    asked = Request(f"http://{host}:{port}{path(*parts, **query)}", headers=headers)
    try:
        with urlopen(asked, timeout=60) as response:
            status, body = response.status, response.read()
            if response.headers["Content-Type"] != "application/json":
                return body
    except HTTPError as refused:
        status, body = refused.code, refused.read()
    assert status == expected, body
    return checked(parts, status, json.loads(body))


def checked(parts, status, answer):
    """Return an answer that has the shape that OpenAPI promises."""
    if status == 200:
        template = match(("api", "v1", *parts)).route.template
        responses = document()["paths"][template]["get"]["responses"]
        check(answer, responses["200"]["content"]["application/json"]["schema"])
    else:
        check(answer, {"$ref": "#/components/schemas/Error"})
    return answer


def check(value, schema, where="answer"):
    """Fail unless ``value`` matches ``schema`` of the OpenAPI document."""
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        problems = []
        for each in schema["anyOf"]:
            try:
                return check(value, each, where)
            except AssertionError as problem:
                problems.append(str(problem))
        raise AssertionError(problems)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert kind_of(value) in kinds or ("number" in kinds and kind_of(value) == "integer"), where
    if isinstance(value, dict) and "properties" in schema:
        assert set(value) == set(schema["required"]) == set(schema["properties"]), where
        for name, each in value.items():
            check(each, schema["properties"][name], f"{where}.{name}")
    elif isinstance(value, dict):
        for name, each in value.items():
            check(each, schema["additionalProperties"], f"{where}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            check(each, schema["items"], f"{where}[{number}]")
    return None


def kind_of(value):
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return kinds.get(type(value), "array" if isinstance(value, list) else "object")
