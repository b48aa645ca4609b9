"""The form of an object of the object store that has the bodies of one flush.

Rules of this file:

* An object is a magic, the bodies in the order of the flush's items, and a footer. Positions of
  items count from the object's start.
* The footer has, for each item, its place and the headers of its batches; control batches are in it
  whole. So the state that the records leave is known without reading the bodies (F11).
* The index knows where the footer begins and the object ends, so each read is a bounded range.
* The footer ends with a checksum of itself. The bodies have the checksums of their batches.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    iterate_batches,
    read_header,
)
from barnabas.storage.replicated.log_index import Item, ObjectSize

if TYPE_CHECKING:
    from barnabas.storage.files.file_system import Buffer

MAGIC: Final = b"BARNWAL1"
_ITEM: Final = struct.Struct(">qiqqiiI")
"""An ``Item``, and the number of its batches."""
_CHECKSUM: Final = struct.Struct(">I")


class WalObject(NamedTuple):
    """One flush as an object: its items, with their positions in it, and its bytes."""

    items: list[Item]
    body: list[Buffer]
    size: ObjectSize


class FooterBatch(NamedTuple):
    """A batch as a footer has it: ``data`` is its header, or the whole of a control batch."""

    header: BatchHeader
    data: memoryview


def wal_object(items: Sequence[Item], body: Sequence[Buffer]) -> WalObject:
    """Return the object of a flush whose bodies are ``body``, none of them copied.

    Each buffer has whole batches of one item.
    """
    buffers = iter(body)
    placed = []
    footer = bytearray()
    position = len(MAGIC)
    for item in items:
        placed.append(item._replace(position=position))
        position += item.length
        left, count, headers = item.length, 0, bytearray()
        while left:
            view = memoryview(next(buffers))
            left -= len(view)
            count += _add_headers(headers, view)
        footer += _ITEM.pack(*placed[-1], count)
        footer += headers
    footer += _CHECKSUM.pack(crc32c(footer))
    return WalObject(placed, [MAGIC, *body, footer], ObjectSize(position, position + len(footer)))


def _add_headers(headers: bytearray, view: memoryview) -> int:
    """Add the footer's data about the batches in ``view``; return the number of batches."""
    at, count = 0, 0
    while at < len(view):
        header = read_header(view, at)
        headers += view[at : at + _size_in_footer(header)]
        at += header.size
        count += 1
    assert at == len(view), "a batch in two buffers"
    return count


def _size_in_footer(header: BatchHeader) -> int:
    return header.size if header.is_control else HEADER_BYTES


def headers_in(data: Buffer) -> list[FooterBatch]:
    """Return the batches of some bytes as a footer has them."""
    view = memoryview(data)
    return [
        FooterBatch(header, view[at : at + _size_in_footer(header)])
        for at, header in iterate_batches(view)
    ]


def read_footer(footer: Buffer) -> dict[Item, list[FooterBatch]]:
    """Return the batches of each item of an object; raises CorruptBatch for a damaged footer."""
    view = memoryview(footer)
    end = len(view) - _CHECKSUM.size
    if end < 0 or _CHECKSUM.unpack_from(view, end)[0] != crc32c(view[:end]):
        raise CorruptBatch("the checksum of the object's footer does not match")
    found = {}
    at = 0
    while at < end:
        *place, count = _ITEM.unpack_from(view, at)
        at += _ITEM.size
        batches = []
        for _ in range(count):
            header = read_header(view, at)
            size = _size_in_footer(header)
            batches.append(FooterBatch(header, view[at : at + size]))
            at += size
        found[Item(*place)] = batches
    return found
