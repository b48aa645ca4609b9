"""The broker's own screens, one test for each question: Now, Storage, Settings, Events."""

from __future__ import annotations

import re
import time

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect

from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.data_plane import Named, batch, produce_request
from tests.browser.console_broker import ConsoleBroker, producing
from tests.browser.looking import axe_check, screenshot, state_of
from tests.browser.troubles import BROKER_AWAY
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.products import case
from tests.waiting import wait_until

KEY = "log.cleaner.backoff.ms"
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
}
SYNC_TIMES = "Journal sync times"
LINE_PX = 50
"""A header of two lines is higher."""


def words_of(page, title):
    """Return the sentence of a figure."""
    figure = page.get_by_role("figure").filter(has_text=title)
    return figure.locator(".words").first.inner_text()


def fact(page, name):
    """A figure of the broker by its name."""
    return page.locator(".facts > div").filter(has=page.get_by_text(name, exact=True)).locator("dd")


def send_twice(broker, topic):
    """Send an idempotent producer's batch, and the same once more, as after a lost answer."""
    repeated = batch(b"once", producer_id=7, producer_epoch=0, base_sequence=0)
    request = produce_request(9, Named(topic), (0, repeated))
    with TransactionClient(broker) as client:
        offsets = [
            client.ask(PRODUCE, request, 9).responses[0].partition_responses[0].base_offset
            for _ in range(2)
        ]
    assert offsets[0] == offsets[1]


def rows(page, label):
    return page.get_by_role("region", name=label).locator("tbody tr")


@pytest.mark.slow
def test_now_says_what_the_broker_is_doing_and_whether_anything_is_wrong(page, own_broker):
    create(own_broker.bootstrap_servers, "orders", partitions=1)
    page.goto(own_broker.url)
    expect(page.get_by_text("The broker serves clients.")).to_be_visible()
    expect(fact(page, "Duplicates rejected")).to_have_text("0")
    page.evaluate("window.isTheSame = true")
    with producing(own_broker, "orders"):
        send_twice(own_broker, "orders")
        expect(fact(page, "Duplicates rejected")).to_have_text("1")
        wait_until(lambda: "at most" in words_of(page, "Batches per sync"), "syncs have batches")
        wait_until(lambda: "%" in words_of(page, "Event loop busy"), "the loop is busy")
        wait_until(lambda: "p99" in words_of(page, "Event loop lag"), "the loop is late")
        wait_until(lambda: "most often below" in words_of(page, SYNC_TIMES), "the map has a span")
        figure = page.get_by_role("figure").filter(has_text=SYNC_TIMES)
        figure.get_by_role("button", name="Table").click()
        spans = figure.locator("tbody tr")
        expect(spans.first).to_be_visible()
        before = spans.count()
        wait_until(lambda: spans.count() > before, "another span has come in")
        axe_check(page)
        screenshot(page, "now-with-a-heat-map")
    assert "at most" in words_of(page, "Duplicate batches rejected")
    page.get_by_label("Range").select_option("Six hours")
    wait_until(lambda: "in six hours" in words_of(page, "Records in"), "six hours are shown")
    assert page.evaluate("window.isTheSame")


def test_now_and_storage_say_that_nothing_is_recorded_and_how_that_is_changed(page, tmp_path):
    config = {"barnabas.console.history": "false"}
    with ConsoleBroker(tmp_path / "broker", **config) as broker:
        for path in ("/", "/storage"):
            page.goto(broker.url + path)
            said = page.get_by_text("Nothing is recorded")
            expect(said).to_contain_text("barnabas.console.history=true in server.properties")
            expect(page.get_by_role("figure")).to_have_count(0)
            expect(page.get_by_role("alert")).to_have_count(0)
            axe_check(page)
        screenshot(page, "storage-without-a-history")


