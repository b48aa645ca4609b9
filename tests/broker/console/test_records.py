"""Records over the API: browsing, paging, state, decoding and filters, with clients of others."""

from __future__ import annotations

import json
from email.message import Message
from typing import NamedTuple

import pytest

from barnabas.protocol import compression as codecs
from barnabas.protocol.records import Record
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.console.asking import HTTP, fetch, path
from tests.broker.producers import Producer, open_transaction
from tests.http_client import urlopen

EXACT = 2**64 + 1


@pytest.fixture(scope="module")
def broker():
    with Broker(config={**HTTP, "transaction.state.log.num.partitions": "2"}) as running:
        yield running


def write(broker, topic, rows, compression=codecs.NONE):
    """Write rows of (partition, key, value, headers, timestamp), each in a batch of its own.

    A timestamp of 0 is the current time.
    """
    with Producer(broker, compression=compression) as producer:
        for partition, key, value, headers, time_ms in rows:
            more = {"key": key, "headers": headers, "time_ms": time_ms or None}
            producer.send(topic, value, partition=partition, **more)


def rows_of(answer, *names):
    rows = [tuple(each[name] for name in names) for each in answer["items"]]
    return [row[0] for row in rows] if len(names) == 1 else rows


def texts(answer, part="value"):
    return [None if each[part] is None else each[part]["text"] for each in answer["items"]]


def records(broker, topic, **query):
    return fetch(broker, "topics", topic, "records", **query)


def all_pages(broker, topic, **query):
    """Follow the cursor to the end."""
    items, pages = [], 0
    while True:
        page = records(broker, topic, **query)
        items += page["items"]
        pages += 1
        if page["next"] is None:
            return items, pages
        query["after"] = page["next"]
        assert pages < 1000


def test_the_newest_first_of_all_partitions_by_time(broker):
    broker.create_topic("times", partitions=3)
    times = [(0, 100), (1, 200), (2, 150), (0, 300), (1, 250), (2, 160)]
    write(broker, "times", [(p, f"k{t}", f"v{t}", [], t) for p, t in times])
    newest = records(broker, "times")
    assert rows_of(newest, "timestamp_ms") == [300, 250, 200, 160, 150, 100]
    oldest = records(broker, "times", order="oldest")
    assert rows_of(oldest, "timestamp_ms") == [100, 150, 160, 200, 250, 300]
    assert newest["next"] is None
    assert newest["scanned"]["stopped_by"] == "end"
    assert newest["scanned"]["records"] == 6
    assert texts(newest) == ["v300", "v250", "v200", "v160", "v150", "v100"]
    assert rows_of(records(broker, "times", partition="1"), "partition", "offset") == [
        (1, 1),
        (1, 0),
    ]
    assert set(rows_of(newest, "state")) == {"plain"}


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("limit", [1, 7, 500])
def test_pages_show_every_record_once(broker, order, limit):
    topic = f"pages-{order}-{limit}"
    broker.create_topic(topic, partitions=4)
    with Producer(broker) as producer:
        for partition in range(4):
            for first in range(partition, 200, 40):
                # Times go back and forth, and several are the same.
                numbers = range(first, min(first + 40, 200), 4)
                batch = [
                    Record(at, 1_000_000 + number * 7919 % 50, None, b"%d" % number)
                    for at, number in enumerate(numbers)
                ]
                producer.send_records(topic, batch, partition)
    items, pages = all_pages(broker, topic, order=order, limit=limit)
    shown = sorted(int(each["value"]["text"]) for each in items)
    assert shown == list(range(200))
    assert pages >= 200 // limit
    for partition in range(4):
        offsets = [each["offset"] for each in items if each["partition"] == partition]
        assert offsets == sorted(offsets, reverse=order == "newest")


def test_new_records_do_not_disturb_paging(broker):
    broker.create_topic("moving")
    write(broker, "moving", [(0, None, str(n), [], 1000 + n) for n in range(10)])
    first = records(broker, "moving", limit=4)
    write(broker, "moving", [(0, None, "new", [], 5000)])
    second = records(broker, "moving", limit=10, after=first["next"])
    assert texts(first) + texts(second) == [str(n) for n in reversed(range(10))]


