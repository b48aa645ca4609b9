"""Encoder of Arrow record batches as Kafka's v2 batches, one or more for each partition.

Rules of this file:

1. No code runs for a single row. Lengths and deltas are columns of numpy, one Arrow kernel joins
   the bytes of all records of a chunk, and Python code runs only once for each batch.
2. Rows of one partition keep their order, within a batch and between batches.
3. The memory is bounded: small Arrow batches are collected up to ``GATHERED_BYTES``, large ones are
   encoded in chunks of about ``CHUNK_BYTES``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.protocol import compression as codecs
from barnabas.protocol import records
from barnabas.spark_connector.errors import WrongRows
from barnabas.spark_connector.rows.columns import (
    Array,
    Numbers,
    Rows,
    check_columns,
    choose,
    lengths_of,
    offsets_of,
    rows_of,
)
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.rows.headers import encode_headers, join, packed
from barnabas.spark_connector.rows.placement import Placement, Places
from barnabas.spark_connector.rows.varints import sizes, zigzag
from barnabas.storage.runtime.clock import now_ns

CHUNK_BYTES = 16 * 1024 * 1024
GATHERED_BYTES = 4 * 1024 * 1024
LARGEST_ROW_BYTES = 512 * 1024 * 1024
"""Limit of a row: offsets in a chunk have 32 bits, and no broker accepts a record of this size."""

_OVERHEAD_BYTES = 5 + 1 + 10 + 5 + 5 + 5
"""Maximum size of the lengths, attributes and deltas of one record."""
_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_LENGTH_OF_EMPTY = records.HEADER_BYTES - records.LENGTH_OVERHEAD


class _Layout(NamedTuple):
    """Division of the ordered rows of a chunk into batches."""

    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


class BatchEncoder:
    """Encoder of the rows of one task; iterate ``add`` and ``finish`` to their ends."""

    def __init__(
        self,
        schema: pa.Schema,
        *,
        topic: str | None,
        partition_counts: Callable[[str], int],
        batch_max_bytes: int,
        compression: int = codecs.NONE,
        now_ms: Callable[[], int] = lambda: now_ns() // 1_000_000,
    ) -> None:
        """Raise :class:`WrongRows` for a schema that cannot be written as records.

        ``compression`` is the number of a codec of :mod:`barnabas.protocol.compression`. An
        uncompressed batch has at most ``batch_max_bytes``, unless it is a single record.
        """
        check_columns(schema, topic)
        self._topic = topic
        self._placement = Placement(topic, partition_counts)
        self._batch_max_bytes = batch_max_bytes
        self._compression = compression
        self._now_ms = now_ms
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[EncodedBatch]:
        """Add rows; yield the complete batches, perhaps none."""
        if not batch.num_rows:
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            yield from self.finish()

    def finish(self) -> Iterator[EncodedBatch]:
        """Yield the remaining batches."""
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if not gathered:
            return
        if len(gathered) > 1:
            table = pa.Table.from_batches(gathered).unify_dictionaries()
            gathered = table.combine_chunks().to_batches()
        for batch in gathered:
            for chunk in _chunks(batch):
                yield from self._encode(rows_of(chunk, self._topic))

    def _encode(self, unordered: Rows) -> Iterator[EncodedBatch]:
        places = self._placement.place(unordered)
        order, groups = _order(places)
        if isinstance(order, slice) and unordered.is_large:
            order = np.arange(unordered.row_count)  # A copy has 32-bit offsets in any case.
        rows = choose(unordered, order)
        timestamps = self._timestamps(rows)
        headers = None if rows.headers is None else encode_headers(rows.headers)
        key_bytes = None if rows.key is None else lengths_of(rows.key)
        value_bytes = lengths_of(rows.value)
        payload: Numbers = np.maximum(value_bytes, 0)
        payload += 1 if headers is None else lengths_of(headers)
        if key_bytes is not None:
            payload += np.maximum(key_bytes, 0)
        room = self._batch_max_bytes - records.HEADER_BYTES
        layout = _cut(groups, payload + _OVERHEAD_BYTES, room)
        base_timestamps = timestamps[layout.starts]
        joined = _join_records(
            rows,
            timestamps - np.repeat(base_timestamps, layout.counts),
            np.arange(rows.row_count) - np.repeat(layout.starts, layout.counts),
            np.full(rows.row_count, -1) if key_bytes is None else key_bytes,
            value_bytes,
            payload,
            headers,
        )
        largest = np.maximum.reduceat(timestamps, layout.starts)
        ends = offsets_of(joined)
        with memoryview(joined.buffers()[2]) as data:
            for number, start in enumerate(layout.starts):
                count = int(layout.counts[number])
                row = order.start + start if isinstance(order, slice) else order[start]
                yield EncodedBatch(
                    places.topics[places.topic_numbers[row]],
                    int(places.partitions[row]),
                    count,
                    self._frame(
                        data[ends[start] : ends[start + count]],
                        count,
                        int(base_timestamps[number]),
                        int(largest[number]),
                    ),
                )

    def _timestamps(self, rows: Rows) -> Numbers:
        now_ms = self._now_ms()
        if rows.timestamp is None:
            return np.full(rows.row_count, now_ms, dtype=np.int64)
        timestamps = np.asarray(rows.timestamp.fill_null(now_ms))
        if int(timestamps.min()) < 0:
            raise WrongRows(
                "A row's column 'timestamp' lies before 1970, which Kafka cannot store:"
                " change it, or leave it null for the time of writing."
            )
        return timestamps

    def _frame(
        self, body: memoryview, count: int, base_timestamp: int, max_timestamp: int
    ) -> bytearray:
        """Return a batch with a header before the records; `stamp` adds producer and checksum."""
        content = body if self._compression == codecs.NONE else self._compress(body)
        batch = bytearray(records.HEADER_BYTES + len(content))
        records.HEADER.pack_into(
            batch,
            0,
            0,
            _LENGTH_OF_EMPTY + len(content),
            records.NO_LEADER_EPOCH,
            records.MAGIC,
            0,
            self._compression,
            count - 1,
            base_timestamp,
            max_timestamp,
            records.NO_PRODUCER_ID,
            records.NO_PRODUCER_EPOCH,
            records.NO_SEQUENCE,
            count,
        )
        batch[records.HEADER_BYTES :] = content
        return batch

    def _compress(self, body: memoryview) -> bytes:
        return codecs.compress(self._compression, body)


def _chunks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Halve a batch until the pieces are small enough."""
    if batch.nbytes > CHUNK_BYTES:
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            yield from _chunks(batch.slice(0, half))
            yield from _chunks(batch.slice(half))
            return
        if batch.nbytes > LARGEST_ROW_BYTES:
            raise WrongRows(
                f"A row has {batch.nbytes} bytes, which is too much for one record of Kafka."
            )
    yield batch


