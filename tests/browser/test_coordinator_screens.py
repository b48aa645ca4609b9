"""Groups, transactions and pipelines: of each screen, does it answer the question that it asks?"""

from __future__ import annotations

import re

import kafka
from confluent_kafka import Consumer
from kafka import KafkaProducer
from kafka.structs import OffsetAndMetadata
from playwright.sync_api import expect

from barnabas.broker.console.pages import lag_history
from tests.browser.console_broker import meanwhile
from tests.browser.furnished import commit
from tests.browser.looking import axe_check, cell, row_of, screenshot
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.interop.spark_sink import Query, options, rows
from tests.waiting import wait_until

MEASURED_MS = 120_000
"""A trend is known after four measurements."""


def heading(page):
    return page.get_by_role("heading", level=1)


def same_by_address(page, *texts):
    """The address alone opens the same view for another user."""
    fresh = page.context.new_page()
    fresh.goto(page.url)
    expect(heading(fresh)).to_have_text(heading(page).inner_text())
    for text in texts:
        expect(fresh.get_by_text(text).first).to_be_visible()
        expect(page.get_by_text(text).first).to_be_visible()
    assert fresh.url == page.url
    assert fresh.title() == page.title()
    fresh.close()


def write(broker, topic, count):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    for number in range(count):
        producer.send(topic, str(number).encode(), partition=0)
    producer.close()


def writing(broker, topic):
    """Write records during the block."""

    def write_on(is_over):
        while not is_over.wait(0.5):
            write(broker, topic, 10)

    return meanwhile(write_on)


def test_groups_who_is_behind_and_who_falls_behind(page, quick_broker, monkeypatch):
    for topic in ("quiet", "busy"):
        create(quick_broker.bootstrap_servers, topic, partitions=1)
        write(quick_broker, topic, 20)
    commit(quick_broker, "well", "quiet", 20)
    commit(quick_broker, "stuck", "busy", 5)
    page.goto(quick_broker.url)
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Groups").click()
    stuck, well = row_of(page, "Groups", "stuck"), row_of(page, "Groups", "well")
    expect(cell(stuck, "Groups", "Trend")).to_have_text("not known yet")
    monkeypatch.setattr(lag_history, "EVERY_SECONDS", 0.3)
    with writing(quick_broker, "busy"):
        expect(cell(stuck, "Groups", "Trend")).to_contain_text(
            "falling behind", timeout=MEASURED_MS
        )
        expect(cell(well, "Groups", "Trend")).to_contain_text("steady")
        screenshot(page, "groups-with-trends")
        page.get_by_role("button", name="Lag").click()
        expect(page).to_have_url(re.compile("sort=-lag"))
        headers = page.get_by_role("region", name="Groups", exact=True).get_by_role("rowheader")
        expect(headers).to_have_text(["stuck", "well"])
        axe_check(page)
        # It falls behind for as long as records come, and not much longer.
        same_by_address(page, "stuck", "falling behind")
    commit(quick_broker, "stuck", "busy", 20)
    commit(quick_broker, "well", "quiet", 20)
    expect(cell(well, "Groups", "Last commit")).to_have_text(re.compile(r"^\d+ s$"))
    # A group that has read everything has caught up.
    end = end_of(quick_broker, "busy")
    commit(quick_broker, "stuck", "busy", end)
    expect(cell(stuck, "Groups", "Lag")).to_have_text("0")
    expect(cell(stuck, "Groups", "Trend")).to_contain_text("catching up", timeout=MEASURED_MS)
    stuck.get_by_role("link").click()
    expect(heading(page)).to_have_text("stuck")
    expect(page.get_by_text("The group has read all records.")).to_be_visible()


def end_of(broker, topic):
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    place = kafka.TopicPartition(topic, 0)
    end = consumer.end_offsets([place])[place]
    consumer.close()
    return end


# Pixels of the colour of marks in the upper part of a plot, where no line of that colour is.
_LOOK_FOR_MARKS = """
(canvas) => {
  const height = Math.floor(canvas.height / 2);
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, , blue, alpha] = data.slice(at, at + 4);
    if (alpha && red - blue > 60) count += 1;
  }
  return count;
}
"""


def marks_in(figure):
    return figure.locator("canvas").evaluate(_LOOK_FOR_MARKS)


