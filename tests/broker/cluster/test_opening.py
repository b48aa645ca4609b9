"""Opening of a cluster's broker: its store, the store's address, and the log lines about both."""

from __future__ import annotations

import itertools
import logging
import string

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.broker.cluster.start.endpoints import endpoints_of
from barnabas.broker.cluster.start.postgresql import base_of
from barnabas.broker.cluster.start.store_watch import StoreWatch
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.broker.metadata.catalogue import new_cluster_id
from barnabas.broker.network.socket_server import Listener
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.storage.errors import IndexClosed, LedSince
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import start_thread
from tests.broker.cluster.reading import read_stored
from tests.storage.flushes import assign, register
from tests.waiting import wait_until

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "address",
    [f"postgresql://me:{SECRET}%@first/logs", f"postgresql://me:{SECRET}@first/logs?nothing=1"],
)
def test_an_address_that_is_none_is_not_repeated(address):
    config = load_config([], {"KAFKA_BARNABAS_METADATA": address}).config
    with pytest.raises(ConfigError, match=r"barnabas\.metadata is not an address") as caught:
        base_of(config)
    assert SECRET not in str(caught.value)


HALVES = ("s3cr", "tpw")
BETWEEN = [*string.punctuation, *map("".join, itertools.product("@/?#:,[]%&=", repeat=2))]
BETWEEN += ["@1/", "/1@", ":1@", "@h:1,", "@[::1]/", "%40", "%2F", "%25"]


@pytest.mark.parametrize("form", ["me:{}@127.0.0.1:1/db", "me:{}@127.0.0.1", "{}@127.0.0.1:1/db"])
@pytest.mark.parametrize("first", [HALVES[0], "12"])
def test_password_is_read_whole_or_the_address_is_refused(form, first):
    """Passwords never become part of a host, a port or a database."""
    read, refusals = 0, set()
    for between in BETWEEN:
        password = f"{first}{between}{HALVES[1]}"
        address = f"postgresql://{form.format(password)}"
        config = load_config([], {"KAFKA_BARNABAS_METADATA": address}).config
        try:
            base_of(config).close()
        except ConfigError as error:
            refusals.add(str(error))
            continue
        read += 1
        given = conninfo_to_dict(address)
        shown = {key: str(value) for key, value in given.items() if key not in {"password", "user"}}
        assert not any(half in value for half in HALVES for value in shown.values()), address
        assert given["host"] == "127.0.0.1"
        with pytest.raises(psycopg.OperationalError) as failed:
            psycopg.connect(address, port=1, connect_timeout=10, user="me")
        assert not any(half in str(failed.value) for half in HALVES)
    assert read > len(string.punctuation) // 2
    assert not any(half in each for half in HALVES for each in refusals)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me@first/logs?password={SECRET}@{SECRET}",
        f"postgresql://me:{SECRET}@first,second:5433,[::1]:5434/logs",
        f"postgresql://me:{SECRET}@%2Fvar%2Frun%2Fpostgresql/logs",
        f"postgresql:///logs?host=/tmp&port=5432&user=me&password={SECRET}",
        f"postgresql://me:{SECRET}@[fe80::1%25eth0]/logs",
        f"postgres://me:{SECRET}@first/logs%40home?hostaddr=127.0.0.1",
        "postgresql://first",
    ],
)
def test_address_in_any_right_form_is_taken(address):
    base_of(load_config([], {"KAFKA_BARNABAS_METADATA": address}).config).close()


@pytest.mark.parametrize(
    "address",
    [
        f"host=first user=me password={SECRET}",
        f"first:5432/logs?password={SECRET}",
        f"postgresql://me:{SECRET} {SECRET}@first/logs",
        f"postgresql+psycopg://me:{SECRET}@first/logs",
        f"postgresql://first/logs?password={SECRET}%zz",
        f"postgresql://first/logs?host={SECRET}@first",
        f"postgresql://first/logs?hostaddr={SECRET}@first",
        f"postgresql://first/logs?port={SECRET}",
        f"postgresql://first/logs?{SECRET}=1",
    ],
)
def test_address_in_another_form_is_refused_without_its_text(address):
    with pytest.raises(ConfigError, match=r"barnabas\.metadata") as caught:
        base_of(load_config([], {"KAFKA_BARNABAS_METADATA": address}).config)
    assert SECRET not in str(caught.value)


