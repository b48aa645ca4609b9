"""The console's page and its files."""

from __future__ import annotations

import gzip
import hashlib
import json
import re

import pytest

from barnabas.broker.console.assets import CONTENT_TYPES, PAGE, POLICY, Assets
from barnabas.broker.http.site import SCREENS
from barnabas.broker.metrics.history import NAMES
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP
from tests.broker.http.test_server import ask, get
from tests.checkout import ROOT

STATIC = ROOT / "broker" / "console" / "static"
FILES = sorted(each for each in STATIC.rglob("*") if each.is_file())
VENDOR = STATIC / "vendor"
SCRIPTS = [each for each in FILES if each.suffix == ".js" and each.parent != VENDOR]
OWN = [each for each in FILES if each.parent != VENDOR]
NOT_FOUND_FOR_PROGRAMS = (
    "not found; what is here: /livez /readyz /health /healthz /metrics /config\n"
)
ASSETS_MOST_BYTES = 150_000
"""The maximum size of all assets, each compressed as browsers receive it."""


def name_of(path):
    return path.relative_to(STATIC).as_posix()


async def test_the_page_and_all_that_it_names():
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        status, headers, page = await get(address, "/")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == POLICY
        named = re.findall(r'(?:href|src)="(/[^"]+)"', page)
        modules = [each for each in FILES if each.suffix == ".js"]
        assert len(named) == len(modules) + len(("icon", "its style", "uPlot's", "main.js"))
        for path in named:
            status, headers, body = await get(address, path)
            assert (path, status) == (path, 200)
            assert headers["content-type"] == CONTENT_TYPES[path.rpartition(".")[2]]
            assert headers["cache-control"].endswith("immutable")
            assert headers["x-content-type-options"] == "nosniff"
            assert body == (STATIC / path.split("/", 3)[3]).read_text()


async def test_the_page_is_at_the_address_of_every_screen():
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        _, _, page = await get(address, "/")
        for path in (
            *(f"/{each}" for each in SCREENS),
            "/groups/a%2Fb%20c",
            "/topics/t/records?x=1",
        ):
            assert (await get(address, path))[::2] == (200, page)
        assert (await get(address, "/nowhere"))[::2] == (404, NOT_FOUND_FOR_PROGRAMS)
        browser = b"GET /nowhere HTTP/1.0\r\nAccept: text/html,*/*\r\n\r\n"
        head, _, body = (await ask(address, browser)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 404 ")
        assert body.decode() == page  # Which has the links to all screens.


async def test_files_are_compressed_for_who_can_read_that():
    async with Broker(config=HTTP) as broker:
        head = f"GET /assets/{Assets().version}/vendor/uplot.js HTTP/1.0\r\n"
        for accepted, is_zipped in (("gzip, br", True), ("br, gzip;q=1", True), ("br", False)):
            data = f"{head}Accept-Encoding: {accepted}\r\n\r\n".encode()
            answer = await ask(broker.server.http.address, data)
            found, _, body = answer.partition(b"\r\n\r\n")
            assert (b"Content-Encoding: gzip" in found) == is_zipped
            content = gzip.decompress(body) if is_zipped else body
            assert content == (VENDOR / "uplot.js").read_bytes()


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
        copied = folder / name_of(each)
        copied.parent.mkdir(exist_ok=True)
        copied.write_bytes(each.read_bytes() + b"\n")
    monkeypatch.setattr("barnabas.broker.console.assets.resources.files", lambda _: tmp_path)
    assert Assets().version != before


def test_every_kind_of_file_is_known_and_all_are_small():
    assert {each.suffix.removeprefix(".") for each in FILES} <= {*CONTENT_TYPES, "html"}
    assert sum(len(gzip.compress(each.read_bytes(), 6)) for each in FILES) < ASSETS_MOST_BYTES


@pytest.mark.parametrize("path", [each for each in FILES if each.suffix == ".js"], ids=name_of)
def test_imported_scripts_exist(path):
    imports = r'(?:import|export)\b[^"\';]*?\bfrom ?"([^"]+)"'
    for name in re.findall(imports, path.read_text()):
        assert name.startswith("."), "a bare name would need an import map, which is inline"
        assert (path.parent / name).resolve() in FILES


@pytest.mark.parametrize("path", [each for each in SCRIPTS if each.parent.name == "screens"])
def test_a_screen_is_read_in_one_sitting(path):
    assert len(path.read_text().splitlines()) < 300


def test_libraries_are_those_of_the_table():
    table = json.loads((VENDOR / "vendor.json").read_text())
    named = {name: digest for row in table for name, digest in row["files"].items()}
    there = {each.name: each for each in VENDOR.iterdir() if each.name != "vendor.json"}
    assert set(named) == set(there)
    for name, path in there.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == named[name], name
    for row in table:
        assert len(row["tarball_sha512"]) == 128
        assert any(name.endswith(".LICENSE") for name in row["files"]), row["name"]


@pytest.mark.parametrize("path", OWN, ids=name_of)
def test_text_stays_text_and_nothing_is_inline(path):
    text = path.read_text()
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert forbidden not in text
    if path.name == PAGE:
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|style=", text)


def test_the_plots_are_of_series_that_there_are():
    plots = (STATIC / "screens" / "now.js").read_text().split("const PLOTS = [", 1)[1]
    names = re.findall(r'\["(\w+)", "', plots.split("\n];", 1)[0])
    assert names
    assert set(names) <= set(NAMES)
