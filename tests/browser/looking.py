"""Checks of a page for people who see it, hear it, or have a keyboard only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit
from zlib import crc32

from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Locator, Page, expect

from tests.checkout import ROOT

BUILD = ROOT / "build" / "browser"
THEMES = ("light", "dark")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")
"""WCAG 2.2, levels A and AA, as axe calls its rules."""
IS_FULL = os.environ.get("LOOKS") == "full"
"""Whether pages are checked in both themes, with pictures, and each walk is taken: at night."""
STOPS_MOST = 200
STOPS_AT_ONCE = 20
"""Tabs between two requests for what the page has noted."""
_OPTIONS = {
    "runOnly": {"type": "tag", "values": list(RULES)},
    # Of what passes axe describes one node then, instead of each node of the page.
    "resultTypes": ["violations"],
}

_RUN_AXE = """
async ([part, options]) => {
  const { passes, violations } = await axe.run(part ?? document, options);
  return { passes: passes.length, violations };
}
"""

# After each Tab the page notes whether the focus is new, can be seen, and is not below something
# that stays at the top. The walk begins before the first element of the page.
_BEGIN_WALK = """
() => {
  window.walk?.abort();
  window.walk = new AbortController();
  window.stops = [];
  const walked = new Set();
  const first = Object.assign(document.createElement("span"), { tabIndex: -1 });
  document.body.prepend(first);
  first.focus();
  first.remove();
  document.addEventListener("keyup", () => {
    const focused = document.activeElement ?? document.body;
    window.stops.push([lookAt(focused), `${focused.computedRole} "${focused.computedName}"`]);
    walked.add(focused);
  }, { capture: true, signal: window.walk.signal });
  function lookAt(focused) {
    if (focused === document.body) return "none";
    if (walked.has(focused)) return "again";
    if (!focused.matches(":focus-visible")) return "without a mark";
    const box = focused.getBoundingClientRect();
    // Of what is larger than the window, the middle of the part that is in it.
    const [left, right] = [Math.max(box.left, 0), Math.min(box.right, window.innerWidth)];
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, window.innerHeight)];
    const met = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return focused.contains(met) || met?.contains(focused) ? "seen" : "covered or outside";
  }
}
"""


def state_of(page: Page) -> Locator:
    """Return the connection's state in the header: live, paused, away."""
    return page.locator("#state")


def row_of(page: Page, label: str, name: str) -> Locator:
    """The row of a table that begins with a name."""
    table = page.get_by_role("region", name=label, exact=True)
    return table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


def cell(row: Locator, table_label: str, title: str) -> Locator:
    """The cell of a row below a title."""
    expect(row).to_be_visible()
    table = row.page.get_by_role("region", name=table_label, exact=True)
    titles = [each.strip(" ↑↓") for each in table.get_by_role("columnheader").all_inner_texts()]
    return row.locator("th, td").nth(titles.index(title))


def themes_of(page: Page) -> tuple[str, ...]:
    """Return the themes in which a page is checked: by day one, given by the page's path."""
    return THEMES if IS_FULL else (THEMES[crc32(urlsplit(page.url).path.encode()) % 2],)


def in_themes_of(page: Page) -> Iterator[str]:
    """Show the page in the themes in which it is checked; at the end it is as it was."""
    return in_each_theme(page, themes_of(page))


def in_each_theme(page: Page, themes: tuple[str, ...] = THEMES) -> Iterator[str]:
    """Show the page light, then dark; at the end it is as it was."""
    for theme in themes:
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        yield theme
    page.emulate_media(color_scheme="null")


def axe_check(page: Page, part: str | None = None) -> None:
    """Assert that axe finds nothing against WCAG 2.2 AA, in the themes of `themes_of`.

    By day only the elements of the selector ``part`` are checked, if another test checks the rest.
    The page is scrolled to its head: elsewhere the header, which stays in place, covers a part of
    some button.
    """
    # The script is long, and stays in the page.
    if page.evaluate("() => { scrollTo(0, 0); return typeof axe; }") == "undefined":
        page.evaluate(AXE_SCRIPT)
    for theme in in_themes_of(page):
        found = AxeResults(page.evaluate(_RUN_AXE, [None if IS_FULL else part, _OPTIONS]))
        assert found.response["passes"] > 0, "axe has looked at nothing"
        assert found.violations_count == 0, f"{theme}: {found.generate_report()}"


def screenshot(page: Page, name: str) -> None:
    """Keep pictures of the page at night, in both themes: build/browser/pictures."""
    for theme in in_themes_of(page) if IS_FULL else ():
        page.screenshot(path=BUILD / "pictures" / f"{name}-{theme}.png", animations="disabled")


def tab_stops(page: Page) -> list[str]:
    """Walk through the page with Tab alone; return what has the focus one after the other.

    Each is described as a screen reader would: ``button "Pause"``. Asserts that the focus is always
    seen and that it leaves the page at the end.
    """
    page.evaluate(_BEGIN_WALK)
    stops: list[str] = []
    while len(stops) < STOPS_MOST:
        for _ in range(STOPS_AT_ONCE):
            page.keyboard.press("Tab")
        for look, name in page.evaluate("window.stops.splice(0)"):
            if look in {"none", "again"}:
                page.evaluate("window.walk.abort()")
                return stops
            stops.append(name)
            assert look == "seen", f"after {stops}: the focus is {look}"
    raise AssertionError(f"more than {STOPS_MOST} stops: {stops[-5:]}")
