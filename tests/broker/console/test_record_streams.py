"""Searches and live tails of records, as server-sent events."""

from __future__ import annotations

import contextlib
import json
from socket import SHUT_RDWR

import pytest

from barnabas.broker.console.records import scan, tail
from barnabas.broker.console.records.places import READERS_MOST
from barnabas.broker.security.acls.access import OPEN
from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, check, document, fetch, path
from tests.broker.console.test_records import write
from tests.broker.producers import Producer, delete_topic, open_transaction
from tests.http_client import HttpConnection
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def broker():
    with Broker(config={**HTTP, "transaction.state.log.num.partitions": "2"}) as running:
        yield running


class Events:
    """A stream, read event by event."""

    def __init__(self, response):
        self._response = response

    def __iter__(self):
        kind = None
        while line := self._response.readline():
            name, _, text = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = text
            elif name == "data":
                yield kind, json.loads(text)

    def until(self, kind):
        """Return all events up to one of a kind."""
        found = []
        for each in self:
            found.append(each)
            if each[0] == kind:
                return found
        raise AssertionError(f"the stream has ended: {found}")


@contextlib.contextmanager
def stream(broker, topic, expected=200, **query):
    connection = HttpConnection(*broker.server.http.address, timeout=60)
    target = path("topics", topic, "records", **query)
    connection.request("GET", target, headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.status == expected, response.read()
    try:
        yield Events(response)
    finally:
        # What is behind a file object of a socket is not closed with it.
        with contextlib.suppress(OSError):
            connection.sock.shutdown(SHUT_RDWR)
        response.close()
        connection.close()


def shape(name, value):
    check(value, document()["components"]["schemas"][name])
    return value


def texts(events):
    return [data["value"]["text"] for kind, data in events if kind == "record"]


def test_a_search_shows_what_it_finds_and_how_far_it_is(broker, monkeypatch):
    monkeypatch.setattr("barnabas.broker.console.records.search.PROGRESS_SECONDS", 0)
    broker.create_topic("searched", partitions=2)
    write(broker, "searched", [(n % 2, None, f"v{n}", [], 1000 + n) for n in range(60)])
    with stream(broker, "searched", filter="/v.*[05]$/", limit=8) as events:
        found = events.until("done")
    assert texts(found) == [f"v{n}" for n in range(55, 19, -5)]
    done = found[-1][1]
    assert (done["found"], done["value_format"]) == (8, "text")
    assert done["scanned"]["stopped_by"] == "records"
    assert any(kind == "progress" for kind, _ in found)
    with stream(broker, "searched", filter="/v.*[05]$/", after=done["next"]) as events:
        rest = events.until("done")
    assert texts(rest) == ["v15", "v10", "v5", "v0"]
    assert rest[-1][1]["next"] is None
    assert rest[-1][1]["scanned"]["stopped_by"] == "end"


def test_search_stops_at_its_limit_and_resumes(broker, monkeypatch):
    """A request that reaches the limit returns the next position, and no record is lost."""
    monkeypatch.setattr(scan, "BYTES_MOST", 64 * 1024)
    monkeypatch.setattr(scan, "PIECE_BYTES", 32 * 1024)
    broker.create_topic("limits")
    write(broker, "limits", [(0, None, f"{n}:".ljust(4000, "x"), [], 0) for n in range(100)])
    shown, query, stops = [], {}, []
    while True:
        page = fetch(broker, "topics", "limits", "records", filter="7:", **query)
        shown += [each["offset"] for each in page["items"]]
        stops.append(page["scanned"]["stopped_by"])
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert shown == [number for number in reversed(range(100)) if number % 10 == 7]
    assert stops == ["bytes"] * (len(stops) - 1) + ["end"]
    assert len(stops) > 3
    monkeypatch.setattr(scan, "SECONDS_MOST", -1)
    page = fetch(broker, "topics", "limits", "records")
    assert page["scanned"]["stopped_by"] == "time"
    assert page["next"] is not None


def test_a_search_that_cannot_be_is_refused_as_an_answer(broker):
    broker.create_topic("refusals")
    for query in ({"filter": "/(/"}, {"from": "x"}, {"follow": "true"}):
        with stream(broker, "refusals", expected=400, **query):
            pass
    fetch(broker, "topics", "refusals", "records", expected=400, follow="true")


def test_places(broker):
    """More than four at a time are refused, as a page and as a stream."""
    broker.create_topic("places")
    write(broker, "places", [(0, None, "x", [], 0)])
    console = console_of(broker)
    with contextlib.ExitStack() as stack:
        for _ in range(READERS_MOST):
            stack.push(console.take(OPEN))
        answer = fetch(broker, "topics", "places", "records", expected=429)
        assert answer["error"] == "THROTTLING_QUOTA_EXCEEDED"
        with stream(broker, "places", expected=429):
            pass
    assert fetch(broker, "topics", "places", "records")["items"]


def console_of(broker):
    """The places of a broker's console."""
    fetch(broker, "topics")
    site = broker.server.http._answering.__self__
    return site._opening.result().__self__._places


def test_another_search_of_the_same_viewer_ends_the_first(broker, monkeypatch):
    broker.create_topic("viewers")
    write(broker, "viewers", [(0, None, "x", [], 0)])
    monkeypatch.setattr("barnabas.broker.console.records.events.GOODBYE_SECONDS", 60)
    places = console_of(broker)
    with stream(broker, "viewers", viewer="tab") as first:
        first.until("done")
        ended = []
        places.replace_search(("User:ANONYMOUS", "127.0.0.1", "tab"), lambda: ended.append(1))
        with stream(broker, "viewers", viewer="other") as other:
            other.until("done")
        assert not ended
        with stream(broker, "viewers", viewer="tab") as second:
            second.until("done")
        assert ended == [1]
    assert places._searches == {}


def test_a_live_tail(broker):
    broker.create_topic("tailed", partitions=2)
    write(broker, "tailed", [(0, None, "old", [], 0)])
    with stream(broker, "tailed", **{"from": "end"}, follow="true", filter="new") as events:
        write(broker, "tailed", [(0, None, "new 1", [], 0), (1, None, "other", [], 0)])
        assert texts(events.until("record")) == ["new 1"]
        with open_transaction(broker, "tail-1", "tailed", 1):
            write(broker, "tailed", [(0, None, "new 2", [], 0), (1, None, "new 3", [], 0)])
            # Records that an open transaction blocked arrive when it has ended.
            assert texts(events.until("record")) == ["new 3"]
        assert texts(events.until("record")) == ["new 2"]


def test_a_live_tail_of_everything_shows_what_is_open(broker):
    broker.create_topic("tailed-all")
    query = {"from": "end", "follow": "true", "view": "all"}
    with stream(broker, "tailed-all", **query) as events:
        with open_transaction(broker, "tail-2", "tailed-all", 1):
            ((_, row),) = events.until("record")
            assert row["state"] == "open"
            shape("RecordRow", row)
        ((_, row),) = events.until("record")
        assert (row["state"], row["value"]["text"]) == ("marker", "abort")


def test_a_live_tail_is_sampled_evenly_and_says_what_is_missing(broker):
    broker.create_topic("busy")
    with stream(broker, "busy", **{"from": "end"}, follow="true") as events:
        begun_s = monotonic()
        with Producer(broker) as producer:
            for first in range(0, 5000, 50):
                producer.send("busy", *map(str, range(first, first + 50)))
                sleep(0.02)
        shown, missing = [], 0
        for kind, data in events:
            if kind == "record":
                shown.append(int(data["value"]["text"]))
            else:
                missing = data["skipped"] + data["unseen"]
            if len(shown) + missing == 5000:
                break
        seconds = monotonic() - begun_s + 1
    assert 10 <= len(shown) <= tail.RECORDS_PER_SECOND * (seconds + 1)
    assert shown == sorted(shown)
    # From all of it, not from its beginning.
    assert min(shown) < 2000
    assert max(shown) > 3000


def test_stalled_viewer_does_not_block_the_tail(broker):
    """A viewer without progress costs no memory: the stream counts the records it skips."""
    broker.create_topic("unread")
    with stream(broker, "unread", **{"from": "end"}, follow="true") as events:
        with Producer(broker) as producer:
            for number in range(300):
                producer.send("unread", f"{number}".ljust(4000, "x"))
        log = broker.server.catalogue.topic("unread").partitions[0].log
        wait_until(lambda: log.high_watermark == 300, "written")
        total = 0
        for kind, data in events:
            if kind == "skipped":
                missing = data["skipped"] + data["unseen"]
                if total + missing == 300:
                    break
            else:
                total += 1
    assert total < 300


def test_a_deleted_topic_ends_its_tail(broker):
    broker.create_topic("deleted")
    with stream(broker, "deleted", **{"from": "end"}, follow="true") as events:
        delete_topic(broker, "deleted")
        ((_, error),) = events.until("refused")
        assert error["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
