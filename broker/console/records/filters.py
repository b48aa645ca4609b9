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

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

import re2

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records import Record

FILTER_MOST: Final = 1024
"""Characters of a filter."""
TERMS_MOST: Final = 16
JSON_BYTES_MAX: Final = 64 * 1024
"""A larger value is not decoded: that would keep the interpreter for more than a millisecond."""
REGEX_BYTES_MAX: Final = 1024 * 1024
"""In a larger one no regular expression is looked for."""
REGEX_MEMORY_BYTES: Final = 1024 * 1024
_PIECE_BYTES: Final = 256 * 1024
"""So much is searched for a text at a time."""

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
"""None: the record is too large to tell."""
Term = Callable[[Record], Verdict]


class _Missing(NamedTuple):
    """Stands for what a value does not have."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What has to hold of a record."""

    terms: tuple[Term, ...] = ()
    partitions: frozenset[int] | None = None
    """Only these; None: any."""

    @property
    def is_empty(self) -> bool:
        """Whether every record of a partition passes."""
        return not self.terms

    def matches(self, record: Record) -> Verdict:
        """Whether a record passes; None where it is too large to tell."""
        verdict: Verdict = True
        for term in self.terms:
            found = term(record)
            if found is False:
                return False
            if found is None:
                verdict = None
        return verdict


def read_filter(text: str) -> Filter:
    """Return what a text means; raises KafkaError."""
    terms: list[Term] = []
    partitions: frozenset[int] | None = None
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TERM.match(text, position, end)
        if found is None or found.end() == position:
            raise _refused(f"nothing is meant by {text[position:][:80]}")
        position = found.end()
        if found["where"] == "partition":
            named = _partitions(found["word"] or found["quoted"] or "")
            partitions = named if partitions is None else partitions & named
        else:
            terms.append(_term(found))
    if len(terms) > TERMS_MOST:
        raise _refused(f"at most {TERMS_MOST} terms")
    return Filter(tuple(terms), partitions)


def _refused(words: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"filter: {words}")


def _partitions(text: str) -> frozenset[int]:
    numbers = text.split(",")
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
        raise _refused("partition: numbers with commas between")
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
    """Yield what of a record is looked at."""
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
    """Whether bytes hold others, in capitals or not (of ASCII); no long work in one go."""
    step = max(_PIECE_BYTES, len(needle))
    for start in range(0, max(1, len(data)), step):
        if needle in data[start : start + step + len(needle) - 1].lower():
            return True
    return False


def _of_regex(where: str, pattern: str) -> Term:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = REGEX_MEMORY_BYTES
    try:
        compiled = re2.compile(pattern.encode(), options=options)
    except (re2.error, UnicodeEncodeError) as error:
        words = error.args[0] if error.args else ""
        shown = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
        raise _refused(f"/{pattern[:80]}/: {shown}") from None

    def fits(record: Record) -> Verdict:
        verdict: Verdict = False
        for each in _places(record, where):
            if len(each) > REGEX_BYTES_MAX:
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
            value = json.loads(data, parse_float=Decimal)
        except (ValueError, RecursionError):
            return False
        there = _at(value, steps)
        if isinstance(there, _Missing):
            return False
        return _is_same(there, wanted) == equal

    return fits


def _literal(text: str) -> Any:  # noqa: ANN401  Whatever JSON can hold.
    """Return what stands behind a "=": JSON, or else a text without quotes."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
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


def _is_same(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Whether two values of JSON are the same; true is not 1 there."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    try:
        return bool(one == other)
    except (InvalidOperation, RecursionError):
        return False
