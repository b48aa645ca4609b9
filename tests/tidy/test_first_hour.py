"""docs/first-hour.md names files and functions that exist, and docs/decisions/ lists each page."""

from __future__ import annotations

import ast
import re

from tests.tidy.source import ROOT

PAGE = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")
ROW = re.compile(r"\| `([a-z_/]+\.py)` \| `(\w+)` \|")
DECISIONS = ROOT / "docs" / "decisions"


def test_steps_name_functions_of_their_files():
    rows = ROW.findall(PAGE)
    assert len(rows) >= 14
    lost = [
        f"{name} has no function {function}"
        for name, function in rows
        if function
        not in {
            node.name
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    ]
    assert lost == []


def test_produce_is_followed_through_ten_files():
    steps = re.findall(r"^\| (\d+) \| `([\w/.]+)`", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, 11))
    assert len({name for _, name in steps}) == 10


def test_index_lists_each_decision():
    pages = {path.name for path in DECISIONS.glob("*.md")} - {"README.md"}
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages
    assert len(pages) == 10
