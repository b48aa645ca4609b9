"""Ids of inputs: where a record carries its id, and which ids an output has."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.broker.cli.records.record_text import NewRecord

KEY, HEADER, JSON = "key", "header", "json"
ACCOUNTS: Final = 8
"""Number of keys of the inputs whose id is not the key."""
_TOKEN_DIGITS: Final = 8


class Carrier(Protocol):
    """A record with the parts that can have an id."""

    @property
    def key(self) -> bytes | None:
        """Key."""

    @property
    def value(self) -> bytes | None:
        """Value."""

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Headers."""


class IdRule(NamedTuple):
    """Part of a record that has its id: the key, a header, or a field of a JSON value."""

    kind: str = KEY
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> IdRule:
        """Parse ``key``, ``header:NAME`` or ``json:FIELD``; raises ValueError."""
        kind, separator, name = text.partition(":")
        if (kind == KEY and not separator) or (kind in {HEADER, JSON} and name):
            return cls(kind, name)
        raise ValueError(f"{text} is not key, header:NAME or json:FIELD")

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


class Identities:
    """Ids of one run: ``TOKEN-NUMBER``, which no other text of an output equals by chance."""

    def __init__(self, rule: IdRule, token: int) -> None:
        """``token`` differs from run to run."""
        self.rule = rule
        self.token = f"{token:0{_TOKEN_DIGITS}x}"
        self._pattern = re.compile(rf"{self.token}-[0-9]{{6,}}")

    def record(self, number: int) -> NewRecord:
        """Return the input of a number; its value is a JSON object with ``id`` and ``amount``."""
        identity = f"{self.token}-{number:06d}"
        account = f"account-{number % ACCOUNTS}"
        key = identity if self.rule.kind == KEY else account
        fields: dict[str, object] = {"id": identity, "account": account, "amount": number % 100}
        if self.rule.kind == JSON:
            fields[self.rule.name] = identity
        elif self.rule.kind == HEADER:
            del fields["id"]
        headers = ((self.rule.name, identity.encode()),) if self.rule.kind == HEADER else ()
        return NewRecord(key.encode(), json.dumps(fields).encode(), headers)

    def of(self, record: Carrier) -> Sequence[str]:
        """Return the ids of a record, or an empty list if it has none of this run.

        An output of a program that reads ids in keys may have the id in its value instead.
        """
        if self.rule.kind == HEADER:
            parts = [value for name, value in record.headers if name == self.rule.name]
        elif self.rule.kind == JSON:
            parts = [_field(record.value, self.rule.name)]
        else:
            parts = [record.key]
            if not self._found(record.key):
                parts = [*(value for _, value in record.headers), record.value]
        return list(dict.fromkeys(each for part in parts for each in self._found(part)))

    def _found(self, part: bytes | None) -> list[str]:
        return self._pattern.findall((part or b"").decode("latin-1"))


def _field(value: bytes | None, name: str) -> bytes | None:
    """Return a field of a JSON object as text, or ``None`` if the value has none."""
    try:
        parsed = json.loads(value or b"null")
    except ValueError:
        return None
    found = parsed.get(name) if isinstance(parsed, dict) else None
    return None if found is None else str(found).encode()
