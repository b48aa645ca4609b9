"""Producer states as files: Kafka's ``.snapshot``, with what only this broker knows behind it."""

import struct
from itertools import chain
from typing import Final

from crc32c import crc32c

from barnabas.protocol.records import (
    NO_SEQUENCE,
)
from barnabas.storage.log.producer_entry import (
    CACHED_BATCHES,
    NO_OFFSET,
    CachedBatch,
    ProducerEntry,
)
from barnabas.storage.log.producers import ProducerState

SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
_CHECKED_FROM: Final = _SNAPSHOT_HEAD.size

# Behind Kafka's entries, under Kafka's checksum, which covers the rest of the file: what Kafka's
# format has no room for. Kafka 4.3.0 reads its entries and ignores what follows them.
_TRAILER_MAGIC: Final = b"BARNPROD"
_TRAILER_HEAD: Final = struct.Struct(">8sh")
_TRAILER_VERSION: Final = 1
_NO_BATCH: Final = CachedBatch(NO_SEQUENCE, NO_OFFSET, 0, -1)
_TRAILER_ENTRY: Final = struct.Struct(">qb")
_TRAILER_BATCH: Final = struct.Struct(">iqiq")

# One call for an entry with all its batches: a roll encodes every producer of the partition.
_TRAILER_ENTRIES: Final = [
    struct.Struct(">qb" + "iqiq" * count) for count in range(CACHED_BATCHES + 1)
]


class CorruptSnapshot(Exception):
    """The bytes are no whole snapshot; fall back to an older one and to replay (D7)."""


def encode_snapshot(state: ProducerState) -> bytes:
    """Return a ``.snapshot`` file in Kafka's format, then append times and older batches."""
    head = [_COUNT.pack(len(state))]
    trailer = [_TRAILER_HEAD.pack(_TRAILER_MAGIC, _TRAILER_VERSION)]
    for entry in state.entries():
        encoded = entry.encoded
        if encoded is None:
            encoded = entry.encoded = _encode_entry(entry)
        head.append(encoded[0])
        trailer.append(encoded[1])
    body = b"".join(head + trailer)
    return _SNAPSHOT_HEAD.pack(SNAPSHOT_VERSION, crc32c(body)) + body


def _encode_entry(entry: ProducerEntry) -> tuple[bytes, bytes]:
    """Return Kafka's entry, and the additional fields for the trailer."""
    batches = entry.batches
    sequence, offset, delta, _ = batches[-1] if batches else _NO_BATCH
    head = _SNAPSHOT_ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        sequence,
        offset,
        delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
    count = len(batches)
    fields = chain.from_iterable(batches)
    return head, _TRAILER_ENTRIES[count].pack(entry.append_time_ms, count, *fields)


def decode_snapshot(data: bytes, *, append_time_ms: int) -> ProducerState:
    """Read a ``.snapshot`` file of Kafka or Barnabas; raises :class:`CorruptSnapshot`.

    Producers whose append time is not in the file get ``append_time_ms``.
    """
    if len(data) < _CHECKED_FROM + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few")
    version, checksum = _SNAPSHOT_HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"version {version} is not {SNAPSHOT_VERSION}")
    if checksum != crc32c(data[_CHECKED_FROM:]):
        raise CorruptSnapshot("the checksum does not match")
    (count,) = _COUNT.unpack_from(data, _CHECKED_FROM)
    position = _CHECKED_FROM + _COUNT.size
    end = position + count * _SNAPSHOT_ENTRY.size
    if count < 0 or end > len(data):
        raise CorruptSnapshot(f"{count} producers do not fit into {len(data)} bytes")
    entries = [
        _decode_entry(fields, append_time_ms)
        for fields in _SNAPSHOT_ENTRY.iter_unpack(data[position:end])
    ]
    _read_trailer(data, end, entries)
    state = ProducerState()
    for entry in entries:
        state.restore(entry)
    state.restored()
    return state


def _decode_entry(fields: tuple[int, ...], append_time_ms: int) -> ProducerEntry:
    (producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset) = (
        fields
    )
    entry = ProducerEntry(producer_id, epoch, append_time_ms)
    if offset >= 0:
        entry.batches.append(CachedBatch(sequence, offset, delta, timestamp))
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.transaction_first_offset = first_offset
    return entry


def _read_trailer(data: bytes, position: int, entries: list[ProducerEntry]) -> None:
    """Add the trailer's fields, if the file has a trailer of a known version."""
    if len(data) < position + _TRAILER_HEAD.size:
        return
    magic, version = _TRAILER_HEAD.unpack_from(data, position)
    if magic != _TRAILER_MAGIC or version != _TRAILER_VERSION:
        return
    position += _TRAILER_HEAD.size
    try:
        for entry in entries:
            entry.append_time_ms, count = _TRAILER_ENTRY.unpack_from(data, position)
            position += _TRAILER_ENTRY.size
            end = position + count * _TRAILER_BATCH.size
            batches = _TRAILER_BATCH.iter_unpack(data[position:end])
            entry.batches = list(map(CachedBatch._make, batches))
            if len(entry.batches) != count:
                raise CorruptSnapshot("the trailer ends too early")
            position = end
    except struct.error as error:
        raise CorruptSnapshot("the trailer ends too early") from error