def _order(places: Places) -> tuple[npt.NDArray[np.intp] | slice, Numbers]:
    """Return the order that groups rows by partition and keeps their order in it."""
    stride = int(places.partitions.max()) + 1
    groups = places.topic_numbers * np.int64(stride) + places.partitions
    if (groups[1:] >= groups[:-1]).all():
        return slice(0, len(groups)), groups
    small = groups.astype(np.uint16) if int(groups.max()) < 1 << 16 else groups
    order = np.argsort(small, kind="stable")  # of 16 bits: by radix, not by comparison
    return order, groups[order]


def _cut(groups: Numbers, row_bytes: Numbers, room: int) -> _Layout:
    """Start a batch at each group, and within a group before a batch exceeds ``room``."""
    boundaries = [0, *(np.flatnonzero(groups[1:] != groups[:-1]) + 1).tolist(), len(groups)]
    ends = np.cumsum(row_bytes)
    starts: list[int] = []
    for first, end in itertools.pairwise(boundaries):
        start = first
        while start < end:
            starts.append(start)
            before = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, before + room, side="right"))
            start = max(fitting, start + 1)
    cuts = np.array(starts, dtype=np.int64)
    return _Layout(cuts, np.diff(cuts, append=len(groups)))


def _join_records(
    rows: Rows,
    timestamp_deltas: Numbers,
    offset_deltas: Numbers,
    key_bytes: Numbers,
    value_bytes: Numbers,
    payload: Numbers,
    headers: Array | None,
) -> Array:
    """Return the bytes of each record: length, attributes, deltas, key, value, headers."""
    record_bytes = payload + 1
    for numbers in (timestamp_deltas, offset_deltas, key_bytes, value_bytes):
        record_bytes += sizes(zigzag(numbers))
    # Records have no attributes yet: a zero, which as a varint is a zero byte.
    attributes = np.zeros(rows.row_count, dtype=np.int64)
    before = packed(record_bytes, attributes, timestamp_deltas, offset_deltas, key_bytes)
    key = () if rows.key is None else (rows.key.cast(pa.binary()),)
    return join(
        before,
        *key,
        packed(value_bytes),
        rows.value.cast(pa.binary()),
        _NO_HEADERS if headers is None else headers,
    )
