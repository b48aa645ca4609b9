"""Permissions of the console: each route, requested by users with and without ACLs."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import typing
from types import SimpleNamespace

import pytest

from barnabas.broker.api.checks import Denial
from barnabas.broker.console.actions.table import ACTIONS, KINDS
from barnabas.broker.console.pages.spark_ledger import LEDGER_TOPIC
from barnabas.broker.console.routes import ROUTES
from barnabas.broker.security.acls.operations import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.spark_connector.cluster.incarnation import Home, Incarnation
from barnabas.spark_connector.ledger.entries import Entry, encode, key_of
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.console.test_actions import send
from tests.broker.data_plane import Named, fetch_request
from tests.broker.http.test_server import ask
from tests.broker.producers import Producer, commit, write
from tests.broker.security.access_users import (
    ADMIN,
    NOBODY,
    PASSWORD,
    UserClient,
    add_acls,
    allow,
    remove_acls,
    settings,
)
from tests.counterparts.offsets_client import OffsetsClient
from tests.counterparts.transaction_client import TransactionClient
from tests.counterparts.wire_client import WireClient

SOMEBODY = "somebody"
"""Has the right of the test, of one name."""
RECORD = {"partition": "0", "offset": "0"}
NAMES = {"topic": "seen", "group": "seen-group", "transactional_id": "spark.seen", **RECORD}
OTHERS = {
    "topic": "hidden",
    "group": "hidden-group",
    "transactional_id": "spark.hidden",
    **RECORD,
}
NEEDED_TOO = {
    "/api/v1/spark-queries": allow(SOMEBODY, ResourceType.TOPIC, LEDGER_TOPIC, Operation.READ)
}
"""ACLs that a route needs beside the one in the table of routes."""
JOBS = "/api/v1/jobs"
LISTENERS = "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"


def basic(user):
    return "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def broker():
    """A broker with access control, and two of everything in it."""
    config = {
        **settings([ADMIN, NOBODY, SOMEBODY], LISTENERS),
        **HTTP,
        "transaction.state.log.num.partitions": "2",
    }
    with Broker(config=config) as running:
        running.port = running.server.listeners[1].bound[1]
        running.open = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{running.port}")
        for names in (NAMES, OTHERS):
            running.create_topic(names["topic"])
        running.create_topic(LEDGER_TOPIC)
        with (
            TransactionClient(running.open) as client,
            UserClient(running.address, ADMIN) as admin,
            reading(running, NAMES),
            reading(running, OTHERS),
        ):
            for names in (NAMES, OTHERS):
                client.begin(names["transactional_id"], names["topic"], 0)
                client.end(names["transactional_id"], commit=True)
                pipe(running, names)
                note_in_ledger(running, names)
                client.begin(names["transactional_id"], names["topic"], 0)
                for each in (NAMES, OTHERS):  # So the group has something to hide.
                    commit(running.open, names["group"], each["topic"], 0)
            running.admin = admin
            for names in (NAMES, OTHERS):
                body = {"topic": names["topic"], "target": names["topic"], "from": "end"}
                send(running, "POST", JOBS, body, Authorization=basic(ADMIN))
            yield running


@contextlib.contextmanager
def reading(broker, names):
    """Keep a client connected that has read a topic."""
    write(broker.open, names["topic"], 1)
    with WireClient(broker.open) as consumer:
        fetch_first(consumer, names["topic"])
        yield


def fetch_first(consumer, topic):
    """Read the first records of a topic in a fetch session."""
    request = fetch_request(12, (Named(topic), (0, 0)), session=(0, 0))
    (answer,) = consumer.ask(FETCH, request, 12).responses
    assert answer.partitions[0].records


def pipe(broker, names):
    """Commit the offsets of a group in a transaction that writes, too."""
    with Producer(broker.open, "piping") as producer:
        producer.send(names["topic"], "x")
        producer.send_offsets(names["group"], {(names["topic"], 0): 1})
        producer.commit()


def note_in_ledger(broker, names):
    """Write the entry that a Spark sink writes for a batch."""
    sink = names["transactional_id"].removeprefix("spark.")
    home = Home("", {each["topic"]: "" for each in (NAMES, OTHERS)})
    entry = Entry(7, incarnation=Incarnation(home, home))
    with Producer(broker.open) as producer:
        producer.send(LEDGER_TOPIC, encode(entry), key=key_of(sink, "query"))


OPEN_TO_ALL = {"/api/v1/session", "/api/v1/actions", "/api/v1/allowed"}
"""Routes that every user may read: the user's name and permissions."""
GUARDED = [route for route in ROUTES if route.template not in OPEN_TO_ALL]


