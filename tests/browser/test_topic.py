"""Topics, and one of them: what the screens answer, and what can be changed from there."""

from __future__ import annotations

import re

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect

from tests.browser.furnished import commit
from tests.browser.looking import axe_check, screenshot
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import admin, create

PARTITIONS = 3
RECORDS = 30


@pytest.fixture
def written(broker, topic):
    """A topic of three partitions with ten records in each."""
    create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return topic


def opened(page, words):
    """Open the form of an action."""
    page.get_by_role("button", name=f"{words}…", exact=True).click()
    return page.get_by_role("dialog")


def done(dialog, words, named=None):
    """Preview the action, type the name if the dialog requires it, and confirm."""
    look = dialog.get_by_role("button", name="Preview")
    if look.count():
        look.click()
    expect(dialog.get_by_text("Preview:")).to_be_visible()
    button = dialog.get_by_role("button", name=words, exact=True)
    if named is not None:
        expect(button).to_be_disabled()
        field = dialog.get_by_label(re.compile("^Type"))
        field.fill(named[:-1])
        expect(button).to_be_disabled()
        field.fill(named)
    button.click()
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def rows(page, label):
    return page.get_by_role("region", name=label, exact=True).locator("tbody tr")


# ------------------------------------------------------------------------------------------ topics


def test_which_topics_there_are_and_how_large(page, broker, written):
    small = f"{written}-small"
    create(broker.bootstrap_servers, small, partitions=1)
    page.goto(f"{broker.url}/topics?filter={written}")
    expect(rows(page, "Topics")).to_have_count(2)
    large = rows(page, "Topics").filter(has=page.get_by_role("link", name=written, exact=True))
    expect(large.get_by_role("cell").nth(0)).to_have_text(str(PARTITIONS))
    expect(large.get_by_role("cell").nth(1)).to_have_text(str(RECORDS))
    page.get_by_role("button", name="Records").click()
    expect(rows(page, "Topics").first).to_contain_text(written)
    page.get_by_role("button", name="Records").click()
    expect(rows(page, "Topics").first).to_contain_text(small)
    large.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(written)


def test_a_topic_is_made_where_it_is_missed(page, broker, topic, troubles):
    troubles.tolerate("400")  # The page tries an impossible request first.
    page.goto(f"{broker.url}/topics")
    dialog = opened(page, "Create a topic")
    dialog.get_by_label("topic", exact=False).first.fill("no such/name")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("alert").or_(dialog.locator(".problem"))).to_be_visible()
    dialog.get_by_label("topic", exact=False).first.fill(topic)
    dialog.get_by_label("partitions", exact=False).fill("2")
    dialog.get_by_label("configurations", exact=False).fill("retention.ms=1000000")
    done(dialog, "Create a topic")
    page.goto(f"{broker.url}/topics/{topic}")
    expect(rows(page, "Partitions")).to_have_count(2)
    expect(page.get_by_role("row").filter(has_text="retention.ms")).to_contain_text("1000000")


# ----------------------------------------------------------------------------------------- a topic


def test_topic_shows_producers_groups_and_blocking_transactions(page, broker, written):
    key, group = f"holds-{written}", f"reads-{written}"
    commit(broker, group, written, 4)
    page.goto(f"{broker.url}/topics/{written}")
    expect(page.get_by_text("No record is blocked for read_committed consumers.")).to_be_visible()
    expect(rows(page, "Partitions")).to_have_count(PARTITIONS)
    expect(page.get_by_role("row").filter(has_text=group)).to_be_visible()
    with TransactionClient(broker, "slow-producer") as client:
        client.begin(key, written, 0)
        # Without a reload.
        expect(page.get_by_text("1 record is blocked by open transactions.")).to_be_visible()
        expect(page.get_by_role("link", name=key).first).to_be_visible()
        axe_check(page)
        screenshot(page, "topic-held-back")
        client.end(key, commit=True)
    expect(page.get_by_text("No record is blocked for read_committed consumers.")).to_be_visible()


def test_its_configurations_are_changed(page, broker, written, troubles):
    troubles.tolerate("400")
    page.goto(f"{broker.url}/topics/{written}")
    dialog = opened(page, "Change configurations")
    dialog.get_by_label("configurations", exact=False).fill("retention.ms=77777\nno.such.key=1")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_text("no.such.key").last).to_be_visible()
    dialog.get_by_label("configurations", exact=False).fill("retention.ms=77777")
    done(dialog, "Change configurations")
    expect(page.get_by_role("row").filter(has_text="retention.ms")).to_contain_text("77777")


def test_topic_gets_more_partitions(page, broker, written):
    page.goto(f"{broker.url}/topics/{written}")
    dialog = opened(page, "Add partitions")
    dialog.get_by_label("partitions", exact=False).fill("5")
    done(dialog, "Add partitions")
    expect(rows(page, "Partitions")).to_have_count(5)


def test_its_first_records_are_deleted(page, broker, written):
    page.goto(f"{broker.url}/topics/{written}")
    dialog = opened(page, "Delete records")
    dialog.get_by_label("partition", exact=False).first.select_option("1")
    dialog.get_by_label("before offset", exact=False).fill("4")
    done(dialog, "Delete records", named=written)
    page.goto(f"{broker.url}/topics/{written}/records?partition=1&order=oldest")
    first = page.get_by_role("region", name="Records").locator("tbody tr").first
    expect(first).to_contain_text("1:4")


def test_form_opens_with_its_choices(page, broker, written):
    # A list that came later would replace the field in which the user types.
    page.goto(f"{broker.url}/topics/{written}")
    button = page.get_by_role("button", name="Delete records…", exact=True)
    expect(button).to_be_visible()
    topic = re.compile(rf"/api/v1/topics/{written}$")
    held = []

    def hold(route):
        held.append(route)

    page.route(topic, hold)
    with page.expect_request(topic):
        button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute(topic)
    field = dialog.get_by_label("partition", exact=False).first
    expect(field.get_by_role("option")).to_have_text(["", "0", "1", "2"])


def test_topic_is_deleted_by_typing_its_name(page, broker, written, troubles):
    page.goto(f"{broker.url}/topics/{written}")
    dialog = opened(page, "Delete the topic")
    expect(dialog.get_by_text("delete the topic").last).to_be_visible()
    axe_check(page)
    screenshot(page, "topic-deletion")
    done(dialog, "Delete the topic", named=written)
    assert written not in admin(broker.bootstrap_servers).list_topics(timeout=30).topics
    troubles.tolerate("404")
    page.goto(f"{broker.url}/topics/{written}")
    # One sentence, and nothing to press that cannot be done.
    expect(page.get_by_role("alert")).to_have_text(re.compile(f"{written} does not exist"))
    expect(page.locator(".problem")).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("Delete|Produce"))).to_have_count(0)
