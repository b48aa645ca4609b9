"""Partitions of rows: from the column `partition`, by the key's hash, or in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from barnabas.spark_connector.errors import WrongRows
from barnabas.spark_connector.rows.columns import Numbers, Rows, lengths_of
from barnabas.spark_connector.rows.murmur2 import murmur2
from barnabas.storage.runtime.chance import random_below

RUN_BYTES = 64 * 1024
"""Size of a run of rows without a key in one partition, like Kafka's sticky partitioner."""
_RECORD_BYTES = 10
_POSITIVE = np.uint32(0x7FFFFFFF)


class Places(NamedTuple):
    """Topic and partition of each row."""

    topics: list[str]
    topic_numbers: npt.NDArray[np.int32]
    """Position of each row's topic in ``topics``."""
    partitions: npt.NDArray[np.int64]


class _Run(NamedTuple):
    """Current run of a topic's rows without a key."""

    partition: int
    bytes_done: int


class Placement:
    """Assignment of rows to partitions, which keeps only the current runs between calls."""

    def __init__(self, topic: str | None, partition_counts: Callable[[str], int]) -> None:
        self._topic = topic
        self._partition_counts = partition_counts
        self._runs: dict[str, _Run] = {}

    def place(self, rows: Rows) -> Places:
        """Return the topic and the partition of each row."""
        topics, topic_numbers = self._topics_of(rows)
        counts = np.array([self._partition_counts(topic) for topic in topics], dtype=np.int64)
        limits = counts[topic_numbers]
        partitions = np.full(rows.row_count, -1, dtype=np.int64)
        if rows.key is None:
            without_key = np.ones(rows.row_count, dtype=np.bool_)
        else:
            without_key = np.asarray(rows.key.is_null())
            partitions[:] = (murmur2(rows.key) & _POSITIVE) % limits
        if rows.partition is not None:
            explicit = ~np.asarray(rows.partition.is_null())
            chosen = np.asarray(rows.partition.fill_null(0)).astype(np.int64)
            _check_range(chosen, explicit, topics, topic_numbers, limits)
            partitions[explicit] = chosen[explicit]
            without_key &= ~explicit
        if without_key.any():
            self._spread(rows, without_key, topics, topic_numbers, counts, partitions)
        return Places(topics, topic_numbers, partitions)

    def _topics_of(self, rows: Rows) -> tuple[list[str], npt.NDArray[np.int32]]:
        if self._topic is not None:
            return [self._topic], np.zeros(rows.row_count, dtype=np.int32)
        assert rows.topic is not None  # check_columns requires one of the two.
        if rows.topic.null_count:
            raise WrongRows(
                "The data contains a null topic: fill the column 'topic' in every row,"
                " or set the option 'topic'."
            )
        encoded = rows.topic.dictionary_encode()
        return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)

    def _spread(
        self,
        rows: Rows,
        without_key: npt.NDArray[np.bool_],
        topics: list[str],
        topic_numbers: npt.NDArray[np.int32],
        counts: Numbers,
        partitions: Numbers,
    ) -> None:
        """Assign rows without a key to partitions in runs, from a random partition on."""
        row_bytes = np.maximum(lengths_of(rows.value), 0) + _RECORD_BYTES
        for number, topic in enumerate(topics):
            chosen = np.flatnonzero(without_key & (topic_numbers == number))
            count = int(counts[number])
            # The choice of the first partition affects only the load.
            run = self._runs.get(topic) or _Run(random_below(count), 0)
            ends = run.bytes_done + np.cumsum(row_bytes[chosen])
            turns = (ends - row_bytes[chosen]) // RUN_BYTES
            partitions[chosen] = (run.partition + turns) % count
            done = int(ends[-1]) if len(ends) else run.bytes_done
            partition = (run.partition + done // RUN_BYTES) % count
            self._runs[topic] = _Run(partition, done % RUN_BYTES)


def _check_range(
    chosen: Numbers,
    explicit: npt.NDArray[np.bool_],
    topics: list[str],
    topic_numbers: npt.NDArray[np.int32],
    limits: Numbers,
) -> None:
    wrong = np.flatnonzero(explicit & ((chosen < 0) | (chosen >= limits)))
    if len(wrong):
        row = int(wrong[0])
        raise WrongRows(
            f"A row's column 'partition' says {chosen[row]}, but topic"
            f" '{topics[topic_numbers[row]]}' has the partitions 0 to {limits[row] - 1}."
        )
