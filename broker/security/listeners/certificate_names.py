"""``ssl.principal.mapping.rules``: user names derived from the names in client certificates.

Rules of this file:

* Grammar and effect of the rules are those of Apache Kafka's SslPrincipalMapper, whose results are
  in tests/broker/tls/java_mapping.txt. A pattern must match the whole name; then, as Java's
  ``replaceAll`` does, each match is replaced.
* Patterns run in RE2, since names come from the peer. A pattern that RE2 interprets differently
  from Java is refused at the start.
* If the two differ only for certain characters, a name with such characters matches no pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import re2

_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)\/((\\.|[^\\/])*)\/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)", re.ASCII)
_PARSER: Final = re.compile(_RULE, re.ASCII)
_REFERENCE: Final = re.compile(r"\$([0-9]+)")

_LINE_ENDS: Final = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
"""Characters for which Java's ``.`` and ``$`` have rules that RE2 does not have."""
_FOLDED_TO_ASCII: Final = re.compile("[\u017f\u212a]")
"""Letters that RE2 equates with s and k if case is ignored."""
_IGNORES_CASE: Final = re.compile(r"\(\?[a-z]*i")
_OTHER_FLAG: Final = re.compile(r"\(\?[a-z-]*U")
_OTHER_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\[bBC0-9])")
_PATTERN_MAX_BYTES: Final = 4 << 20


class MalformedRules(Exception):
    """Invalid rules; the message is one line."""


class NoName(Exception):
    """Name in a certificate to which no rule applies."""


class CertificateNames:
    """Rules of one listener."""

    def __init__(self, rules: str) -> None:
        """Read ``ssl.principal.mapping.rules``; raises MalformedRules."""
        self._rules = [rule for text in _split(rules) if (rule := _rule(text)) is not None]

    def user_of(self, name: str) -> str:
        """Return the user's name; raises NoName."""
        for rule in self._rules:
            user = rule(name)
            if user:
                return user
        raise NoName


Rule = Callable[[str], str | None]


def _split(rules: str) -> list[str]:
    return [match[1] for match in _SPLITTER.finditer(rules.strip())]


def _rule(text: str) -> Rule | None:
    """Return a rule as a function, or None if it is empty, which has no effect."""
    match = _PARSER.match(text)
    assert match is not None, "the last alternative matches nothing"
    if match.end() != len(text):
        raise MalformedRules(
            f"Invalid rule: `{text}`, unmatched substring: `{text[match.end() :]}`"
        )
    if match[1] is not None:
        return lambda name: name
    if match[2] is None:
        return None
    return _Replacement(match[2], match[4], match[6])


class _Replacement:
    """Rule ``RULE:pattern/replacement/case``."""

    def __init__(self, pattern: str, replacement: str, case: str) -> None:
        self._pattern = _compiled(pattern)
        self._ignores_case = bool(_IGNORES_CASE.search(pattern))
        self._parts = _parsed(replacement, self._pattern, pattern)
        self._case = case

    def __call__(self, name: str) -> str | None:
        """Return the user's name, or None if the pattern does not match the whole name."""
        if _LINE_ENDS.search(name) or (self._ignores_case and _FOLDED_TO_ASCII.search(name)):
            return None
        if not self._pattern.fullmatch(name):
            return None
        user = self._replaced(name)
        if self._case == "L":
            return user.lower()
        return user.upper() if self._case == "U" else user

    def _replaced(self, name: str) -> str:
        """Replace every match of the pattern, including an empty one at the end."""
        result = []
        copied = position = 0
        while position <= len(name) and (found := self._pattern.search(name, position)):
            result.append(name[copied : found.start()])
            result += [each if isinstance(each, str) else found[each] or "" for each in self._parts]
            copied = found.end()
            position = copied if found.end() > found.start() else copied + 1
        return "".join([*result, name[copied:]])


def _compiled(pattern: str) -> Any:  # noqa: ANN401  re2 has no types
    _check_means_the_same(pattern)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MAX_BYTES
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise MalformedRules(f"Invalid rule: `{pattern}`: {reason}") from None


def _check_means_the_same(pattern: str) -> None:
    """Raise MalformedRules for a pattern that RE2 interprets differently from Java."""
    reason = None
    if _OTHER_FLAG.search(pattern):
        reason = "the flag U is not available"
    elif _IGNORES_CASE.search(pattern) and not pattern.isascii():
        reason = "case counts for letters that are not ASCII"
    elif escape := _OTHER_ESCAPE.search(pattern):
        reason = f"{escape[1]} is not available"
    elif _has_nested_class(pattern):
        reason = "a class of characters inside of another is not available"
    if reason is not None:
        raise MalformedRules(f"Invalid rule: `{pattern}`: {reason}")


def _has_nested_class(pattern: str) -> bool:
    """Whether the pattern has [a[b]] or [a&&b], which are unions and intersections in Java."""
    position, inside = 0, False
    while position < len(pattern):
        each = pattern[position]
        if each == "\\":
            position += 1
        elif inside and (each == "[" or pattern.startswith("&&", position)):
            return True
        elif each == "[":
            inside = True
            # A closing bracket that comes first is one of the characters.
            position += len(re.match(r"\[\^?\]?", pattern[position:])[0]) - 1  # type: ignore[index]
        elif each == "]":
            inside = False
        position += 1
    return False


def _parsed(replacement: str, compiled: Any, pattern: str) -> Sequence[str | int]:  # noqa: ANN401
    """Return text and numbers of groups, as Java reads a replacement; raises MalformedRules."""
    groups: int = compiled.groups
    text = _with_literal_references(replacement, groups)
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        each = text[position]
        position += 1
        if each == "\\":
            parts.append(text[position])
            position += 1
        elif each != "$":
            parts.append(each)
        else:
            number, position = _group(text, position, compiled, pattern)
            parts.append(number)
    return parts


def _group(text: str, position: int, compiled: Any, pattern: str) -> tuple[int, int]:  # noqa: ANN401
    """Return the number of the group after a ``$``, and the position after it."""
    named = re.match(r"\{([a-zA-Z][a-zA-Z0-9]*)\}", text[position:])
    if named is not None and named[1] in compiled.groupindex:
        return compiled.groupindex[named[1]], position + named.end()
    if not text[position : position + 1].isdecimal() or int(text[position]) > compiled.groups:
        reason = "a $ of the replacement refers to no group of the pattern"
        raise MalformedRules(f"Invalid rule: `{pattern}`: {reason}")
    number = int(text[position])
    position += 1
    while text[position : position + 1].isdecimal():
        longer = 10 * number + int(text[position])
        if longer > compiled.groups:
            break
        number = longer
        position += 1
    return number, position


def _with_literal_references(replacement: str, groups: int) -> str:
    """Put a backslash before references beyond the last group, if the pattern has groups."""
    if not groups:
        return replacement
    position = 0
    while found := _REFERENCE.search(replacement, position):
        position = found.end()
        number = int(found[1])
        while number > groups and number >= 10:
            number //= 10
        if not found[1].startswith("0") and number > groups:
            replacement = f"{replacement[: found.start()]}\\{replacement[found.start() :]}"
            position += 1
    return replacement
