"""Users, ACLs and quotas by the console: what clients of the wire find afterwards."""

from __future__ import annotations

import base64
import json

import pytest

from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.console.test_actions import both, path, send
from tests.broker.console.test_rights import LISTENERS, basic
from tests.broker.security.access_users import ADMIN, settings

CONFIG = {
    **settings([ADMIN], LISTENERS),
    **HTTP,
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
}
WHO = {"Authorization": basic(ADMIN)}


@pytest.fixture(scope="module")
def broker():
    with Broker(config=CONFIG) as running:
        yield running


def seen(broker, *parts, **query):
    return fetch(broker, *parts, authorization=basic(ADMIN), **query)["items"]


def change(broker, method, where, body, confirm=None):
    """Run an action as a dry run, then for real, as the operator; return the dry run's result."""
    status, looked = send(broker, method, f"{where}?dry_run=true", body, **WHO)
    assert status == 200, looked
    sent = dict(body)
    if confirm is not None:
        for wrong in ({}, {"confirm": "x", "based_on": looked["based_on"]}):
            assert send(broker, method, where, body | wrong, **WHO)[0] == 400
        assert (
            send(broker, method, where, body | {"confirm": confirm, "based_on": "0"}, **WHO)[0]
            == 409
        )
        sent |= {"confirm": confirm, "based_on": looked["based_on"]}
    status, done = send(broker, method, where, sent, **WHO)
    assert status == 200, done
    assert done["summary"] == looked["summary"]
    return looked


def test_a_user_is_made_logs_in_gets_another_password_and_goes(broker, caplog):
    caplog.set_level("INFO")
    broker.clock.advance(seconds=1)  # Lines about a principal are limited per second.
    users = path("users")

    def may_log_in(password):
        body = {"user": "alice", "password": password}
        status, _ = send(broker, "POST", "/api/v1/session", body)
        return status < 400

    assert seen(broker, "users", filter="alice") == []
    looked = change(broker, "POST", users, {"user": "alice", "password": "first-secret"})
    assert looked["changes"] == [
        {"what": "alice", "before": None, "after": "SCRAM-SHA-512", "note": "SCRAM mechanisms"}
    ]
    assert may_log_in("first-secret")
    body = {"user": "alice", "password": "second-secret", "mechanism": "SCRAM-SHA-256"}
    assert change(broker, "POST", users, body)["changes"][0]["before"] == "SCRAM-SHA-512"
    (row,) = seen(broker, "users", filter="ali")
    assert (row["name"], sorted(row["mechanisms"])) == ("alice", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    body = {"user": "alice", "password": "third-secret"}
    assert change(broker, "POST", users, body)["summary"] == "change the password of alice"
    assert not may_log_in("first-secret")
    assert may_log_in("third-secret")
    assert send(broker, "POST", users, {"user": "alice", "password": ""}, **WHO)[0] == 400
    audited = [json.loads(each.message) for each in caplog.records if "{" in each.message]
    assert "done: change the password of alice" in {each.get("result") for each in audited}
    assert "secret" not in caplog.text + json.dumps(seen(broker, "events"))
    change(broker, "DELETE", path("users", "alice"), {}, confirm="alice")
    assert seen(broker, "users", filter="alice") == []
    assert not may_log_in("third-secret")
    assert send(broker, "DELETE", path("users", "alice"), {}, **WHO)[0] == 404


RULE = {"operation": "READ", "resource_type": "Topic", "name": "orders"}


def test_acl_is_created_and_deleted(broker):
    body = {"principal": "User:alice", **RULE, "pattern": "PREFIXED", "host": "10.0.0.0/8"}
    change(broker, "POST", path("acls"), body)
    change(broker, "POST", path("acls"), {"principal": "User:alice", **RULE, "permission": "DENY"})
    rows = seen(broker, "acls")
    assert [(each["permission"], each["pattern"], each["host"]) for each in rows] == [
        ("ALLOW", "PREFIXED", "10.0.0.0/8"),
        ("DENY", "LITERAL", "*"),
    ]
    assert seen(broker, "acls", filter="nobody") == []
    where = path("acls", "User:alice")
    status, answer = send(broker, "DELETE", where, RULE, **WHO)
    assert (status, answer["error"]) == (404, "RESOURCE_NOT_FOUND")
    looked = change(broker, "DELETE", where, {**RULE, "permission": "DENY"}, confirm="User:alice")
    assert looked["figures"] == {"acls": 1, "rules": 1}
    assert [each["permission"] for each in seen(broker, "acls")] == ["ALLOW"]
    body = {**RULE, "pattern": "PREFIXED", "host": "10.0.0.0/8"}
    change(broker, "DELETE", where, body, confirm="User:alice")
    assert seen(broker, "acls") == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"resource_type": "Cluster", "operation": "ALTER"}, "the cluster is called"),
        ({"operation": "IDEMPOTENT_WRITE"}, "not an operation on a Topic"),
        ({"operation": "x"}, "any of"),
        ({"principal": "alice"}, "expected User:NAME"),
    ],
)
def test_rules_that_cannot_be(broker, body, words):
    sent = {"principal": "User:alice", **RULE, **body}
    status, answer = send(broker, "POST", path("acls"), sent, **WHO)
    assert status == 400
    assert words in answer["message"]
    assert seen(broker, "acls") == []


