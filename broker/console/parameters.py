"""Parameters of a route: accepted values in a query, and their parsed form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.console.encoding import OLD_NAMES
from barnabas.broker.console.lengths import LENGTHS, check_length
from barnabas.broker.console.paging import LIMIT_DEFAULT, LIMIT_MOST
from barnabas.broker.console.questions import Value
from barnabas.protocol.errors import ErrorCode, KafkaError

_BOOLEANS: Final = {"true": True, "false": False}
DIGITS_MOST: Final = 19


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter."""

    name: str
    doc: str
    kind: type = str
    default: Value | None = None
    """Value of a missing parameter, or None for none."""
    choices: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Old names of choices, each with its present name."""
    least: int = 0
    most: int = 2**63 - 1
    """Bounds of numbers."""
    limit: str = ""
    """Name of the parameter's row in lengths.py, or "" for its own name."""
    length_most: int = field(init=False)
    """Maximum length of the parameter's text."""

    def __post_init__(self) -> None:
        """Find the limit of its text; raises KeyError where lengths.py has none."""
        if self.choices:
            most = max(map(len, (*self.choices, *self.renamed)))
        elif self.kind is str:
            most = LENGTHS[self.limit or self.name]
        else:
            most = DIGITS_MOST if self.kind is int else max(map(len, _BOOLEANS))
        object.__setattr__(self, "length_most", most)

    def read(self, text: str) -> Value:
        """Return the parsed value; raises KafkaError."""
        if self.kind is str and not self.choices:
            check_length(self.name, text, self.length_most)
            return text
        if self.kind is bool:
            if text not in _BOOLEANS:
                raise self._refused("must be true or false")
            return _BOOLEANS[text]
        text = self.renamed.get(text, text)
        if self.choices and text not in self.choices:
            raise self._refused("must be one of " + ", ".join(self.choices))
        if self.kind is int:
            is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS_MOST
            if not is_number or not self.least <= int(text) <= self.most:
                raise self._refused(f"must be a number from {self.least} to {self.most}")
            return int(text)
        return text

    def _refused(self, expected: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"{self.name}: {expected}")


def read_query(parameters: Iterable[Parameter], query: Mapping[str, str]) -> dict[str, Value]:
    """Return the parsed query, with defaults; raises KafkaError."""
    known = {each.name: each for each in parameters}
    for name in query:
        if name not in known:
            there = ", ".join(known) or "none"
            words = f"{name[:80]}: unknown parameter; expected: {there}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    values = {each.name: each.default for each in known.values() if each.default is not None}
    return values | {name: known[name].read(text) for name, text in query.items()}


def paged(default_sort: str, sorts: Iterable[str], filtered: str = "") -> tuple[Parameter, ...]:
    """Return the parameters of a list; ``filtered`` names the filtered field."""
    names = tuple(sorts)
    choices = (*names, *(f"-{name}" for name in names))
    old = {OLD_NAMES[name]: name for name in names if name in OLD_NAMES}
    renamed = old | {f"-{name}": f"-{present}" for name, present in old.items()}
    doc = 'Field to sort by; "-" before it reverses the order.'
    parameters = (
        Parameter("sort", doc, str, default_sort, choices, renamed),
        Parameter("limit", "Maximum number of rows.", int, LIMIT_DEFAULT, least=1, most=LIMIT_MOST),
        Parameter("after", "`next` of the previous page."),
    )
    if not filtered:
        return parameters
    doc = f"Only rows with this text in {filtered}; upper and lower case are equal."
    return Parameter("filter", doc, limit="name_filter"), *parameters