def test_storage_says_whether_the_disk_is_the_limit(page, tmp_path):
    with ConsoleBroker(tmp_path / "broker", **{KEY: "100"}) as broker:
        create(broker.bootstrap_servers, "prices", partitions=1, configs=COMPACTED)
        page.goto(f"{broker.url}/storage")
        expect(page.get_by_text("Disk space left")).to_be_visible()
        expect(
            page.get_by_text("No log has been compacted since the broker started.")
        ).to_be_visible()
        page.evaluate("window.isTheSame = true")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        now_ms = int(time.time() * 1000)
        for number in range(5):
            # Each in a segment of its own: only those behind which there is another are compacted.
            producer.produce("prices", b"x" * 1000, b"key", timestamp=now_ms + number * 2000)
            assert producer.flush(30) == 0
        passed = rows(page, "Compaction").first
        expect(passed).to_contain_text("prices-0")
        before, after = (
            float(passed.get_by_role("cell").nth(at).inner_text().split()[0]) for at in (1, 2)
        )
        assert 0 < after < before
        for title in (SYNC_TIMES, "Produce request times"):
            wait_until(lambda title=title: "most often" in words_of(page, title), title)
        expect(rows(page, "Largest logs").first).to_contain_text("prices-0")
        assert page.evaluate("window.isTheSame")
        axe_check(page)
        screenshot(page, "storage-with-a-heat-map")


def test_settings_says_what_is_set_by_whom_and_changes_it_in_its_row(page, own_broker):
    page.goto(f"{own_broker.url}/settings?changed=false&filter={KEY}")
    row = page.get_by_role("row").filter(has=page.get_by_text(KEY, exact=True))
    expect(row.get_by_role("cell").first).to_have_text("15000")
    expect(row).to_contain_text("default")
    page.evaluate("window.isTheSame = true")
    row.get_by_role("button", name=f"Change… {KEY}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("configurations")).to_have_value(f"{KEY}=15000")
    axe_check(page)
    dialog.get_by_label("configurations").fill(f"{KEY}=20000")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_text("Preview:")).to_be_visible()
    expect(row.get_by_role("cell").first).to_have_text("15000")
    dialog.get_by_role("button", name="Change settings").click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(row.get_by_role("cell").first).to_have_text("20000")
    expect(row).to_contain_text("broker")
    page.get_by_role("searchbox").fill("num.partitions")
    fixed = page.get_by_role("row").filter(has=page.get_by_text("num.partitions", exact=True))
    expect(fixed).to_contain_text("only by a restart")
    expect(fixed.get_by_role("button")).to_have_count(0)
    assert page.evaluate("window.isTheSame")


def test_settings_says_in_the_row_that_only_reading_is_allowed(page, tmp_path):
    config = {"barnabas.console.access": "read"}
    with ConsoleBroker(tmp_path / "broker", **config) as broker:
        page.goto(f"{broker.url}/settings?changed=false&filter={KEY}")
        row = page.get_by_role("row").filter(has=page.get_by_text(KEY, exact=True))
        expect(row).to_contain_text("read-only: barnabas.console.access is read")
        button = row.get_by_role("button", name="Change")
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(page.locator("header").get_by_text("Read-only")).to_be_visible()
        assert page.locator("header").bounding_box()["height"] < LINE_PX
        axe_check(page)


def test_events_says_what_changed_and_shows_one_kind(page, own_broker, troubles):
    page.goto(f"{own_broker.url}/events")
    events = rows(page, "Events")
    expect(events).to_have_count(1)
    expect(events.first).to_contain_text("in an empty directory")
    page.evaluate("window.isTheSame = true")
    create(own_broker.bootstrap_servers, "orders", partitions=2)
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text("Topic:orders")
    kind = page.get_by_label("What")
    kind.select_option("topic created")
    expect(events).to_have_count(1)
    expect(page).to_have_url(re.compile(r"[?&]kind=topic_created"))
    kind.select_option("started")
    expect(events.first).to_contain_text("in an empty directory")
    assert page.evaluate("window.isTheSame")
    page.reload()
    expect(kind).to_have_value("started")
    expect(events).to_have_count(1)
    axe_check(page)
    troubles.tolerate(BROKER_AWAY)
    own_broker.kill()
    own_broker.restart()
    page.reload()
    expect(events.first).to_contain_text("after a crash")


@pytest.mark.parametrize("path", [case("/", in_test=True), case("/transactions", in_test=False)])
def test_the_header_is_one_line(page, own_broker, troubles, path):
    troubles.tolerate("net::ERR_")
    page.goto(own_broker.url + path)
    expect(state_of(page)).to_have_text("● Live")
    header = page.locator("header")
    assert header.bounding_box()["height"] < LINE_PX
    own_broker.kill()
    expect(state_of(page)).to_have_text(re.compile("No response since"))
    assert header.bounding_box()["height"] < LINE_PX