def test_a_rule_holds_at_once(broker):
    broker.create_topic("held")
    change(broker, "POST", path("users"), {"user": "bob", "password": "bobs-secret"})
    who = basic_of("bob", "bobs-secret")
    fetch(broker, "topics", "held", authorization=who, expected=403)
    rule = {"operation": "DESCRIBE", "resource_type": "Topic", "name": "held"}
    change(broker, "POST", path("acls"), {"principal": "User:bob", **rule})
    assert fetch(broker, "topics", "held", authorization=who)["topic"] == "held"
    change(broker, "DELETE", path("acls", "User:bob"), rule, confirm="User:bob")
    fetch(broker, "topics", "held", authorization=who, expected=403)


def basic_of(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_quota_is_set_and_deleted(broker):
    where = path("quotas")
    body = {"user": "alice", "client_id": "<default>", "limits": {"producer_byte_rate": "1000"}}
    looked = change(broker, "POST", where, body)
    assert looked["changes"][0] | {"note": None} == {
        "what": "producer_byte_rate",
        "before": None,
        "after": "1000",
        "note": None,
    }
    (row,) = seen(broker, "quotas")
    assert (row["user"], row["client_id"], row["ip"]) == ("alice", "<default>", None)
    assert (row["key"], row["value"]) == ("producer_byte_rate", 1000)
    body["limits"] = {"producer_byte_rate": None, "request_percentage": "12.5"}
    looked = change(broker, "POST", where, body)
    assert [(each["before"], each["after"]) for each in looked["changes"]] == [
        ("1000", None),
        (None, "12.5"),
    ]
    assert looked["figures"] == {"quotas": 2, "limits": 2}
    assert [each["key"] for each in seen(broker, "quotas")] == ["request_percentage"]
    for wrong in (
        {"limits": {"request_percentage": "1"}},
        {"user": "alice", "limits": {}},
        {"user": "alice", "limits": {"request_percentage": "much"}},
        {"user": "alice", "limits": {"no_such_key": "1"}},
        {"user": "alice", "ip": "10.0.0.1", "limits": {"request_percentage": "1"}},
    ):
        assert send(broker, "POST", where, wrong, **WHO)[0] == 400, wrong


def test_without_access_control_there_are_no_rules():
    with Broker(config=HTTP) as broker:
        answer = fetch(broker, "acls")
        assert (answer["enabled"], answer["items"]) == (False, [])
        status, answer = send(broker, "POST", path("acls"), {"principal": "User:alice", **RULE})
        assert (status, answer["error"]) == (409, "SECURITY_DISABLED")
        both(broker, "POST", path("users"), {"user": "alice", "password": "a-secret"})
        assert [each["name"] for each in fetch(broker, "users")["items"]] == ["alice"]
