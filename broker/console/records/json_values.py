"""JSON of records and filters as values. No number in it raises anything but ValueError.

Numbers are exact. A number whose exponent no Decimal can have stays a text, and is the same as the
same text only. Python's own limit for digits of an ``int`` does not hide a record: longer numbers
are Decimals.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final, NamedTuple

INTEGER_DIGITS_MOST: Final = 1_000
"""Python takes time with the square of an integer's digits, and refuses 4,300."""


class OutOfRange(NamedTuple):
    """A number with an exponent beyond those of a Decimal."""

    text: str


Number = int | Decimal | OutOfRange


def read_json(text: str | bytes) -> Any:  # noqa: ANN401  any JSON value
    """Return the value of a text of JSON; raises ValueError where it is not JSON."""
    try:
        return json.loads(text, parse_float=_exact, parse_int=_integer)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def is_same(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Return whether two JSON values are equal; true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    try:
        return bool(one == other)
    except (ArithmeticError, RecursionError):
        return False


def _exact(text: str) -> Decimal | OutOfRange:
    try:
        return Decimal(text)
    except ArithmeticError:
        return OutOfRange(text)


def _integer(text: str) -> Number:
    return int(text) if len(text) <= INTEGER_DIGITS_MOST else _exact(text)
