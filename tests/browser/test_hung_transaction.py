"""A blocked `read_committed` consumer: its cause is found in three clicks, and ended."""

from __future__ import annotations

import contextlib
import re
import signal
import time

import pytest
from confluent_kafka import Consumer, Producer
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.looking import axe_check, screenshot
from tests.browser.lost_producer import TIMEOUT_MS, pinned
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.products import case
from tests.waiting import wait_until

TOPIC, GROUP, KEY = "invoices", "billing", "invoicing-1"


@contextlib.contextmanager
def waiting_consumer(broker):
    """A reader of committed records that has read what it may, and waits."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
        }
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer, value):
    """Read until the record arrives."""

    def is_read():
        message = consumer.poll(0.1)
        return message is not None and not message.error() and message.value() == value

    wait_until(is_read, f"{value!r} is read")


def write(broker, value):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(TOPIC, value, partition=0)
    assert producer.flush(30) == 0


def leave_open(broker):
    """Begin a transaction of a producer that never returns."""
    with TransactionClient(broker, "lost-producer") as client:
        client.begin(KEY, TOPIC, 0, timeout_ms=600_000)


def ended_by_mouse(page):
    page.get_by_role("button", name="Abort the transaction…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("offsets blocked")).to_be_visible()
    button = dialog.get_by_role("button", name="Abort the transaction")
    expect(button).to_be_disabled()
    dialog.get_by_role("textbox").fill(KEY)
    button.click()
    expect(page.get_by_text("nothing is open")).to_be_visible()
    # What was done is said until the dialog is closed, though it cannot be done any more.
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    # What it did can be read although there is nothing left to be done.
    expect(page.get_by_text("nothing is open")).to_be_visible()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()


def ended_by_keyboard(page):
    page.get_by_role("button", name="Abort the transaction…").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("offsets blocked")).to_be_visible()
    field = dialog.get_by_role("textbox")
    while not field.evaluate("each => each === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.type(KEY)
    button = dialog.get_by_role("button", name="Abort the transaction")
    while not button.evaluate("each => each === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("nothing is open")).to_be_visible()
    # What was done is said until the dialog is closed, though it cannot be done any more.
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    # What it did can be read although there is nothing left to be done.
    expect(page.get_by_text("nothing is open")).to_be_visible()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    page.keyboard.press("Escape")


def leave_pinned(broker):
    """Kill a producer with an externally decided transaction: no timeout ends it."""
    with pinned(broker.port, KEY, TOPIC) as producer:
        producer.kill()
        assert producer.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize(
    "ended", [case(ended_by_mouse, in_test=True), case(ended_by_keyboard, in_test=False)]
)
def test_a_transaction_of_a_lost_producer_is_found_and_ended(page, own_broker, ended):
    found_and_ended(page, own_broker, leave_open, ended, "min ", "waits")


@pytest.mark.parametrize(
    "ended", [case(ended_by_mouse, in_test=False), case(ended_by_keyboard, in_test=True)]
)
def test_a_transaction_that_no_timeout_ends_is_found_and_ended(page, tmp_path, ended):
    config = {
        "transaction.two.phase.commit.enable": "true",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    with ConsoleBroker(tmp_path / "broker", **config) as broker:
        begun_s = time.monotonic()
        found_and_ended(page, broker, leave_pinned, ended, "no timeout", "is-pinned")
        # The timeout that its producer requested had expired before this page was opened.
        assert time.monotonic() - begun_s > 2 * TIMEOUT_MS / 1000


def found_and_ended(page, broker, left_open, ended, time_left, picture):
    """Find and end the blocking transaction in three clicks; the consumer continues."""
    create(broker.bootstrap_servers, TOPIC, partitions=1)
    write(broker, b"before")
    with waiting_consumer(broker) as consumer:
        read(consumer, b"before")
        left_open(broker)
        write(broker, b"behind")

        page.goto(broker.url)
        behind = page.get_by_role("region", name="Groups with lag")
        behind.get_by_role("link", name=GROUP).click()
        expect(page.get_by_text("blocked for read_committed consumers")).to_be_visible()
        axe_check(page)
        screenshot(page, f"group-that-{picture}")
        page.get_by_role("link", name=KEY).first.click()
        expect(
            page.get_by_text(re.compile(f"Ongoing: open for .*left: .*{time_left}"))
        ).to_be_visible()
        ended(page)
        read(consumer, b"behind")
        expect(page.get_by_text("nothing is open")).to_be_visible()
        expect(page.get_by_text("aborted by an operator")).to_be_visible()
        axe_check(page)
        screenshot(page, f"transactional-id-that-{picture}")


def test_open_transaction_is_a_bar_that_links_to_its_history(page, own_broker):
    create(own_broker.bootstrap_servers, TOPIC, partitions=1)
    leave_open(own_broker)
    page.goto(f"{own_broker.url}/transactions")
    page.get_by_role("link", name=re.compile(f"^{KEY}: Ongoing")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(KEY)
    expect(page.get_by_role("cell", name="begun")).to_be_visible()
    expect(page.get_by_text("lost-producer").first).to_be_visible()


def test_where_only_reading_is_allowed_the_button_says_so(page, tmp_path):
    config = {"barnabas.console.access": "read"}
    with ConsoleBroker(tmp_path / "broker", **config) as broker:
        create(broker.bootstrap_servers, TOPIC, partitions=1)
        leave_open(broker)
        page.goto(f"{broker.url}/transactions/{KEY}")
        button = page.get_by_role("button", name="Abort the transaction")
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(page.get_by_text("read-only: barnabas.console.access is read").first).to_be_visible()
        axe_check(page)
        screenshot(page, "read-only")
