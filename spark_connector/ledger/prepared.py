"""What a task tells the driver, and the names of the transactions of tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.spark_connector.cluster.requests import Identity

_TAG_DIGITS = 8


class Prepared(NamedTuple):
    """A task's transaction, written and open; the holder of this may commit it. Picklable."""

    transactional_id: str
    producer_id: int
    epoch: int
    record_count: int
    """Records in it; with none there is no transaction either."""
    batch_id: int
    query_id: str
    topics: tuple[str, ...] = ()
    """Where its rows went."""

    @property
    def identity(self) -> Identity:
        """Producer id and epoch."""
        return Identity(self.producer_id, self.epoch)


class TaskTransaction(NamedTuple):
    """What the transactional id of a task says: `spark.<sink>.<batch>.<partition>.<task>.<nonce>`.

    The nonce begins with a tag of the query, so that what a decided batch has left over is known
    without asking anybody else.
    """

    batch_id: int
    query_tag: str


def query_tag(query_id: str) -> str:
    """A query id in eight digits."""
    return hashlib.sha256(query_id.encode()).hexdigest()[:_TAG_DIGITS]


def task_transactional_id(
    sink_id: str, query_id: str, batch_id: int, partition: int, task_attempt_id: int, nonce: str
) -> str:
    """The id of one attempt's transaction; no other attempt ever has it (it fences no producer)."""
    tagged = query_tag(query_id) + nonce
    return f"spark.{sink_id}.{batch_id}.{partition}.{task_attempt_id}.{tagged}"


def read_task_transactional_id(sink_id: str, transactional_id: str) -> TaskTransaction | None:
    """What the id of one of this sink's tasks says; None for any other id."""
    prefix = f"spark.{sink_id}."
    parts = transactional_id.removeprefix(prefix).split(".")
    if not transactional_id.startswith(prefix) or len(parts) != 4 or not parts[0].isdecimal():
        return None
    return TaskTransaction(int(parts[0]), parts[3][:_TAG_DIGITS])


def written(prepared: Iterable[Prepared | None]) -> list[Prepared]:
    """The messages that stand for a transaction."""
    return [each for each in prepared if each is not None and each.producer_id >= 0]