def test_group_why_is_it_behind_since_when_and_what_has_moved(page, own_broker):
    create(own_broker.bootstrap_servers, "orders", partitions=2)
    write(own_broker, "orders", 30)
    commit(own_broker, "readers", "orders", 10)
    page.goto(f"{own_broker.url}/groups")
    row_of(page, "Groups", "readers").get_by_role("link").click()
    expect(heading(page)).to_have_text("readers")
    expect(
        page.get_by_text("20 records can be read now: the group has no members.")
    ).to_be_visible()
    expect(page.get_by_text(re.compile("^No rebalance since"))).to_be_visible()
    figure = page.get_by_role("figure").filter(has_text="Can be read now")
    expect(figure).to_contain_text("Can be read now 20, at most 20; blocked 0, at most 0")
    expect(page.get_by_text(re.compile(r"measured since \d\d:\d\d:\d\d"))).to_be_visible()
    assert marks_in(figure) == 0
    config = {
        "bootstrap.servers": own_broker.bootstrap_servers,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 100,
    }
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    read = []

    def all_read():
        message = consumer.poll(0.1)
        read.extend([message] if message is not None and not message.error() else [])
        return len(read) == 20

    wait_until(all_read, "what was left is read")
    expect(page.get_by_text(re.compile(r"^1 rebalance since .*\(generation 1\)"))).to_be_visible()
    expect(figure).to_contain_text("Can be read now 0, at most 20")
    wait_until(lambda: marks_in(figure), "the rebalance is a mark")
    screenshot(page, "group-with-history")
    expect(page.get_by_text("The group has read all records.")).to_be_visible()
    figure.get_by_role("button", name="Table").click()
    lags = figure.get_by_role("row").get_by_role("cell")
    expect(lags.first).to_have_text("0")
    assert "20" in lags.all_inner_texts()
    axe_check(page)
    same_by_address(page, re.compile(r"^1 rebalance since"), "The group has read all records.")
    consumer.close()


def test_transactions_what_is_open_and_who_holds_readers_back(page, own_broker):
    create(own_broker.bootstrap_servers, "orders", partitions=2)
    with TransactionClient(own_broker, "shop") as client:
        for _ in range(2):
            client.begin("ended-1", "orders", 0)
            client.end("ended-1")
        client.begin("ended-2", "orders", 0)
        client.end("ended-2", commit=False)
        client.begin("holding-1", "orders", 1)
        write(own_broker, "orders", 1)
        page.goto(own_broker.url)
        screens = page.get_by_role("navigation", name="Screens")
        screens.get_by_role("link", name="Transactions").click()
        opened = page.get_by_role("figure").filter(has_text="Open now")
        expect(opened.get_by_role("link", name=re.compile("^holding-1: Ongoing"))).to_be_visible()
        over = page.get_by_role("figure").filter(has_text="Recently ended")
        expect(over.get_by_role("link", name="ended-1: 2 committed")).to_have_count(1)
        aborted = re.compile("^ended-2: aborted by its producer")
        expect(over.get_by_role("link", name=aborted)).to_be_visible()
        label = "Blocked partitions"
        holder = row_of(page, label, "orders-1")
        expect(cell(holder, label, "Blocked by")).to_have_text("holding-1")
        expect(cell(holder, label, "Client")).to_have_text("shop")
        expect(row_of(page, label, "orders-0")).to_have_count(0)
        page.get_by_role("checkbox", name="Only open").check()
        ids = page.get_by_role("region", name="Transactional ids", exact=True)
        expect(ids.get_by_role("rowheader")).to_have_text(["holding-1"])
        expect(page).to_have_url(re.compile("open=true"))
        axe_check(page)
        fresh = page.context.new_page()
        fresh.goto(page.url)
        ids = fresh.get_by_role("region", name="Transactional ids", exact=True)
        expect(ids.get_by_role("rowheader")).to_have_text(["holding-1"])
        fresh.close()
        client.end("holding-1")
        expect(opened.get_by_text("No transaction is open.")).to_be_visible()
        expect(
            page.get_by_text("No open transaction blocks a read_committed consumer.")
        ).to_be_visible()


