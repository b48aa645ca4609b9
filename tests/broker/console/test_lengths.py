"""Every text that a request brings has a limit, which is checked before anything reads the text."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from barnabas.broker.console import openapi
from barnabas.broker.console.actions.fields import BASED_ON, CONFIRM, TEXT, Field, read_fields
from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.lengths import (
    ENTRY_NAME_MOST,
    FILTER_MOST,
    LENGTHS,
    PARTITIONS_NAMED_MOST,
    check_names,
)
from barnabas.broker.console.parameters import Parameter, read_query
from barnabas.broker.console.records import filters
from barnabas.broker.console.records.filters import TERMS_MOST, read_filter
from barnabas.broker.console.records.ranges import read_partitions
from barnabas.broker.console.routes import LIVE, ROUTES
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP
from tests.broker.console.test_actions import send, some_body, some_path
from tests.broker.console.test_jobs import written
from tests.broker.producers import commit

ODD_TEXTS = (
    "",
    " ",
    "-",
    "1e9999999999999999999",
    "-1e-9999999999999999999",
    "inf",
    "nan",
    "9" * 25,
    "9" * 5_000,
    "\u0663",
    "@0001-01-01T00:00:00",
    "@9999-12-31T23:59:59",
    "@" + "9" * 18,
    "x{0,1000}" * 80,
    "/" + "x{0,1000}" * 43 + "/",
    '"' * 1_000,
    "\x00",
    "\U0010ffff",
    "value.a=" + "9" * 900,
    "value.a=" + "[" * 900,
    "value[" + "9" * 900 + "]=1",
    "partition:" + "0," * 400,
)
EACH_ACTION = pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.name)


# ------------------------------------------------------------------------------------- the table


def strings_in(schema, where):
    """Yield the schemas of all texts in a schema, and where each is."""
    kind = schema.get("type")
    if (kind == "string" or (isinstance(kind, list) and "string" in kind)) and "enum" not in schema:
        yield where, schema
    for name, each in schema.get("properties", {}).items():
        yield from strings_in(each, f"{where}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from strings_in(schema[name], f"{where}.{name}")
    for each in schema.get("anyOf", ()):
        yield from strings_in(each, where)


def texts_of_requests():
    for template, methods in openapi.document()["paths"].items():
        for method, operation in methods.items():
            for each in operation["parameters"]:
                yield from strings_in(each["schema"], f"{method} {template} {each['name']}")
            if "requestBody" in operation:
                body = operation["requestBody"]["content"]["application/json"]["schema"]
                yield from strings_in(body, f"{method} {template}")


def test_openapi_has_a_limit_for_every_text_of_a_request():
    found = dict(texts_of_requests())
    assert len(found) > 50
    # Whole numbers that JavaScript would round come as texts: their pattern and 20 digits.
    unlimited = [
        where
        for where, schema in found.items()
        if "maxLength" not in schema and "pattern" not in schema
    ]
    assert unlimited == []


def test_text_without_a_limit_cannot_be_made():
    with pytest.raises(KeyError, match="unheard_of"):
        Parameter("unheard_of", "A text.")
    with pytest.raises(KeyError, match="unheard_of"):
        Field("unheard_of", TEXT, "A text.")


def test_every_limit_is_used():
    named = {each.limit or each.name for route in (*ROUTES, LIVE) for each in route.parameters}
    named |= {each.name for action in ACTIONS for each in action.fields}
    named |= {part[1:-1] for row in (*ROUTES, *ACTIONS) for part in row.parts if part[0] == "{"}
    assert LENGTHS.keys() <= named | {CONFIRM, BASED_ON}


PARAMETERS = {
    each.limit or each.name: each
    for route in (*ROUTES, LIVE)
    for each in route.parameters
    if each.kind is str and not each.choices
}


@pytest.mark.parametrize("limit", PARAMETERS)
def test_parameter_that_is_too_long_is_refused(limit):
    parameter, most = PARAMETERS[limit], LENGTHS[limit]
    name = parameter.name
    assert read_query([parameter], {name: "x" * most}) == {name: "x" * most}
    with pytest.raises(KafkaError, match=f"{name}: at most {most} characters"):
        read_query([parameter], {name: "x" * (most + 1)})


@EACH_ACTION
def test_field_that_is_too_long_is_refused(action):
    for each in action.fields:
        if each.kind in {"integer", "map", "headers"}:
            continue
        body = some_body(action) | {each.name: "x" * (each.length_most + 1)}
        with pytest.raises(KafkaError, match=f"{each.name}: (at most|expected any of)"):
            read_fields(action.fields, body)
    for name in (CONFIRM, BASED_ON):
        with pytest.raises(KafkaError, match=f"{name}: at most"):
            read_fields(action.fields, some_body(action) | {name: "x" * (LENGTHS[name] + 1)})


def test_name_in_a_path_that_is_too_long_is_refused():
    check_names({"topic": "x" * 249})
    with pytest.raises(KafkaError, match="topic: at most 249 characters"):
        check_names({"topic": "x" * 250})


@pytest.mark.parametrize(
    "value", [{"x" * (ENTRY_NAME_MOST + 1): "v"}, dict.fromkeys(map(str, range(10_001)), "v")]
)
def test_map_with_too_much_in_it_is_refused(value):
    with pytest.raises(KafkaError, match="at most"):
        Field("configs", "map", "Entries.").read(value)


# -------------------------------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/a/ " * (TERMS_MOST + 1), f"at most {TERMS_MOST} terms"),
        ("/a/ " * 120_000, f"at most {FILTER_MOST} characters"),
        ("a " * 500_000, f"at most {FILTER_MOST} characters"),
        ("/" + "a" * 1_000_000 + "/", f"at most {FILTER_MOST} characters"),
        ("partition:" + "0," * 400 + "0", f"at most {PARTITIONS_NAMED_MOST} numbers"),
    ],
)
def test_filter_that_is_too_large_is_refused_before_anything_is_compiled(monkeypatch, text, words):
    compiled = []
    monkeypatch.setattr(filters, "compile_pattern", lambda *given: compiled.append(given))
    with pytest.raises(KafkaError, match=words) as refused:
        read_filter(text)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert compiled == []


def test_filter_has_as_many_terms_as_it_may():
    assert len(read_filter("/a/ " * TERMS_MOST).terms) == TERMS_MOST


def test_expression_that_costs_too_much_is_refused_in_a_filter():
    with pytest.raises(KafkaError, match=r"filter: /x.*: pattern too large"):
        read_filter("/" + "x{0,1000}" * 43 + "/")


def test_list_of_partitions_is_limited():
    assert read_partitions(",".join("0" * PARTITIONS_NAMED_MOST)) == {0}
    with pytest.raises(KafkaError, match=f"partition: at most {PARTITIONS_NAMED_MOST} numbers"):
        read_partitions(",".join("0" * (PARTITIONS_NAMED_MOST + 1)))


# ---------------------------------------------------------------------------------- over a socket


@pytest.fixture(scope="module")
def broker():
    with Broker(config=HTTP) as running:
        running.port = running.address[1]
        for topic in ("x", "no-topic"):
            written(running, topic, 2)
        commit(running, "no-group", "no-topic", 1)
        yield running


def test_replay_with_a_filter_of_a_megabyte_is_refused(broker):
    for text in ("/a/ " * 120_000, "a " * 500_000, "/" + "a" * 1_000_000 + "/"):
        body = {"topic": "x", "target": "x", "filter": text}
        status, answer = send(broker, "POST", "/api/v1/jobs", body)
        assert (status, answer["message"]) == (400, f"filter: at most {FILTER_MOST} characters")


def odd_bodies(action):
    """Yield bodies with something odd in one field after the other."""
    for each in action.fields:
        for text in ODD_TEXTS:
            value = {"map": {"x": text}, "headers": [{"key": text, "value": text}]}.get(
                each.kind, text
            )
            yield some_body(action) | {each.name: value}
        if each.kind == "map":
            for key in ("producer_byte_rate", "retention.ms", "compression.type"):
                yield from (some_body(action) | {each.name: {key: text}} for text in ODD_TEXTS)


@EACH_ACTION
def test_odd_text_in_any_field_is_answered(broker, caplog, action):
    for body in odd_bodies(action):
        status, answer = send(broker, action.method, some_path(action) + "?dry_run=true", body)
        assert status < 500, (body, answer)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    "route",
    [each for each in ROUTES if each.shape is not bytes and each.parameters],
    ids=lambda each: each.template,
)
def test_odd_text_in_any_parameter_is_answered(broker, caplog, route):
    where = some_path(route).replace("no-partition", "0").replace("no-offset", "0")
    for each in route.parameters:
        if each.name in {"follow", "viewer"}:
            continue
        for text in ODD_TEXTS:
            if len(quote(text)) < 3_000:
                asked = f"{where}?{each.name}={quote(text)}"
                status, answer = send(broker, route.method, asked)
                assert status < 500, (asked, json.dumps(answer)[:300])
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
