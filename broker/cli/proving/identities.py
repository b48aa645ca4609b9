"""Ids of inputs: where a record carries its id, and which ids an output has."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from barnabas.broker.cli.records.record_text import BadRecord, NewRecord, record_from_json

KEY, HEADER, JSON = "key", "header", "json"
ACCOUNTS: Final = 8
"""Number of keys of the inputs whose id is not the key."""
RECORDS_MAX: Final = 1_000_000
"""Records of a file that is replayed."""
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
    """Ids of one run: ``TOKEN-NUMBER``, which no output of another run contains."""

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
        parts = _parts(record, self.rule)
        if self.rule.kind == KEY and not self._found(record.key):
            parts = [*(value for _, value in record.headers), record.value]
        return list(dict.fromkeys(each for part in parts for each in self._found(part)))

    def _found(self, part: bytes | None) -> list[str]:
        return self._pattern.findall((part or b"").decode("latin-1"))


class Replayed:
    """Ids of a user's own records, which the rule finds in inputs and in outputs alike."""

    def __init__(self, rule: IdRule, records: Sequence[NewRecord], token: int) -> None:
        """Raise ValueError for a record without an id, or with that of an earlier one."""
        self.rule = rule
        self.token = f"{token:0{_TOKEN_DIGITS}x}"
        self._records = records
        for number, record in enumerate(records, 1):
            if not self.of(record):
                raise ValueError(f"record {number} has no id: {rule}")
        ids = [self.of(record)[0] for record in records]
        if len(set(ids)) < len(ids):
            (twice, _), *_ = Counter(ids).most_common(1)
            raise ValueError(f"two records have the id {twice}: {rule}")

    def __len__(self) -> int:
        return len(self._records)

    def record(self, number: int) -> NewRecord:
        """Return the input of a number."""
        return self._records[number]

    def of(self, record: Carrier) -> Sequence[str]:
        """Return the id of a record, or an empty list if it has none."""
        parts = _parts(record, self.rule)
        return [part.decode("latin-1") for part in parts[:1] if part is not None]


class Made:
    """Inputs that a user's function makes; its own judge compares them, so their ids only count."""

    def __init__(self, inputs: Callable[[int], NewRecord], token: int) -> None:
        self.token = f"{token:0{_TOKEN_DIGITS}x}"
        self._inputs = inputs

    def record(self, number: int) -> NewRecord:
        """Return the input of a number."""
        return self._inputs(number)

    def of(self, record: Carrier) -> Sequence[str]:
        """Return the text of a record."""
        return [(record.value or b"").decode(errors="replace")]


def replayed(path: str, rule: IdRule, token: int) -> Replayed:
    """Return the records of a file, one on each line, as ``barnabas consume --format json`` prints.

    Raises OSError, and ValueError for a line that is not a record.
    """
    records = []
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        if number > RECORDS_MAX:
            raise ValueError(f"{path} has more than {RECORDS_MAX} records")
        try:
            records.append(record_from_json(line))
        except BadRecord as problem:
            raise ValueError(f"{path}:{number}: {problem}") from None
    return Replayed(rule, records, token)


def _parts(record: Carrier, rule: IdRule) -> list[bytes | None]:
    """Return the parts of a record that a rule names."""
    if rule.kind == HEADER:
        return [value for name, value in record.headers if name == rule.name]
    return [record.key if rule.kind == KEY else _field(record.value, rule.name)]


def _field(value: bytes | None, name: str) -> bytes | None:
    """Return a field of a JSON object as text, or ``None`` if the value has none."""
    try:
        parsed = json.loads(value or b"null")
    except ValueError:
        return None
    found = parsed.get(name) if isinstance(parsed, dict) else None
    return None if found is None else str(found).encode()
