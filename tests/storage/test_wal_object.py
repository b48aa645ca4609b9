"""The object of one flush: what its footer has, and that damage of it is found."""

import pytest

from barnabas.protocol.records import CorruptBatch, read_header
from barnabas.storage.replicated.log_index import Item
from barnabas.storage.replicated.wal_object import MAGIC, read_footer, wal_object
from tests.storage.stores import batch


def an_object():
    first, second, third = (bytes(batch(value=value)) for value in (b"a", b"bb" * 99, b"ccc"))
    marker = bytearray(third)
    marker[22] |= 0x20  # The bit of control batches.
    items = [
        Item(7, 1, 0, 2, 0, len(first) + len(second)),
        Item(9, 2, 5, 6, len(first) + len(second), len(marker)),
    ]
    return wal_object(items, [first, memoryview(second), marker]), [first, second, bytes(marker)]


def test_bodies_lie_where_the_items_say_and_the_footer_after_them():
    made, bodies = an_object()
    whole = b"".join(made.body)
    assert whole.startswith(MAGIC)
    assert made.size.size_bytes == len(whole)
    first, second = (whole[item.position :][: item.length] for item in made.items)
    assert (first, second) == (bodies[0] + bodies[1], bodies[2])
    assert made.items[1].position + made.items[1].length == made.size.footer_at


def test_footer_has_headers_and_whole_control_batches():
    made, bodies = an_object()
    found = read_footer(b"".join(made.body)[made.size.footer_at :])
    assert list(found) == made.items
    data = [bytes(each.data) for batches in found.values() for each in batches]
    assert data == [bodies[0][:61], bodies[1][:61], bodies[2]]
    headers = [each.header for batches in found.values() for each in batches]
    assert headers == [read_header(each) for each in bodies]


def test_damaged_footer_is_found():
    made, _ = an_object()
    footer = bytearray(b"".join(made.body)[made.size.footer_at :])
    for at in range(0, len(footer), 7):
        damaged = bytearray(footer)
        damaged[at] ^= 1
        with pytest.raises(CorruptBatch, match="footer"):
            read_footer(damaged)
    with pytest.raises(CorruptBatch, match="footer"):
        read_footer(footer[:-1])
    with pytest.raises(CorruptBatch, match="footer"):
        read_footer(b"")
