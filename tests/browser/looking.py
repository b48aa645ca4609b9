"""Checks of a page for people who see it, hear it, or have a keyboard only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit
from zlib import crc32

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.checkout import ROOT

BUILD = ROOT / "build" / "browser"
THEMES = ("light", "dark")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")
"""WCAG 2.2, levels A and AA, as axe calls its rules."""
IS_FULL = os.environ.get("LOOKS") == "full"
"""Whether each page is checked in both themes and each walk with Tab is taken, as at night."""
STOPS_MOST = 200
_AXE = Axe()
_OPTIONS = {
    "runOnly": {"type": "tag", "values": list(RULES)},
    # Of what passes axe describes one node then, instead of each node of the page.
    "resultTypes": ["violations"],
}

# Whether the focus is new, can be seen, and is not below something that stays at the top.
_LOOK_AT_FOCUS = """
() => {
  const focused = document.activeElement;
  if (focused === null || focused === document.body) return "none";
  window.walked ??= new WeakSet();
  if (window.walked.has(focused)) return "again";
  window.walked.add(focused);
  if (!focused.matches(":focus-visible")) return "without a mark";
  const box = focused.getBoundingClientRect();
  // Of what is larger than the window, the middle of the part that is in it.
  const [left, right] = [Math.max(box.left, 0), Math.min(box.right, window.innerWidth)];
  const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, window.innerHeight)];
  const met = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return focused.contains(met) || met?.contains(focused) ? "seen" : "covered or outside";
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


def axe_check(page: Page) -> None:
    """Assert that axe finds nothing against WCAG 2.2 AA, in the themes of `themes_of`.

    The page is scrolled to its head: elsewhere the header, which stays in place, covers a part of
    some button.
    """
    page.evaluate("window.scrollTo(0, 0)")
    for theme in in_themes_of(page):
        found = _AXE.run(page, options=_OPTIONS)
        assert found.response["passes"], "axe has looked at nothing"
        assert found.violations_count == 0, f"{theme}: {found.generate_report()}"


def screenshot(page: Page, name: str) -> None:
    """Keep pictures of the page, in the themes of `themes_of`: build/browser/pictures."""
    for theme in in_themes_of(page):
        page.screenshot(path=BUILD / "pictures" / f"{name}-{theme}.png", animations="disabled")


def tab_stops(page: Page) -> list[str]:
    """Walk through the page with Tab alone; return what has the focus one after the other.

    Each is described as a screen reader would: ``button "Pause"``. Asserts that the focus is always
    seen and that it leaves the page at the end.
    """
    page.evaluate("() => { document.activeElement?.blur(); window.walked = new WeakSet(); }")
    stops: list[str] = []
    while len(stops) < STOPS_MOST:
        page.keyboard.press("Tab")
        look = page.evaluate(_LOOK_AT_FOCUS)
        if look in {"none", "again"}:
            return stops
        stops.append(page.locator(":focus").aria_snapshot().splitlines()[0].removeprefix("- "))
        assert look == "seen", f"after {stops}: the focus is {look}"
    raise AssertionError(f"more than {STOPS_MOST} stops: {stops[-5:]}")
