"""Counts that may fall and not rise, in one JSON file for each rule in the folder ``ratchets``.

``python -m tests.tidy.ratchet`` writes the counts of the checkout, after a file became better or
files were moved. Read the diff: a count that rises there needs a reason in the commit.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.tidy.english import english_counts
from tests.tidy.source import PACKAGES, ROOT, sources

FOLDER: Final = ROOT / "tests" / "tidy" / "ratchets"
FILE_LINES_MAX: Final = 600
FOLDER_MODULES_MAX: Final = 25


def file_lines() -> dict[str, int]:
    """Return the number of lines of each file of the product that is written by hand."""
    return {each.name: each.lines for each in sources(*PACKAGES) if not each.is_generated}


def folder_modules() -> dict[str, int]:
    """Return the number of modules of each folder of the product, without ``__init__.py``."""
    return Counter(
        each.path.parent.relative_to(ROOT).as_posix()
        for each in sources(*PACKAGES)
        if not each.is_generated and each.path.name != "__init__.py"
    )


RULES: Final[dict[str, tuple[Callable[[], dict[str, int]], int]]] = {
    "english": (english_counts, 0),
    "files": (file_lines, FILE_LINES_MAX),
    "folders": (folder_modules, FOLDER_MODULES_MAX),
}
"""Each rule: its counts, and the count that a new file or folder may have."""


def recorded(rule: str) -> dict[str, int]:
    """Return the recorded exceptions of a rule."""
    found: dict[str, int] = json.loads((FOLDER / f"{rule}.json").read_text(encoding="utf-8"))
    return found


def risen(rule: str, counts: dict[str, int], known: dict[str, int]) -> list[str]:
    """Return a line for each count above its record, or above the limit if it has no record."""
    limit = RULES[rule][1]
    return [
        f"{name}: {count}, at most {max(limit, known.get(name, 0))}"
        for name, count in sorted(counts.items())
        if count > max(limit, known.get(name, 0))
    ]


def record(rule: str) -> None:
    """Write the counts above the limit as the record of a rule."""
    counts, limit = RULES[rule]
    over = {name: count for name, count in sorted(counts().items()) if count > limit}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{rule}.json").write_text(json.dumps(over, indent=0) + "\n", encoding="utf-8")
    print(f"{rule}: {len(over)} exceptions, {sum(over.values())} in sum")


if __name__ == "__main__":
    for name in sys.argv[1:] or RULES:
        record(name)
