"""Requests and errors of the console's API."""

from __future__ import annotations

import json

import pytest

from barnabas.broker.console import openapi
from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.application import STATUS
from barnabas.broker.console.encoding import LARGEST_EXACT, ROWS_PER_PIECE, as_json, body_of
from barnabas.broker.console.parameters import Parameter, read_query
from barnabas.broker.console.routes import LIVE, ROUTES
from barnabas.broker.console.shapes import Error, TopicPage, TopicRow
from barnabas.broker.runtime.stage import Stage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, ask_api
from tests.broker.http.test_server import ask, get, get_json


async def test_a_topic_as_clients_made_it():
    async with Broker(config=HTTP) as broker:
        await broker.create_topic("orders", partitions=3)
        await broker.create_topic("billing")
        page = await ask_api(broker, "topics")
        assert [each["topic"] for each in page["items"]] == ["billing", "orders"]
        assert page["next"] is None
        orders = page["items"][1]
        assert (orders["partitions"], orders["replicas"]) == (3, 1)
        one = await ask_api(broker, "topics", "orders")
        assert page["total"] == 2
        # Only lists have numbers of groups, a page at a time.
        assert {name: one[name] for name in orders.keys() - {"groups"}} == {
            name: orders[name] for name in orders.keys() - {"groups"}
        }
        assert orders["groups"] == 0
        configs = {each["key"]: each for each in one["configs"]}
        assert configs["cleanup.policy"] == {
            "key": "cleanup.policy",
            "value": "delete",
            "source": "default",
        }
        partitions = await ask_api(broker, "topics", "orders", "partitions")
        assert [each["partition"] for each in partitions["items"]] == [0, 1, 2]
        assert partitions["items"][0]["end_offset"] == 0


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("topics/nothing", 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("topics/nothing/partitions", 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("nothing", 404, "RESOURCE_NOT_FOUND"),
        ("topics/a/b/c", 404, "RESOURCE_NOT_FOUND"),
        ("topics?limit=0", 400, "INVALID_REQUEST"),
        ("topics?limit=1001", 400, "INVALID_REQUEST"),
        ("topics?limit=-1", 400, "INVALID_REQUEST"),
        ("topics?limit=%C2%B2", 400, "INVALID_REQUEST"),
        ("topics?limit=" + "9" * 4000, 400, "INVALID_REQUEST"),
        ("topics?sort=size", 400, "INVALID_REQUEST"),
        ("topics?internal=yes", 400, "INVALID_REQUEST"),
        ("topics?after=nonsense", 400, "INVALID_REQUEST"),
        ("topics?after=" + "W1tb" * 900, 400, "INVALID_REQUEST"),
        ("topics?colour=red", 400, "INVALID_REQUEST"),
        ("topics/orders?sort=topic", 400, "INVALID_REQUEST"),
    ],
)
async def test_invalid_request_gets_the_name_of_a_kafka_error(path, status, error):
    async with Broker(config=HTTP) as broker:
        await broker.create_topic("orders")
        found, answer = await get_json(broker.server.http.address, f"/api/v1/{path}")
        assert (found, answer["error"]) == (status, error)
        assert answer["message"]


async def test_ways_of_asking():
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        answer = await ask(address, b"HEAD /api/v1/topics HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\n")
        answer = await ask(address, b"DELETE /api/v1/overview HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert b"\r\nAllow: GET, HEAD\r\n" in answer
        answer = await ask(
            address, b"GET /api/v1/topics HTTP/1.0\r\nSec-Fetch-Site: cross-site\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 403 ")


async def test_a_broker_that_does_not_know_what_it_holds():
    async with Broker(config=HTTP) as broker:
        for stage in (Stage.OPENING, Stage.RECOVERED):
            broker.server.stage = stage
            answer = await ask_api(broker, "topics", expected=503)
            assert answer["error"] == "BROKER_NOT_AVAILABLE"
        broker.server.stage = Stage.LISTENING
        broker.server.failure = OSError(5, "Input/output error")
        answer = await ask_api(broker, "topics", expected=503)
        assert answer["error"] == "KAFKA_STORAGE_ERROR"
        broker.server.failure = None


async def test_openapi_is_served():
    async with Broker(config=HTTP) as broker:
        status, served = await get_json(broker.server.http.address, "/api/openapi.json")
        assert (status, served) == (200, openapi.document())
        assert (await get(broker.server.http.address, "/api"))[0] == 404


def test_openapi_has_every_route_and_every_shape():
    described = openapi.document()
    asked = {(each.template, each.method.lower()) for each in (*ROUTES, *ACTIONS)}
    assert asked | {(LIVE.template, "get")} == {
        (template, method) for template, methods in described["paths"].items() for method in methods
    }
    schemas = described["components"]["schemas"]
    for name in _references(described):
        assert name in schemas
    assert all(each["description"] for each in schemas.values())
    wide = schemas["TopicRow"]["properties"]["size_bytes"]
    assert wide["type"] == ["integer", "string"]
    figures = schemas["Effect"]["properties"]["figures"]["properties"]
    assert sorted(figures) == ["limits", "offsets_held_back", "rules"]
    assert figures["rules"]["description"] == "Old name of acls."
    assert all(each["deprecated"] for each in figures.values())


def _references(value):
    if isinstance(value, dict):
        for name, each in value.items():
            if name == "$ref":
                yield each.rpartition("/")[2]
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def test_templates_differ():
    templates = [(route.method, *route.parts) for route in ROUTES]
    assert len(set(templates)) == len(templates)
    for route in ROUTES:
        if route.check.name:
            assert f"{{{route.check.name}}}" in route.template or "LEFT_OUT" in str(route.check)


def row(number):
    return TopicRow(
        f"t{number}", "", False, 1, 1, "delete", number, number, LARGEST_EXACT + number, 0, 0
    )


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_PIECE, ROWS_PER_PIECE + 1, 3 * ROWS_PER_PIECE])
def test_pieces_make_the_same_json_as_the_whole(count):
    page = TopicPage(1, None, 1000, tuple(map(row, range(count))))
    body = body_of(page)
    assert isinstance(body, tuple) is (count <= ROWS_PER_PIECE)
    assert json.loads("".join(body)) == as_json(page)


def test_no_piece_is_long():
    page = TopicPage(1, None, 1000, tuple(map(row, range(1000))))
    assert max(piece.count("topic_id") for piece in body_of(page)) <= ROWS_PER_PIECE


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2**53, 2**53),
        (2**53 + 1, str(2**53 + 1)),
        (-(2**53) - 1, str(-(2**53) - 1)),
        (2**63 - 1, str(2**63 - 1)),
        (True, True),
        (0.5, 0.5),
    ],
)
def test_javascript_rounds_no_number(number, expected):
    assert as_json((number, {"a": number})) == [expected, {"a": expected}]


def test_every_status_is_one_that_http_knows():
    assert set(STATUS.values()) == {400, 403, 404, 409, 429, 503}
    assert as_json(Error("A", "b")) == {"error": "A", "message": "b"}


@pytest.mark.parametrize("text", ["", "1.5", "+1", " 1", "1_0", "²", "10000000000000000000"])
def test_numbers_are_digits(text):
    with pytest.raises(KafkaError) as caught:
        read_query([Parameter("n", "", int)], {"n": text})
    assert caught.value.code == ErrorCode.INVALID_REQUEST