def test_nothing_is_connected_before_it_is_used():
    address = f"postgresql://me:{SECRET}@127.0.0.1:1/logs"
    base = base_of(load_config([], {"KAFKA_BARNABAS_METADATA": address}).config)
    assert base.last_error == ""
    base.close()
    with pytest.raises(IndexClosed):
        base.log_index()


def test_registered_endpoints_are_advertised_or_bound_ones(monkeypatch):
    monkeypatch.setattr("socket.getfqdn", lambda: "broker.example")
    listeners = [
        Listener("A", "", 9092, ("outside", 19092), ("localhost", 9092)),
        Listener("B", "127.0.0.1", 0, None, ("127.0.0.1", 40001)),
        Listener("C", "0.0.0.0", 0, None, ("localhost", 40002)),
        Listener("D", "", 0, None, ("localhost", 40003)),
    ]
    assert endpoints_of(listeners) == {
        "A": ("outside", 19092),
        "B": ("127.0.0.1", 40001),
        "C": ("broker.example", 40002),
        "D": ("broker.example", 40003),
    }


def test_the_log_says_once_why_and_then_for_how_long(caplog):
    caplog.set_level(logging.INFO, "barnabas.broker.cluster")
    clock = ManualClock()
    last_error = [""]
    watch = StoreWatch(clock, lambda: last_error[0])
    watch.start()

    def said(seconds: float) -> list[str]:
        caplog.clear()
        for _ in range(int(seconds * 2)):
            clock.advance(seconds=0.5)
        return [each.getMessage() for each in caplog.records]

    assert said(60) == []
    last_error[0] = "connection refused"
    assert said(0.5) == [], "it may be a failover"
    last_error[0] = ""
    assert said(1) == []
    last_error[0] = "connection refused"
    (first,) = said(2)
    assert first == "the store of the cluster does not answer: connection refused"
    again = said(30)
    assert 5 <= len(again) <= 6
    assert all("is down for_s=" in each for each in again)
    assert not any("refused" in each for each in again)
    last_error[0] = "password authentication failed; connection refused"
    first, *again = said(30)
    assert first.endswith(" reason=password authentication failed; connection refused")
    last_error[0] = "connection refused; password authentication failed"
    assert not any("refused" in each for each in (*again, *said(30))), "in whatever order"
    last_error[0] = ""
    (last,) = said(30)
    assert "answers again after_s=9" in last
    last_error[0] = "again"
    assert len(said(2)) == 1
    watch.stop()
    assert said(30) == []


# ------------------------------------------------------------------------------------- whose logs


@pytest.fixture
def store():
    made = MemoryStore(new_cluster_id())
    yield made
    made.close()


def test_a_log_is_read_by_who_leads_it_in_that_epoch_only(store):
    session = register(store.index, 1, 0)
    epoch = assign(store.index, 7, session)
    logs = StoredLogs(store.base())
    logs.begin(session)
    assert read_stored(logs, 7, epoch).batches == []
    for partition_id, leader_epoch in ((7, epoch - 1), (7, epoch + 1), (8, 0)):
        with pytest.raises(LedSince):
            read_stored(logs, partition_id, leader_epoch)
    other = register(store.index, 2, 1)
    later = assign(store.index, 7, other)
    for leader_epoch in (epoch, later):
        with pytest.raises(LedSince, match=f"session {other}"):
            read_stored(logs, 7, leader_epoch)


def test_reads_wait_for_start_of_session(store):
    session = register(store.index, 1, 0)
    epoch = assign(store.index, 7, session)
    logs = StoredLogs(store.base())
    read: list[object] = []
    reading = start_thread("reading", lambda: read.append(read_stored(logs, 7, epoch)))
    sleep(1)
    assert not read
    logs.begin(session)
    reading.join(60)
    assert len(read) == 1
    logs.end()
    ended: list[Exception] = []

    def read_in_vain() -> None:
        try:
            read_stored(logs, 7, epoch)
        except IndexClosed as error:
            ended.append(error)

    reading = start_thread("reading", read_in_vain)
    sleep(1)
    logs.close()
    wait_until(lambda: ended)
    reading.join()
