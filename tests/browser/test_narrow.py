"""Windows of 320 pixels, and names as long as names may be."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.furnished import GROUP, commit, furnished
from tests.browser.looking import axe_check, screenshot
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create

WIDTH = 320
LONG_TOPIC = "a.long_name-" * 20
LONG_GROUP = "W" * 249
LONG_ID = "x" * 249
NAME_LEAST = 120
"""Pixels of a column with a long name: it can be read, and does not stand one letter by line."""
SCREENS = {
    "now": "/",
    "topics": "/topics",
    "topic": f"/topics/{LONG_TOPIC}",
    "records": f"/topics/{LONG_TOPIC}/records?view=all",
    "groups": "/groups",
    "group": f"/groups/{LONG_GROUP}",
    "transactions": "/transactions",
    "transactional-id": f"/transactions/{LONG_ID}",
    "pipelines": "/pipelines",
    "clients": "/clients",
    "storage": "/storage",
    "events": "/events",
}

# Cells in which a word without a name in it was broken, and columns with names that are too narrow.
_LOOK_AT_CELLS = """
(least) => [...document.querySelectorAll("main tbody :is(th, td)")].filter((cell) => {
  if (cell.querySelector("bdi")) return cell.getBoundingClientRect().width < least;
  const range = document.createRange();
  range.selectNodeContents(cell);
  const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
  return /^[A-Za-z]+$/.test(cell.textContent.trim()) && lines.size > 1;
}).map((cell) => cell.textContent)
"""


@pytest.fixture(scope="module")
def named_broker(tmp_path_factory):
    """A broker in which names are long."""
    with ConsoleBroker(tmp_path_factory.mktemp("long")) as broker, furnished(broker):
        create(broker.bootstrap_servers, LONG_TOPIC, partitions=2)
        commit(broker, LONG_GROUP, LONG_TOPIC, 0)
        with TransactionClient(broker, LONG_TOPIC) as client:
            client.begin(LONG_ID, LONG_TOPIC, 0)
            yield broker


@pytest.mark.parametrize("name", SCREENS)
def test_nothing_goes_beyond_a_narrow_window(page, named_broker, name):
    page.set_viewport_size({"width": WIDTH, "height": 800})
    page.goto(named_broker.url + SCREENS[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("Loading", exact=True)).to_have_count(0)
    if "group" in name or name == "transactions":
        expect(page.locator("tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTH
    assert page.evaluate(_LOOK_AT_CELLS, NAME_LEAST) == []
    axe_check(page)
    screenshot(page, f"narrow-{name}")


def test_a_name_that_is_cut_says_all_of_itself(page, named_broker):
    page.set_viewport_size({"width": WIDTH, "height": 800})
    page.goto(f"{named_broker.url}/groups")
    row = page.get_by_role("row").filter(has_text="WWW")
    link = row.get_by_role("link")
    expect(link.locator("bdi")).to_have_attribute("title", LONG_GROUP)
    expect(page.get_by_role("link", name=GROUP)).to_be_visible()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(LONG_GROUP)
    assert page.evaluate("location.pathname") == f"/groups/{quote(LONG_GROUP)}"
