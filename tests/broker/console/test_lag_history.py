"""Lag over time of groups that the console shows, and the rebalances of all groups."""

from __future__ import annotations

import base64
from types import SimpleNamespace

import pytest

from barnabas.broker.console import application
from barnabas.broker.console.pages import lag_history as module
from barnabas.broker.console.pages import lag_points
from barnabas.broker.console.pages.lag_history import LagHistory
from barnabas.broker.console.pages.lag_points import LagPoint, LagRing, trend_of
from barnabas.broker.coordination import rebalances
from barnabas.broker.coordination.rebalances import Rebalances
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.broker.console.test_actions import both, path
from tests.broker.producers import commit, write
from tests.broker.security.access_users import (
    ADMIN,
    PASSWORD,
    UserClient,
    add_acls,
    allow,
    remove_acls,
    settings,
)
from tests.waiting import wait_until

LISTENERS = "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"


@pytest.fixture
def often(monkeypatch):
    """Set a short interval of lag measurements; return the histories of the brokers."""
    made = []

    def make():
        made.append(LagHistory())
        return made[-1]

    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(application, "LagHistory", make)
    return made


def points(*lags, step_ms=5000):
    return [LagPoint(number * step_ms, lag, 0) for number, lag in enumerate(lags)]


@pytest.mark.parametrize(
    ("lags", "trend"),
    [
        ((0, 10, 20), None),
        ((0, 10, 20, 30), lag_points.FALLING_BEHIND),
        ((900, 700, 400, 0), lag_points.CATCHING_UP),
        ((5, 5, 5, 5), lag_points.STEADY),
        ((0, 40, 3, 38, 0, 41, 2, 39), lag_points.STEADY),
        ((0, 0, 0, 500), lag_points.FALLING_BEHIND),
        # What a group that is well has every time before it commits is no trend.
        ((0, 0, 500, 0, 0, 500), lag_points.STEADY),
    ],
)
def test_where_a_lag_goes(lags, trend):
    assert trend_of(points(*lags), 60_000) == trend


def test_a_trend_is_of_five_minutes():
    fell_behind = points(*range(0, 1000, 10))
    after = [*fell_behind, *(LagPoint(500_000 + at, 1000, 0) for at in range(4))]
    assert trend_of(after, 500_010) == lag_points.FALLING_BEHIND
    assert trend_of(after, 500_000 + lag_points.TREND_MS - 1) == lag_points.STEADY


def test_a_ring_keeps_the_newest_points():
    place = LagRing()
    assert list(place.points()) == []
    for number in range(2 * lag_points.POINTS + 7):
        place.add(LagPoint(number, 2**60 + number, number))
    kept = list(place.points())
    assert len(kept) == lag_points.POINTS
    assert kept[0] == LagPoint(
        lag_points.POINTS + 7, 2**60 + lag_points.POINTS + 7, lag_points.POINTS + 7
    )
    assert kept[-1].time_ms == 2 * lag_points.POINTS + 6


def test_group_viewed_longest_ago_loses_its_place():
    clock, spawned = ManualClock(0), []

    def spawn(coroutine, name):
        coroutine.close()
        spawned.append(name)

    question = SimpleNamespace(broker=SimpleNamespace(clock=clock, spawn=spawn))
    lags = LagHistory()
    for number in range(module.GROUPS_MOST):
        lags.view(question, f"group-{number}")
        clock.advance(seconds=0.1)
    lags.view(question, "group-0")
    lags.view(question, "one-more")
    assert len(lags) == module.GROUPS_MOST
    assert "group-0" in lags._followed
    assert "group-1" not in lags._followed
    # A list of groups displaces no group that a viewer has open.
    lags.view_rows(question, ["listed-1", "group-3"])
    assert "listed-1" not in lags._followed
    clock.advance(seconds=module.LEFT_SECONDS)
    lags.view(question, "group-3")
    lags.view_rows(question, [f"listed-{number}" for number in range(200)])
    assert len(lags) == module.GROUPS_MOST
    assert {"group-3", "listed-1"} <= set(lags._followed)
    assert spawned == ["console-lag"]


