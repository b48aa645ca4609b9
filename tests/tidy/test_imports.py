"""Imports between the files of the product."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.source import PACKAGES, Source, imported_modules, sources

CIRCLE_MOST = 3
"""Files that know each other, if only for their types, are read together or not at all."""
KNOWN_CIRCLES: dict[str, int] = {}
"""Larger ones by their first file, with their size; they only ever shrink."""
BARE_NAMES = {"broker", "protocol", "coordinator", "storage", "spark_connector"}


def graph(files: tuple[Source, ...]) -> dict[str, set[str]]:
    """Return the imports of each file from these files; type-only imports count.

    A package's ``__init__`` collects the package's names, and is left out.
    """
    files = tuple(source for source in files if source.path.name != "__init__.py")
    names = {source.module: source.name for source in files}
    return {
        source.name: {names[module] for module in imported_modules(source) if module in names}
        - {source.name}
        for source in files
        if not source.is_generated
    }


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one file (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in imports[name]:
            if other not in imports:
                continue
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            component = sorted(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for name in imports:
        if name not in index:
            visit(name)
    return found


def test_no_circle_has_more_than_three_files():
    large = {
        circle[0]: circle
        for circle in circles(graph(sources(*PACKAGES)))
        if len(circle) > CIRCLE_MOST
    }
    assert {name: len(circle) for name, circle in large.items()} == KNOWN_CIRCLES, large


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"a"}}, [["a", "b", "c", "d"]]),
        ({"a": {"b", "c"}, "b": set(), "c": {"b"}}, []),
    ],
)
def test_circles_are_found(imports, expected):
    assert circles(imports) == expected


def test_the_product_has_one_name():
    """In a checkout ``import broker`` would find the folder, and load every class twice."""
    guilty = [
        f"{source.name}:{node.lineno}"
        for source in sources(*PACKAGES, "tests", "examples", "docker")
        for node in source.nodes
        for name in imported(node)
        if name.partition(".")[0] in BARE_NAMES
    ]
    assert guilty == []


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or ""]
    return []
