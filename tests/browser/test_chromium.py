"""Playwright and the machine's Chromium understand each other: where they part, it shows here."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from playwright.sync_api import expect

from tests.browser.looking import axe_check, tab_stops
from tests.waiting import wait_until

PAGE = """
<!doctype html><html lang="en"><title>Smoke</title><main><h1>Fire</h1>
<button onclick="this.textContent = 'put out'">burns</button>
<a href="#there">there</a></main></html>
"""


def test_playwright_drives_this_chromium(page, browser, context, tmp_path, say):
    say(f"Playwright {version('playwright')} drives Chromium {browser.version}")
    page.set_content(PAGE)
    page.get_by_role("button", name="burns").click()
    expect(page.get_by_role("button")).to_have_text("put out")
    expect(page.get_by_role("main")).to_match_aria_snapshot(
        '- heading "Fire" [level=1]\n- button "put out"\n- link "there"'
    )
    picture = page.screenshot(path=tmp_path / "smoke.png")
    assert picture.startswith(b"\x89PNG")
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {each["name"] for each in session.send("Performance.getMetrics")["metrics"]}
    assert "JSHeapUsedSize" in metrics


def test_axe_finds_what_is_wrong_and_nothing_else(page):
    page.set_content(PAGE)
    axe_check(page)
    page.set_content("<!doctype html><html lang='en'><title>x</title><img src='data:,'></html>")
    with pytest.raises(AssertionError, match="image-alt"):
        axe_check(page)


def test_a_walk_by_keyboard_meets_everything_once(page):
    page.set_content(PAGE)
    assert tab_stops(page) == ['button "burns"', 'link "there"']
    page.set_content(PAGE.replace("<a ", "<a style='position: fixed; left: -999px' "))
    with pytest.raises(AssertionError, match="covered or outside"):
        tab_stops(page)


def noticed(page, troubles, *words):
    """Wait until all of these messages were reported: the browser reports them after a while."""
    found = []

    def is_said():
        page.wait_for_timeout(50)  # In which the driver hears of it.
        found.extend(troubles.take())
        return all(any(word in each for each in found) for word in words)

    wait_until(is_said, lambda: f"{found}")


def test_errors_of_a_page_are_noticed(page, troubles):
    page.set_content(PAGE)
    page.evaluate("console.error('logged')")
    page.evaluate("setTimeout(() => { throw new Error('missed'); })")
    noticed(page, troubles, "logged", "missed")


def test_violations_of_the_policy_are_noticed(page, troubles, broker):
    page.goto(broker.url)
    page.evaluate(
        "document.body.append(Object.assign(new Image(), { src: 'http://localhost:1/' }))"
    )
    noticed(page, troubles, "policy violated: img-src")
    troubles.tolerate("img-src")  # The browser says it in words of its own, too.
    troubles.tolerate("Trusted")
    assert "Trusted" in page.evaluate(
        "() => { try { document.body.innerHTML = '<p>'; } catch (error) { return `${error}`; } }"
    )
    noticed(page, troubles, "policy violated: require-trusted-types-for")
    troubles.tolerate("trusted-types")
