"""Lines for people, in which every character is printable.

Names come from clients and files, and may have any characters. A character that is not printable
(ESC, a line end, a mark of direction) might change the screen or forge a row, so it is printed as
an escape of Python. This module imports nothing: every command needs it to start.
"""

from __future__ import annotations

from typing import TextIO


def escaped(text: str) -> str:
    """Return a text with escapes for all characters that are not printable."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def print_text(
    text: str = "", *, file: TextIO | None = None, end: str = "\n", flush: bool = False
) -> None:
    """Print one line, on standard output unless ``file`` is given."""
    print(escaped(text), file=file, end=end, flush=flush)
