"""The options newQuery and acceptLostBatch: what a user accepts, once or for as long as they stand.

A value that names queries is bound to the state of the ledger that the refusal has reported. It
holds until the query has written its next batch, so it can stay in a file forever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from barnabas.spark_connector.errors import WrongOption

NEW_QUERY: Final = "newQuery"
LOST_BATCH: Final = "acceptLostBatch"
_QUERY_ID: Final = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
"""Spark's query ids are UUIDs."""
_BATCH_ID: Final = r"[0-9]{1,18}"
_NAMED: Final = re.compile(rf"{_QUERY_ID}(?::{_BATCH_ID})?")
_LOST: Final = re.compile(rf"(?:({_QUERY_ID}):)?({_BATCH_ID})")
_SEPARATORS: Final = re.compile(r"[,\s]+")


@dataclass(frozen=True, slots=True)
class NewQuery:
    """Value of newQuery: whether a query that is not in the ledger may begin."""

    is_always: bool = False
    """Whether any new query may begin while the option is set."""
    named: frozenset[str] = frozenset()
    """Queries that are given up, and ``<query>:<batch>`` for the start of a query in the middle."""

    @classmethod
    def parse(cls, text: str) -> NewQuery:
        """Read the option; raises WrongOption."""
        value = text.strip()
        if value.lower() in {"true", "false"}:
            return cls(is_always=value.lower() == "true")
        named = frozenset(each.lower() for each in _SEPARATORS.split(value) if each)
        if not named or not all(map(_NAMED.fullmatch, named)):
            raise WrongOption(
                f"The option {NEW_QUERY} is {text!r}; use true or false, or the value that the"
                " refusal of the query names: ids of queries, with commas between them."
            )
        return cls(named=named)

    def __str__(self) -> str:
        return ",".join(sorted(self.named)) if self.named else str(self.is_always).lower()

    def accepts(self, needed: Iterable[str]) -> bool:
        """Whether a query may begin that needs these names; see ``names_needed``."""
        return self.is_always or self.named.issuperset(each.lower() for each in needed)


NO_NEW_QUERY: Final = NewQuery()


def names_needed(query_id: str, others: Iterable[str], batch_id: int | None) -> list[str]:
    """Return the names that newQuery must have for a query that the ledger does not know.

    ``others`` are the queries that have written with its sink id. ``batch_id`` is the batch that it
    begins with, or `None` if that is unknown. Empty for the first query of a sink.
    """
    return [*sorted(others), *([f"{query_id}:{batch_id}"] if batch_id else [])]


@dataclass(frozen=True, slots=True)
class LostBatch:
    """Value of acceptLostBatch: the batch that is accepted although records of it are lost."""

    batch_id: int
    query_id: str = ""
    """The query of the batch, or empty for any query while the option is set."""

    @classmethod
    def parse(cls, text: str) -> LostBatch:
        """Read the option; raises WrongOption."""
        found = _LOST.fullmatch(text.strip())
        if found is None:
            raise WrongOption(
                f"The option {LOST_BATCH} is {text!r}; use <query id>:<batch> as the refusal names"
                " it, or the number of the batch, a whole number from 0."
            )
        return cls(int(found[2]), (found[1] or "").lower())

    def accepts(self, query_id: str, batch_id: int) -> bool:
        """Return whether this batch of this query is accepted although records of it are lost."""
        return batch_id == self.batch_id and self.query_id in {"", query_id.lower()}


def lost_batch(query_id: str, batch_id: int) -> str:
    """Return the value of acceptLostBatch for one batch of one query."""
    return f"{query_id}:{batch_id}"
