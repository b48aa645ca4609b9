"""Write Python text: indentation, line breaks as ruff's formatter would put them, unique local
names.
"""

from __future__ import annotations

import builtins
import contextlib
import keyword
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LINE_LENGTH = 100
WORD_START = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Parameters and scratch variables of generated functions; a field of such a name gets a longer
# local name.
TAKEN = frozenset(
    {
        "view",
        "position",
        "size",
        "count",
        "elements",
        "end",
        "low",
        "tag",
        "tags",
        "tagged",
        "body",
        "byte",
        "data",
        "items",
        "out",
        "chunks",
        "message",
        "field",
        "dataclass",
        "struct",
        "unpack_from",
        "pack",
    }
)


class Code:
    """Lines of Python under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._indent = 0

    def add(self, *lines: str) -> None:
        """Add lines at the current indentation."""
        for line in lines:
            self.lines.append("    " * self._indent + line if line else "")

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head`` and indent what is added inside the context."""
        self.add(head)
        with self.indented():
            yield

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        """Indent what is added inside the context."""
        self._indent += 1
        yield
        self._indent -= 1

    def fits(self, line: str) -> bool:
        """Whether ``line`` is short enough for the current indentation."""
        return len(line) + 4 * self._indent <= LINE_LENGTH

    def call(self, head: str, arguments: Sequence[str], tail: str = ")") -> None:
        """Add a call on one line if it fits, else one argument to a line."""
        line = head + ", ".join(arguments) + tail
        if self.fits(line):
            self.add(line)
            return
        self.add(head)
        self.add(*(f"    {argument}," for argument in arguments))
        self.add(tail)

    def filled(self, start: str, arguments: Sequence[str], end: str) -> None:
        """Add a call, or the head of a function, on as few lines as possible."""
        line = start + ", ".join(arguments) + end
        if self.fits(line):
            self.add(line)
            return
        self.add(start)
        line = f"    {', '.join(arguments)}"
        if self.fits(line):
            self.add(line, end)
            return
        line = "   "
        for argument in arguments:
            if not self.fits(f"{line} {argument},"):
                self.add(line)
                line = "   "
            line += f" {argument},"
        self.add(line, end)

    def import_names(self, module: str, names: Sequence[str]) -> None:
        """Add ``from module import names``, nothing if there are none."""
        line = f"from {module} import {', '.join(names)}"
        if names and self.fits(line):
            self.add(line)
        elif names:
            self.call(f"from {module} import (", names)

    def text(self) -> str:
        """Return all lines as one text."""
        return "".join(f"{line}\n" for line in self.lines)


class Names:
    """Unique local variable names of one generated function."""

    def __init__(self) -> None:
        self._used = set(TAKEN)

    def new(self, name: str, owner: str) -> str:
        """Return ``name``, prefixed by its owner's if it is used, a keyword or a builtin."""
        candidate = name
        while (
            candidate in self._used or keyword.iskeyword(candidate) or hasattr(builtins, candidate)
        ):
            candidate = f"{owner}_{candidate}"
        self._used.add(candidate)
        return candidate


def snake_case(name: str) -> str:
    """Return a name in snake case: ``TopicData`` becomes ``topic_data``."""
    return WORD_START.sub("_", name).lower()


def struct_name(verb: str, codes: str) -> str:
    """Return the constant that packs or unpacks these codes: ``pack_ihq``; ``?`` becomes ``t``."""
    return f"{verb}_{codes.replace('?', 't')}"
