"""Messages about words that are no commands or verbs."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Collection, Sequence
from typing import Final

_SYNONYMS: Final = (
    ("create", "add", "new", "set"),
    ("delete", "remove", "rm", "drop"),
    ("alter", "set", "change", "update"),
    ("list", "ls"),
    ("describe", "show", "get"),
)
"""Other commands, and other tools, have other verbs for the same."""


def name_problem(kind: str, names: Collection[str], words: Sequence[str], prog: str) -> str | None:
    """Return a problem if the first of ``words`` is not in ``names``, or ``None``.

    ``kind`` is the kind of the names: "command" or "verb". ``prog`` precedes the words.
    """
    if not words or words[0] in names:
        return None
    first = words[0]
    if first.startswith("-"):
        return _misplaced_option(kind, names, words, prog)
    likely = _likely_name(first, names)
    if likely is None:
        return f"unknown {kind} {first}: {', '.join(names)}"
    return f"unknown {kind} {first}, did you mean {likely}?"


def _misplaced_option(
    kind: str, names: Collection[str], words: Sequence[str], prog: str
) -> str | None:
    option = words[0].partition("=")[0]
    at = next((at for at, word in enumerate(words) if word in names), None)
    if at is None:
        return f"{option} must come after the {kind}, which is missing: {', '.join(names)}"
    right = shlex.join([*words[at:], *words[:at]])
    return f"{option} must come after the {kind}: {prog} {right}"


def _likely_name(word: str, names: Collection[str]) -> str | None:
    close = difflib.get_close_matches(word.lower(), names, 1)
    if close:
        return close[0]
    same = (each for verbs in _SYNONYMS if word in verbs for each in verbs if each in names)
    return next(same, None)
