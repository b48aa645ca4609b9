"""Code lines of the product by package: a ratchet, so that what was removed does not grow again.

Blank lines, comments and docstrings do not count, those of attributes neither. When the product
shrinks, lower ``BY_HAND`` to the table that the test prints.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.source import PACKAGES, Source, comments_and_strings, sources

GENERATED_MOST = 18_000
BY_HAND: dict[str, int] = {
    "broker": 589,
    "broker/admin": 708,
    "broker/api": 1_992,
    "broker/cli": 10_603,
    "broker/client": 1_527,
    "broker/cluster": 5_720,
    "broker/config": 3_021,
    "broker/console": 8_671,
    "broker/coordination": 2_476,
    "broker/handlers": 6_698,
    "broker/http": 1_003,
    "broker/metadata": 1_708,
    "broker/metrics": 1_588,
    "broker/network": 3_337,
    "broker/opening": 781,
    "broker/runtime": 988,
    "broker/security": 4_039,
    "broker/testing": 4_643,
    "broker/upkeep": 802,
    "coordinator": 60,
    "coordinator/groups": 3_986,
    "coordinator/transactions": 861,
    "protocol": 2_694,
    "protocol/generate": 1_373,
    "protocol/sasl": 573,
    "protocol/tuned": 387,
    "spark_connector": 106,
    "spark_connector/checkpoint": 616,
    "spark_connector/cluster": 953,
    "spark_connector/failures": 525,
    "spark_connector/ledger": 1_054,
    "spark_connector/monitoring": 888,
    "spark_connector/pipelines": 648,
    "spark_connector/rows": 599,
    "spark_connector/running": 868,
    "spark_connector/session": 724,
    "spark_connector/settings": 560,
    "spark_connector/sinks": 1_041,
    "src/barnabas": 78,
    "src/pyspark_barnabas": 2,
    "storage": 149,
    "storage/adoption": 279,
    "storage/batches": 266,
    "storage/compaction": 471,
    "storage/dump": 481,
    "storage/files": 622,
    "storage/journal": 1_060,
    "storage/log": 3_208,
    "storage/metastore": 744,
    "storage/objects": 712,
    "storage/postgresql": 1_795,
    "storage/repair": 1_027,
    "storage/replicated": 3_504,
    "storage/runtime": 208,
    "storage/store": 1_206,
}
"""Code lines by hand of each package; their sum is the limit."""

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: Source) -> int:
    """Return the number of lines of a file that have code."""
    parts = []
    end = 0
    for match in comments_and_strings(source.text):
        parts.append(source.text[end : match.start()])
        if not match[0].startswith("#"):
            # Each line of a string has code, an empty one too.
            parts.append("string" + "\nstring" * match[0].count("\n"))
        end = match.end()
    parts.append(source.text[end:])
    lines = {
        number
        for number, line in enumerate("".join(parts).split("\n"), 1)
        if line and not line.isspace()
    }
    for node in source.nodes:
        if isinstance(node, _DOCUMENTED):
            for statement in node.body:
                if _is_docstring(statement):
                    end = statement.end_lineno or statement.lineno
                    lines.difference_update(range(statement.lineno, end + 1))
    return len(lines)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


@cache
def weights() -> tuple[Counter[str], int]:
    """Return the code lines by hand of each package, and the generated ones."""
    by_hand: Counter[str] = Counter()
    generated = 0
    for source in sources(*PACKAGES):
        if source.is_generated:
            generated += code_lines(source)
        else:
            by_hand[_package(source.name)] += code_lines(source)
    return by_hand, generated


def _package(name: str) -> str:
    folders = name.split("/")[:-1]
    return "/".join(folders[:2])


def table(by_hand: Counter[str], generated: int) -> str:
    """Return the weights as lines, the heaviest package first."""
    rows = [*by_hand.most_common(), ("sum by hand", by_hand.total()), ("generated", generated)]
    return "\n".join(f"{lines:>7,}  {name}" for name, lines in rows)


def grown(by_hand: Counter[str]) -> str:
    """Return the packages that have more code lines than recorded."""
    return ", ".join(
        f"{name} {BY_HAND.get(name, 0):,} -> {lines:,}"
        for name, lines in sorted(by_hand.items())
        if lines > BY_HAND.get(name, 0)
    )


def test_product_by_hand_is_no_heavier_than_recorded():
    by_hand, generated = weights()
    print(table(by_hand, generated))
    most = sum(BY_HAND.values())
    assert by_hand.total() <= most, f"{by_hand.total():,} code lines > {most:,}: {grown(by_hand)}"


def test_generated_code_is_at_most_18_000_lines():
    _, generated = weights()
    assert generated <= GENERATED_MOST


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ('"""Docstring."""\n\n# A comment.\n', 0),
        ('x = 1  # Why.\n"""Docstring\nof x."""\n', 1),
        ('def f():\n    """Docstring."""\n    return """a\n    b"""\n', 3),
        ("f(\n    1,\n\n    2,\n)\n", 4),
    ],
)
def test_code_lines_leave_out_blanks_comments_and_docstrings(text, expected):
    assert code_lines(Source(Path("file.py"), text, ast.parse(text))) == expected
