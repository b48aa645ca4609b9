"""A search with progress, a live tail with a count of omitted records, and a replay."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.looking import axe_check, screenshot
from tests.browser.test_records import read, rows
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.products import case
from tests.waiting import wait_until

COUNT = 300
HITS = 150
"""Every second one: more than are shown at a time."""
PAGE = 100
PARTITIONS = 2
REPLAYS = "details:has([aria-label=Replays])"
"""Part of the page with the replays; the test of a search checks the rest."""


@pytest.fixture
def written(broker, topic):
    """A topic in which every second record is paid, of partition 0 all and of 1 none."""
    create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
    write(broker, topic, range(COUNT))
    return topic


def write(broker, topic, numbers):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in numbers:
        state = "paid" if number % 2 == 0 else "open"
        value = f'{{"order": {number}, "state": "{state}"}}'
        producer.produce(topic, value, f"k{number}", partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def searched(page, text):
    page.get_by_label("Find").fill(text)
    page.get_by_role("button", name="Search", exact=True).click()


# ------------------------------------------------------------------------------------------ search


def test_search_shows_its_progress_and_continues(page, broker, written):
    page.goto(f"{broker.url}/topics/{written}/records")
    expect(rows(page)).to_have_count(PAGE)
    searched(page, "value.state = paid")
    expect(page.get_by_text(f"{PAGE} records shown;")).to_be_visible()
    expect(page.get_by_text("More records match.")).to_be_visible()
    far = page.get_by_role("listitem").filter(has_text="partition 0: offsets")
    expect(far).to_contain_text(f"to {HITS} of 0 to {HITS}, {PAGE} hits")
    axe_check(page)
    screenshot(page, "record-search")
    page.get_by_role("button", name="Continue").click()
    expect(rows(page)).to_have_count(HITS)
    expect(far).to_contain_text(f"offsets 0 to {HITS} of 0 to {HITS}, {HITS} hits")
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        case('"order 299"', 0, in_test=False),
        case("value.order = 299", 1, in_test=False),
        case("key:k299", 1, in_test=False),
        case("/k29[0-9]$/ value.state != paid", 5, in_test=True),
        case("partition:1 value.order = 298", 0, in_test=True),
    ],
)
def test_search_shows_matching_records(page, broker, written, text, count):
    page.goto(f"{broker.url}/topics/{written}/records")
    expect(rows(page)).to_have_count(PAGE)
    searched(page, text)
    if count:
        expect(rows(page)).to_have_count(count)
    else:
        expect(page.get_by_text("No match in the records read.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Find")).to_have_value(text)


def test_a_filter_that_cannot_be_says_why(page, broker, written, troubles):
    page.goto(f"{broker.url}/topics/{written}/records")
    searched(page, "/(/")
    expect(page.get_by_text(re.compile(r"filter: /\(/"))).to_be_visible()
    axe_check(page)
    assert all("400" in each for each in troubles.take())


def test_blocking_transaction_of_a_record_is_a_link(page, broker, topic):
    create(broker.bootstrap_servers, topic, partitions=1)
    key = f"holds-{topic}"
    with TransactionClient(broker) as client:
        client.begin(key, topic, 0)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(topic, b"behind", partition=0)
        assert producer.flush(30) == 0
        page.goto(f"{broker.url}/topics/{topic}/records")
        expect(page.get_by_text("No record is visible to read_committed")).to_be_visible()
        page.get_by_label("Show").select_option("All, with states")
        waiting = rows(page).filter(has_text="behind")
        expect(waiting).to_contain_text("committed, not visible yet")
        expect(rows(page).filter(has_text="open")).to_have_count(1)
        waiting.get_by_role("link", name=key).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(key)
        client.end(key, commit=True)
    page.go_back()
    expect(rows(page).filter(has_text="behind")).to_contain_text("plain")


# -------------------------------------------------------------------------------------- live tail


def test_a_live_tail_counts_what_it_has_skipped(page, broker, topic):
    create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
    page.goto(f"{broker.url}/topics/{topic}/records?follow=1")
    expect(page.get_by_text("No record has arrived yet.")).to_be_visible()
    write(broker, topic, [1])
    expect(rows(page)).to_have_count(1)
    write(broker, topic, range(2000))
    expect(page.get_by_text(re.compile(r"[\d,]+ skipped: too many to show"))).to_be_visible()
    wait_until(lambda: 1 < rows(page).count() <= 300, "some of them are shown")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused: new records are not shown.")).to_be_visible()
    before = rows(page).count()
    write(broker, topic, range(10))
    page.wait_for_timeout(1000)
    assert rows(page).count() == before


# ----------------------------------------------------------------------------------------- produce


HEADERS = """trace=1
trace:hex=00 ff
empty=
nothing
{"key": " a=b", "value": "two\\nlines"}"""
SENT_HEADERS = [
    ("trace", b"1"),
    ("trace", b"\x00\xff"),
    ("empty", b""),
    ("nothing", None),
    (" a=b", b"two\nlines"),
]


def test_a_record_is_produced_and_seen(page, broker, topic):
    create(broker.bootstrap_servers, topic, partitions=1)
    page.goto(f"{broker.url}/topics/{topic}/records")
    page.get_by_role("button", name="Produce a record…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("key (optional)", exact=False).first.fill("by-hand")
    dialog.get_by_label("key format", exact=False).select_option("text")
    dialog.get_by_label("value (optional)", exact=False).first.fill('{"a": 1}')
    dialog.get_by_label("headers", exact=False).first.fill(HEADERS)
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_text("Preview:")).to_be_visible()
    assert read(broker, topic) == []
    axe_check(page)
    dialog.get_by_role("button", name="Produce a record", exact=True).click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    assert read(broker, topic) == [(b"by-hand", b'{"a": 1}', SENT_HEADERS)]
    page.goto(f"{broker.url}/topics/{topic}/records?record=0:0")
    page.get_by_role("button", name="Produce again…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Produce a record", exact=True).click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    assert read(broker, topic) == [(b"by-hand", b'{"a": 1}', SENT_HEADERS)] * 2


def test_a_record_that_is_sent_twice_by_a_form_is_written_once(page, broker, topic, troubles):
    troubles.tolerate("ERR_FAILED")
    create(broker.bootstrap_servers, topic, partitions=3)
    page.goto(f"{broker.url}/topics/{topic}/records")
    page.get_by_role("button", name="Produce a record…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("value (optional)", exact=False).first.fill("once")
    dialog.get_by_role("button", name="Preview").click()
    button = dialog.get_by_role("button", name="Produce a record", exact=True)
    expect(button).to_be_enabled()
    # The first response is lost: the form stays open, and is sent once more.
    page.route("**/records", lambda route: (route.fetch(), route.abort())[0], times=1)
    button.click()
    expect(dialog.get_by_text("The broker does not respond.")).to_be_visible()
    button.click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    assert read(broker, topic) == [(None, b"once", [])]


# ------------------------------------------------------------------------------------------ replay


def quota(broker, verb, *arguments):
    """Set or remove a limit of what the console writes."""
    command = [sys.executable, "-m", "barnabas", "quotas", verb, "--client-id", "barnabas-console"]
    subprocess.run(
        [*command, *arguments, "--bootstrap-server", broker.bootstrap_servers],
        env=ConsoleBroker.python_environment(),
        capture_output=True,
        timeout=60,
        check=True,
    )


def replays(page):
    return page.get_by_role("region", name="Replays").locator("tbody tr")


def looked(page, target):
    """Open the form of a replay of what is listed, and look what it would do."""
    page.get_by_role("button", name="Replay records…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("target", exact=False).fill(target)
    dialog.get_by_role("button", name="Preview").click()
    return dialog


def test_a_search_is_replayed(page, broker, written):
    target = f"{written}-copy"
    create(broker.bootstrap_servers, target, partitions=1)
    page.goto(f"{broker.url}/topics/{written}/records?filter=value.state+%3D+paid")
    expect(rows(page)).to_have_count(PAGE)
    dialog = looked(page, target)
    facts = dialog.get_by_role("region", name="Preview")
    expect(facts).to_contain_text(f"Records{HITS}")
    axe_check(page, "dialog")
    screenshot(page, "replay")
    assert read(broker, target) == []
    dialog.get_by_role("button", name="Replay records", exact=True).click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(replays(page)).to_contain_text("committed")
    expect(replays(page)).to_contain_text(f"{COUNT} of {COUNT} offsets")
    wait_until(lambda: len(read(broker, target)) == HITS, "all of it is there")
    assert read(broker, target)[0][2] == [("barnabas.replayed.from", f"{written}/0/0".encode())]
    axe_check(page, REPLAYS)
    screenshot(page, "replayed")


def test_one_record_is_replayed(page, broker, written):
    target = f"{written}-copy"
    create(broker.bootstrap_servers, target, partitions=1)
    page.goto(f"{broker.url}/topics/{written}/records?record=1:7")
    page.get_by_role("button", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("target", exact=False).fill(target)
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Replay records", exact=True).click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    wait_until(lambda: len(read(broker, target)) == 1, "it is there")
    assert read(broker, target)[0][0] == b"k15"


def test_a_replay_is_cancelled_and_leaves_nothing(page, own_broker):
    create(own_broker.bootstrap_servers, "orders", partitions=PARTITIONS)
    create(own_broker.bootstrap_servers, "copy", partitions=1)
    write(own_broker, "orders", range(COUNT))
    quota(own_broker, "set", "producer_byte_rate=100")
    page.goto(f"{own_broker.url}/topics/orders/records")
    dialog = looked(page, "copy")
    dialog.get_by_role("button", name="Replay records", exact=True).click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(replays(page)).to_contain_text("running")
    expect(replays(page)).to_contain_text(f"150 of {COUNT} offsets")
    axe_check(page, REPLAYS)
    screenshot(page, "replay-running")
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("abort what it has written to copy")).to_be_visible()
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(replays(page)).to_contain_text("cancelled")
    assert read(own_broker, "copy") == []
