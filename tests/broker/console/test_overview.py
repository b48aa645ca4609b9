"""The broker as a whole: overview, storage, settings, history."""

from __future__ import annotations

import pytest

from barnabas.broker.console import pacing
from barnabas.broker.console.pacing import Pace
from barnabas.broker.console.pages import worst as module
from barnabas.broker.metrics.history import HEAT, NAMES
from barnabas.broker.runtime.threads import Pool
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, ask_api, fetch
from tests.broker.http.test_server import get
from tests.broker.producers import commit, write
from tests.counterparts.transaction_client import TransactionClient
from tests.waiting import wait_until


@pytest.fixture
def broker():
    config = {**HTTP, "num.partitions": "3", "ssl.key.password": "a-secret"}
    with Broker(config=config) as running:
        running.port = running.address[1]
        yield running


def later(broker):
    """Advance the clock until the next search for the worst partitions and groups."""
    broker.clock.advance(seconds=module.REST_SECONDS)


def record_a_second(broker):
    broker.clock.advance(seconds=1)
    broker.call(broker.server.history.sample)


def test_overview_counts_objects_and_rates(broker):
    broker.create_topic("orders", partitions=2)
    broker.call(broker.server.history.sample)
    write(broker, "orders", 10)
    record_a_second(broker)
    commit(broker, "invoicing", "orders", 4)
    with TransactionClient(broker) as client:
        client.begin("shop", "orders", 1)
        later(broker)
        found = fetch(broker, "overview")
        assert (found["cluster_id"], found["node_id"]) == (broker.server.cluster_id, 1)
        assert found["checks"] == dict.fromkeys(["storage", "topics", "listeners", "disk"], "ok")
        assert found["rates"]["records_in"] > 5
        assert set(found["rates"]) == set(NAMES)
        assert found["transactions_open"] == 1
        transaction = fetch(broker, "transactions", "shop")
        assert found["oldest_start_time_ms"] == transaction["start_time_ms"]
        assert found["worst"]["groups"] == 1
        (lagging,) = found["worst"]["lagging"]
        assert (lagging["group"], lagging["lag"]) == ("invoicing", 6)
        (held,) = found["worst"]["blocked_partitions"]
        assert (held["topic"], held["partition"]) == ("orders", 1)
        client.end("shop")
    again = fetch(broker, "overview")
    assert (again["transactions_open"], again["oldest_start_time_ms"]) == (0, None)
    assert again["worst"] == found["worst"], "nobody walks twice within ten seconds"
    later(broker)
    assert fetch(broker, "overview")["worst"]["blocked_partitions"] == []


def test_status_counts_all_that_wait_beyond_the_rows_that_are_shown(broker):
    count = module.SHOWN + 3
    broker.create_topic("crowded", partitions=count)
    with TransactionClient(broker) as client:
        for partition in range(count):
            client.begin(f"slow-{partition}", "crowded", partition)
            commit(broker, f"reader-{partition}", "crowded", 0, partition)
        later(broker)
        worst = fetch(broker, "overview")["worst"]
        assert len(worst["blocked_partitions"]) == module.SHOWN
        assert worst["waiting"] == {
            "transactions": count,
            "hanging": 0,
            "partitions": count,
            "records": count,
            "groups": count,
        }
        for number in range(count):
            client.end(f"slow-{number}")
    later(broker)
    assert fetch(broker, "overview")["worst"]["waiting"]["transactions"] == 0


def test_a_long_walk_is_followed_by_a_long_rest(broker, monkeypatch):
    broker.create_topic("orders", partitions=2)
    commit(broker, "invoicing", "orders", 0)
    later(broker)
    # As if there were very much to look through.
    monkeypatch.setattr(pacing, "UNIT_SECONDS", 0.004)
    first = fetch(broker, "overview")["worst"]
    later(broker)
    assert fetch(broker, "overview")["worst"]["as_of"] == first["as_of"]
    broker.clock.advance(minutes=120)
    monkeypatch.undo()
    assert fetch(broker, "overview")["worst"]["as_of"] > first["as_of"]


def test_slow_walk_continues_after_the_response(broker, monkeypatch):
    """The response has the previous result, and a second request starts no second walk."""
    later(broker)
    before = fetch(broker, "overview")["worst"]
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.01)
    go_on, walks = new_event(), []
    walk = module._walk

    async def slow(question, pace):
        walks.append(1)
        await Pool("waits").run(go_on.wait)
        return await walk(question, pace)

    monkeypatch.setattr(module, "_walk", slow)
    later(broker)
    for _ in range(3):
        assert fetch(broker, "overview")["worst"] == before
    assert len(walks) == 1
    go_on.set()
    wait_until(lambda: fetch(broker, "overview")["worst"] != before)
    assert len(walks) == 1


def test_a_walk_that_fails_is_said_and_the_rest_is_shown(broker, monkeypatch, caplog):
    async def broken(question, pace):
        raise ZeroDivisionError

    monkeypatch.setattr(module, "_walk", broken)
    later(broker)
    assert fetch(broker, "overview")["checks"]["storage"] == "ok"
    assert "console ranking failed" in caplog.text


