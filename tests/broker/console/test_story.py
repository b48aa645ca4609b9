"""The story of a transactional id."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import KafkaError
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.console.asking import HTTP, ask_api, fetch
from tests.broker.producers import Producer
from tests.counterparts.transaction_client import TransactionClient
from tests.waiting import wait_until

HOST = "/127.0.0.1"
CONFIG = {
    **HTTP,
    "transaction.state.log.num.partitions": "3",
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


@pytest.fixture(scope="module")
def broker():
    with Broker(config=CONFIG) as running:
        running.port = running.address[1]
        running.create_topic("orders", partitions=8)
        yield running


@pytest.fixture
def shell(broker, monkeypatch):
    return Shell(monkeypatch, broker.bootstrap_servers)


def producer_of(broker, key, client, **config):
    return Producer(broker, key, client_id=client, **config)


def write(producer, *partitions):
    for partition in partitions:
        producer.send("orders", "x", partition=partition)


def story(broker, key, **query):
    """Return the events of a transactional id, oldest first."""
    answer = fetch(broker, "transaction-events", transactional_id=key, **query)
    assert {each["transactional_id"] for each in answer["items"]} <= {key}
    return answer["items"][::-1]


def kinds(broker, key):
    return [(each["kind"], each["reason"]) for each in story(broker, key)]


def ended(broker, key):
    return fetch(broker, "ended-transactions", transactional_id=key)["items"]


def test_events_of_a_producer_are_listed(broker):
    before = fetch(broker, "overview")["as_of"]
    producer = producer_of(broker, "shop", "till-1")
    write(producer, 0, 1)
    producer.commit()
    write(producer, 2)
    producer.abort()
    found = story(broker, "shop")
    assert [(each["kind"], each["reason"]) for each in found] == [
        ("initialized", None),
        ("begun", None),
        ("partitions_added", None),
        ("committed", "client"),
        ("begun", None),
        ("aborted", "client"),
    ]
    assert {(each["client"], each["host"]) for each in found} == {("till-1", HOST)}
    assert {each["fenced_client"] for each in found} == {None}
    assert [each["partitions"] for each in found[1:4]] == [
        [{"topic": "orders", "partition": 0}],
        [{"topic": "orders", "partition": 1}],
        [],
    ]
    assert [each["partition_count"] for each in found] == [0, 1, 1, 2, 1, 1]
    assert [each["number"] for each in found] == sorted(each["number"] for each in found)
    assert before <= found[0]["time_ms"] <= found[-1]["time_ms"]
    aborted, committed = ended(broker, "shop")
    assert (committed["outcome"], aborted["outcome"]) == ("committed", "aborted")
    assert committed["start_time_ms"] == found[1]["time_ms"] <= committed["end_time_ms"]
    assert committed["end_time_ms"] <= aborted["start_time_ms"]


def test_offsets_and_records_are_separate_events(broker):
    producer = producer_of(broker, "transformer", "transform-1")
    write(producer, 3)
    producer.send_offsets("a-group", {("orders", 3): 1})
    producer.commit()
    assert [kind for kind, _ in kinds(broker, "transformer")] == [
        "initialized",
        "begun",
        "offsets_added",
        "committed",
    ]


def test_fencing_producer_is_named(broker):
    old = producer_of(broker, "accounts", "pod-1")
    write(old, 0)
    new = producer_of(broker, "accounts", "pod-2")
    with pytest.raises(KafkaError, match=r"FENCED|EPOCH"):
        old.commit()
    found = story(broker, "accounts")
    assert [(each["kind"], each["reason"]) for each in found[2:]] == [
        ("aborted", "fenced"),
        ("initialized", None),
        ("refused", "fenced"),
    ]
    fenced = found[2]
    assert (fenced["client"], fenced["fenced_client"]) == ("pod-2", "pod-1")
    assert (fenced["host"], fenced["fenced_host"]) == (HOST, HOST)
    assert found[-1]["client"] == "pod-1"
    assert int(found[3]["producer_epoch"]) > int(found[0]["producer_epoch"])
    (over,) = ended(broker, "accounts")
    assert (over["outcome"], over["client"]) == ("fenced", "pod-2")
    write(new, 1)
    new.commit()
    # A new instance on the same machine takes over even if nothing was open.
    producer_of(broker, "accounts", "pod-3")
    last = story(broker, "accounts")[-1]
    assert (last["kind"], last["client"], last["fenced_client"]) == (
        "initialized",
        "pod-3",
        "pod-2",
    )


def test_time_that_is_over_and_an_operator(broker, shell):
    slow = producer_of(broker, "slow", "sleeper", timeout_ms=1000)
    write(slow, 4)
    wait_until(lambda: ("aborted", "timeout") in kinds(broker, "slow"))
    assert story(broker, "slow", kind="aborted")[0]["client"] == "sleeper"
    (over,) = ended(broker, "slow")
    assert over["outcome"] == "timeout"
    assert over["end_time_ms"] - over["start_time_ms"] >= 990  # By two clocks.
    stuck = producer_of(broker, "stuck", "hung")
    write(stuck, 5)
    shell("transactions", "abort", "stuck", "--yes")
    (event,) = [each for each in story(broker, "stuck") if each["kind"] == "aborted"]
    assert (event["reason"], event["client"], event["fenced_client"]) == (
        "operator",
        "barnabas",
        "hung",
    )
    assert ended(broker, "stuck")[0]["outcome"] == "operator"


def test_an_id_of_the_classic_protocol(broker):
    with TransactionClient(broker, "classic") as client:
        client.begin("old-style", "orders", 6, 7)
        client.end("old-style")
    found = story(broker, "old-style")
    assert [each["kind"] for each in found] == ["initialized", "begun", "committed"]
    assert sorted(each["partition"] for each in found[1]["partitions"]) == [6, 7]


def test_pages_and_filters(broker):
    with TransactionClient(broker, "many") as client:
        for number in range(5):
            client.begin(f"pages-{number}", "orders", 0)
            client.end(f"pages-{number}", commit=number % 2 == 0)
    everything = fetch(broker, "transaction-events", filter="PAGES-", limit=1000)
    assert everything["next"] is None
    assert len(everything["items"]) == 15
    found, after = [], {}
    while True:
        page = fetch(broker, "transaction-events", filter="pages-", limit=4, **after)
        found += page["items"]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert found == everything["items"]
    since_ms = everything["items"][3]["time_ms"]
    later = fetch(broker, "transaction-events", filter="pages-", since_ms=since_ms)["items"]
    assert [each for each in everything["items"] if each["time_ms"] >= since_ms] == later
    assert len(fetch(broker, "ended-transactions", filter="pages-")["items"]) == 5


async def test_a_start_is_where_the_story_begins():
    async with Broker(config=HTTP) as broker:
        answer = await ask_api(broker, "transaction-events")
        assert answer["is_since_start"] is True
        assert answer["items"] == []
        assert answer["since_ms"] <= answer["as_of"]
