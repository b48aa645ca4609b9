"""Tests take time, threads and sockets from the product's doors, not from the machine.

Tests that need the machine are in tests/real/. Tests of ``UNITS`` wait only in a World.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.source import ROOT, Source, imported_from, parsed, sources

MACHINE = {
    *("concurrent.futures", "multiprocessing", "queue", "select", "socket", "subprocess"),
    *("threading", "time"),
}
"""Modules that wait, or start something, without the World. Constants of theirs, which are written
in capitals, may be imported: ``from socket import SHUT_RDWR``."""
DOOR = "tests.worlds.world"
UNITS = ("broker", "cluster", "coordinator", "spark_connector", "storage")
POLLS = "tests.waiting"


def enters(source: Source) -> bool:
    """Return whether a file imports the fixture that puts tests into a World."""
    return any(
        isinstance(node, ast.ImportFrom)
        and any(f"{imported_from(source, node)}.{alias.name}" == DOOR for alias in node.names)
        for node in source.nodes
    )


@cache
def folders() -> set[Path]:
    """Return the folders of which every test runs in a World."""
    return {
        source.path.parent
        for source in sources("tests")
        if source.path.name == "conftest.py" and enters(source)
    }


def is_in_a_world(source: Source) -> bool:
    """Return whether the tests of a file run in a World."""
    return not folders().isdisjoint(source.path.parents) or (
        source.path.name.startswith("test_") and enters(source)
    )


def of_the_machine(source: Source) -> list[str]:
    """Return the imports of a file that bypass the World, with their lines."""
    found = []
    for node in source.nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name in MACHINE]
        elif isinstance(node, ast.ImportFrom) and imported_from(source, node) in MACHINE:
            names = [alias.name for alias in node.names if not alias.name.isupper()]
        else:
            continue
        found += [f"{source.name}:{node.lineno} imports {name}" for name in names]
    return found


def test_tests_in_a_world_import_nothing_of_the_machine():
    inside = [source for source in sources("tests") if is_in_a_world(source)]
    assert len(inside) > 30
    found = [line for source in inside for line in of_the_machine(source)]
    assert not found, (
        "take these from barnabas.storage.runtime.clock, .threads or barnabas.testing.connect,"
        f" or move the test to tests/real/: {found}"
    )


def polls(source: Source) -> bool:
    """Return whether a test waits by polling."""
    return source.path.name.startswith("test_") and any(
        isinstance(node, ast.ImportFrom) and imported_from(source, node) == POLLS
        for node in source.nodes
    )


def units() -> list[Source]:
    """Return the files of the tests that should all run in a World."""
    return [each for each in sources("tests") if each.name.split("/")[1] in UNITS]


def test_units_import_nothing_of_the_machine():
    found = [line for source in units() for line in of_the_machine(source)]
    assert not found, f"use barnabas.storage.runtime, or move the test to tests/real/: {found}"


def test_units_poll_only_in_a_world():
    found = [each.name for each in units() if polls(each) and not is_in_a_world(each)]
    assert not found, f"run these in a World, or move them to tests/real/: {found}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import time", ["x.py:1 imports time"]),
        ("import concurrent.futures", ["x.py:1 imports concurrent.futures"]),
        ("from threading import Event", ["x.py:1 imports Event"]),
        ("from socket import SHUT_RDWR, socket", ["x.py:1 imports socket"]),
        ("from socket import MSG_PEEK", []),
        ("from barnabas.storage.runtime.clock import sleep", []),
    ],
)
def test_imports_that_bypass_the_world_are_found(text, found):
    assert of_the_machine(Source(ROOT / "x.py", text, ast.parse(text))) == found


def test_files_in_a_world_are_found():
    handlers = ROOT / "tests" / "broker" / "handlers"
    assert handlers in folders()
    assert is_in_a_world(parsed(handlers / "test_fetch.py"))
    assert not is_in_a_world(parsed(ROOT / "tests" / "real" / "conftest.py"))