def parts_of(route, names):
    names = named(route, names)
    return [names[each[1:-1]] if each.startswith("{") else each for each in route.parts[2:]]


def named(route, names):
    """Return the values of the variables in a route's path; jobs have names of their own."""
    if not route.template.startswith(JOBS):
        return names
    jobs = {
        NAMES["transactional_id"]: "barnabas-replay-1",
        OTHERS["transactional_id"]: "barnabas-replay-2",
    }
    return {**names, "transactional_id": jobs.get(names["transactional_id"], "absent")}


def is_list(route):
    return route.check.denial is Denial.LEFT_OUT


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.template)
def test_user_without_acls_sees_no_object(broker, route):
    parts = parts_of(route, NAMES)
    if is_list(route):
        assert fetch(broker, *parts, authorization=basic(NOBODY))["items"] == []
        return
    answer = fetch(broker, *parts, expected=403, authorization=basic(NOBODY))
    assert answer["error"] == route.check.code.name
    # A missing object gets the same error.
    absent = parts_of(route, {**dict.fromkeys(NAMES, "absent"), **RECORD})
    assert fetch(broker, *absent, expected=403, authorization=basic(NOBODY))["error"] == (
        route.check.code.name
    )


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.template)
def test_a_right_is_for_what_it_names(broker, route):
    check = route.check
    name = named(route, NAMES)[check.name] if check.name else CLUSTER_NAME
    acls = allow(SOMEBODY, check.resource_type, name, check.operation)
    acls += NEEDED_TOO.get(route.template, [])
    who = {"authorization": basic(SOMEBODY)}
    add_acls(broker.admin, acls)
    try:
        answer = fetch(broker, *parts_of(route, NAMES), **who)
        if is_list(route):
            assert {next(iter(each.values())) for each in answer["items"]} == {name}
            # A user with permissions on both names sees both.
            everything = fetch(broker, *parts_of(route, NAMES), authorization=basic(ADMIN))
            assert len(everything["items"]) > len(answer["items"]) or name == CLUSTER_NAME
        elif check.name:
            fetch(broker, *parts_of(route, OTHERS), expected=403, **who)
    finally:
        remove_acls(broker.admin, acls)
    # The permission ends at once.
    if is_list(route):
        assert fetch(broker, *parts_of(route, NAMES), **who)["items"] == []
    else:
        fetch(broker, *parts_of(route, NAMES), expected=403, **who)


def test_each_user_gets_their_allowed_actions(broker):
    who = {"authorization": basic(NOBODY)}
    assert fetch(broker, "session", **who)["user"] == f"User:{NOBODY}"
    assert fetch(broker, "actions", **who)["items"]
    for given in ({}, {kind: NAMES[kind] for kind in KINDS}):
        allowed = fetch(broker, "allowed", **given, **who)["items"]
        assert allowed
        assert all(each["reason"].startswith(f"User:{NOBODY} lacks ") for each in allowed)
        assert all(
            each["allowed"]
            for each in fetch(broker, "allowed", **given, authorization=basic(ADMIN))["items"]
        )


@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: each.name)
def test_an_action_needs_the_right_of_its_row(broker, action):
    check = action.check
    names = {**NAMES, "address": "127.0.0.1:1", "user": NOBODY, "principal": f"User:{NOBODY}"}
    where = action.template
    for name, value in names.items():
        where = where.replace(f"{{{name}}}", value)
    body = {each.name: 1 for each in action.fields if each.kind == "integer" and each.required}
    body |= {each.name: {"x": "y"} for each in action.fields if each.kind == "map"}
    texts = [each for each in action.fields if each.kind in {"text", "password"} and each.required]
    body |= {each.name: each.choices[0] if each.choices else "new" for each in texts}
    resource = action.resource(names if action.kind else {}, body)
    status, answer = send(broker, action.method, where, body, Authorization=basic(SOMEBODY))
    assert (status, answer["error"]) == (403, check.code.name)
    assert answer["message"].startswith(f"User:{SOMEBODY} lacks ")
    acls = allow(SOMEBODY, check.resource_type, resource, check.operation)
    add_acls(broker.admin, acls)
    try:
        status, answer = send(
            broker, action.method, f"{where}?dry_run=true", body, Authorization=basic(SOMEBODY)
        )
        assert "lacks" not in answer.get("message", "")
        given = {action.kind: names[action.kind]} if action.kind else {}
        allowed = fetch(broker, "allowed", **given, authorization=basic(SOMEBODY))["items"]
        assert {each["action"]: each["allowed"] for each in allowed}[action.name]
    finally:
        remove_acls(broker.admin, acls)
    status, _ = send(broker, action.method, where, body, Authorization=basic(SOMEBODY))
    assert status == 403


