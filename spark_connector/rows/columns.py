"""Columns of a sink: those of Spark's Kafka sink, and ``timestamp``.

* ``value``: string or binary. Required; null is a tombstone.
* ``key``: string or binary. Without it a record has no key.
* ``topic``: string. The sink's option ``topic`` takes precedence.
* ``partition``: int. Without it the key's hash decides, and rows without a key are spread.
* ``headers``: array<struct<key string, value binary>>.
* ``timestamp``: timestamp. Without it the time of writing.

The sink ignores other columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.spark_connector.errors import WrongRows

Array = Any
"""A ``pyarrow.Array``: pyarrow has no types."""
Numbers = npt.NDArray[np.int64]

_WANTED = {
    "key": "a string or binary",
    "value": "a string or binary",
    "topic": "a string",
    "partition": "an int",
    "headers": "an array<struct<key: string, value: binary>>",
    "timestamp": "a timestamp",
}
NAMES = frozenset(_WANTED)
"""Names of the columns that a sink reads."""


class Rows(NamedTuple):
    """Columns of rows for the encoder; `None` for an absent column."""

    row_count: int
    value: Array
    """``binary`` or ``large_binary``; the key has the same types."""
    key: Array | None
    topic: Array | None
    """``string``."""
    partition: Array | None
    """``int32``."""
    headers: Array | None
    timestamp: Array | None
    """``int64``: milliseconds since 1970."""

    @property
    def is_large(self) -> bool:
        """Whether offsets into the buffers may need 64 bits, even for a few rows."""
        return any(
            column is not None and pa.types.is_large_binary(column.type)
            for column in (self.key, self.value)
        )


def check_columns(schema: pa.Schema, topic: str | None) -> None:
    """Refuse a schema that cannot be written as records; raises WrongRows."""
    for name, wanted in _WANTED.items():
        if schema.get_all_field_indices(name)[1:]:
            raise WrongRows(f"Several columns are named '{name}': drop all except one.")
        if name in schema.names and not _fits(name, schema.field(name).type):
            found = schema.field(name).type
            raise WrongRows(f"{name} attribute unsupported type {found}: {name} must be {wanted}.")
    if "value" not in schema.names:
        raise WrongRows("Required attribute 'value' not found: name the column to write 'value'.")
    if topic is None and "topic" not in schema.names:
        raise WrongRows(
            "topic option required when no 'topic' attribute is present:"
            " set the option 'topic' or add the column."
        )


def _fits(name: str, found: Any) -> bool:  # noqa: ANN401 - a type of pyarrow's
    types = pa.types
    if types.is_dictionary(found):
        found = found.value_type
    if name == "partition":
        return bool(types.is_int32(found))
    if name == "timestamp":
        # Without a time zone it is no point in time: Spark's timestamp_ntz.
        return types.is_timestamp(found) and found.tz is not None
    if name == "headers":
        return _is_headers(found)
    if _is_string(found):
        return True
    return name in {"key", "value"} and (types.is_binary(found) or types.is_large_binary(found))


def _is_string(found: Any) -> bool:  # noqa: ANN401
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def _is_headers(found: Any) -> bool:  # noqa: ANN401
    if not (pa.types.is_list(found) or pa.types.is_large_list(found)):
        return False
    entry = found.value_type
    if not pa.types.is_struct(entry) or {field.name for field in entry} != {"key", "value"}:
        return False
    value = entry.field("value").type
    return _is_string(entry.field("key").type) and bool(
        pa.types.is_binary(value) or pa.types.is_large_binary(value)
    )


def rows_of(batch: pa.RecordBatch, topic: str | None) -> Rows:
    """Return the columns of a batch with a checked schema."""
    columns = {name: batch.column(name) for name in _WANTED if name in batch.schema.names}
    for name, column in columns.items():
        if pa.types.is_dictionary(column.type):
            columns[name] = column.dictionary_decode()
    key = columns.get("key")
    return Rows(
        batch.num_rows,
        _as_bytes(columns["value"]),
        None if key is None else _as_bytes(key),
        None if topic is not None else columns["topic"].cast(pa.string()),
        columns.get("partition"),
        columns.get("headers"),
        _as_milliseconds(columns.get("timestamp")),
    )


def _as_bytes(column: Array) -> Array:
    """Return the same buffers with a binary type: the UTF-8 of a string."""
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    return column.cast(pa.large_binary() if large else pa.binary())


_PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}


def _as_milliseconds(column: Array | None) -> Array | None:
    """Return Spark's microseconds as milliseconds, rounded down as Spark does."""
    if column is None:
        return None
    unit = column.type.unit
    ticks = column.cast(pa.int64())
    if unit == "s":
        return pc.multiply_checked(ticks, 1000)
    if unit == "ms":
        return ticks
    numbers = np.asarray(ticks.fill_null(0)) // _PER_MILLISECOND[unit]
    return pa.array(numbers, mask=np.asarray(ticks.is_null()))


def choose(rows: Rows, positions: npt.NDArray[np.intp] | slice) -> Rows:
    """Return some of the rows: a slice shares the buffers, positions copy them."""
    if isinstance(positions, slice):
        start, count = positions.start, positions.stop - positions.start
        return Rows(
            count, *(None if column is None else column.slice(start, count) for column in rows[1:])
        )
    taken = pa.array(positions)
    return Rows(
        len(positions), *(None if column is None else column.take(taken) for column in rows[1:])
    )


def lengths_of(column: Array) -> Numbers:
    """Return the bytes of each key or value; -1 for null, as in Kafka's format."""
    lengths = pc.binary_length(column).cast(pa.int64())
    return np.asarray(lengths.fill_null(-1) if column.null_count else lengths)


def offsets_of(column: Array) -> npt.NDArray[np.int32]:
    """Return the start of each value of a ``binary`` array in its buffer, and the last end."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    return offsets[column.offset : column.offset + len(column) + 1]
