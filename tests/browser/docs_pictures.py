"""`make docs-pictures`: the pictures of docs/console.md, of a busy broker.

Its name keeps it out of the ordinary tests: what is on the pictures is tested there, and they would
be other ones after each run.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time

import pytest
from confluent_kafka import Consumer, Producer
from playwright.sync_api import expect

from tests.browser.console_broker import meanwhile, producing
from tests.browser.looking import state_of
from tests.checkout import ROOT
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.interop.clients import kafka

PICTURES = ROOT / "docs" / "images"
TOPIC, GROUP, HOLDER = "orders", "billing", "invoicing-1"
SHOPS = ("paris", "oslo", "lima", "kyoto")
PARTITIONS = 3
BEFORE_SECONDS = 45
"""Duration of the load before the first picture: four spans of the heat map."""
HEIGHTS = {"now": 1370, "records": 800, "transactions": 800, "group": 700}

pytestmark = pytest.mark.timeout(600)


def selling(broker):
    """Write transactions of four shops during the block; most of them are committed."""

    def work(done):
        shops = [shop_of(broker, name) for name in SHOPS]
        for number in itertools.count():
            shop = shops[number % len(shops)]
            shop.begin_transaction()
            for item in range(2):
                value = f'{{"payment": {number}, "item": {item}, "amount": {number * 37 % 190}.50}}'
                key = f"customer-{number % 7}"
                shop.produce("payments", value, key, partition=number % PARTITIONS)
            assert shop.flush(30) == 0
            is_over = done.wait(0.7)
            if number % 7 == 3:
                shop.abort_transaction(30)
            else:
                shop.commit_transaction(30)
            if is_over:
                return

    return meanwhile(work)


def shop_of(broker, name):
    """A transactional producer that is ready."""
    found = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": f"shop-{name}",
            "transactional.id": f"shop-{name}",
        }
    )
    found.init_transactions(30)
    return found


def reading(broker):
    """Read the committed records in a group as long as records arrive."""
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": GROUP,
        "client.id": "billing-service",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 200,
    }

    def work(done):
        consumer = Consumer(config)
        consumer.subscribe([TOPIC])
        while not done.is_set():
            consumer.poll(0.1)
        consumer.close()

    return meanwhile(work)


def write_orders(broker):
    """Write the records for the list of records."""
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    for number in range(60):
        shop = SHOPS[number % len(SHOPS)]
        value = f'{{"order": {1000 + number}, "shop": "{shop}", "total": {number * 37 % 190}.50}}'
        key = f"customer-{number % 7}".encode()
        producer.send(TOPIC, value.encode(), key=key, partition=number % PARTITIONS)
    producer.close()


def picture(page, name):
    """Take one as wide as the page of a documentation, and as high as is worth looking at."""
    page.set_viewport_size({"width": 1280, "height": HEIGHTS[name]})
    page.wait_for_timeout(1000)  # Plots follow the size of the window.
    page.screenshot(path=PICTURES / f"console-{name}.png", animations="disabled")


def test_pictures(page, own_broker):
    page.emulate_media(color_scheme="light")
    for topic in (TOPIC, "payments", "clicks"):
        create(own_broker.bootstrap_servers, topic, partitions=PARTITIONS)
    write_orders(own_broker)
    with contextlib.ExitStack() as going_on:
        for each in (reading, selling):
            going_on.enter_context(each(own_broker))
        going_on.enter_context(producing(own_broker, "clicks"))
        client = going_on.enter_context(TransactionClient(own_broker, "invoicing-service"))
        client.begin("reports-2", "clicks", 0)
        client.init("reports-2")  # Another one with its id: it is fenced.
        time.sleep(BEFORE_SECONDS / 2)
        client.begin(HOLDER, TOPIC, 0, 1, timeout_ms=120_000)
        client.add(HOLDER, "payments", 2)
        client.write(HOLDER, "payments", 2)
        write_orders(own_broker)
        page.goto(own_broker.url)
        expect(state_of(page)).to_have_text("● Live")
        time.sleep(BEFORE_SECONDS / 2)
        expect(page.get_by_role("link", name=GROUP)).to_be_visible()
        picture(page, "now")
        page.goto(f"{own_broker.url}/transactions")
        expect(page.get_by_role("link", name=re.compile(f"^{HOLDER}: Ongoing"))).to_be_visible()
        picture(page, "transactions")
        page.goto(f"{own_broker.url}/groups/{GROUP}")
        expect(page.get_by_text("blocked for read_committed consumers")).to_be_visible()
        picture(page, "group")
        page.goto(f"{own_broker.url}/topics/payments/records?view=all")
        expect(page.get_by_text(f"behind {HOLDER}").first).to_be_visible()
        picture(page, "records")
        client.end(HOLDER, commit=False)