def test_rebalances_have_a_limit_and_say_from_when_they_are():
    found = Rebalances(100)
    for number in range(rebalances.SLOTS):
        found.note("a", number, 1000 + number)
    assert (len(found), found.complete_since_ms) == (rebalances.SLOTS, 100)
    found.note("b", 1, 5000)
    assert (len(found), found.complete_since_ms) == (rebalances.SLOTS, 1000)
    assert [(each.generation, each.time_ms) for each in found.of("b")] == [(1, 5000)]
    assert found.of("a")[0].generation == 1
    for number in range(9):
        found.note("x" * 32_000, number, 6000)
    assert len(found) * 32_000 <= rebalances.CHARACTERS_MOST
    found.note("a", 7, 8000)
    found.forget(lambda group: group.startswith("x"), 9000)
    assert (found.of("a"), len(found)) == ([("a", 8000, 7)], 1)
    assert found.complete_since_ms == 9000
    for number in range(rebalances.SLOTS - 1):
        found.note("a", number, 10_000)
    assert found.complete_since_ms == 9000, "there is room for as many as ever"
    found.restart(11_000)
    assert (len(found), found.complete_since_ms) == (rebalances.SLOTS, 11_000)


def test_lag_of_a_viewed_group_is_measured(often):
    with Broker(config=HTTP) as broker:
        broker.create_topic("orders")
        write(broker, "orders", 10)
        commit(broker, "invoicing", "orders", 4)
        first = fetch(broker, "groups", "invoicing", "history")
        assert (first["is_hidden"], first["times_ms"], first["since_ms"]) == (False, [], None)

        def measured(lag):
            found = fetch(broker, "groups", "invoicing", "history")
            return found["lag_readable"][-1:] == [lag] and found

        wait_until(lambda: measured(6), "it is measured")
        write(broker, "orders", 5)
        wait_until(lambda: measured(11), "the change is seen")
        found = fetch(broker, "groups", "invoicing", "history")
        assert found["since_ms"] == found["times_ms"][0] == min(found["times_ms"])
        assert len(found["times_ms"]) == len(found["lag_readable"]) == len(found["lag_blocked"])
        (row,) = fetch(broker, "groups")["items"]
        assert row["last_commit_ms"] == fetch(broker, "groups", "invoicing")["last_commit_ms"]
        assert first["rebalances_since_ms"] <= row["last_commit_ms"] <= first["as_of"]
        wait_until(lambda: fetch(broker, "groups")["items"][0]["trend"] is not None)
        # Without a viewer, the broker measures no group.
        (lags,) = often
        assert lags._is_measuring
        broker.clock.advance(seconds=module.KEPT_SECONDS + 1)
        wait_until(lambda: not lags._is_measuring, "measuring ends")
        assert len(lags) == 0
        fetch(broker, "groups", "nobody", "history", expected=404)


def test_a_group_that_is_deleted_is_measured_no_more(often):
    with Broker(config=HTTP) as broker:
        broker.create_topic("orders")
        commit(broker, "short-lived", "orders", 0)
        fetch(broker, "groups", "short-lived", "history")
        (lags,) = often
        assert len(lags) == 1
        both(broker, "DELETE", path("groups", "short-lived"), confirm="short-lived")
        wait_until(lambda: len(lags) == 0, "it is forgotten")


def test_hidden_topic_is_left_out_of_the_lag(often):
    config = {**settings([ADMIN, "somebody"], LISTENERS), **HTTP}
    with (
        Broker(config=config) as broker,
        UserClient(broker.address, ADMIN) as admin,
    ):
        broker.port = broker.server.listeners[1].bound[1]
        local = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{broker.port}")
        for topic in ("seen", "hidden"):
            broker.create_topic(topic)
            write(local, topic, 3)
            commit(local, "readers", topic, 0)

        def asked(who, *parts):
            token = base64.b64encode(f"{who}:{PASSWORD}".encode()).decode()
            return fetch(broker, *parts, authorization=f"Basic {token}")

        def measured():
            return asked(ADMIN, "groups", "readers", "history")["lag_readable"][3:]

        wait_until(measured, "it is measured")
        assert set(measured()) == {6}
        assert asked(ADMIN, "groups")["items"][0]["trend"] == lag_points.STEADY
        given = []
        try:
            for kind, name, is_hidden in (
                (ResourceType.GROUP, "readers", True),
                (ResourceType.TOPIC, "seen", True),
                (ResourceType.TOPIC, "hidden", False),
            ):
                acls = allow("somebody", kind, name, Operation.DESCRIBE)
                add_acls(admin, acls)
                given += acls
                found = asked("somebody", "groups", "readers", "history")
                assert found["is_hidden"] is is_hidden
                assert (found["lag_readable"] == []) is is_hidden
                (row,) = asked("somebody", "groups")["items"]
                assert (row["trend"] is None) is is_hidden
        finally:
            remove_acls(admin, given)