def test_ranges(broker):
    broker.create_topic("ranges")
    write(broker, "ranges", [(0, None, str(n), [], 1000 * n) for n in range(1, 11)])
    asked = {
        "beginning": range(10),
        "offset:7": range(7, 10),
        "last:2": range(8, 10),
        "time:4000": range(3, 10),
        "time:4001": range(4, 10),
        "time:99999": range(0),
        "end": range(0),
    }
    for start, offsets in asked.items():
        answer = records(broker, "ranges", order="oldest", **{"from": start})
        assert rows_of(answer, "offset") == list(offsets), start
    between = records(broker, "ranges", until_ms=6000, **{"from": "time:3000"})
    assert rows_of(between, "timestamp_ms") == [5000, 4000, 3000]


def test_the_state_of_each_record(broker):
    broker.create_topic("states")
    write(broker, "states", [(0, None, "before", [], 0)])
    for key, end in (("done", Producer.commit), ("dropped", Producer.abort)):
        with Producer(broker, key) as producer:
            producer.send("states", key)
            end(producer)
    with open_transaction(broker, "shop-1", "states", 1):
        write(broker, "states", [(0, None, "behind", [], 0)])
        with Producer(broker, "late") as late:
            late.send("states", "late")
            late.commit()
        everything = records(broker, "states", view="all", order="oldest")
        assert list(zip(texts(everything), rows_of(everything, "state"), strict=True)) == [
            ("before", "plain"),
            ("done", "committed"),
            ("commit", "marker"),
            ("dropped", "aborted"),
            ("abort", "marker"),
            ("0", "open"),
            ("behind", "waiting"),
            ("late", "waiting"),
            ("commit", "marker"),
        ]
        behind = [each["blocking_transaction"] for each in everything["items"]]
        assert behind[:6] == [None] * 6
        assert behind[6]["transactional_id"] == "shop-1"
        assert behind[6]["start_offset"] == 5
        assert behind[7] == behind[6]
        scanned = everything["scanned"]["partitions"][0]
        assert (scanned["stable_offset"], scanned["end_offset"]) == (5, 9)
        assert texts(records(broker, "states")) == ["done", "before"]
        one = fetch(broker, "topics", "states", "partitions", "0", "records", "6")
        assert one["record"]["blocking_transaction"] == behind[6]
    assert texts(records(broker, "states")) == ["late", "behind", "done", "before"]


def test_formats_are_guessed_and_can_be_chosen(broker):
    broker.create_topic("formats")
    value = f'{{"id": {EXACT}, "price": 1.10, "a": [1, 2], "n": {{}}}}'
    write(broker, "formats", [(0, (42).to_bytes(8, "big"), value, [("h", b"\xff")], 0)])
    answer = records(broker, "formats")
    assert (answer["key_format"], answer["value_format"]) == ("integer", "json")
    (row,) = answer["items"]
    assert row["key"]["text"] == "42"
    # Digit by digit as it was written: JavaScript, and any parser, would round some of it.
    assert row["value"]["text"] == (
        '{\n  "id": 18446744073709551617,\n  "price": 1.10,\n  "a": [\n    1,\n    2\n  ],\n'
        '  "n": {}\n}'
    )
    assert row["headers"] == [
        {
            "name": "h",
            "value": {
                "format": "hex",
                "text": "ff",
                "size_bytes": 1,
                "is_cut": False,
                "problem": None,
            },
        }
    ]
    other = records(broker, "formats", key_format="json", value_format="base64")
    (row,) = other["items"]
    assert row["key"]["format"] == "hex"
    assert row["key"]["problem"] == "not JSON at character 0"
    assert row["value"]["format"] == "base64"


def test_a_tombstone_is_not_an_empty_value(broker):
    broker.create_topic("empty")
    write(broker, "empty", [(0, "a", None, [], 0), (0, "", "", [("n", None)], 0)])
    answer = records(broker, "empty", order="oldest")
    assert rows_of(answer, "value")[0] is None
    assert answer["items"][1]["value"]["text"] == ""
    assert answer["items"][1]["headers"] == [{"name": "n", "value": None}]


