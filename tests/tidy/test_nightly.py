"""Rules for the cases that `make test` leaves to `make nightly`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.tidy.source import ROOT
from tests.tidy.test_habits import RULES


def names(pattern: str) -> list[str]:
    """Return the files that import tests.products."""
    importing = re.compile(r"^from tests\.products import", re.MULTILINE)
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob(pattern)
        if importing.search(path.read_text(encoding="utf-8"))
    )


FILES = names("tests/**/test_*.py")
"""Test files with cases for the night."""
DIRECTORIES = [name.rpartition("/")[0] for name in names("tests/**/conftest.py")]
"""Directories whose fixtures give their test files cases for the night."""


def functions(marks: str) -> set[str]:
    """Return the test functions that have a case with these marks."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.without_spark", "--collect-only"]
    collected = subprocess.run(
        [*command, "--quiet", "-m", marks, *FILES, *DIRECTORIES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout
    lines = collected.stdout.splitlines()
    return {line.partition("[")[0] for line in lines if "::" in line}


@pytest.fixture(scope="module")
def nightly() -> set[str]:
    return functions("nightly")


def test_every_nightly_case_has_a_sibling_that_make_test_runs(nightly):
    assert nightly
    assert nightly - functions("not nightly") == set()


def test_make_test_and_make_nightly_collect_the_files_with_nightly_cases(nightly):
    found = {name.partition("::")[0] for name in nightly}
    assert found >= {*FILES}
    assert {name.rpartition("/")[0] for name in found - {*FILES}} == {*DIRECTORIES}
    collected = {"/".join(name.split("/")[:2]) for name in found}
    for target, marks in (
        ("interop", '"not nightly"'),
        ("nightly", '"nightly or recorded"'),
    ):
        recipe = RULES[target]["recipe"]
        assert f"-m {marks}" in recipe
        assert collected <= {*re.findall(r"tests/\w+", recipe)}
