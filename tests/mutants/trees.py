"""Copies of the product's sources, by hard links: a mutant changes one file of its own copy.

Compiled files are linked, too, so that Python compiles only the changed file again. Python replaces
compiled files and never writes into them, and only reads the other files. Until a compiled file is
whole it has another name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.checkout import ROOT, SOURCES
from tests.mutants.table import Mutant

PLACE: Final = ROOT / "build" / "mutants"
"""On the file system of the sources: else they could not be linked."""


@contextlib.contextmanager
def unchanged() -> Iterator[Path]:
    """Yield a directory for Python's path with a copy of the sources, and remove all copies after.

    Several runs may be under way, each with a directory of its own.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=PLACE))
    try:
        plain = place / "plain"
        _link(SOURCES, plain)
        yield plain
    finally:
        shutil.rmtree(place)


@contextlib.contextmanager
def mutated(plain: Path, mutant: Mutant, name: str) -> Iterator[Path]:
    """Yield a copy of ``plain`` with one change; raise ValueError unless its text occurs once."""
    tree = plain.parent / name
    parts = Path(mutant.file).parts
    inside = Path(*parts[1:]) if parts[0] == "src" else Path("barnabas", *parts)
    changed = mutant.applied_to((plain / inside).read_text(encoding="utf-8"))
    _link(plain, tree)
    try:
        (tree / inside).unlink()
        (tree / inside).write_text(changed, encoding="utf-8")
        yield tree
    finally:
        shutil.rmtree(tree)


def _link(source: Path, target: Path) -> None:
    half_written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(source, target, copy_function=os.link, ignore=half_written)
