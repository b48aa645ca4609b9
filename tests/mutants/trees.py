"""Copies of the product's sources, by hard links: a mutant changes one file of its own copy.

Compiled files are linked, too, so that Python compiles only the changed file again. Python replaces
compiled files and never writes into them; it only reads the other files.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.checkout import ROOT, SOURCES
from tests.mutants.table import Mutant

PLACE: Final = ROOT / "build" / "mutants"
PLAIN: Final = "plain"


def make_plain() -> Path:
    """Copy the sources unchanged; return the directory for Python's path."""
    shutil.rmtree(PLACE, ignore_errors=True)
    tree = PLACE / PLAIN
    shutil.copytree(SOURCES, tree, copy_function=os.link)
    return tree


@contextlib.contextmanager
def mutated(plain: Path, mutant: Mutant, name: str) -> Iterator[Path]:
    """Yield a copy with one change; raise ValueError unless its text occurs once."""
    tree = PLACE / name
    parts = Path(mutant.file).parts
    inside = Path(*parts[1:]) if parts[0] == "src" else Path("barnabas", *parts)
    changed = mutant.applied_to((plain / inside).read_text(encoding="utf-8"))
    shutil.copytree(plain, tree, copy_function=os.link)
    try:
        (tree / inside).unlink()
        (tree / inside).write_text(changed, encoding="utf-8")
        yield tree
    finally:
        shutil.rmtree(tree)
