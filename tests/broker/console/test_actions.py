"""Every action of the table: in every mode of access, and what it really does."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request

import pytest

from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.routes import ROUTES
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.security.quotas.quota_limits import PRODUCER_BYTES, USER, entity
from barnabas.protocol.errors import KafkaError
from barnabas.testing import Broker, Cluster
from tests.broker.console.asking import HTTP, fetch
from tests.broker.producers import Producer, commit, committed, read
from tests.counterparts.transaction_client import TransactionClient
from tests.http_client import urlopen
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def broker():
    with Broker(config=HTTP) as running:
        running.port = running.address[1]
        yield running


@pytest.fixture(scope="module")
def read_only():
    with Broker(config={**HTTP, "barnabas.console.access": "read"}) as running:
        yield running


def send(broker, method, path, body=None, media_type="application/json", **headers):
    """Send a request for a change over a socket; return the status and the body of the response."""
    host, port = broker.server.http.address
    data = json.dumps({} if body is None else body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if media_type:
        given["Content-Type"] = media_type
    request = Request(f"http://{host}:{port}{path}", data=data, headers=given, method=method)
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read())
    except HTTPError as refused:
        text = refused.read().decode()
        return refused.code, json.loads(text) if text.startswith("{") else {"message": text}


def path(*parts):
    return "/api/v1/" + "/".join(quote(each, safe="") for each in parts)


def both(broker, method, where, body=None, confirm=None):
    """Run an action as a dry run, then for real; return the result of the dry run."""
    body = {} if body is None else body
    status, looked = send(broker, method, f"{where}?dry_run=true", body)
    assert status == 200, looked
    assert looked["dry_run"] is True
    sent = dict(body)
    if confirm is not None:
        sent |= {"confirm": confirm, "based_on": looked["based_on"]}
    status, done = send(broker, method, where, sent)
    assert status == 200, done
    assert done["dry_run"] is False
    assert done["summary"] == looked["summary"]
    return looked


def some_path(action):
    """Return a path of an action, with names of objects that do not exist."""
    return action.template.replace("{", "no-").replace("}", "")


def some_body(action):
    """Return a body that could be."""
    values = {"integer": 1, "map": {"a": "b"}, "headers": [{"key": "a"}]}
    body = {each.name: values.get(each.kind, "x") for each in action.fields}
    return body | {each.name: each.choices[0] for each in action.fields if each.choices}


each_action = pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.name)


# ------------------------------------------------------------------------- all rows of the table


@each_action
def test_nothing_is_changed_where_only_reading_is_allowed(read_only, action):
    status, answer = send(read_only, action.method, some_path(action), some_body(action))
    assert (status, answer["error"]) == (403, "POLICY_VIOLATION")
    assert answer["message"] == "read-only: barnabas.console.access is read"
    for permission in fetch(read_only, "allowed")["items"]:
        assert permission["reason"] == answer["message"]


@each_action
def test_a_page_of_another_site_changes_nothing(broker, action):
    for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Origin": "http://evil.example"}):
        status, _ = send(broker, action.method, some_path(action), some_body(action), **headers)
        assert status == 403
    status, _ = send(broker, action.method, some_path(action), {}, Host="evil.example")
    assert status == 421
    for media_type in ("text/plain", "application/x-www-form-urlencoded"):
        status, _ = send(broker, action.method, some_path(action), {}, media_type)
        assert status == 415


@each_action
def test_bodies_that_cannot_be(broker, action):
    for body, words in (([], "object"), ({"x": 1}, "no such field"), ("x", "object")):
        status, answer = send(broker, action.method, some_path(action), body)
        assert (status, answer["error"]) == (400, "INVALID_REQUEST")
        assert words in answer["message"]
    for field in action.fields:
        status, answer = send(broker, action.method, some_path(action), {field.name: 1.5})
        assert status == 400
        assert answer["message"].split(":")[0] in {each.name for each in action.fields}


@pytest.mark.parametrize(
    "action", [each for each in ACTIONS if "{" in each.template], ids=lambda each: each.name
)
def test_action_on_missing_object_is_rejected(broker, action):
    status, answer = send(broker, action.method, some_path(action), some_body(action))
    assert status in {400, 404, 409}, answer


def test_the_table_is_what_pages_are_given(broker):
    assert [each["action"] for each in fetch(broker, "actions")["items"]] == [
        each.name for each in ACTIONS
    ]
    templates = {route.template for route in ROUTES}
    assert len({(each.method, each.template) for each in ACTIONS}) == len(ACTIONS)
    for each in ACTIONS:
        assert each.template.startswith("/api/v1/")
        assert each.planning is not each.doing
    status, answer = send(broker, "POST", "/api/v1/overview")
    assert (status, answer["error"]) == (405, "INVALID_REQUEST")
    assert "/api/v1/overview" in templates


# ------------------------------------------------------------------------------------------ topics


def test_a_topic_from_its_beginning_to_its_end(broker):
    made = {"topic": "orders", "partitions": 2, "configs": {"retention.ms": "1000000"}}
    assert both(broker, "POST", path("topics"), made)["figures"] == {"partitions": 2}
    status, answer = send(broker, "POST", path("topics"), made)
    assert (status, answer["error"]) == (409, "TOPIC_ALREADY_EXISTS")

    changed = {"configs": {"retention.ms": None, "segment.bytes": "2000000"}}
    looked = both(broker, "PATCH", path("topics", "orders", "settings"), changed)
    assert [(each["what"], each["before"], each["after"]) for each in looked["changes"]] == [
        ("retention.ms", "1000000", None),
        ("segment.bytes", "1073741824", "2000000"),
    ]
    configs = {each["key"]: each for each in fetch(broker, "topics", "orders")["configs"]}
    assert configs["segment.bytes"]["value"] == "2000000"
    assert configs["retention.ms"]["value"] == "604800000"

    both(broker, "POST", path("topics", "orders", "partitions"), {"partitions": 3})
    assert fetch(broker, "topics", "orders")["partitions"] == 3
    status, answer = send(broker, "POST", path("topics", "orders", "partitions"), {"partitions": 2})
    assert (status, answer["error"]) == (400, "INVALID_PARTITIONS")

    for value in ("a", "b", "c"):
        body = {"value": value, "partition": 1}
        both(broker, "POST", path("topics", "orders", "records"), body)
    body = {"partition": 1, "before_offset": 2}
    looked = both(broker, "DELETE", path("topics", "orders", "records"), body, confirm="orders")
    assert looked["figures"] == {"offsets": 2}
    rows = fetch(broker, "topics", "orders", "partitions")["items"]
    assert [each["start_offset"] for each in rows] == [0, 2, 0]

    where = path("topics", "orders")
    _, looked = send(broker, "DELETE", f"{where}?dry_run=true")
    assert looked["figures"]["partitions"] == 3
    for body, expected in (
        ({}, 400),
        ({"confirm": "order", "based_on": looked["based_on"]}, 400),
        ({"confirm": "orders"}, 400),
        ({"confirm": "orders", "based_on": "0"}, 409),
    ):
        assert send(broker, "DELETE", where, body)[0] == expected
    both(broker, "DELETE", where, confirm="orders")
    fetch(broker, "topics", "orders", expected=404)


# ----------------------------------------------------------------------------------------- records


HEADERS = [
    {"key": "trace", "value": "1"},
    {"key": "trace", "value": {"base64": "/wA="}},
    {"key": ""},
    {"key": "x", "value": ""},
]
"""Repeated, with bytes, without a value."""


def test_a_record_is_what_a_client_reads(broker):
    sent = (
        ({"key": "k", "key_format": "text", "value": "v", "headers": HEADERS}, b"k", b"v"),
        ({"value_format": "null"}, None, None),
        ({"value": '{"a": 1}', "value_format": "json"}, None, b'{"a": 1}'),
        ({"value": "00ff", "value_format": "hex", "partition": 0}, None, b"\x00\xff"),
        ({"value": "AP8=", "value_format": "base64"}, None, b"\x00\xff"),
    )
    both(broker, "POST", path("topics"), {"topic": "typed", "partitions": 1})
    for body, _, _ in sent:
        both(broker, "POST", path("topics", "typed", "records"), body)
    found = read(broker, "typed")
    assert [(each.key, each.value) for each in found] == [(key, value) for _, key, value in sent]
    assert [*found[0].headers] == [
        ("trace", b"1"),
        ("trace", b"\xff\x00"),
        ("", None),
        ("x", b""),
    ]


def test_values_that_are_not_what_they_are_called(broker):
    both(broker, "POST", path("topics"), {"topic": "refused", "partitions": 1})
    for body in (
        {"value": "{", "value_format": "json"},
        {"value": "0", "value_format": "hex"},
        {"value": "*", "value_format": "base64"},
        {"value": "x", "value_format": "null"},
        {"value": "x", "value_format": "other"},
        {"value": "x", "partition": True},
        {"headers": {"a": "b"}},
        {"headers": ["a"]},
        {"headers": [{"value": "a"}]},
        {"headers": [{"key": "a", "other": 1}]},
        {"headers": [{"key": 1}]},
        {"headers": [{"key": "a", "value": 1}]},
        {"headers": [{"key": "a", "value": {"base64": "*"}}]},
        {"headers": [{"key": "a", "value": {"base64": 1}}]},
        {"headers": [{"key": "a"}] * 10_001},
        {"value": "\ud800"},
        {"headers": [{"key": "\udc00"}]},
        {"value": "x", "once": ""},
        {"value": "x", "once": "x" * 65},
    ):
        status, answer = send(broker, "POST", path("topics", "refused", "records"), body)
        assert (status, answer["error"]) == (400, "INVALID_REQUEST"), body
    body = {"value": "x", "partition": 1}
    status, answer = send(broker, "POST", path("topics", "refused", "records"), body)
    assert (status, answer["error"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert fetch(broker, "topics", "refused")["records_max"] == 0


def values_of(broker, topic):
    return [each.value.decode() for each in broker.records(topic).result]


def test_record_sent_twice_with_a_key_is_written_once():
    with Broker(config=HTTP) as broker:
        both(broker, "POST", path("topics"), {"topic": "once", "partitions": 8})
        where = path("topics", "once", "records")
        for _ in range(3):
            status, answer = send(broker, "POST", where, {"value": "a", "once": "key"})
            assert status == 200
            places = {each["what"] for each in answer["changes"]}
        (place,) = places
        assert place.endswith(", offset 0")
        assert values_of(broker, "once") == ["a"]
        # Also by a broker that has crashed meanwhile.
        broker.crash()
        broker.restart()
        _, answer = send(broker, "POST", where, {"value": "a", "once": "key"})
        assert answer["changes"][0]["what"] == place
        assert values_of(broker, "once") == ["a"]
        # Another key, another record, no key: each is a record of its own.
        send(broker, "POST", where, {"value": "a", "once": "other"})
        send(broker, "POST", where, {"value": "b", "once": "key"})
        send(broker, "POST", where, {"value": "a", "once": "key", "headers": [{"key": "h"}]})
        send(broker, "POST", where, {"value": "a"})
        send(broker, "POST", where, {"value": "a"})
        assert sorted(values_of(broker, "once")) == ["a", "a", "a", "a", "a", "b"]


def test_producer_above_its_quota_is_throttled(broker):
    both(broker, "POST", path("topics"), {"topic": "limited", "partitions": 1})
    everybody = entity({USER: None})
    quotas = broker.server.quotas
    where = path("topics", "limited", "records")
    broker.call(lambda: quotas.change([(everybody, PRODUCER_BYTES, 10.0)]))
    try:
        assert send(broker, "POST", where, {"value": "x" * 5000})[0] == 200
        for query in ("?dry_run=true", ""):
            status, answer = send(broker, "POST", where + query, {"value": "y"})
            assert (status, answer["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
            assert answer["message"].startswith("producer_byte_rate: more can be written in ")
    finally:
        broker.call(lambda: quotas.change([(everybody, PRODUCER_BYTES, None)]))
    assert send(broker, "POST", where, {"value": "y"})[0] == 200
    assert [value[:1] for value in values_of(broker, "limited")] == ["x", "y"]


# ------------------------------------------------------------------------------------------ groups


def test_group_offsets_are_reset_and_the_group_is_deleted(broker):
    group, topic = "a/b c", "sought"
    both(broker, "POST", path("topics"), {"topic": topic, "partitions": 2})
    with Producer(broker) as producer:
        for number in range(10):
            producer.send(topic, str(number), time_ms=1000 + number)
    commit(broker, group, topic, 4)

    where = path("groups", group, "reset-offsets")
    for body, expected in (
        ({"to": "beginning"}, 0),
        ({"to": "end"}, 10),
        ({"to": "3"}, 3),
        ({"to": "-2"}, 8),
        ({"by": -3}, 5),
        ({"by": 100}, 10),
        ({"to": "@1007"}, 7),
        ({"to": "@9999999999999"}, 10),
    ):
        before = committed(broker, group, (topic, 0))[0]
        looked = both(broker, "POST", where, body, confirm=group)
        (change,) = looked["changes"]
        assert (change["before"], change["after"]) == (str(before), str(expected))
        assert looked["figures"] == {
            "partitions": 1,
            "offsets_skipped": max(expected - before, 0),
            "offsets_read_again": max(before - expected, 0),
        }
        assert committed(broker, group, (topic, 0)) == [expected]
    both(broker, "POST", where, {"to": "end", "topic": topic, "partition": 1}, confirm=group)
    assert committed(broker, group, (topic, 1)) == [0]
    for body, error in (
        ({"to": "11", "topic": topic, "partition": 0}, "OFFSET_OUT_OF_RANGE"),
        ({"to": "soon"}, "INVALID_REQUEST"),
        ({}, "INVALID_REQUEST"),
        ({"to": "end", "by": 1}, "INVALID_REQUEST"),
        ({"to": "end", "topic": "nothing"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"to": "end", "partition": 1}, "INVALID_REQUEST"),
    ):
        assert send(broker, "POST", where, body)[1]["error"] == error

    # A client commits between the dry run and the change.
    _, looked = send(broker, "POST", f"{where}?dry_run=true", {"to": "end"})
    commit(broker, group, topic, 2)
    sent = {"to": "end", "confirm": group, "based_on": looked["based_on"]}
    assert send(broker, "POST", where, sent)[0] == 409
    assert committed(broker, group, (topic, 0)) == [2]

    offsets = path("groups", group, "offsets")
    looked = both(broker, "DELETE", offsets, {"topic": topic}, confirm=group)
    assert looked["figures"] == {"offsets": 2}
    both(broker, "POST", where, {"to": "end", "topic": topic}, confirm=group)
    assert both(broker, "DELETE", path("groups", group), confirm=group)["figures"] == {"offsets": 2}
    fetch(broker, "groups", group, expected=404)


# ------------------------------------------------------------------------------------ transactions


def test_large_record_of_the_http_api_survives_a_crash(tmp_path):
    with Broker(storage=tmp_path, config=HTTP) as kept:
        kept.create_topic("large")
        for number in range(2):
            body = {"value": str(number) * 900_000, "partition": 0}
            status, answer = send(kept, "POST", path("topics", "large", "records"), body)
            assert status == 200, answer
        kept.crash()
        kept.restart()
        values = [each.value for each in read(kept, "large")]
    assert values == [b"0" * 900_000, b"1" * 900_000]


def test_an_open_transaction_is_ended_and_its_producer_fenced(broker):
    key, topic = "invoicing/1", "invoices"
    both(broker, "POST", path("topics"), {"topic": topic, "partitions": 1})
    producer = Producer(broker, key)
    producer.send(topic, "x")
    where = path("transactions", key, "abort")
    assert send(broker, "POST", where, {"confirm": key, "based_on": "0"})[0] == 409
    looked = both(broker, "POST", where, confirm=key)
    figures = {name: looked["figures"][name] for name in looked["figures"] if name != "open_for_ms"}
    assert figures == {"partitions": 1, "offsets_blocked": 1, "offsets_held_back": 1}
    wait_until(lambda: fetch(broker, "topics", topic)["blocked_offsets"] == 0)
    with pytest.raises(KafkaError, match=r"FENCED|EPOCH"), producer:
        producer.commit()
    wait_until(lambda: fetch(broker, "transactions", key)["state"] in {"CompleteAbort", "Empty"})
    status, answer = send(broker, "POST", where)
    assert (status, answer["error"]) == (409, "INVALID_TXN_STATE")


def test_hanging_transaction_is_aborted_on_its_partition(broker):
    topic, key = "hanging", "hangs"
    both(broker, "POST", path("topics"), {"topic": topic, "partitions": 1})
    with TransactionClient(broker, "wire-client") as client:
        client.begin(key, topic, 0)
        client.write(key, topic, 0)  # A second record: beginning has written one.
        where = path("topics", topic, "abort")
        place = {"partition": 0, "start_offset": 0}
        status, answer = send(broker, "POST", where, place)
        assert (status, answer["error"]) == (409, "INVALID_TXN_STATE")
        assert answer["message"] == f"it does not hang: it is part of {key}; abort that"
        broker.call(lambda: _forget(broker, key))
        looked = both(broker, "POST", where, place, confirm=topic)
        assert looked["figures"] == {"offsets_blocked": 2, "offsets_held_back": 2}
        wait_until(lambda: fetch(broker, "topics", topic)["blocked_offsets"] == 0)
        status, answer = send(broker, "POST", where, place)
        assert (status, answer["error"]) == (409, "INVALID_TXN_STATE")


def test_nothing_is_taken_to_hang_before_the_coordinator_has_read_its_log(broker, monkeypatch):
    both(broker, "POST", path("topics"), {"topic": "early", "partitions": 1})
    with TransactionClient(broker, "wire-client") as client:
        client.begin("early-id", "early", 0)
        place = {"partition": 0, "start_offset": 0}
        with monkeypatch.context() as patched:
            patched.setattr(Transactions, "is_loading", True)
            status, answer = send(broker, "POST", path("topics", "early", "abort"), place)
            assert (status, answer["error"]) == (503, "COORDINATOR_LOAD_IN_PROGRESS")
        assert fetch(broker, "topics", "early")["blocked_offsets"] == 1


def _forget(broker, key):
    """Remove the transaction from its coordinator alone."""
    machine = broker.server.transactions.log.shard_of(key).machine
    machine.transactions.pop(key)
    machine.open.pop(key)


# ------------------------------------------------------------------------------- the broker itself


def test_settings_change_while_the_broker_runs(broker):
    where, key = path("settings"), "log.retention.ms"
    looked = both(broker, "PATCH", where, {"configs": {key: "123456"}})
    assert looked["changes"][0]["after"] == "123456"
    settings = {each["key"]: each for each in fetch(broker, "settings", filter=key)["items"]}
    assert settings[key]["value"] == "123456"
    both(broker, "PATCH", where, {"configs": {key: None}})
    status, answer = send(broker, "PATCH", where, {"configs": {"log.dirs": "/x"}})
    assert (status, answer["error"]) == (400, "INVALID_REQUEST")


def test_a_connection_is_closed(broker):
    both(broker, "POST", path("topics"), {"topic": "closed", "partitions": 1})
    with TransactionClient(broker, "wire-client") as client:
        before = {each.peer for each in broker.server.sockets.connections}
        client.begin("closes", "closed", 0)
        (mine,) = {each.peer for each in broker.server.sockets.connections} - before or before
        both(broker, "DELETE", path("clients", mine), confirm=mine)
        wait_until(lambda: mine not in {each.peer for each in broker.server.sockets.connections})
        assert send(broker, "DELETE", path("clients", mine))[0] == 404


def test_topic_of_a_cluster_is_deleted():
    with Cluster(1, config=HTTP) as cluster:
        cluster.create_topic("shared")
        (broker,) = cluster.brokers
        both(broker, "DELETE", path("topics", "shared"), confirm="shared")
        assert "shared" not in broker.server.catalogue.topics
