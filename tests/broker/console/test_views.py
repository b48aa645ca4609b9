"""Topics, groups and transactions of third-party clients in the API."""

from __future__ import annotations

import pytest

from barnabas.broker.console.pages.spark_ledger import LEDGER_TOPIC
from barnabas.storage.runtime.threads import start_thread
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.console.asking import HTTP, fetch
from tests.broker.held_markers import Markers
from tests.broker.producers import commit, open_transaction, write
from tests.counterparts.transaction_client import TransactionClient
from tests.waiting import wait_until

HOSTILE = [
    *("a/b", "../x", "%2F", "a b+c", "ü\u202e<img onerror=alert(1)>", "x" * 3000, "{group}"),
    *(".", "..", "...", "~.", "~~..", "~"),
]


@pytest.fixture(scope="module")
def broker():
    config = {**HTTP, "transaction.state.log.num.partitions": "3"}
    with Broker(config=config) as running:
        running.port = running.address[1]
        yield running


@pytest.fixture
def shell(broker, monkeypatch):
    return Shell(monkeypatch, broker.bootstrap_servers)


def test_why_a_reader_waits(broker, shell):
    """The lag of a reader of committed records, divided, and whose transaction holds it."""
    broker.create_topic("orders", partitions=2)
    write(broker, "orders", 10)
    commit(broker, "invoicing", "orders", 4)
    with open_transaction(broker, "shop-1", "orders", 5):
        write(broker, "orders", 7)
        group = fetch(broker, "groups", "invoicing")
        (partition,) = group["partitions"]
        assert (partition["lag"], partition["lag_readable"], partition["lag_blocked"]) == (
            18,
            6,
            12,
        )
        assert (group["lag"], group["lag_readable"], group["lag_blocked"]) == (18, 6, 12)
        holder = partition["blocked_by"]
        assert holder["start_offset"] == 10
        assert holder["transaction"]["transactional_id"] == "shop-1"
        assert holder["transaction"]["client"] == "wire-client"
        assert not holder["hanging"]
        (row,) = fetch(broker, "groups", filter="VOICING")["items"]
        assert (row["lag"], row["lag_readable"], row["lag_blocked"]) == (18, 6, 12)
        (held,) = fetch(broker, "blocked-partitions", filter="orders")["items"]
        (by_old_name,) = fetch(broker, "holders", filter="orders")["items"]
        assert by_old_name["topic"] == held["topic"]
        assert (held["topic"], held["open_count"]) == ("orders", 1)
        same(holder, held["transactions"][0])
        same_as_the_command_line(shell, group, held)
        assert partition["holder"] == holder
        assert partition["lag_held_back"] == group["lag_held_back"] == 12
        assert held["held_back"] == held["blocked_offsets"]
    group = fetch(broker, "groups", "invoicing")
    assert (group["lag"], group["lag_blocked"]) == (group["lag_readable"], 0)
    assert fetch(broker, "holders", filter="orders")["items"] == []


def same_as_the_command_line(shell, group, held):
    """Compare the API with the output of the command line, name by name."""
    (described,) = shell("groups", "describe", "invoicing", "--format", "json").json
    same(described, group)
    (of_command,) = shell("transactions", "list-blocking", "-t", "orders", "--format", "json").json
    same(of_command, held)
    transactional_id = held["transactions"][0]["transaction"]["transactional_id"]
    (of_id,) = shell("transactions", "describe", transactional_id, "--format", "json").json
    same(of_id, held["transactions"][0]["transaction"])


MOVES_ON = {"age_ms", "remaining_ms"}


def same(of_command, of_api, where=""):
    """Compare what both name; producer ids are strings here, counts in rows are no lists."""
    for name in of_command.keys() & of_api.keys() - MOVES_ON:
        one, other = of_command[name], of_api[name]
        place = f"{where}.{name}"
        if isinstance(one, dict) and other is not None:
            same(one, other, place)
        elif isinstance(one, list) and one and isinstance(one[0], dict):
            assert len(one) == len(other), place
            for each, again in zip(one, other, strict=True):
                same(each, again, place)
        else:
            assert (place, str(one)) == (place, str(other))


def test_command_line_and_api_agree_on_topics_and_lists(broker, shell):
    broker.create_topic("alike", partitions=3)
    write(broker, "alike", 5, partition=2)
    commit(broker, "alike-group", "alike", 1, partition=2)
    (described,) = shell("topics", "describe", "alike", "--format", "json").json
    one = fetch(broker, "topics", "alike")
    partitions = fetch(broker, "topics", "alike", "partitions")
    rows = described.pop("partitions")
    described.pop("configs")
    same(described, one)
    same({"items": rows}, partitions)
    listed = {each["topic"]: each for each in shell("topics", "list", "--format", "json").json}
    same(listed["alike"], next(iter(fetch(broker, "topics", filter="alike")["items"])))
    groups = {each["group"]: each for each in shell("groups", "list", "--format", "json").json}
    same(groups["alike-group"], fetch(broker, "groups", filter="alike-group")["items"][0])
    settings = shell("topics", "describe", "alike", "-c", "--format", "json").json[0]["configs"]
    mine = {each["key"]: each for each in one["configs"]}
    assert mine == {each["key"]: each for each in settings}