def test_large_values_are_cut_in_lists_and_whole_on_demand(broker):
    broker.create_topic("large")
    large = "é" * 300_000
    write(broker, "large", [(0, "k", large, [("h", "x" * 5000)], 0)])
    (row,) = records(broker, "large")["items"]
    assert row["value"]["is_cut"]
    assert row["value"]["size_bytes"] == 600_000
    assert row["value"]["text"] == "é" * 2048
    assert len(row["headers"][0]["value"]["text"]) == 512
    one = fetch(broker, "topics", "large", "partitions", "0", "records", "0")
    assert one["record"]["value"]["text"] == large
    assert not one["record"]["value"]["is_cut"]
    assert one["previous_offset"] is one["next_offset"] is None
    status, headers, body = raw(broker, "large", 0, 0)
    assert (status, body) == (200, large.encode())
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == 'attachment; filename="large-0-0-value.bin"'
    assert raw(broker, "large", 0, 0, "key")[2] == b"k"
    assert raw(broker, "large", 0, 0, "header:0")[2] == b"x" * 5000


def raw(broker, topic, partition, offset, part="value"):
    host, port = broker.server.http.address
    parts = ("topics", topic, "partitions", str(partition), "records", str(offset), "raw")
    with urlopen(f"http://{host}:{port}{path(*parts, part=part)}", timeout=60) as answer:
        return answer.status, answer.headers, answer.read()


def test_missing_records_get_errors(broker):
    broker.create_topic("bounds")
    write(broker, "bounds", [(0, None, "x", [], 0)])
    place = ("topics", "bounds", "partitions", "0", "records")
    assert fetch(broker, *place, "7", expected=404)["error"] == "OFFSET_OUT_OF_RANGE"
    assert fetch(broker, *place, "x", expected=400)["error"] == "INVALID_REQUEST"
    other = ("topics", "bounds", "partitions", "4", "records", "0")
    assert fetch(broker, *other, expected=404)["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert fetch(broker, "topics", "none", "records", expected=404)
    for query in (
        {"from": "yesterday"},
        {"partition": "a"},
        {"filter": "/(/"},
        {"filter": "partition:x"},
        {"after": "bm8"},
        {"limit": "501"},
        {"key_format": "avro"},
    ):
        fetch(broker, "topics", "bounds", "records", expected=400, **query)
    fetch(broker, "topics", "bounds", "records", expected=404, partition="1")


FILTERED = [
    (
        "order-1",
        '{"order": {"id": 5, "open": true}, "items": [{"sku": "shoe"}]}',
        [("trace", "t-1")],
    ),
    ("order-2", '{"order": {"id": 50, "open": false}, "items": []}', [("trace", "t-2")]),
    ("Other", "just TEXT with order.id = 5 in it", [("span", "t-1")]),
    (None, None, [("trace", None)]),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0, 1, 2, 3]),
        ("text", [2]),
        ("key:order", [0, 1]),
        ("key:OTHER", [2]),
        ("t-1", [0, 2]),
        ("header:trace", [0, 1, 3]),
        ("header.trace:t-1", [0]),
        ("value.order.id = 5", [0]),
        ("value.order.id=5", [0]),
        ("value.order.id != 5", [1]),
        ("value.order.open = true", [0]),
        ('value.items[0].sku = "shoe"', [0]),
        ("value.items[0].sku = shoe", [0]),
        ("value.order.id = 5.0", [0]),
        ("/order-[0-9]/", [0, 1]),
        ("key:/^o.*2$/", [1]),
        ('"order.id = 5 in"', [2]),
        ("key:order header.trace:t-2", [1]),
        ("partition:0 text", [2]),
        ("partition:0,3 text", [2]),
        ("nothing", []),
    ],
)
def test_filters(broker, text, expected):
    if broker.server.catalogue.topic("filtered") is None:
        broker.create_topic("filtered", partitions=4)
        write(broker, "filtered", [(0, k, v, h, 0) for k, v, h in FILTERED])
    answer = records(broker, "filtered", filter=text, order="oldest")
    assert rows_of(answer, "offset") == expected
    assert answer["scanned"]["records"] == 4


