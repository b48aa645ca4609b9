"""Random values of unit tests are repeatable: every random source in them has a seed."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from tests.tidy.source import sources

UNIT_TESTS = tuple(
    f"tests/{each}" for each in ("broker", "coordinator", "protocol", "spark_connector", "storage")
)
SEEDED = {"Random", "random.Random"}
# Names that only have to differ from each other.
NAMES = {"secrets.token_hex"}


def is_unseeded(call: ast.Call, modules: set[str]) -> bool:
    name = dotted(call.func)
    if name in SEEDED:
        return not call.args
    # A Random may be called random, too.
    of_module = "random" in modules and name.startswith("random.") and name.count(".") == 1
    of_system = name == "os.urandom" or name.startswith("secrets.")
    return name not in NAMES and (of_module or of_system)


def dotted(node: ast.expr) -> str:
    """Return the name that is called, "" where it is no name but the result of something."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (of := dotted(node.value)):
        return f"{of}.{node.attr}"
    return ""


def unseeded(nodes: Sequence[ast.AST]) -> list[int]:
    """Return the lines that draw what no seed decides."""
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return [
        node.lineno for node in nodes if isinstance(node, ast.Call) and is_unseeded(node, modules)
    ]


def test_every_draw_has_a_seed():
    guilty = [
        f"{source.name}:{line}"
        for source in sources(*UNIT_TESTS)
        for line in unseeded(source.nodes)
    ]
    assert guilty == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import random\nrandom.Random(1).choice(x)\n", []),
        ("from random import Random\nrandom = Random(1)\nrandom.choice(x)\n", []),
        ("import random\nrandom.choice(x)\n", [2]),
        ("from random import Random\nRandom()\n", [2]),
        ("import os\nos.urandom(5)\n", [2]),
        ("import secrets\nsecrets.randbelow(5)\nsecrets.token_hex(8)\n", [2]),
    ],
)
def test_draws_without_a_seed_are_seen(text, expected):
    assert unseeded(list(ast.walk(ast.parse(text)))) == expected