def test_topics_say_how_many_there_are_and_whose(broker):
    for name in ("count-a", "count-b", "count-c"):
        broker.create_topic(name)
    write(broker, "count-b", 7)
    broker.create_topic(LEDGER_TOPIC)
    page = fetch(broker, "topics", filter="count-", limit=2)
    assert (page["total"], len(page["items"])) == (3, 2)
    assert [each["written"] for each in page["items"]] == [0, 7]
    assert fetch(broker, "topics", filter="count-", limit=2, after=page["next"])["total"] == 3
    assert fetch(broker, "topics", filter=LEDGER_TOPIC)["items"] == []
    (ledger,) = fetch(broker, "topics", filter=LEDGER_TOPIC, internal="true")["items"]
    assert ledger["internal"]


@pytest.fixture
def wire(broker):
    with TransactionClient(broker, "wire-client") as connected:
        yield connected


def test_transaction_unknown_to_its_coordinator_hangs(broker, wire):
    broker.create_topic("hung")
    wire.begin("forgotten", "hung", 0)

    def forget():
        """Remove the transaction from its coordinator alone."""
        machine = broker.server.transactions.log.shard_of("forgotten").machine
        return machine.transactions.pop("forgotten"), machine.open.pop("forgotten")

    producer_id, epoch = wire.producers["forgotten"]
    broker.call(forget)
    (held,) = fetch(broker, "blocked-partitions", filter="hung")["items"]
    assert (held["open_count"], len(held["transactions"])) == (1, 1)
    (open_one,) = held["transactions"]
    assert (open_one["producer_id"], open_one["producer_epoch"]) == (str(producer_id), epoch)
    assert open_one["hanging"]
    assert open_one["transaction"] is None


def test_a_transactional_id(broker, wire):
    broker.create_topic("ledger", partitions=3)
    wire.begin("accounts", "ledger", 0, 2)
    answer = fetch(broker, "transactions", "accounts")
    assert answer["state"] == "Ongoing"
    assert answer["partitions"] == [
        {"topic": "ledger", "partition": 0},
        {"topic": "ledger", "partition": 2},
    ]
    assert answer["remaining_ms"] <= 60_000
    first = fetch(broker, "transactions", "accounts", limit=1)
    assert first["partitions"] == answer["partitions"][:1]
    second = fetch(broker, "transactions", "accounts", limit=1, after=first["next"])
    assert (second["partitions"], second["next"]) == (answer["partitions"][1:], None)
    (row,) = fetch(broker, "transactions", filter="accounts", open="true")["items"]
    assert row["partition_count"] == 2
    wire.end("accounts")
    assert fetch(broker, "transactions", filter="accounts", open="true")["items"] == []
    (row,) = fetch(broker, "transactions", filter="accounts", state="CompleteCommit")["items"]
    assert (row["start_time_ms"], row["age_ms"]) == (None, None)


def test_a_decided_transaction_shows_what_still_waits_for_its_marker(broker, wire, monkeypatch):
    markers = Markers(monkeypatch)
    broker.create_topic("owing", partitions=3)
    wire.begin("debtor", "owing", 0, 2)
    markers.stop()
    ending = start_thread("ends", lambda: wire.end("debtor"))
    try:
        wait_until(lambda: fetch(broker, "transactions", "debtor")["state"] == "PrepareCommit")
        answer = fetch(broker, "transactions", "debtor")
        assert [each["partition"] for each in answer["partitions"]] == [0, 2]
        assert answer["remaining_ms"] is None
    finally:
        markers.go_on()
        ending.join(60)
    wait_until(lambda: fetch(broker, "transactions", "debtor")["state"] == "CompleteCommit")


def test_names_of_any_text(broker, wire):
    broker.create_topic("named")
    for name in HOSTILE:
        commit(broker, name, "named", 0)
        wire.init(name)
        assert fetch(broker, "groups", name)["group"] == name
        assert fetch(broker, "transactions", name)["transactional_id"] == name
        found = [each["group"] for each in fetch(broker, "groups", filter=name)["items"]]
        assert name in found
        assert all(name in each for each in found)


def test_missing_objects_get_errors(broker):
    for kind, error in (
        ("groups", "GROUP_ID_NOT_FOUND"),
        ("transactions", "TRANSACTIONAL_ID_NOT_FOUND"),
    ):
        assert fetch(broker, kind, "nobody", expected=404)["error"] == error
    with Broker(config=HTTP) as fresh:  # Not even the internal topics exist.
        for kind in ("groups", "transactions", "blocked-partitions", "holders"):
            assert fetch(fresh, kind)["items"] == []
        assert fetch(fresh, "groups", "x", expected=404)["error"] == "GROUP_ID_NOT_FOUND"
        answer = fetch(fresh, "transactions", "x", expected=404)
        assert answer["error"] == "TRANSACTIONAL_ID_NOT_FOUND"


ORDERS = ("topic", "-topic", "partitions", "-partitions", "-blocked_offsets", "-held_back")


@pytest.mark.parametrize("sort", ORDERS)
def test_pages_of_topics_make_the_whole_list(broker, sort):
    for number in range(7):
        if not fetch(broker, "topics", filter=f"page-{number}")["items"]:
            broker.create_topic(f"page-{number}", partitions=1 + number % 3)
    whole = fetch(broker, "topics", sort=sort, filter="page-")
    assert len(whole["items"]) == 7
    for limit in (1, 2, 3, 6, 7):
        found, after = [], {}
        while True:
            page = fetch(broker, "topics", sort=sort, filter="page-", limit=limit, **after)
            assert len(page["items"]) <= limit
            found += page["items"]
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        assert found == whole["items"]
    first = fetch(broker, "topics", sort=sort, limit=1)
    refused = fetch(broker, "topics", sort="size_bytes", after=first["next"], expected=400)
    assert refused["error"] == "INVALID_REQUEST"