def test_a_dry_run_names_no_topic_that_may_not_be_seen(broker):
    acls = [
        *allow(SOMEBODY, ResourceType.GROUP, NAMES["group"], Operation.DELETE),
        *allow(SOMEBODY, ResourceType.GROUP, NAMES["group"], Operation.READ),
        *allow(SOMEBODY, ResourceType.TRANSACTIONAL_ID, NAMES["transactional_id"], Operation.WRITE),
        *allow(SOMEBODY, ResourceType.CLUSTER, CLUSTER_NAME, Operation.ALTER),
    ]
    add_acls(broker.admin, acls)
    group, key = NAMES["group"], NAMES["transactional_id"]
    try:
        for method, where, body in (
            ("DELETE", f"groups/{group}", {}),
            ("DELETE", f"groups/{group}/offsets", {"topic": NAMES["topic"]}),
            ("POST", f"groups/{group}/reset-offsets", {"to": "end"}),
            ("POST", f"groups/{group}/reset-offsets", {"to": "end", "topic": NAMES["topic"]}),
            ("POST", f"transactions/{key}/abort", {}),
            ("POST", f"topics/{NAMES['topic']}/abort", {"partition": 0, "start_offset": 0}),
        ):
            path = f"/api/v1/{where}?dry_run=true"
            _, answer = send(broker, method, path, body, Authorization=basic(SOMEBODY))
            assert not any(f"{each['topic']}-0" in str(answer) for each in (NAMES, OTHERS)), answer
            assert answer.get("figures", {}).get("offsets", 0) == 0
            assert answer.get("figures", {}).get("offsets_blocked", 0) == 0
    finally:
        remove_acls(broker.admin, acls)


def test_a_group_shows_topics_and_transactions_only_to_those_who_may_see_them(broker):
    who = {"authorization": basic(SOMEBODY)}
    group = allow(SOMEBODY, ResourceType.GROUP, NAMES["group"], Operation.DESCRIBE)
    describe = allow(SOMEBODY, ResourceType.TOPIC, NAMES["topic"], Operation.DESCRIBE)
    read = allow(SOMEBODY, ResourceType.TOPIC, NAMES["topic"], Operation.READ)
    key = allow(
        SOMEBODY, ResourceType.TRANSACTIONAL_ID, NAMES["transactional_id"], Operation.DESCRIBE
    )
    given = []
    try:
        for more, topics, holder, transaction in (
            (group, [], None, None),
            (describe, ["seen"], False, None),
            (read, ["seen"], True, False),
            (key, ["seen"], True, True),
        ):
            add_acls(broker.admin, more)
            given += more
            answer = fetch(broker, "groups", NAMES["group"], **who)
            assert [each["topic"] for each in answer["partitions"]] == topics
            for each in answer["partitions"]:
                assert (each["blocked_by"] is not None) is holder
                if holder:
                    assert not each["blocked_by"]["hanging"]
                    assert (each["blocked_by"]["transaction"] is not None) is transaction
    finally:
        remove_acls(broker.admin, given)


def test_ledger_content_requires_read_on_its_topic(broker):
    who = {"authorization": basic(SOMEBODY)}
    key = NAMES["transactional_id"]
    given = []
    try:
        for kind, name, operation, rows in (
            (ResourceType.TRANSACTIONAL_ID, key, Operation.DESCRIBE, []),
            (ResourceType.TOPIC, LEDGER_TOPIC, Operation.READ, [([], 1)]),
            (ResourceType.TOPIC, "seen", Operation.DESCRIBE, [(["seen"], 1)]),
        ):
            acls = allow(SOMEBODY, kind, name, operation)
            add_acls(broker.admin, acls)
            given += acls
            answer = fetch(broker, "spark-queries", **who)
            assert (answer["hidden_because"] is None) is bool(rows)
            assert [(each["outputs"], each["open_transactions"]) for each in answer["items"]] == (
                rows
            )
            for each in answer["items"]:
                assert [at["topic"] for at in each["inputs"]] == each["outputs"]
    finally:
        remove_acls(broker.admin, given)


