"""The site of the documentation, built by `make site`, opened from its files without a server."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.checkout import ROOT

BUILD_TIMEOUT_S = 600


@pytest.fixture(scope="module")
def site() -> Path:
    """The directory of the built site."""
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    command = ["make", "--no-print-directory", "site"]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "build" / "site"


def test_a_search_for_hangs_finds_the_page_about_blocked_consumers(page: Page, site: Path):
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto((site / "index.html").as_uri())
    expect(page).to_have_title("Barnabas")
    page.keyboard.press("/")
    page.get_by_role("textbox", name="Search").press_sequentially("hangs")
    found = page.locator(".md-search-result__link", has_text=re.compile("hang", re.IGNORECASE))
    found.first.click()
    page.wait_for_url(re.compile(r"(transactions|troubleshooting)\.html"))
    expect(page.get_by_role("main")).to_contain_text("last stable offset")
    assert {urlsplit(url).scheme for url in requested} <= {"file", "data", "blob"}


def test_the_site_has_a_dark_mode(page: Page, site: Path):
    page.emulate_media(color_scheme="light")
    page.goto((site / "index.html").as_uri())
    body = page.locator("body")
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    page.locator("label[title='Dark mode']").click()
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
