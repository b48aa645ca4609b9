"""The site of the documentation, built by `make site`, opened from its files without a server."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.checkout import ROOT
from tests.http_server import HttpServerForTests

BUILD_TIMEOUT_S = 600


@pytest.fixture(scope="module")
def site(testrun_uid: str) -> Path:
    """The directory of the site, which the first worker of a run builds."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with (build / "site.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if lock.read() != testrun_uid:
            build_site()
            lock.truncate(0)
            lock.write(testrun_uid)
    return build / "site"


def build_site() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    run(["make", "--no-print-directory", "site"], ROOT, environment)


def run(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
    """Run a command; its failure shows its output."""
    ended = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


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


VERSIONS = ("0.1.0", "0.2.0")


class QuietHandler(SimpleHTTPRequestHandler):
    """A handler that logs no requests."""

    def log_message(self, *_: object) -> None:
        """Drop the line of a request."""


def site_versions(version: str) -> list[list[str]]:
    """Return the commands of `make site-versions` that follow the copying of the pages."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    recipe = re.search(r"^site-versions:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
    found = re.findall(r"\b(mike .*)", recipe.replace("$(VERSION)", version))
    return [shlex.split(command) for command in found]


@pytest.fixture
def versions(site: Path, tmp_path: Path) -> Path:
    """The directory of a site with one page in two versions; `site` has installed the tools."""
    shutil.copytree(ROOT / "docs" / "assets", tmp_path / "pages" / "assets")
    (tmp_path / "pages" / "index.md").write_text("# Home\n")
    inherited = ROOT / "mkdocs-versions.yml"
    (tmp_path / inherited.name).write_text(
        f"INHERIT: {inherited}\ndocs_dir: pages\nsite_dir: built\nnav: [index.md]\n"
    )
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    environment |= {
        "PATH": f"{ROOT / '.venv-site' / 'bin'}:{os.environ['PATH']}",
        "NO_MKDOCS_2_WARNING": "1",
        **{f"GIT_{role}_NAME": "test" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "test@example" for role in ("AUTHOR", "COMMITTER")},
    }

    commands = [
        ["git", "init", "--quiet"],
        ["git", "commit", "--quiet", "--allow-empty", "--message", "Begin"],
    ]
    for version in VERSIONS:
        deploy, set_default = site_versions(version)
        commands.append(deploy)
    commands += [set_default, ["git", "worktree", "add", "--quiet", "served", "site-pages"]]
    for command in commands:
        run(command, tmp_path, environment)
    return tmp_path / "served"


def test_selector_shows_both_versions_of_a_site(page: Page, versions: Path):
    named = json.loads((versions / "versions.json").read_text())
    assert [(each["version"], each["aliases"]) for each in named] == [
        ("0.2.0", ["latest"]),
        ("0.1.0", []),
    ]
    handler = functools.partial(QuietHandler, directory=str(versions))
    with HttpServerForTests(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        page.goto(f"http://127.0.0.1:{server.port}/0.1.0/index.html")
        expect(page.locator(".md-version__link")).to_have_text(["0.2.0", "0.1.0"])
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.wait_for_url(re.compile("/latest/"))
        expect(page.get_by_role("main")).to_contain_text("Home")