def test_settings_of_a_topic_are_another_right(broker):
    who = {"authorization": basic(SOMEBODY)}
    acls = allow(SOMEBODY, ResourceType.TOPIC, "seen", Operation.DESCRIBE)
    add_acls(broker.admin, acls)
    assert fetch(broker, "topics", "seen", **who)["configs"] is None
    remove_acls(broker.admin, acls)
    assert fetch(broker, "topics", "seen", authorization=basic(ADMIN))["configs"]


@pytest.mark.parametrize(
    ("config", "page", "api"),
    [
        ({}, 200, 200),
        ({"barnabas.http.bearer.token": "a-secret"}, 401, 401),
        ({"barnabas.http.listener": "0.0.0.0:0"}, 401, 401),
        (settings([ADMIN]), 200, 401),
        ({**settings([ADMIN]), "authorizer.class.name": "", "super.users": ""}, 200, 401),
    ],
)
async def test_routes_require_authentication_by_configuration(config, page, api):
    """The local port needs no login unless there is a token, or clients must authenticate."""
    async with Broker(config={**HTTP, **config}) as broker:
        address = ("127.0.0.1", broker.server.http.address[1])
        for path, expected in (("/metrics", page), ("/api/v1/topics", api), ("/livez", 200)):
            answer = await ask(address, f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert (path, int(answer.split()[1])) == (path, expected)


def test_a_replay_needs_all_of_its_rights(broker):
    """To read the one topic, to write to the other, and the transactional id."""
    body = {"topic": "seen", "target": "hidden", "from": "end"}
    given = []
    try:
        for resource_type, name, operation, code in (
            (ResourceType.TOPIC, "hidden", Operation.WRITE, "TOPIC_AUTHORIZATION_FAILED"),
            (ResourceType.TOPIC, "seen", Operation.READ, "TOPIC_AUTHORIZATION_FAILED"),
            (
                ResourceType.TRANSACTIONAL_ID,
                "barnabas-replay-3",
                Operation.WRITE,
                "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            ),
        ):
            for query in ("?dry_run=true", ""):
                status, answer = send(
                    broker, "POST", JOBS + query, body, Authorization=basic(SOMEBODY)
                )
                assert (status, answer["error"]) == (403, code)
            acls = allow(SOMEBODY, resource_type, name, operation)
            add_acls(broker.admin, acls)
            given += acls
        status, _ = send(broker, "POST", JOBS, body, Authorization=basic(SOMEBODY))
        assert status == 200
        found = fetch(broker, "jobs", "barnabas-replay-3", authorization=basic(SOMEBODY))
        assert found["user"] == f"User:{SOMEBODY}"
    finally:
        remove_acls(broker.admin, given)


def test_writer_of_a_topic_writes_a_repeated_record_once(broker):
    acls = allow(SOMEBODY, ResourceType.TOPIC, "seen", Operation.WRITE)
    add_acls(broker.admin, acls)
    try:
        for _ in range(2):
            body = {"value": "once", "once": "a-key"}
            where = "/api/v1/topics/seen/records"
            status, answer = send(broker, "POST", where, body, Authorization=basic(SOMEBODY))
            assert status == 200, answer
        values = [each.value for each in broker.records("seen").result]
        assert values.count(b"once") == 1
    finally:
        remove_acls(broker.admin, acls)


# ---------------------------------------------------------------------------- names of readers

READER = "reader-of-the-test"
HIDDEN = {"client": None, "address": None, "user": None}
DESCRIBE = Operation.DESCRIBE
CLUSTER_RIGHT = allow(SOMEBODY, ResourceType.CLUSTER, CLUSTER_NAME, DESCRIBE)
GROUP_RIGHT = allow(SOMEBODY, ResourceType.GROUP, "reading-group", DESCRIBE)


@pytest.fixture
def member(broker):
    """A member of a group that reads the topic."""
    with OffsetsClient(broker.open, client_id=READER) as consumer:
        member_id = consumer.join("reading-group").member_id
        fetch_first(consumer, NAMES["topic"])
        yield
        leaving = [MemberIdentity(member_id)]
        consumer.ask(LEAVE_GROUP, LeaveGroupRequest("reading-group", members=leaving), 4)


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ([], set()),
        (allow(SOMEBODY, ResourceType.GROUP, "seen-group", Operation.DESCRIBE), set()),
        (GROUP_RIGHT, {"client"}),
        (CLUSTER_RIGHT, set(HIDDEN)),
    ],
    ids=["topic", "another-group", "its-group", "cluster"],
)
def test_reader_shows_names_to_callers_with_the_permission_only(broker, member, more, shown):
    acls = allow(SOMEBODY, ResourceType.TOPIC, NAMES["topic"], Operation.DESCRIBE) + more
    add_acls(broker.admin, acls)
    try:
        for query in ({}, {"filter": READER}):
            rows = fetch(broker, "readers", authorization=basic(SOMEBODY), **query)["items"]
            everything = fetch(broker, "readers", authorization=basic(ADMIN), **query)["items"]
            (known,) = [each for each in everything if each["client"] == READER]
            assert known["user"] == "User:ANONYMOUS"
            # A filter finds no name that a row does not show.
            found = [each for each in rows if each["connection"] == known["connection"]]
            assert len(found) == (1 if "client" in shown or not query else 0)
            for row in found:
                expected = {key: known[key] if key in shown else None for key in HIDDEN}
                assert {key: row[key] for key in HIDDEN} == expected
                assert row["position"] == known["position"]
    finally:
        remove_acls(broker.admin, acls)