def test_the_disk(broker):
    broker.create_topic("on-disk", partitions=1)
    write(broker, "on-disk", 1)
    found = fetch(broker, "storage")
    assert found["free_bytes"] <= found["total_bytes"]
    assert found["logs"] == len(broker.server.logs.logs)
    assert found["size_bytes"] == sum(log.size_bytes for log in broker.server.logs.logs.values())
    sizes = [each["size_bytes"] for each in found["largest"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(each["count"] for each in found["flushes"]) > 0
    assert found["flushes"][-1]["less_than_us"] is None
    assert found["damage"] is None
    assert found["has_history"] is True
    assert found["full_in_ms"] is None


def test_settings_and_who_set_them(broker):
    changed = {each["key"]: each for each in fetch(broker, "settings", changed="true")["items"]}
    assert changed["num.partitions"]["value"] == "3"
    assert changed["num.partitions"]["source"] == "configuration at the start"
    assert "node.id" not in changed
    fixed = {"num.partitions": "only by a restart"}
    fixed["ssl.keystore.location"] = (
        "only for one listener: listener.name.NAME.ssl.keystore.location"
    )
    for key, reason in {**fixed, "message.max.bytes": None}.items():
        row = next(each for each in fetch(broker, "settings", filter=key)["items"])
        assert (row["key"], row["is_dynamic"], row["fixed"]) == (key, reason is None, reason)
    page = fetch(broker, "settings", limit=5)
    assert len(page["items"]) == 5
    assert (
        fetch(broker, "settings", limit=5, after=page["next"])["items"][0]["key"]
        > (page["items"][-1]["key"])
    )
    (secret,) = fetch(broker, "settings", filter="ssl.key.password")["items"]
    assert "a-secret" not in str(secret)
    assert secret["value"]


def test_history(broker):
    broker.call(broker.server.history.sample)
    for _ in range(12):
        record_a_second(broker)
    found = fetch(broker, "history", series="records_in,flush_p99_ms")
    assert [each["name"] for each in found["series"]] == ["records_in", "flush_p99_ms"]
    assert len(found["times_ms"]) >= 12
    assert {len(each["values"]) for each in found["series"]} == {len(found["times_ms"])}
    since = found["times_ms"][-3]
    newest = fetch(broker, "history", series="records_in", since_ms=since)
    assert newest["times_ms"] == found["times_ms"][-3:]
    coarse = fetch(broker, "history", series="connections,flush", step_s=10)
    assert len(coarse["times_ms"]) == len(coarse["heat"][0]["times_ms"]) >= 1
    assert len(coarse["heat"][0]["counts"][0]) == len(coarse["heat"][0]["bounds_us"])
    every = fetch(broker, "history", series=",".join((*NAMES, *HEAT)), step_s=10)
    assert len(every["series"]) == len(NAMES)
    assert len(every["heat"]) == len(HEAT)


def test_all_of_a_history_is_of_one_moment(broker, monkeypatch):
    """A series must not be one place off its times, also if other tasks run in between."""
    for _ in range(12):
        record_a_second(broker)
    history = broker.server.history

    async def wait_and_move_on(pace, units=1):
        for ring in (history.fine_times, *history.fine.values()):
            ring.add(-1)

    before = list(history.fine_times.values())
    monkeypatch.setattr(Pace, "spend", wait_and_move_on)
    found = fetch(broker, "history", series="disk_free_bytes,connections,flush")
    assert found["times_ms"] == before
    assert {len(each["values"]) for each in found["series"]} == {len(before)}
    assert len(history.fine_times.values()) > len(before)


@pytest.mark.parametrize(
    "query", [{"series": "nonsense"}, {"step_s": 2}, {"series": ""}, {"since_ms": "yesterday"}]
)
def test_a_history_that_is_not_there(broker, query):
    assert fetch(broker, "history", expected=400, **query)["error"] == "INVALID_REQUEST"


async def test_disabled_parts_of_the_console_are_left_out():
    async with Broker(config={**HTTP, "barnabas.console.history": "false"}) as broker:
        address = broker.server.http.address
        assert (await get(address, "/api/v1/history"))[0] == 404
        overview = await ask_api(broker, "overview")
        assert (overview["rates"], overview["full_in_ms"]) == ({}, None)
        storage = await ask_api(broker, "storage")
        assert (storage["has_history"], storage["full_in_ms"]) == (False, None)
    async with Broker(config={**HTTP, "barnabas.console.access": "none"}) as broker:
        status, headers, body = await get(broker.server.http.address, "/api/v1/overview")
        assert (status, headers["content-type"]) == (404, "text/plain; charset=utf-8")
        assert "/metrics" in body


def test_warnings_are_shown_while_checks_are_ok(broker, monkeypatch):
    assert fetch(broker, "overview")["warnings"] == {}
    found = {"store": "away for 6 s: nothing is acknowledged, nothing changes"}
    monkeypatch.setattr(broker.server, "cluster_warnings", lambda: found)
    overview = fetch(broker, "overview")
    assert overview["warnings"] == found
    assert set(overview["checks"].values()) == {"ok"}
