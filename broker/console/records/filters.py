r"""Filters without scripts: words that all have to be there.

| | |
|---|---|
| `text`, `"a text"` | somewhere in key, value or a header, in capitals or not |
| `key:text`, `value:text`, `header:text`, `header.trace:text` | only there |
| `/regex/`, `key:/regex/` | RE2 |
| `partition:3,5` | one of these |
| `value.order.id = 5`, `key.name != "a"`, `value.items[0].id=7` | of decoded JSON |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.broker.console.lengths import FILTER_MOST, PARTITIONS_NAMED_MOST
from barnabas.broker.console.records.json_values import is_same, read_json
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.patterns import InvalidPattern, compile_pattern, match_work
from barnabas.protocol.records import Record

TERMS_MOST: Final = 16
JSON_BYTES_MAX: Final = 64 * 1024
"""A larger value is not decoded: that would keep the interpreter for more than a millisecond."""
REGEX_BYTES_MAX: Final = 1024 * 1024
"""Maximum size of a record for regular expressions."""
REGEX_MEMORY_BYTES: Final = 64 * 1024
"""Memory of one expression; a filter of sixteen compiles in 0.13 s at most."""
REGEX_WORK_MOST: Final = 256 * 1024 * 1024
"""Nor where it could take longer than a second of a thread, since the expression is long."""
_PIECE_BYTES: Final = 256 * 1024
"""Number of bytes searched for a text at a time."""

_TERM: Final = re.compile(
    r"""\s*(?:
    (?P<side>key|value)(?P<path>(?:\.[^\s.=!:"/\[\]]+|\[[0-9]+\])+)
        \s*(?P<operator>!?=)\s*(?P<literal>"(?:[^"\\]|\\.)*"|\S+)(?=\s|$)
    | (?:(?P<where>key|value|header(?:\.[^\s:"]+)?|partition):)?
      (?:"(?P<quoted>(?:[^"\\]|\\.)*)"(?=\s|$)|/(?P<regex>(?:[^/\\]|\\.)+)/(?=\s|$)|(?P<word>\S+))
    )""",
    re.VERBOSE,
)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)

Verdict = bool | None
"""Result of a condition, or None if the record is too large to decide."""
Term = Callable[[Record], Verdict]


class _Missing(NamedTuple):
    """Result of a path that a value does not contain."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions for records."""

    terms: tuple[Term, ...] = ()
    partitions: frozenset[int] | None = None
    """Partitions to include, or None for all."""

    @property
    def is_empty(self) -> bool:
        """Whether every record of a partition passes."""
        return not self.terms

    def matches(self, record: Record) -> Verdict:
        """Return whether a record passes, or None if it is too large to decide."""
        verdict: Verdict = True
        for term in self.terms:
            found = term(record)
            if found is False:
                return False
            if found is None:
                verdict = None
        return verdict


def read_filter(text: str) -> Filter:
    """Return the filter that a text describes; raises KafkaError.

    The limits are checked before anything is compiled.
    """
    if len(text) > FILTER_MOST:
        raise _refused(f"at most {FILTER_MOST} characters")
    terms: list[Term] = []
    partitions: frozenset[int] | None = None
    for found in _divided(text):
        if found["where"] == "partition":
            named = _partitions(found["word"] or found["quoted"] or "")
            partitions = named if partitions is None else partitions & named
        else:
            terms.append(_term(found))
    return Filter(tuple(terms), partitions)


def _divided(text: str) -> list[re.Match[str]]:
    """Return the terms of a text; raises KafkaError."""
    found: list[re.Match[str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        term = _TERM.match(text, position, end)
        if term is None or term.end() == position:
            raise _refused(f"syntax error at {text[position:][:80]}")
        found.append(term)
        if len(found) > TERMS_MOST:
            raise _refused(f"at most {TERMS_MOST} terms")
        position = term.end()
    return found


def _refused(words: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"filter: {words}")


def _partitions(text: str) -> frozenset[int]:
    numbers = text.split(",", PARTITIONS_NAMED_MOST)
    if len(numbers) > PARTITIONS_NAMED_MOST:
        raise _refused(f"partition: at most {PARTITIONS_NAMED_MOST} numbers")
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
        raise _refused("partition: expected numbers separated by commas")
    return frozenset(map(int, numbers))


def _term(found: re.Match[str]) -> Term:
    if found["side"]:
        return _of_json(found)
    where = found["where"] or ""
    if found["regex"] is not None:
        return _of_regex(where, found["regex"].replace("\\/", "/"))
    text = found["word"] if found["quoted"] is None else _ESCAPED.sub(r"\1", found["quoted"])
    needle = text.encode(errors="surrogatepass").lower()

    def has_text(record: Record) -> bool:
        return any(contains(each, needle) for each in _places(record, where))

    return has_text


def _places(record: Record, where: str) -> Iterator[bytes]:
    """Yield the parts of a record that a condition applies to."""
    if where in {"", "key"} and record.key is not None:
        yield record.key
    if where in {"", "value"} and record.value is not None:
        yield record.value
    if where in {"", "header"}:
        for name, value in record.headers:
            yield name.encode(errors="surrogatepass")
            if value is not None:
                yield value
    elif where.startswith("header."):
        wanted = where.removeprefix("header.")
        for name, value in record.headers:
            if name == wanted and value is not None:
                yield value


def contains(data: bytes, needle: bytes) -> bool:
    """Return whether bytes contain others, ignoring ASCII case, with pauses."""
    step = max(_PIECE_BYTES, len(needle))
    for start in range(0, max(1, len(data)), step):
        if needle in data[start : start + step + len(needle) - 1].lower():
            return True
    return False


def _of_regex(where: str, pattern: str) -> Term:
    try:
        compiled = compile_pattern(pattern, REGEX_MEMORY_BYTES)
    except InvalidPattern as error:
        raise _refused(f"/{pattern[:80]}/: {error}") from None

    def fits(record: Record) -> Verdict:
        verdict: Verdict = False
        for each in _places(record, where):
            work = match_work(compiled, len(each))
            if len(each) > REGEX_BYTES_MAX or work > REGEX_WORK_MOST:
                verdict = None
            elif compiled.search(each) is not None:
                return True
        return verdict

    return fits


# ------------------------------------------------------------------------------------------- JSON


def _of_json(found: re.Match[str]) -> Term:
    side, equal = found["side"], found["operator"] == "="
    steps = tuple(
        name if number is None else int(number)
        for name, number in ((each[1], each[2]) for each in _STEP.finditer(found["path"]))
    )
    wanted = _literal(found["literal"])

    def fits(record: Record) -> Verdict:
        data = record.key if side == "key" else record.value
        if data is None:
            return False
        if len(data) > JSON_BYTES_MAX:
            return None
        try:
            value = read_json(data)
        except ValueError:
            return False
        there = _at(value, steps)
        if isinstance(there, _Missing):
            return False
        return is_same(there, wanted) == equal

    return fits


def _literal(text: str) -> Any:  # noqa: ANN401  any JSON value
    """Return the value after "=": JSON, or else text without quotes."""
    try:
        return read_json(text)
    except ValueError:
        return text


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:  # noqa: ANN401
    for step in steps:
        is_there = (
            step in value
            if isinstance(step, str) and isinstance(value, dict)
            else isinstance(step, int) and isinstance(value, list) and step < len(value)
        )
        if not is_there:
            return _Missing()
        value = value[step]
    return value
