"""The repository's own Python files, parsed once for all the rules."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.checkout import ROOT

PACKAGES = ("broker", "protocol", "coordinator", "storage", "spark_connector", "src")
"""The folders of the product. ``src`` has the name ``barnabas``, and links to the others."""
GENERATED = ROOT / "protocol" / "messages"
_COMMENT_OR_STRING = re.compile(
    r"""#[^\n]*"""
    r'''|"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"'''
    r"""|'''(?:[^'\\]|\\.|'(?!''))*'''|'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL,
)


@dataclass(frozen=True)
class Source:
    """One file."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, as ast.walk yields them, in half of its time."""
        nodes: list[ast.AST] = [self.tree]
        for node in nodes:
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, ast.AST):
                    nodes.append(value)
                elif isinstance(value, list):
                    nodes += [each for each in value if isinstance(each, ast.AST)]
        return tuple(nodes)

    @property
    def name(self) -> str:
        """Path from the root of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def module(self) -> str:
        """Dotted name."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        if parts[0] == "src":
            parts = parts[1:]
        elif parts[0] in PACKAGES:
            parts = ("barnabas", *parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_generated(self) -> bool:
        """Whether the generator wrote it."""
        return self.path.is_relative_to(GENERATED)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.text.count("\n")


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file in these folders of the repository."""
    with _kept():
        return tuple(
            parsed(path)
            for folder in folders
            for path in sorted((ROOT / folder).rglob("*.py"))
            if path.resolve() == path  # Else behind a link of src/.
        )


@contextmanager
def _kept() -> Iterator[None]:
    """Keep all objects that are created meanwhile out of garbage collections, to the end.

    Collections over millions of nodes, also while they grow, would be most of the work.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@cache
def parsed(path: Path) -> Source:
    """One of them."""
    text = path.read_text(encoding="utf-8")
    return Source(path, text, ast.parse(text, str(path)))


def comments_and_strings(text: str) -> Iterator[re.Match[str]]:
    """Yield each comment and each string of a Python file, in a tenth of tokenize's time."""
    return _COMMENT_OR_STRING.finditer(text)


def functions(source: Source) -> Iterator[tuple[str, int]]:
    """Yield (qualified name, number of lines) of every function, docstring left out."""
    yield from _functions(source.tree, "")


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", _length(child)
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    start = (first.end_lineno or first.lineno) + 1 if documented else function.lineno
    return (function.end_lineno or start) - start + 1


def imported_modules(source: Source) -> set[str]:
    """Every dotted name that a file imports; ``from a import b`` counts as a and as a.b."""
    names: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = imported_from(source, node)
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def imported_from(source: Source, node: ast.ImportFrom) -> str:
    """Return the dotted name of the module that a ``from a import b`` names."""
    package = source.module.split(".")
    if source.path.name != "__init__.py":
        package = package[:-1]
    base = package[: len(package) - node.level + 1] if node.level else []
    return ".".join([*base, node.module] if node.module else base)
