"""Old records of logs that PostgreSQL makes by itself: many bytes without a client that sends them.

Each log gets extents of about a mebibyte from offset 0 on, or packed segments in an object store,
a snapshot at their end, and one part.
The logs are empty before. No broker runs, or their leader is the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from crc32c import crc32c

from barnabas.protocol.records import iterate_batches
from barnabas.storage.log.checkpoint import encode_leader_epochs
from barnabas.storage.log.index import SegmentIndex, TransactionIndex
from barnabas.storage.log.producer_snapshot import encode_snapshot
from barnabas.storage.log.producers import ProducerState
from barnabas.storage.objects.blob_store import BlobStore, SegmentKey
from barnabas.storage.replicated.log_index import LogPart, LogSnapshot
from barnabas.storage.replicated.log_parts import PartFacts, encode_part
from barnabas.storage.replicated.segment_sidecar import Facts, PackedSegment

MIB = 1024 * 1024
Execute = Callable[..., Sequence[tuple[Any, ...]]]
"""``Server.execute`` of ``tests/counterparts/postgresql_servers.py``."""


def snapshot_at(offset: int) -> LogSnapshot:
    """Return the snapshot of a log without producers."""
    epochs = encode_leader_epochs([(0, 0)])
    producers = encode_snapshot(ProducerState())
    return LogSnapshot(offset, producers, epochs + b"#%08x" % crc32c(epochs))


def part_up_to(offset: int, size_bytes: int) -> LogPart:
    """Return the part of a log that begins at 0."""
    facts = PartFacts(size_bytes, SegmentIndex(0, MIB), TransactionIndex())
    return encode_part(0, offset, facts)


def write_shared(
    execute: Execute, session: int, partitions: Sequence[int], extents: int, records: int
) -> None:
    """Give each log its extents, all of which lie in the same bytes: no client can read them.

    ``records``: number of offsets of an extent.
    """
    ((made,),) = execute(
        "INSERT INTO barnabas.objects (session_id, payload, live_extents)"
        " VALUES (%s, %s, %s) RETURNING object_id",
        session,
        bytes(MIB),
        extents * len(partitions),
    )
    execute(
        "INSERT INTO barnabas.extents SELECT partition_id, at * %s, (at + 1) * %s, 0, %s, 0, %s"
        " FROM unnest(%s::bigint[]) AS partition_id, generate_series(0::bigint, %s) AS at",
        records,
        records,
        made,
        MIB,
        [*partitions],
        extents - 1,
    )
    _end_at(execute, partitions, extents * records)


def write_own(
    execute: Execute, session: int, partition: int, batch: bytes, records: int, extents: range
) -> None:
    """Give a log extents of one batch each, which readers get.

    ``extents``: numbers of these extents; ``records``: number of records of the batch.
    """
    execute(
        "WITH made AS (INSERT INTO barnabas.objects (session_id, payload, live_extents)"
        " SELECT %s, int8send(at * %s) || %s::bytea, 1 FROM generate_series(%s::bigint, %s) AS at"
        " RETURNING object_id, payload)"
        " INSERT INTO barnabas.extents SELECT %s, base, base + %s, 0, object_id, 0, %s FROM ("
        "SELECT ('x' || encode(substring(payload FROM 1 FOR 8), 'hex'))::bit(64)::bigint AS base,"
        " object_id FROM made) AS placed",
        session,
        records,
        batch[8:],
        extents.start,
        extents.stop - 1,
        partition,
        records,
        len(batch),
    )
    _end_at(execute, [partition], extents.stop * records)


def write_segment(
    execute: Execute,
    blobs: BlobStore,
    session: int,
    partition: int,
    batch: bytes,
    records: int,
    batches: range,
) -> None:
    """Give a log a packed segment in an object store, which readers get.

    ``batches``: numbers of the batches in it; ``records``: number of records of the batch.
    """
    packed = PackedSegment(batches.start * records)
    for at in batches:
        placed = struct.pack(">q", at * records) + batch[8:]
        ((_, header),) = iterate_batches(placed)
        packed.add(placed, header, 0)
    key = SegmentKey(partition, packed.base_offset, session, batches.start)
    blobs.put(key.text, packed.body)
    blobs.put(key.sidecar, [packed.sidecar(Facts((), [(0, 0)]))])
    execute(
        "WITH made AS (INSERT INTO barnabas.objects"
        " (session_id, key, live_extents, kind, size_bytes, footer_at)"
        " VALUES (%s, %s, 1, 'seg', %s, %s) RETURNING object_id, size_bytes)"
        " INSERT INTO barnabas.extents SELECT %s, %s, %s, 0, object_id, 0, size_bytes FROM made",
        session,
        key.text,
        packed.size_bytes,
        packed.size_bytes,
        partition,
        packed.base_offset,
        packed.next_offset,
    )
    _end_at(execute, [partition], packed.next_offset)


def keep_snapshots(
    execute: Execute, partitions: Sequence[int], offset: int, size_bytes: int
) -> None:
    """Give each log its snapshot and its part."""
    snapshot, part = snapshot_at(offset), part_up_to(offset, size_bytes)
    execute(
        "INSERT INTO barnabas.snapshots SELECT partition_id, %s, %s, %s"
        " FROM unnest(%s::bigint[]) AS partition_id",
        offset,
        snapshot.producers,
        snapshot.leader_epochs,
        [*partitions],
    )
    execute(
        "INSERT INTO barnabas.log_parts SELECT partition_id, 0, %s, %s"
        " FROM unnest(%s::bigint[]) AS partition_id",
        offset,
        part.facts,
        [*partitions],
    )


def _end_at(execute: Execute, partitions: Sequence[int], offset: int) -> None:
    execute(
        "UPDATE barnabas.partitions SET log_end = %s WHERE partition_id = ANY (%s::bigint[])",
        offset,
        [*partitions],
    )
