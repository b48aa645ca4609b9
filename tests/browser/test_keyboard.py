"""The keyboard alone: fields are left, dialogs take what is typed, rows come in their order."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.furnished import TOPIC, TRANSACTIONAL_ID, commit, furnished
from tests.interop.administration import admin, create

OTHER_TOPIC = "other-topic"
RESET_GROUP = "to-reset"


@pytest.fixture(scope="module")
def full_broker(tmp_path_factory):
    """A broker with two topics and an open transaction."""
    with ConsoleBroker(tmp_path_factory.mktemp("keys")) as running, furnished(running):
        create(running.bootstrap_servers, OTHER_TOPIC, partitions=1)
        yield running


@pytest.fixture
def topics(page, full_broker):
    page.goto(f"{full_broker.url}/topics")
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    return page


def heading(page):
    return page.get_by_role("heading", level=1)


def test_escape_empties_a_filter_and_then_leaves_it(topics):
    field = topics.get_by_role("searchbox")
    topics.keyboard.type("other")
    topics.keyboard.press("Escape")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    topics.keyboard.press("Escape")
    expect(topics.locator("[data-row] a").first).to_be_focused()
    topics.keyboard.type("gx")
    expect(heading(topics)).to_have_text("Transactions")


@pytest.mark.parametrize("key", ["Enter", "ArrowDown"])
def test_filter_is_left_for_the_first_row_that_it_finds(topics, key):
    topics.keyboard.type("other")
    topics.keyboard.press(key)
    expect(topics.get_by_role("link", name=OTHER_TOPIC)).to_be_focused()
    expect(topics).to_have_url(re.compile("filter=other"))
    topics.keyboard.press("Enter")
    expect(heading(topics)).to_have_text(OTHER_TOPIC)


def test_filter_that_finds_nothing_is_left_for_the_title(topics):
    topics.keyboard.type("nothing-is-called-so")
    topics.keyboard.press("Enter")
    expect(heading(topics)).to_be_focused()


def test_search_of_records_is_left_for_the_first_record(page, full_broker):
    page.goto(f"{full_broker.url}/topics/{TOPIC}/records")
    first = page.locator("[data-row] button[data-open]").first
    expect(first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()


def test_keys_work_after_a_choice_or_a_checkbox(topics):
    topics.get_by_role("checkbox", name="Internal topics").focus()
    topics.keyboard.press("j")
    expect(topics.locator("[data-row] a").first).to_be_focused()
    topics.get_by_label("Theme").focus()
    topics.keyboard.press("Escape")
    expect(heading(topics)).to_be_focused()


def test_first_row_of_transactions_is_the_open_one(page, full_broker):
    page.goto(f"{full_broker.url}/transactions")
    bar = page.get_by_role("link", name=re.compile(f"^{TRANSACTIONAL_ID}: Ongoing"))
    expect(bar).to_be_visible()
    expect(page.get_by_role("region", name="Transactional ids").get_by_role("link")).to_be_visible()
    page.keyboard.press("j")
    expect(bar).to_be_focused()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"{TOPIC}-0")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text(TRANSACTIONAL_ID)


def test_dialog_without_fields_takes_the_name_that_is_typed(page, troubles, full_broker):
    doomed = "doomed"
    troubles.tolerate(f"404.*/topics/{doomed}/")  # Its screen may request it again.
    create(full_broker.bootstrap_servers, doomed, partitions=1)
    page.goto(f"{full_broker.url}/topics/{doomed}")
    page.get_by_role("button", name="Delete the topic…").press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label(re.compile("^Type"))).to_be_focused()
    page.keyboard.press("Enter")  # No effect: the name is incomplete.
    page.keyboard.type(doomed)
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    assert doomed not in admin(full_broker.bootstrap_servers).list_topics(timeout=30).topics


def test_offsets_are_reset_by_keyboard_and_as_the_command_line_calls_it(page, full_broker):
    commit(full_broker, RESET_GROUP, TOPIC, 5)
    page.goto(f"{full_broker.url}/groups/{RESET_GROUP}")
    page.get_by_role("button", name="Reset offsets…").press("Enter")
    dialog = page.get_by_role("dialog", name=re.compile("^Reset offsets: "))
    line = f"barnabas groups reset-offsets {RESET_GROUP} --to end --dry-run"
    expect(dialog.locator("code[data-command=barnabas]")).to_contain_text(line)
    expect(dialog.get_by_label(re.compile("^New position"))).to_be_focused()
    page.keyboard.press("Enter")  # Without either of the two nothing is sent.
    message = page.evaluate("document.activeElement.validationMessage")
    assert message == "Fill in one of these: New position, Shift by"
    page.keyboard.type("beginning")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("reset the committed offsets of")).to_be_visible()
    expect(dialog.get_by_label(re.compile("^Type"))).to_be_focused()
    page.keyboard.type(RESET_GROUP)
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("✓ Done:")).to_be_visible()
    expect(dialog.get_by_role("row").filter(has_text=f"{TOPIC}-0")).to_contain_text("5 read again")
