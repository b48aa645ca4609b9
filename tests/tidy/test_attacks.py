"""The names in docs/attacks.md: scenarios, and tests of the results of attacks."""

from __future__ import annotations

import re

from tests.attack.scenarios import ALL
from tests.tidy.source import ROOT, parsed
from tests.tidy.test_invariants import TEST, is_defined

PAGE = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| (.+) \| (.*tests/.*) \|$", re.MULTILINE)


def test_every_scenario_is_described_and_every_description_has_one():
    begin, end = (PAGE.index(f"## {title}") for title in ("Scenarios", "Logins, TLS"))
    described = [name for line in PAGE[begin:end].splitlines() for name in names_of(line)]
    assert sorted(described) == sorted(each.name for each in ALL)


def names_of(line: str) -> list[str]:
    """The scenarios in the first column of a row."""
    cells = line.split("|")
    return re.findall(r"`([a-z-]+)`", cells[1]) if len(cells) == 4 else []


def test_every_attack_has_tests_that_exist():
    rows = ROW.findall(PAGE)
    assert len(rows) > 40
    missing = []
    for what, _, cell in rows:
        tests = TEST.findall(cell)
        if not tests or "<br>".join(f"`{path}{names}`" for path, names in tests) != cell:
            missing.append(f"{what}: {cell}")
        for path, names in tests:
            file = ROOT / path
            tree = parsed(file).tree if file.is_file() else None
            if tree is None or not names or not is_defined(tree, names.split("::")[1:]):
                missing.append(f"{what}: {path}{names}")
    assert missing == []
