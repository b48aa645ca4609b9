"""The Now screen: the broker's current load, live, and the page's display during an outage."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import producing
from tests.browser.furnished import commit
from tests.browser.looking import axe_check, in_each_theme, screenshot, state_of, tab_stops
from tests.browser.troubles import BROKER_AWAY
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.products import for_the_night
from tests.waiting import wait_until

LIVE = re.compile("Live")
PER_SECOND = re.compile(r"([\d,.]+)/s, at most")


@pytest.fixture
def now(page, broker):
    page.goto(broker.url)
    expect(state_of(page)).to_have_text(LIVE)
    return page


def records_in(page):
    """Return the number in the sentence of the plot, or 0 without data."""
    found = PER_SECOND.search(page.get_by_role("figure").filter(has_text="Records in").inner_text())
    return float(found[1].replace(",", "")) if found else 0.0


def test_screen_follows_a_producer_without_a_reload(now, broker, topic):
    create(broker.bootstrap_servers, topic, partitions=1)
    now.evaluate("window.isTheSame = true")
    with producing(broker, topic):
        wait_until(lambda: records_in(now) > 20, "records come in")
    wait_until(lambda: records_in(now) == 0, "nothing comes in any more")
    assert now.evaluate("window.isTheSame")


@for_the_night(
    beside="tests/browser/test_screens.py"
    "::test_every_screen_and_the_details_of_its_rows_are_accessible"
)
def test_nothing_is_against_wcag_in_either_theme(now, broker, topic):
    create(broker.bootstrap_servers, topic, partitions=1)
    with producing(broker, topic):
        wait_until(lambda: records_in(now) > 0, "records come in")
        axe_check(now)
        screenshot(now, "now")


def test_screen_has_a_light_and_a_dark_theme(now):
    background = "() => getComputedStyle(document.body).backgroundColor"
    colours = {theme: now.evaluate(background) for theme in in_each_theme(now)}
    brightness = {
        theme: sum(map(int, re.findall(r"\d+", colour)[:3])) for theme, colour in colours.items()
    }
    assert brightness["light"] > 600
    assert brightness["dark"] < 165
    now.get_by_label("Theme").select_option("Dark")
    assert [now.evaluate(background) for _ in in_each_theme(now)] == [colours["dark"]] * 2


def test_screen_pauses_and_resumes_by_keyboard(now):
    assert 'button "Pause"' in tab_stops(now)
    pause = now.get_by_role("button", name="Pause")
    pause.focus()
    now.keyboard.press("Enter")
    expect(state_of(now)).to_have_text(re.compile("Paused"))
    expect(pause).to_have_attribute("aria-pressed", "true")
    now.keyboard.press("Space")
    expect(state_of(now)).to_have_text(LIVE)


def test_killed_broker_is_shown_as_unavailable_until_it_restarts(page, own_broker, troubles):
    troubles.tolerate(BROKER_AWAY)
    page.goto(own_broker.url)
    expect(state_of(page)).to_have_text(LIVE)
    expect(page.get_by_text("The broker serves clients.")).to_be_visible()
    own_broker.kill()
    expect(state_of(page)).to_have_text(re.compile("No response since"))
    # Nothing that was well is said to be well now, here and on other screens.
    expect(page.get_by_text("No response from the broker.")).to_be_visible()
    expect(page.get_by_text("The broker serves clients.")).to_have_count(0)
    expect(page.locator("main .mark.good")).to_have_count(0)
    page.evaluate("window.isTheSame = true")
    own_broker.restart()
    expect(state_of(page)).to_have_text(LIVE)
    expect(page.get_by_text("The broker serves clients.")).to_be_visible()
    expect(page.get_by_text("No response from the broker.")).to_have_count(0)
    assert page.evaluate("window.isTheSame")


def test_warnings_replace_the_line_that_all_is_well(page, broker):
    # As in a broker of a cluster whose PostgreSQL is unavailable.
    page.add_init_script("""
        const parse = JSON.parse;
        JSON.parse = (text) => parse(
            text, (key, value) => (key === "warnings" ? { store: "away for 6 s" } : value)
        );
    """)
    page.goto(broker.url)
    expect(page.get_by_text("store: away for 6 s")).to_be_visible()
    expect(page.get_by_text("The broker serves clients.")).to_have_count(0)


def test_status_sums_up_a_transaction_that_blocks_a_group(page, quick_broker):
    create(quick_broker.bootstrap_servers, "orders", partitions=1)
    commit(quick_broker, "billing", "orders", 0)
    page.set_viewport_size({"width": 1440, "height": 900})
    with TransactionClient(quick_broker, "shop") as client:
        client.begin("invoicing-1", "orders", 0)
        client.write("invoicing-1", "orders", 0)
        page.goto(quick_broker.url)
        problems = page.get_by_role("list", name="Problems")
        words = "1 transaction blocks 2 records; 1 group affected"
        expect(problems.get_by_role("link", name=words)).to_be_visible()
        expect(page.get_by_text("The broker serves clients.")).to_have_count(0)
        # What it is about is on the first screen, above the plots.
        waiting = page.get_by_role("region", name="Blocked partitions")
        behind = page.get_by_role("region", name="Groups with lag")
        plots = page.get_by_role("region", name="Rates and latencies")
        for table in (waiting, behind):
            box = table.bounding_box()
            assert box["y"] + box["height"] < min(900, plots.bounding_box()["y"])
        axe_check(page)
        screenshot(page, "now-held-back")
        problems.get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Transactions")
        page.goto(quick_broker.url)
        client.end("invoicing-1")
    expect(page.get_by_text("The broker serves clients.")).to_be_visible()


def test_name_of_a_group_stays_text(page, quick_broker):
    group = "<img src=x onerror=alert(1)> & \u202egnorw"
    create(quick_broker.bootstrap_servers, "orders", partitions=1)
    with producing(quick_broker, "orders"):
        page.goto(quick_broker.url)
        wait_until(lambda: records_in(page) > 0, "records come in")
    commit(quick_broker, group, "orders", 0)
    behind = page.get_by_role("region", name="Groups with lag")
    expect(behind.get_by_role("link", name=group)).to_be_visible()
    expect(page.locator("main img")).to_have_count(0)
