"""Just enough of PromQL to say which metrics, and which of their labels, a query asks for."""

from __future__ import annotations

import re

WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
RANGE = re.compile(r"\[[^\]]*\]")
OPERATORS = {"and", "or", "unless", "bool", "offset"}


def metrics_of(query: str) -> dict[str, set[str]]:
    """Return the metrics that a query names, each with the labels that it selects by."""
    query = RANGE.sub("", STRING.sub('""', query))
    found: dict[str, set[str]] = {}
    for name, selection in SELECTOR.findall(query):
        found.setdefault(name, set()).update(WORD.findall(selection))
    rest = GROUPING.sub(" ", SELECTOR.sub(" ", query))
    for match in WORD.finditer(rest):
        name = match.group()
        is_function = rest[match.end() :].lstrip().startswith("(")
        if not is_function and name not in OPERATORS and not _is_number(rest, match):
            found.setdefault(name, set())
    return found


def grouping_labels(query: str) -> set[str]:
    """Return the labels that a query groups or joins by."""
    return {label for _, labels in GROUPING.findall(query) for label in WORD.findall(labels)}


def _is_number(text: str, match: re.Match[str]) -> bool:
    return match.start() > 0 and text[match.start() - 1].isdigit()