def test_transactional_id_what_happened_to_it(page, own_broker):
    create(own_broker.bootstrap_servers, "orders", partitions=1)
    with TransactionClient(own_broker, "first-shop") as first:
        first.begin("invoicing-1", "orders", 0)
        first.end("invoicing-1")
        first.begin("invoicing-1", "orders", 0)
        with TransactionClient(own_broker, "second-shop") as second:
            second.init("invoicing-1")
        page.goto(f"{own_broker.url}/transactions")
        ids = page.get_by_role("region", name="Transactional ids", exact=True)
        ids.get_by_role("link", name="invoicing-1").click()
        expect(heading(page)).to_have_text("invoicing-1")
        expect(page.get_by_text("nothing is open")).to_be_visible()
        label = "History"
        story = page.get_by_role("region", name=label, exact=True)
        told = story.locator("tbody tr")
        expect(told.filter(has_text="committed by its producer")).to_have_count(1)
        fenced = told.filter(has_text="its producer was replaced")
        expect(fenced).to_have_count(1)
        expect(cell(fenced, label, "By")).to_contain_text("second-shop")
        taken = told.filter(has_text="producer initialized").first
        expect(cell(taken, label, "By")).to_contain_text("second-shop")
        expect(story.get_by_role("link", name="orders-0").first).to_be_visible()
        axe_check(page)
        same_by_address(page, "committed by its producer", "its producer was replaced")


def transform(broker, group, source, target, key):
    """Consume, transform, produce, once: what is read is committed with what is written."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=key)
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    place = kafka.TopicPartition(source, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    producer.init_transactions()
    try:
        read = []
        wait_until(lambda: read.extend(consumer.poll(100).get(place, [])) or len(read) >= 7)
        producer.begin_transaction()
        for record in read[:7]:
            producer.send(target, record.value)
        offsets = {place: OffsetAndMetadata(7, "", -1)}
        producer.send_offsets_to_transaction(offsets, group)
        producer.commit_transaction()
    finally:
        consumer.close()
        producer.close()


def test_pipelines_how_far_is_each_and_what_does_the_ledger_say(page, own_broker):
    for topic, partitions in (("orders", 1), ("invoices", 1), ("out", 2), ("source", 1)):
        create(own_broker.bootstrap_servers, topic, partitions=partitions)
    for topic in ("orders", "source"):
        write(own_broker, topic, 10)
    page.goto(f"{own_broker.url}/pipelines")
    expect(page.get_by_text("No group has committed its offsets in a transaction")).to_be_visible()
    expect(page.get_by_text("No Spark sink has decided a batch yet.")).to_be_visible()
    transform(own_broker, "invoicing", "orders", "invoices", "invoicing-1")
    piped = row_of(page, "Pipelines", "invoicing")
    expect(cell(piped, "Pipelines", "Reads")).to_have_text("orders")
    expect(cell(piped, "Pipelines", "Writes")).to_have_text("invoices")
    expect(cell(piped, "Pipelines", "Transactional IDs")).to_have_text("invoicing-1")
    expect(cell(piped, "Pipelines", "Can be read now")).to_have_text("3")

    query = Query("two-phase", options(own_broker, "out", sinkId="report"), "query-1")
    query.run(1)
    left = query.participant(2, 0)
    left.write([rows("out", 2, 0)])
    key = left.prepared().transactional_id
    label = "Spark's queries"
    spark = row_of(page, label, "report")
    expect(cell(spark, label, "Last decided batch")).to_have_text("1")
    expect(cell(spark, label, "Query")).to_have_text("query-1")
    expect(cell(spark, label, "Records")).to_have_text("12")
    expect(cell(spark, label, "Left open")).to_contain_text("1 transaction")
    expect(cell(spark, label, "Left open").get_by_role("link")).to_have_text(key)
    expect(cell(spark, label, "Reads")).to_contain_text("source: 8 can be read now")
    expect(cell(spark, label, "Writes")).to_have_text("out")
    axe_check(page)
    screenshot(page, "pipelines-of-spark")
    same_by_address(page, "query-1", "invoicing-1")
    query.run(2)
    expect(cell(spark, label, "Last decided batch")).to_have_text("2")
    expect(cell(spark, label, "Left open")).to_have_text("none")
    cell(spark, label, "In the ledger").get_by_role("link").click()
    expect(heading(page)).to_contain_text("__spark_sink_ledger")
    expect(page.get_by_text('"batchId":').first).to_be_visible()
    same_by_address(page, re.compile('"batchId": ?2'))
    query.stop()
