"""Messages from a task to the driver, and the transactional IDs of tasks."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

_TAG_DIGITS = 8


class Prepared(NamedTuple):
    """A task's open transaction, with the identity that commits it. Picklable."""

    transactional_id: str
    producer_id: int
    epoch: int
    record_count: int
    """Number of its records; without records there is no transaction."""
    batch_id: int
    query_id: str
    topics: tuple[str, ...] = ()
    """Topics that it has written."""


class TaskTransaction(NamedTuple):
    """Parts of a task's ID: `spark.<sink>.<batch>.<partition>.<task>.<nonce>`.

    The nonce starts with a tag of the query, so a driver recognises leftovers of its decided
    batches by the ID alone.
    """

    batch_id: int
    query_tag: str


def query_tag(query_id: str) -> str:
    """Return a tag of eight hexadecimal digits for a query ID."""
    return hashlib.sha256(query_id.encode()).hexdigest()[:_TAG_DIGITS]


def task_transactional_id(
    sink_id: str, query_id: str, batch_id: int, partition: int, task_attempt_id: int, nonce: str
) -> str:
    """Return an ID for one attempt of a task; no other attempt has it, so it fences no producer."""
    tagged = query_tag(query_id) + nonce
    return f"spark.{sink_id}.{batch_id}.{partition}.{task_attempt_id}.{tagged}"


def read_task_transactional_id(sink_id: str, transactional_id: str) -> TaskTransaction | None:
    """Return the parts of a task's transactional ID, or `None` if it is no task of this sink."""
    prefix = f"spark.{sink_id}."
    parts = transactional_id.removeprefix(prefix).split(".")
    if not transactional_id.startswith(prefix) or len(parts) != 4 or not parts[0].isdecimal():
        return None
    return TaskTransaction(int(parts[0]), parts[3][:_TAG_DIGITS])
