"""Windows of 320 pixels, and names as long as names may be."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.furnished import GROUP, TIMEOUT_MS, TOPIC, commit, furnished
from tests.browser.looking import axe_check, screenshot
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.products import case

WIDTH = 320
PHONE_WIDTH = 390
LONG_TOPIC = "a.long_name-" * 20
LONG_GROUP = "W" * 249
LONG_ID = "x" * 249
NAME_LEAST = 120
"""Pixels of a column with a long name: it can be read, and does not stand one letter by line."""
VALUE_LEAST = 100
"""Pixels of a record's value that are seen without scrolling."""
HEADER_MOST = 80
"""Pixels of the header on a phone, which is 844 high."""
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

IN_TEST = {"now", "topic", "records", "group", "transactions"}
"""Screens of each kind: plots, facts, records, a table below a plot, lists."""

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
            client.begin(LONG_ID, LONG_TOPIC, 0, timeout_ms=TIMEOUT_MS)
            yield broker


@pytest.mark.parametrize("name", [case(each, in_test=each in IN_TEST) for each in SCREENS])
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


def test_partitions_of_a_topic_with_a_long_name_are_distinguishable(page, named_broker):
    page.goto(f"{named_broker.url}/topics/{LONG_TOPIC}")
    table = page.get_by_role("region", name="Partitions", exact=True)
    expect(table.get_by_role("rowheader")).to_have_text(["0", "1"])
    table.get_by_role("link", name="1", exact=True).click()
    expect(page).to_have_url(re.compile("partition=1"))
    page.goto(f"{named_broker.url}/transactions/{LONG_ID}")
    link = page.locator("main a").filter(has_text="long_name").first
    expect(link).to_have_text(re.compile(r"^a\.long_name-.*….*long_name--0$"))
    expect(link.locator("bdi")).to_have_attribute("title", f"{LONG_TOPIC}-0")
    page.goto(f"{named_broker.url}/transactions")
    bar = page.get_by_role("link", name=re.compile(f"^{LONG_ID}: Ongoing"))
    expect(bar.locator("text.name")).to_have_text(re.compile("● x{15}…x{14}"))


@pytest.mark.parametrize(
    ("address", "label", "title"),
    [
        case("/groups", "Groups", "Lag", in_test=True),
        case(f"/groups/{GROUP}", "Partitions", "Can be read now", in_test=False),
        case(f"/topics/{TOPIC}", "Groups", "Can be read now", in_test=False),
        case("/", "Groups with lag", "Can be read now", in_test=True),
        case(f"/topics/{TOPIC}/records", "Records", "Value", in_test=True),
    ],
)
def test_lag_and_values_are_on_the_screen_of_a_phone(page, named_broker, address, label, title):
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
    page.goto(named_broker.url + address)
    table = page.get_by_role("region", name=label, exact=True)
    heading = table.get_by_role("columnheader", name=title).first
    expect(heading).to_be_visible()
    box = heading.bounding_box()
    shown = PHONE_WIDTH - VALUE_LEAST if title == "Value" else PHONE_WIDTH - box["width"]
    assert box["x"] <= shown
    assert page.locator("header").bounding_box()["height"] <= HEADER_MOST
    screenshot(page, f"phone-{label.lower().replace(' ', '-')}-{address.count('/')}")
