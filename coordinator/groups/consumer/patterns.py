"""Regular expressions of topics: RE2's language, matched in linear time (KIP-848).

A client's expression must not be able to stop the broker, so Python's own ``re`` is out of the
question: it can need time exponential in the length of a topic's name. RE2 needs linear time, and
limits the memory of an expression; Apache Kafka uses its port to Java.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

import re2

PATTERN_MAX_CHARACTERS: Final = 8_192
"""Far more than anybody writes; what is compiled is limited by RE2 itself."""

_COMPILED_MAX: Final = 256


def problem_of(regex: str) -> str | None:
    """Why this is no regular expression; None if it is one."""
    if len(regex) > PATTERN_MAX_CHARACTERS:
        return f"it is longer than {PATTERN_MAX_CHARACTERS} characters"
    try:
        _compiled(regex)
    except UnicodeEncodeError:
        return "it is no valid Unicode text"
    except re2.error as error:
        return _text(error)
    return None


def matching(regexes: Iterable[str], names: Collection[str]) -> Mapping[str, frozenset[str]]:
    """The names that each expression matches from their first to their last character.

    An expression that is none matches nothing: it can only have come from another broker's log.
    """
    found = {}
    for regex in regexes:
        usable = problem_of(regex) is None
        matches = whole_match(regex) if usable else _never
        found[regex] = frozenset(name for name in names if matches(name))
    return found


def whole_match(regex: str) -> Callable[[str], object]:
    """Return what tells whether a text matches from its first to its last character.

    Ask ``problem_of`` first.
    """
    matches: Callable[[str], object] = _compiled(regex).fullmatch
    return matches


def _never(_name: str) -> None:
    return None


@lru_cache(_COMPILED_MAX)
def _compiled(regex: str) -> re2._Regexp[str]:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    return re2.compile(regex, options=options)


def _text(error: re2.error) -> str:
    """RE2's own words."""
    [words] = error.args
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words)