def test_a_value_too_large_to_decode_is_counted(broker):
    broker.create_topic("undecided")
    write(broker, "undecided", [(0, None, json.dumps({"a": 1, "b": "x" * 70_000}), [], 0)])
    answer = records(broker, "undecided", filter="value.a=1")
    assert answer["items"] == []
    assert answer["scanned"]["undecided"] == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(broker, codec):
    topic = f"compressed-{codec}"
    broker.create_topic(topic)
    with Producer(broker, compression=codecs.NAMES.index(codec)) as producer:
        for first in range(0, 1000, 250):
            producer.send(topic, *(str(number) * 10 for number in range(first, first + 250)))
    answer = records(broker, topic, limit=500)
    assert texts(answer) == [str(number) * 10 for number in range(999, 499, -1)]
    assert set(rows_of(answer, "compression")) == {codec}
    assert len(all_pages(broker, topic, limit=300)[0]) == 1000


def test_internal_topics_are_decoded(broker):
    broker.create_topic("sink")
    with Producer(broker, "internal-1"):
        pass
    answer = records(broker, "__transaction_state", filter="internal-1", limit=1)
    assert answer["key_format"] == answer["value_format"] == "transaction_state"
    (row,) = answer["items"]
    assert json.loads(row["key"]["text"])["transactional_id"] == "internal-1"
    assert "producer_epoch" in json.loads(row["value"]["text"])


def test_below_the_start_nothing_is_shown(broker):
    broker.create_topic("cut")
    with Producer(broker) as producer:
        producer.send("cut", *map(str, range(10)))
    log = broker.server.catalogue.topic("cut").partitions[0].log
    broker.server.loop.call_soon_threadsafe(log.delete_records, 4)
    write(broker, "cut", [(0, None, "10", [], 0)])
    assert log.log_start_offset == 4
    assert texts(records(broker, "cut", order="oldest")) == [str(n) for n in range(4, 11)]
    fetch(broker, "topics", "cut", "partitions", "0", "records", "3", expected=404)


def test_an_export_is_what_produce_reads(broker, monkeypatch):
    for topic in ("exported", "imported"):
        broker.create_topic(topic, partitions=2)
    rows = [
        (0, b"k\xff", "line\nü", [("a", "1"), ("a", None), ("b", b"\x00\xff")], 1000),
        (1, None, None, [], 2000),
        (1, "", "x" * 9000, [], 3000),
    ]
    write(broker, "exported", rows)
    first = export(broker, "exported", order="oldest", limit=2)
    second = export(broker, "exported", order="oldest", after=first.headers["Barnabas-Next"])
    assert second.headers["Barnabas-Next"] is None
    shell = Shell(monkeypatch, broker.bootstrap_servers)
    ended = shell("produce", "imported", "--input", "json", stdin=first.body + second.body)
    assert ended.exit_code == 0, ended.stderr
    again = export(broker, "imported", order="oldest")
    assert again.body.replace(b'"imported"', b'"exported"') == first.body + second.body
    assert len(again.body.splitlines()) == 3


class Export(NamedTuple):
    headers: Message
    body: bytes


def export(broker, topic, **query):
    host, port = broker.server.http.address
    asked = path("topics", topic, "records", "export", **query)
    with urlopen(f"http://{host}:{port}{asked}", timeout=60) as answer:
        return Export(answer.headers, answer.read())


def test_reading_records_is_audited(caplog):
    """By a broker of its own: of one client no more than 20 lines a second are written."""
    with caplog.at_level("INFO"), Broker(config=HTTP) as broker:
        broker.create_topic("audited")
        records(broker, "audited")
    lines = [each.getMessage() for each in caplog.records]
    (line,) = [json.loads(each) for each in lines if "read records" in each and "audited" in each]
    assert line["principal"] == "User:ANONYMOUS"
    assert line["host"] == "127.0.0.1"


def test_records_can_be_hidden():
    with Broker(config={**HTTP, "barnabas.console.records": "false"}) as running:
        running.create_topic("hidden")
        answer = fetch(running, "topics", "hidden", "records", expected=403)
        assert answer["error"] == "POLICY_VIOLATION"
        fetch(running, "topics", "hidden")


def test_a_place_that_is_taken_is_given_back(broker):
    broker.create_topic("places")
    for _ in range(6):
        records(broker, "places")
        fetch(broker, "topics", "places", "records", expected=400, filter="/(/")
