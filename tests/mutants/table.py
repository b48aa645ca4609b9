"""The table of mutants: small changes of the product, each of which a named test must notice.

A guard is a condition by which a broker of a cluster, or the store, refuses, drops or ignores what
belongs to another session, epoch, lease, connection, topic or coordinator. ``guards.toml`` lists
them in ``[guards]``. Each other file of ``table/`` has the mutants of one family of rules:

    [[mutant]]
    breaks = ["S8"]                       # rules of docs/invariants.md, or guards of guards.toml
    file = "storage/log/producers.py"         # from the root of the repository
    before = "elif epoch < entry.epoch:"  # occurs once in the file
    after = "elif epoch < entry.epoch - 1:"
    red = "tests/storage/test_producers.py::test_every_state_against_every_batch"
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.checkout import ROOT

TABLES: Final = Path(__file__).parent / "table"
GUARDS: Final = TABLES / "guards.toml"


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    breaks: tuple[str, ...]
    """Rules and guards that the change breaks."""
    file: str
    before: str
    after: str
    red: str
    """Arguments of pytest; at least one of the tests must fail."""

    @property
    def path(self) -> Path:
        """Return the file in the checkout."""
        return ROOT / self.file

    @property
    def tests(self) -> list[str]:
        """Return the test files and node ids in ``red``."""
        return [each for each in self.red.split() if each.startswith("tests/")]

    @property
    def name(self) -> str:
        """Return a name for reports: what is broken, and where."""
        return f"{','.join(self.breaks)} {self.place}"

    @property
    def place(self) -> str:
        """Return the file and the line of the change."""
        text = self.path.read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            return self.file
        return f"{self.file}:{text[: text.index(self.before)].count(chr(10)) + 1}"

    def applied_to(self, text: str) -> str:
        """Return the file's text with the change; raises ValueError unless it fits once."""
        found = text.count(self.before)
        if found != 1:
            raise ValueError(f"{self.file} has the text {self.before!r} {found} times, not once")
        return text.replace(self.before, self.after)


@cache
def mutants() -> Sequence[Mutant]:
    """Return all mutants, by file of the table."""
    return [
        Mutant(**{**row, "breaks": tuple(row["breaks"])})
        for path in sorted(TABLES.glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]


@cache
def guards() -> dict[str, str]:
    """Return the guards of the cluster, by name, with what each of them refuses."""
    found: dict[str, str] = tomllib.loads(GUARDS.read_text(encoding="utf-8"))["guards"]
    return found


def groups(chosen: Sequence[Mutant]) -> dict[str, list[Mutant]]:
    """Return mutants by the command that must go red."""
    found: dict[str, list[Mutant]] = {}
    for each in chosen:
        found.setdefault(each.red, []).append(each)
    return found
