"""Encoder of the column `headers`: for each row the count and the headers, as in a record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.spark_connector.errors import WrongRows
from barnabas.spark_connector.rows.columns import Array, lengths_of, offsets_of
from barnabas.spark_connector.rows.varints import pack, zigzag


def encode_headers(column: Array) -> Array | None:
    """Return one ``binary`` per row, never null, or `None` if no row has a header."""
    counts = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    entries = pc.list_flatten(column)
    if not len(entries):
        return None
    # The struct's own validity counts as well: a null entry has no key.
    keys = _field(entries, "key")
    if keys.null_count:
        raise WrongRows("A row's column 'headers' has a header without a key: give it one.")
    values = _field(entries, "value")
    encoded = join(packed(lengths_of(keys)), keys, packed(lengths_of(values)), values)
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    row_offsets = offsets_of(encoded)[ends]
    together = pa.Array.from_buffers(
        pa.binary(), len(counts), [None, pa.py_buffer(row_offsets), encoded.buffers()[2]]
    )
    return join(packed(counts), together)


def _field(entries: Array, name: str) -> Array:
    return pc.struct_field(entries, [entries.type.get_field_index(name)]).cast(pa.binary())


def packed(*fields: Any) -> Array:  # noqa: ANN401 - columns of numbers
    """Return one ``binary`` per row: its numbers as zig-zag varints, in order."""
    offsets, data = pack([zigzag(field) for field in fields])
    return pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def join(*pieces: Array) -> Array:
    """Join the pieces of each row; a null adds no bytes."""
    return pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement=b"")
