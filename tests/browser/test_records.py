"""Records: found, shown exactly, with their state; saved and written again byte for byte."""

from __future__ import annotations

import subprocess
import sys

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.looking import axe_check, screenshot
from tests.interop.administration import create
from tests.interop.clients import kafka
from tests.waiting import wait_until

LARGE = 2**53 + 1
READ_S = 60
"""Far more than it takes until something comes, or the end."""
SENT = [
    (b"a", b'{"order": {"id": %d}}' % LARGE, []),
    (b"b", b"\x00\xff\xfe", [("trace", b"7"), ("trace", b"\xff")]),
    (b"a", None, []),
    (None, "<img src=x onerror=alert(1)> \u202egnorw".encode(), []),
    (b"long", b"x" * 20_000, []),
]


@pytest.fixture
def written(broker, topic):
    """A topic with records of all kinds, and an aborted transaction behind them."""
    create(broker.bootstrap_servers, topic, partitions=1)
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for key, value, headers in SENT:
        producer.send(topic, key=key, value=value, headers=headers, partition=0)
    producer.close()
    config = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"id-{topic}"}
    aborting = Producer(config)
    aborting.init_transactions(30)
    aborting.begin_transaction()
    aborting.produce(topic, b"taken back", partition=0)
    assert aborting.flush(30) == 0
    aborting.abort_transaction(30)
    return topic


def rows(page):
    return page.get_by_role("region", name="Records").locator("tbody tr")


def test_records_are_shown_unchanged(page, broker, written):
    page.goto(f"{broker.url}/topics/{written}/records")
    expect(rows(page)).to_have_count(len(SENT))
    expect(rows(page).filter(has_text=str(LARGE))).to_have_count(1)
    expect(page.get_by_text("taken back")).to_have_count(0)
    expect(page.locator("main img")).to_have_count(0)
    page.get_by_label("Show").select_option("All, with states")
    expect(rows(page).filter(has_text="taken back")).to_contain_text("aborted")
    expect(rows(page).filter(has_text="marker").last).to_be_visible()
    axe_check(page)
    screenshot(page, "records")


def test_one_is_found_by_a_field_of_it_and_read_whole(page, broker, written):
    page.goto(f"{broker.url}/topics/{written}/records")
    page.get_by_label("Find").fill(f"value.order.id = {LARGE}")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(rows(page)).to_have_count(1)
    rows(page).get_by_role("button").click()
    record = page.get_by_role("region", name="Record 0:0")
    expect(record.get_by_text(str(LARGE))).to_be_visible()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_role("region", name="Record 0:0").get_by_text(str(LARGE))).to_be_visible()
    axe_check(page)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("heading", name="offset 1")).to_be_visible()


def test_saved_records_are_the_written_records(page, broker, written, tmp_path):
    page.goto(f"{broker.url}/topics/{written}/records?order=oldest")
    expect(rows(page)).to_have_count(len(SENT))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as JSON lines").click()
    saved = tmp_path / "saved.jsonl"
    waiting.value.save_as(saved)
    copy = f"{written}-copy"
    create(broker.bootstrap_servers, copy, partitions=1)
    subprocess.run(
        [
            *(sys.executable, "-m", "barnabas", "produce", copy, "--input", "json"),
            *("--bootstrap-server", broker.bootstrap_servers),
        ],
        env=ConsoleBroker.python_environment(),
        input=saved.read_bytes(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert read(broker, copy) == SENT


def test_the_same_again_is_the_same(page, broker, written):
    page.goto(f"{broker.url}/topics/{written}/records?record=0:1")
    page.get_by_role("button", name="Produce again…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Produce a record", exact=True).click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    wait_until(lambda: len(read(broker, written)) == len(SENT) + 1, "it is there")
    assert read(broker, written)[-1] == SENT[1]


def read(broker, topic):
    """Return all that a reader of committed records gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reads-all",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    partitions = consumer.list_topics(topic, READ_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
    found, unfinished = [], {*partitions}
    try:
        while unfinished:
            message = consumer.poll(READ_S)
            assert message is not None, f"not read to the end: {unfinished}"
            if message.error() is None:
                found.append((message.key(), message.value(), message.headers() or []))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise KafkaException(message.error())
    finally:
        consumer.close()
    return found
