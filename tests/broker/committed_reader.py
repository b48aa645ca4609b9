"""A consumer's way through fetched batches, by the book: what it shows its application (KIP-98)."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import iterate_batches
from tests.broker.data_plane import EXPANDED_BYTES, Named, Wire
from tests.waiting import wait_until

READ_COMMITTED = 1


class Seen(NamedTuple):
    """A record that the application was given."""

    offset: int
    value: bytes | None


def committed_records(data: Any, position: int) -> tuple[list[Seen], int]:
    """Return the committed records of one partition of a Fetch response, and the next offset.

    A response to READ_UNCOMMITTED has no aborted transactions, and all its records are returned.

    The response lists aborted transactions in no order, also some that it does not need. One ABORT
    marker ends each of a producer's; the batches before it are skipped.
    """
    waiting = [(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()]
    heapq.heapify(waiting)
    aborted: set[int] = set()
    seen: list[Seen] = []
    view = data.records
    for at, header in iterate_batches(view):
        batch = view[at : at + header.size]
        while waiting and waiting[0][0] <= header.last_offset:
            aborted.add(heapq.heappop(waiting)[1])
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and not marker.commit:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            seen += [
                Seen(record.offset, record.value)
                for record in iterate_records(batch, limit_bytes=EXPANDED_BYTES)
                if record.offset >= position
            ]
        position = max(position, header.next_offset)
    return seen, position


def committed_values(wire: Wire, topic: Named, partition: int) -> list[bytes | None]:
    """The committed records of a partition, once no transaction is open in it."""
    found: list[Seen] = []
    position = 0

    def is_read() -> bool:
        nonlocal position
        data = wire.fetch_one(topic, position, partition, isolation=READ_COMMITTED)
        assert data.error_code == 0
        seen, position = committed_records(data, position)
        found.extend(seen)
        return position >= data.high_watermark

    wait_until(is_read)
    return [each.value for each in found]
