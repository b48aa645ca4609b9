"""Rules for every screen of the navigation, and for the shell around them."""

from __future__ import annotations

import random
import re

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import ConsoleBroker
from tests.browser.furnished import TOPIC, commit, furnished
from tests.browser.looking import IS_FULL, axe_check, screenshot, state_of, tab_stops
from tests.interop.administration import create
from tests.seeds import SEED

HOSTILE_GROUP = "a/b <img src=x onerror=alert(1)> & \u202egnorw %2F 'q\""
DOTS = ("..", "~.")
"""A browser takes the first of these out of a path, unless the page writes it otherwise."""
NOWHERE = "Page not found"
DRAWN = 4
"""Screens that some tests visit by day."""
NEW_TOPIC = "payments.of-2026_x"


@pytest.fixture(scope="module")
def full_broker(tmp_path_factory):
    """A broker with something on every screen."""
    with ConsoleBroker(tmp_path_factory.mktemp("full")) as running, furnished(running):
        for group in (HOSTILE_GROUP, *DOTS):
            commit(running, group, TOPIC, 5)
        yield running


def screens(page):
    """The addresses in the navigation."""
    links = page.get_by_role("navigation", name="Screens").get_by_role("listitem")
    return [link.get_by_role("link").get_attribute("href") for link in links.all()]


def drawn(addresses):
    """Return all of the addresses at night, by day some, drawn from SEED."""
    return addresses if IS_FULL else random.Random(SEED).sample(addresses, DRAWN)


def heading(page):
    return page.get_by_role("heading", level=1)


def go(page, address):
    """Show another address in the open page, as the browser's back and forward do."""
    page.evaluate(
        "(to) => { history.pushState(null, '', to); dispatchEvent(new Event('popstate')); }",
        address,
    )


def settled(page):
    """Wait until a screen shows what it has asked for."""
    expect(heading(page)).to_be_visible()
    expect(page.get_by_text("Loading", exact=True)).to_have_count(0)
    expect(page.get_by_text("Looking", exact=True)).to_have_count(0)
    return page


def opened(page):
    """The address that the first row of each table of a screen opens."""
    rows = page.locator("table").all()
    links = [table.locator("a[data-open]").first for table in rows]
    return [link.get_attribute("href") for link in links if link.count()]


def is_nowhere(page):
    return heading(page).inner_text() == NOWHERE


def look_at(page, name, *, walk=IS_FULL):
    """Check the rules of each screen; ``walk`` through it with Tab."""
    settled(page)
    axe_check(page)
    screenshot(page, name)
    if not walk:
        return
    stops = tab_stops(page)
    assert 'link "Skip to the content"' in stops[0]
    assert len(set(stops)) > len(screens(page))


def test_every_empty_screen_is_accessible(page, own_broker):
    page.goto(own_broker.url)
    addresses = screens(page)
    assert len(addresses) > DRAWN
    for address in drawn(addresses):
        go(page, address)
        look_at(page, f"empty-{address.strip('/') or 'now'}")


@pytest.mark.slow
def test_every_screen_and_the_details_of_its_rows_are_accessible(page, full_broker, say):
    page.goto(full_broker.url)
    addresses = dict.fromkeys(screens(page))
    details = {}
    for address in addresses:
        go(page, address)
        look_at(page, f"full-{address.strip('/') or 'now'}", walk=True)
        details |= dict.fromkeys(opened(page))
    assert details, "no row can be opened"
    for number, address in enumerate(each for each in details if each not in addresses):
        go(page, address)
        settled(page)
        if is_nowhere(page):
            say(f"no screen yet for {address}")
        else:
            look_at(page, f"opened-{number}")


def test_an_address_leads_where_clicks_do_and_back_goes_back(page, full_broker):
    page.goto(full_broker.url)
    addresses = screens(page)
    settled(page)
    first = heading(page).inner_text()
    page.evaluate("window.isTheSame = true")
    fresh = page.context.new_page()
    for address in drawn(addresses[1:]):
        link = page.get_by_role("navigation", name="Screens").locator(f'a[href="{address}"]')
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
        expect(page).to_have_url(re.compile(re.escape(address) + r"($|\?)"))
        clicked = heading(settled(page)).inner_text()
        assert clicked != first
        expect(heading(page)).to_be_focused()
        fresh.goto(full_broker.url + address)
        assert heading(settled(fresh)).inner_text() == clicked
        page.go_back()
        expect(heading(page)).to_have_text(first)
    assert page.evaluate("window.isTheSame"), "a click has loaded the page anew"


def test_keys_lead_through_the_console_and_can_be_switched_off(page, full_broker):
    page.goto(full_broker.url)
    settled(page)
    page.keyboard.type("gt")
    expect(heading(page)).to_have_text("Topics")
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("p")
    expect(page.get_by_role("searchbox")).to_have_value("p")
    # The list follows what is typed after a moment, and a later change of it would take the focus.
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_have_count(0)
    expect(state_of(page)).not_to_have_text(re.compile("Paused"))
    page.get_by_role("searchbox").fill("")
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_be_visible()
    page.keyboard.press("Tab")
    heading(page).focus()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_be_focused()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_visible()
    axe_check(page)
    keys.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.keyboard.type("gn")
    expect(heading(page)).to_have_text("Topics")


def test_a_filter_is_in_the_address_and_finds_by_a_part_of_the_name(page, full_broker):
    create(full_broker.bootstrap_servers, NEW_TOPIC, partitions=2)
    page.goto(f"{full_broker.url}/topics")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=NEW_TOPIC))
    expect(row).to_be_visible()
    page.get_by_role("searchbox").fill("of-2026")
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_have_count(0)
    expect(row.get_by_role("cell").first).to_have_text("2")
    expect(page).to_have_url(re.compile(r"[?&]filter=of-2026"))
    page.reload()
    expect(row).to_be_visible()
    expect(page.get_by_role("link", name=TOPIC, exact=True)).to_have_count(0)
    page.get_by_role("searchbox").fill("nothing <b>")
    expect(page.get_by_text("No name contains “nothing <b>”.")).to_be_visible()


def test_an_address_that_leads_nowhere_says_so(page, full_broker, troubles):
    page.goto(f"{full_broker.url}/topics/orders/no/such/page")
    expect(heading(page)).to_have_text(NOWHERE)
    axe_check(page)


def test_names_of_groups_stay_text_on_every_screen(page, full_broker):
    page.goto(full_broker.url)
    link = page.get_by_role("link", name=HOSTILE_GROUP)
    expect(link).to_be_visible()
    link.click()
    expect(heading(page)).to_be_visible()
    # What a slash in a name must not become: another part of the path.
    assert page.evaluate("location.pathname").count("/") == 2
    expect(page.locator("img")).to_have_count(0)


def test_a_group_that_is_called_like_a_part_of_a_path(page, full_broker):
    for group in DOTS:
        page.goto(f"{full_broker.url}/groups")
        page.get_by_role("link", name=group, exact=True).click()
        expect(heading(page)).to_have_text(group)
        page.reload()
        expect(heading(page)).to_have_text(group)
        expect(page.get_by_role("region", name="Partitions", exact=True)).to_contain_text(TOPIC)
