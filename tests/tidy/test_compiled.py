"""Classes that inherit from a class of a module that pyproject.toml lists for mypyc.

An interpreted class cannot inherit from a compiled one: every call of the class raises TypeError,
in the compiled build only. Its module must be listed, too, or the compiled class must allow it by
``@mypyc_attr(allow_interpreted_subclasses=True)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import pytest

from tests.checkout import ROOT
from tests.compiled.listed import compiled_modules
from tests.tidy.source import PACKAGES, Source, imported_from, sources
from tests.tidy.test_habits import MAKEFILE

INTERPRETED_BASES = {"NamedTuple", "TypedDict", "Enum", "IntEnum", "IntFlag", "StrEnum"}
"""Bases of classes that mypyc leaves interpreted, in a module that it compiles."""
Name = tuple[str, str]
"""A module, and a name in it."""


def test_files_that_are_tested_compiled_are_there():
    (text,) = re.findall(r"^COMPILED_UNIT := (.+)", MAKEFILE.replace("\\\n", ""), re.MULTILINE)
    listed = [
        prefix + name
        for prefix, names in re.findall(r"\$\(addprefix (\S+?),(.+?)\)", text)
        for name in names.split()
    ]
    listed += re.sub(r"\$\(.+?\)", "", text).split()
    assert len(listed) > 10
    assert [each for each in listed if not (ROOT / each).exists()] == []


def names_of(source: Source, node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield names that a statement makes for what is defined elsewhere, with its full name."""
    if isinstance(node, ast.ImportFrom):
        module = imported_from(source, node)
        for each in node.names:
            yield each.asname or each.name, f"{module}.{each.name}"
    elif isinstance(node, ast.Import):
        for each in node.names:
            yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Subscript):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, f"{source.module}.{bare(node.value)}"


def bare(base: ast.expr) -> str:
    """Return a base without its type parameters, as it is written."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


class Classes:
    """The classes of some files, found by the names that other files have for them."""

    def __init__(self, files: Sequence[Source]) -> None:
        self._classes: dict[Name, ast.ClassDef] = {}
        self._names: dict[Name, str] = {}
        """Full names of what a module imports, or gives another name to."""
        for source in files:
            for node in source.nodes:
                if isinstance(node, ast.ClassDef):
                    self._classes[source.module, node.name] = node
                for name, full in names_of(source, node):
                    self._names[source.module, name] = full

    def find(self, module: str, written: str) -> Name | None:
        """Return the class that a name, dotted or not, means in a module."""
        seen = set()
        while (module, written) not in self._classes:
            first, _, rest = written.partition(".")
            if (module, first) not in self._names or (module, written) in seen:
                return None
            seen.add((module, written))
            full = ".".join(filter(None, (self._names[module, first], rest)))
            module, _, written = full.rpartition(".")
        return module, written

    def inherited(self) -> Iterator[tuple[Name, Name]]:
        """Yield each class with each of its bases that is one of these classes."""
        for (module, name), node in self._classes.items():
            for base in node.bases:
                found = self.find(module, bare(base))
                if found is not None:
                    yield (module, name), found

    def is_native(self, name: Name) -> bool:
        """Whether mypyc makes a type of its own of a class in a module that it compiles."""
        bases = {ast.unparse(base).rpartition(".")[2] for base in self._classes[name].bases}
        return not bases & INTERPRETED_BASES

    def allows_interpreted(self, name: Name) -> bool:
        """Whether a class is marked as one that interpreted classes inherit from."""
        return any(
            isinstance(each, ast.Call)
            and ast.unparse(each.func).rpartition(".")[2] == "mypyc_attr"
            and any(
                keyword.arg == "allow_interpreted_subclasses" and keyword.value.value is True
                for keyword in each.keywords
                if isinstance(keyword.value, ast.Constant)
            )
            for each in self._classes[name].decorator_list
        )


def interpreted_subclasses(files: Sequence[Source], compiled: set[str]) -> list[str]:
    """Return the interpreted classes that inherit from a compiled one that does not allow it."""
    classes = Classes(files)
    return sorted(
        f"{'.'.join(child)} inherits from {'.'.join(parent)}"
        for child, parent in classes.inherited()
        if parent[0] in compiled
        and child[0] not in compiled
        and classes.is_native(parent)
        and not classes.allows_interpreted(parent)
    )


def test_no_interpreted_class_inherits_from_a_compiled_class():
    found = interpreted_subclasses(sources(*PACKAGES), set(compiled_modules()))
    assert found == [], "list their modules in pyproject.toml (hooks.mypyc, include)"


COMPILED = """
from enum import IntEnum
from typing import Generic, NamedTuple
class Parked(Generic[T]): ...
class Usage(NamedTuple): ...
class Kind(IntEnum): ...
@mypyc_attr(allow_interpreted_subclasses=True)
class Open: ...
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from barnabas.broker.a import Parked\nclass Late(Parked[int]): ...", ["Late"]),
        ("from .a import Parked as P\nclass Late(object, P): ...", ["Late"]),
        ("from barnabas.broker import a\nclass Late(a.Parked[int]): ...", ["Late"]),
        ("import barnabas.broker.a\nclass Late(barnabas.broker.a.Parked): ...", ["Late"]),
        ("import barnabas.broker.a as b\nclass Late(b.Parked): ...", ["Late"]),
        ("from .again import Parked\nclass Late(Parked): ...", ["Late"]),
        ("from .a import Parked\nBase = Parked[int]\nclass Late(Base): ...", ["Late"]),
        ("from .a import Parked\ndef late():\n class Late(Parked): ...", ["Late"]),
        ("from .a import Kind, Open, Usage\nclass A(Open): ...\nclass B(Usage): ...", []),
        ("from .a import Parked\nfrom .b import Parked\nclass Late(Parked): ...", []),
        ("class Parked: ...\nclass Late(Parked): ...", []),
        ("class Late(Late.Late): ...", []),
    ],
)
def test_interpreted_subclasses_are_found(text, expected):
    texts = {"a": COMPILED, "again": "from .a import Parked", "b": "", "child": text}
    files = [
        Source(ROOT / "broker" / f"{name}.py", each, ast.parse(each))
        for name, each in texts.items()
    ]
    assert interpreted_subclasses(files, {"barnabas.broker.a"}) == [
        f"barnabas.broker.child.{name} inherits from barnabas.broker.a.Parked" for name in expected
    ]