# ------------------------------------------------------------------------ fields that name clients

FIELDS = {
    *("client", "address", "user", "host", "fenced_client", "fenced_host", "principal"),
    *("client_id", "software", "peer", "listener"),
}
"""Fields that name a client."""
OF_ID = {
    *(("TransactionRow", "client"), ("TransactionRow", "host")),
    *(("TransactionDescription", "client"), ("TransactionDescription", "host")),
    *(("TransactionEventRow", "client"), ("TransactionEventRow", "host")),
    *(("TransactionEventRow", "fenced_client"), ("TransactionEventRow", "fenced_host")),
    *(("EndedTransaction", "client"), ("EndedTransaction", "host")),
}
"""Rows of transactional ids that the caller may DESCRIBE, wherever they are shown."""
OF_GROUP = {("GroupMember", "client"), ("GroupMember", "host")}
WITHHELD = {
    *(("ReaderRow", "client"), ("ReaderRow", "address"), ("ReaderRow", "user")),
    ("JobRow", "user"),
}
"""Left out by the tests above and below, for callers without DESCRIBE on the cluster."""
OF_CALLER = {("Session", "host"), ("Session", "user")}


def naming(shape, known=None):
    """Return every field of a shape, and of the shapes in it, that names a client."""
    known = set() if known is None else known
    found = set()
    if dataclasses.is_dataclass(shape) and shape not in known:
        known.add(shape)
        for name, kind in typing.get_type_hints(shape).items():
            found |= {(shape.__name__, name)} if name in FIELDS else naming(kind, known)
    return found.union(*(naming(each, known) for each in typing.get_args(shape)))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.template)
def test_field_that_names_a_client_has_a_permission(route):
    found = naming(route.shape) - WITHHELD - OF_ID - OF_CALLER
    if route.check.resource_type is ResourceType.GROUP:
        found -= OF_GROUP
    assert not found or route.check.resource_type is ResourceType.CLUSTER


def test_job_shows_its_user_and_topics_to_callers_with_the_permission_only(broker):
    job = "barnabas-replay-1"
    may = [
        ({"topic", "target"}, allow(SOMEBODY, ResourceType.TOPIC, NAMES["topic"], DESCRIBE)),
        ({"user"}, CLUSTER_RIGHT),
    ]
    acls = allow(SOMEBODY, ResourceType.TRANSACTIONAL_ID, job, DESCRIBE)
    known = {"user": f"User:{ADMIN}", "topic": NAMES["topic"], "target": NAMES["topic"]}
    for shown, more in [(set(), []), *may]:
        add_acls(broker.admin, acls + more)
        try:
            row = fetch(broker, "jobs", job, authorization=basic(SOMEBODY))
            (listed,) = fetch(broker, "jobs", authorization=basic(SOMEBODY))["items"]
            query = {"topic": NAMES["topic"], "authorization": basic(SOMEBODY)}
            assert len(fetch(broker, "jobs", **query)["items"]) == ("topic" in shown)
        finally:
            remove_acls(broker.admin, acls + more)
        expected = {key: value if key in shown else None for key, value in known.items()}
        assert {key: row[key] for key in known} == {key: listed[key] for key in known} == expected
