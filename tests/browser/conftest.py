"""One browser for each process of tests, a fresh context for each test, and brokers to look at."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path

import playwright.sync_api
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from barnabas.broker.console.pages import worst
from tests.browser.console_broker import ConsoleBroker, EmbeddedConsoleBroker
from tests.browser.looking import BUILD, IS_FULL
from tests.browser.troubles import Troubles
from tests.counterparts.chromium import Chromium, chromium
from tests.counterparts.errors import MissingCounterpart
from tests.interop.conftest import _collected, say, topic

__all__ = ["_collected", "say", "topic"]

WAIT_MS = 60_000
"""Far more than anything takes that a page does."""
# Where the letters are drawn does not depend on the machine.
ARGUMENTS = (
    "--font-render-hinting=none",
    "--disable-lcd-text",
    # For the walks with Tab.
    "--enable-blink-features=ComputedAccessibilityInfo",
)
# Screens request again after 3, 5 and 10 s, and a test would only wait for that.
REQUEST_SOON = """
const later = window.setTimeout;
const soon = (ms) => ([3000, 5000, 10000].includes(ms) ? ms / 5 : ms);
window.setTimeout = (call, ms, ...given) => later(call, soon(ms), ...given);
"""
_HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_HAS_FAILED] = True
    return report


@pytest.fixture(scope="session")
def found_chromium() -> Chromium:
    """The browser's program."""
    return chromium()


@pytest.fixture(scope="session")
def browser(found_chromium: Chromium) -> Iterator[Browser]:
    """The browser, running."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as driver:
        try:
            running = driver.chromium.launch(
                executable_path=found_chromium.path,
                env=dict(found_chromium.environment),
                args=list(ARGUMENTS),
            )
        except playwright.sync_api.Error as error:
            raise MissingCounterpart(
                f"Playwright {version('playwright')} does not drive {found_chromium.version()}"
                f" (remove {found_chromium.path} for Debian's newest): {error.message}"
            ) from None
        yield running
        running.close()


@pytest.fixture
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A profile of its own; of a test that fails, build/browser/failures has what was seen.

    By day without what each page looked like at each step: a quarter of the processor time.
    """
    fresh = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    fresh.set_default_timeout(WAIT_MS)
    fresh.add_init_script(REQUEST_SOON)
    fresh.tracing.start(snapshots=IS_FULL)
    yield fresh
    if request.node.stash.get(_HAS_FAILED, False):
        directory = BUILD / "failures" / re.sub(r"[^\w.-]+", "-", request.node.name)
        for number, page in enumerate(fresh.pages):
            page.screenshot(path=directory / f"page-{number}.png", full_page=True)
        fresh.tracing.stop(path=directory / "trace.zip")
    else:
        fresh.tracing.stop()
    fresh.close()


@pytest.fixture
def troubles(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Troubles]:
    """The errors of all pages of the test; it fails unless the test takes or tolerates them."""
    noticed = Troubles(context)
    yield noticed
    left = noticed.take()
    if left:
        request.node.stash[_HAS_FAILED] = True
        pytest.fail("the browser complains:\n" + "\n".join(left), pytrace=False)


@pytest.fixture
def page(context: BrowserContext, troubles: Troubles) -> Page:
    """An empty page."""
    return context.new_page()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    """One broker for all tests that leave it running; they use topics and groups of their own."""
    with ConsoleBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[ConsoleBroker]:
    """A broker for one test, which may kill it, or needs to know all that is in it."""
    with ConsoleBroker(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def quick_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EmbeddedConsoleBroker]:
    """A broker in this process, whose console looks for the worst groups several times a second."""
    monkeypatch.setattr(worst, "REST_SECONDS", 0.3)
    monkeypatch.setattr(worst, "LONG_MS", 300)
    with EmbeddedConsoleBroker(tmp_path / "broker") as running:
        yield running
