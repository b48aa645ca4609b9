"""The console's page and its files."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.console.assets import CONTENT_TYPES, PAGE, POLICY, Assets
from barnabas.broker.console.routes import ROUTES
from barnabas.broker.metrics.history import NAMES
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP
from tests.broker.http.test_server import ask, get
from tests.checkout import ROOT

FILES = sorted((ROOT / "broker" / "console" / "static").iterdir())
SCRIPTS = [each for each in FILES if each.suffix == ".js"]
ASSETS_MOST_BYTES = 150_000


async def test_the_page_and_all_that_it_names():
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        status, headers, page = await get(address, "/")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == POLICY
        named = re.findall(r'(?:href|src)="(/[^"]+)"', page)
        assert len(named) == 3
        for path in named:
            status, headers, body = await get(address, path)
            assert (path, status) == (path, 200)
            assert headers["content-type"] == CONTENT_TYPES[path.rpartition(".")[2]]
            assert headers["cache-control"].endswith("immutable")
            assert headers["x-content-type-options"] == "nosniff"
            assert body == (ROOT / "broker/console/static" / path.rpartition("/")[2]).read_text()


async def test_a_file_that_a_browser_has_is_not_sent_again():
    async with Broker(config=HTTP) as broker:
        version = Assets().version
        head = f"GET /assets/{version}/main.js HTTP/1.0\r\n"
        for tag, expected in (
            (f'"{version}"', b"304"),
            (f'W/"other", "{version}"', b"304"),
            ('"x"', b"200"),
        ):
            data = f"{head}If-None-Match: {tag}\r\n\r\n".encode()
            answer = await ask(broker.server.http.address, data)
            assert answer.split()[1] == expected
            assert f'\r\nETag: "{version}"\r\n'.encode() in answer
            if expected == b"304":
                assert answer.endswith(b"\r\n\r\n")
                assert b"Content-Length" not in answer


@pytest.mark.parametrize(
    "path",
    [
        *("/assets", "/assets/x/main.js", "/assets/{v}/nothing.js", "/assets/{v}/index.html"),
        *("/assets/{v}/../routes.py", "/assets/{v}/..%2Froutes.py", "/assets/{v}/main.js/x"),
    ],
)
async def test_files_that_are_not_there(path):
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        assert (await get(address, path.format(v=Assets().version)))[0] == 404


async def test_nothing_but_reading():
    async with Broker(config=HTTP) as broker:
        answer = await ask(broker.server.http.address, b"POST / HTTP/1.0\r\n\r\n")
        assert answer.split()[1] == b"405"


def test_another_file_makes_another_address(monkeypatch, tmp_path):
    before = Assets().version
    folder = tmp_path / "static"
    folder.mkdir()
    for each in FILES:
        (folder / each.name).write_bytes(each.read_bytes() + b"\n")
    monkeypatch.setattr("barnabas.broker.console.assets.resources.files", lambda _: tmp_path)
    assert Assets().version != before


def test_every_kind_of_file_is_known_and_all_are_small():
    assert {each.suffix.removeprefix(".") for each in FILES} <= set(CONTENT_TYPES)
    assert sum(each.stat().st_size for each in FILES) < ASSETS_MOST_BYTES


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_scripts_import_is_there(path):
    for name in re.findall(r'from "([^"]+)"', path.read_text()):
        assert name.startswith("./"), "a bare name would need an import map, which is inline"
        assert path.with_name(name[2:]) in FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_text_stays_text_and_nothing_is_inline(path):
    text = path.read_text()
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert forbidden not in text
    if path.name == PAGE:
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|style=", text)


def test_the_page_asks_for_what_there_is():
    text = "".join(each.read_text() for each in SCRIPTS)
    templates = {route.template for route in ROUTES} | {"/api/v1/live"}
    assert set(re.findall(r"`(/api/v1/\w+)\?", text)) <= templates
    figures = text.split("const FIGURES = [", 1)[1].split("\n];", 1)[0]
    assert set(re.findall(r'^  \["(\w+)"', figures, re.MULTILINE)) <= set(NAMES)
