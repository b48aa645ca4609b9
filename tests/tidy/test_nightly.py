"""Rules for the cases that `make test` leaves to `make nightly`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.tidy.source import ROOT, sources
from tests.tidy.test_habits import MAKEFILE, RULES, suites

(_listed,) = re.findall(
    r"^UNIT := \$\(wildcard \$\(addprefix tests/,(.+?)\)\)",
    MAKEFILE.replace("\\\n", ""),
    re.MULTILINE,
)


def names(pattern: str) -> list[str]:
    """Return the files that import tests.products, or what makes cases of it."""
    importing = re.compile(r"^from tests\.(products|crash\.amounts) import", re.MULTILINE)
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob(pattern)
        if importing.search(path.read_text(encoding="utf-8"))
    )


UNIT = {f"tests/{name}" for name in _listed.split()}
"""The directories of the unit tests."""
FILES = names("tests/**/test_*.py")
"""Test files with cases for the night."""
DIRECTORIES = [name.rpartition("/")[0] for name in names("tests/**/conftest.py")]
"""Directories whose fixtures give their test files cases for the night."""


def left_whole() -> dict[str, str]:
    """Return the functions with the mark of `for_the_night`, and the function beside each."""
    return {
        f"{source.name}::{node.name}": keyword.value.value
        for source in sources("tests")
        if source.name in FILES
        for node in source.nodes
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "for_the_night"
        for keyword in decorator.keywords
        if isinstance(keyword.value, ast.Constant)
    }


@pytest.fixture(scope="module")
def collected() -> list[tuple[str, str]]:
    """Return the test functions of these files, by case: "nightly" or "test", and the name."""
    beside = {name.partition("::")[0] for name in left_whole().values()}
    command = [sys.executable, "-m", "pytest", "-p", "tests.without_spark", "--collect-only"]
    command += ["-p", "tests.tidy.when", "--quiet", "--quiet", *FILES, *DIRECTORIES]
    collecting = subprocess.run(
        [*command, *sorted(beside - {*FILES})],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert collecting.returncode == 0, collecting.stdout
    return re.findall(r"^when: (nightly|test) ([^[\n]+)", collecting.stdout, re.MULTILINE)


@pytest.fixture(scope="module")
def nightly(collected) -> set[str]:
    return {name for when, name in collected if when == "nightly"}


@pytest.fixture(scope="module")
def in_test(collected) -> set[str]:
    return {name for when, name in collected if when == "test"}


def test_every_nightly_case_has_a_sibling_that_make_test_runs(nightly, in_test):
    assert nightly
    assert nightly - in_test == left_whole().keys()


def test_function_left_to_the_night_names_one_that_make_test_runs(in_test):
    assert {*left_whole().values()} - in_test == set()


def test_make_test_and_make_nightly_collect_the_files_with_nightly_cases(nightly):
    found = {name.partition("::")[0] for name in nightly}
    assert found >= {*FILES}
    assert {name.rpartition("/")[0] for name in found - {*FILES}} == {*DIRECTORIES}
    collected = {"/".join(name.split("/")[:2]) for name in found}
    in_test, at_night = set(), set()
    for target in suites():
        recipe = RULES[target]["recipe"]
        if '-m "not nightly"' in recipe:
            in_test |= {*re.findall(r"tests/\w+", recipe)}
            in_test |= UNIT if "$(UNIT)" in recipe else set()
    for line in RULES["nightly"]["recipe"].splitlines():
        # With LOOKS=full all cases run, those for the night among them.
        if re.search(r'-m (nightly|"nightly or recorded") |LOOKS=full ', line):
            at_night |= {*re.findall(r"tests/\w+", line)}
    assert collected <= at_night
    assert at_night <= in_test
