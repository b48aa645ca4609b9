"""Record batches, format 2: the unit that travels and is stored; record_decoding.py reads it.

Rules of this file:

1. The hot path (:func:`check_batch`, :func:`place_batch`, :func:`placed`) looks at the 61 bytes of
   the header and computes one checksum. It never looks at a record.
2. Base offset, length, leader epoch, magic and the checksum itself lie outside the checksum: a
   batch gets its offset by patching bytes, not by rebuilding.
3. ``CorruptBatch`` means the bytes are not what was sent or stored; ``InvalidBatch`` means they
   are, and break a rule. A batch that raised either leaves no trace (S5).
4. Sequences and offset deltas count records, so ``record_count == last_offset_delta + 1`` in every
   batch a client sends; only compaction makes batches with fewer records than offsets.

Layout, with the offset of each field::

    | 0 base_offset int64       8 batch_length int32      12 partition_leader_epoch int32
    | 16 magic int8            17 crc uint32              21 attributes int16
    | 23 last_offset_delta i32 27 base_timestamp int64    35 max_timestamp int64
    | 43 producer_id int64     51 producer_epoch int16    53 base_sequence int32
    | 57 record_count int32    61 records ...
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol import compression as codecs
from barnabas.protocol.compression import Buffer

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61
LENGTH_OVERHEAD: Final = 12
"""Bytes of a batch that ``batch_length`` does not count: base offset and the length itself."""
MAGIC: Final = 2

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1
NOT_COMPUTED: Final = -1
"""The checksum of a header whose other fields the broker has corrected."""
MAX_SEQUENCE: Final = 2_147_483_647

_SMALLEST_LENGTH: Final = HEADER_BYTES - LENGTH_OVERHEAD
CRC_START: Final = 21
"""A batch's checksum covers its bytes from here on."""
ATTRIBUTES_LOW_BYTE: Final = 22
"""Position of codec, transactional and control bits, for code that reads one byte of a batch."""
PRODUCER_ID_POSITION: Final = 43
RECORD_COUNT_POSITION: Final = 57
_LARGEST_CODEC: Final = codecs.ZSTD
_SMALLEST_RECORD_BYTES: Final = (
    7  # length, attributes, two deltas, key length, value length, header count
)

_PLACED: Final = struct.Struct(">qii")
"""Base offset, length, leader epoch."""
_PLACED_BYTES: Final = 16
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_MAX_TIMESTAMP_AT: Final = 35
_UNCOVERED: Final = struct.Struct(">qiibI")
_COVERED: Final = struct.Struct(">hiqqqhii")
_PACK_UNCOVERED: Final = _UNCOVERED.pack
_PACK_COVERED: Final = _COVERED.pack
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_PRODUCER: Final = struct.Struct(">qh")
_RECORD_COUNT: Final = struct.Struct(">i")
MARKER_KEY: Final = struct.Struct(">hh")
MARKER_VALUE: Final = struct.Struct(">hi")

ABORT: Final = 0
COMMIT: Final = 1


class CorruptBatch(Exception):
    """The bytes are damaged: framing, magic or checksum is wrong."""


class InvalidBatch(Exception):
    """The bytes arrived whole but break a rule of the format."""


def increment_sequence(sequence: int, by: int) -> int:
    """Return the sequence ``by`` records later; 2147483647 is followed by 0 (S7)."""
    if sequence > MAX_SEQUENCE - by:
        return by - (MAX_SEQUENCE - sequence) - 1
    return sequence + by


def decrement_sequence(sequence: int, by: int) -> int:
    """Return the sequence ``by`` records earlier; 0 is preceded by 2147483647 (S7)."""
    if sequence < by:
        return MAX_SEQUENCE - (by - sequence) + 1
    return sequence - by


class BatchHeader(NamedTuple):
    """The 13 fields at the head of a batch, as stored."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, on the wire as on disk."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record the batch was written with."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the last offset of this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapped (S7); -1 without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def newest_timestamp(self) -> int:
        """Largest timestamp of the batch's records; -1 without records."""
        return self.max_timestamp if self.record_count else NO_TIMESTAMP

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction (data or marker)."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker, not data."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def compression(self) -> int:
        """Number of the codec, see ``barnabas.protocol.compression``."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """``CREATE_TIME`` or ``LOG_APPEND_TIME``."""
        return (self.attributes & TIMESTAMP_TYPE_BIT) >> 3


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Unpack the header at ``position``; checks nothing except that 61 bytes exist."""
    return tuple.__new__(BatchHeader, HEADER.unpack_from(buffer, position))


def read_producer(buffer: Buffer) -> tuple[int, int]:
    """Return only the producer's id and epoch of the batch at the start of ``buffer``."""
    return _PRODUCER.unpack_from(buffer, PRODUCER_ID_POSITION)


def read_record_count(buffer: Buffer, position: int = 0) -> int:
    """Return the number of records that the batch at ``position`` claims."""
    count: int = _RECORD_COUNT.unpack_from(buffer, position + RECORD_COUNT_POSITION)[0]
    return count


# --------------------------------------------------------------------------------------- checking


def check_header(header: BatchHeader, size: int) -> None:
    """Apply all rules except the checksum to a client's batch of ``size`` received bytes.

    Raises :class:`CorruptBatch` or :class:`InvalidBatch`.
    """
    (_, length, _, magic, _, attributes, last_delta, _, _, producer_id, epoch, sequence, count) = (
        header
    )
    if magic != MAGIC:
        raise InvalidBatch(f"record format {magic} is not served, only {MAGIC}")
    if length + LENGTH_OVERHEAD != size:
        _refuse_length(length, size)
    # A negative count fails here too: last_delta would have to be below -1.
    if count != last_delta + 1 or count < 1:
        raise InvalidBatch(f"{count} records, but the last has offset delta {last_delta}")
    if attributes & (CONTROL_BIT | DELETE_HORIZON_BIT):
        _refuse_attributes(attributes)
    codec = attributes & COMPRESSION_MASK
    if codec > _LARGEST_CODEC:
        raise InvalidBatch(f"unknown compression codec {codec}")
    if codec == codecs.NONE and count * _SMALLEST_RECORD_BYTES > size - HEADER_BYTES:
        raise InvalidBatch(f"{count} records cannot fit into {size} bytes")
    if producer_id >= 0:
        if sequence < 0 or epoch < 0:
            raise InvalidBatch(f"producer {producer_id} sent epoch {epoch}, sequence {sequence}")
    elif attributes & TRANSACTIONAL_BIT:
        raise InvalidBatch("a transactional batch needs a producer id")


def _refuse_length(length: int, size: int) -> None:
    if length < _SMALLEST_LENGTH:
        raise CorruptBatch(f"batch length {length} is shorter than a header")
    if length + LENGTH_OVERHEAD > size:
        raise CorruptBatch(f"batch of {length + LENGTH_OVERHEAD} bytes is cut off after {size}")
    raise InvalidBatch("more than one batch for one partition")


def _refuse_attributes(attributes: int) -> None:
    if attributes & CONTROL_BIT:
        raise InvalidBatch("clients may not write control records")  # P5
    raise InvalidBatch("clients may not set a delete horizon")


def check_batch(view: Buffer) -> BatchHeader:
    """Check one batch as received from a client, header rules first, then the checksum.

    Raises :class:`CorruptBatch` or :class:`InvalidBatch`.
    """
    size = len(view)
    if size < HEADER_BYTES:
        raise CorruptBatch(f"{size} bytes are less than a batch header")
    header = tuple.__new__(BatchHeader, HEADER.unpack_from(view))
    check_header(header, size)
    # A small batch may come as bytes: to copy them costs less than a view of them.
    if crc32c(view[CRC_START:]) != header[4]:
        raise CorruptBatch("the checksum does not match")
    return header


def verify_batch(view: Buffer) -> BatchHeader:
    """Check that one stored batch is whole and unchanged; says nothing about client rules.

    Raises :class:`CorruptBatch`.
    """
    size = len(view)
    if size < HEADER_BYTES:
        raise CorruptBatch(f"{size} bytes are less than a batch header")
    header = read_header(view)
    if header.magic != MAGIC:
        raise CorruptBatch(f"magic {header.magic}, expected {MAGIC}")
    if header.size != size:
        raise CorruptBatch(f"batch header states {header.size} bytes, {size} exist")
    if crc32c(memoryview(view)[CRC_START:]) != header.crc:
        raise CorruptBatch("the checksum does not match")
    return header


def iterate_batches(view: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield consecutive batches as ``(position, header)``, without checking checksums.

    Stops before a batch that is not wholly there; raises :class:`CorruptBatch` where no batch can
    begin (impossible length, another magic).
    """
    end = len(view)
    while position + HEADER_BYTES <= end:
        header = read_header(view, position)
        if header.batch_length < _SMALLEST_LENGTH:
            raise CorruptBatch(f"batch length {header.batch_length} at byte {position}")
        if header.magic != MAGIC:
            raise CorruptBatch(f"magic {header.magic} at byte {position}")
        following = position + header.size
        if following > end:
            return
        yield position, header
        position = following


# --------------------------------------------------------------------------------------- patching


def place_batch(
    buffer: bytearray | memoryview, position: int, size: int, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch at ``position`` its offset and leader epoch; neither is under the checksum."""
    _PLACED.pack_into(buffer, position, base_offset, size - LENGTH_OVERHEAD, leader_epoch)


def placed(batch: bytes, header: BatchHeader, base_offset: int, leader_epoch: int) -> bytes:
    """Return a copy of a small batch with its offset and leader epoch."""
    return _PLACED.pack(base_offset, header[1], leader_epoch) + batch[_PLACED_BYTES:]


def corrected(header: BatchHeader, newest_ms: int) -> BatchHeader:
    """Return a client's header with the fields that a broker computes (KIP-32, KIP-98)."""
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    return header._replace(attributes=attributes, max_timestamp=newest_ms, crc=NOT_COMPUTED)


def with_corrected_header(batch: Buffer, header: BatchHeader) -> bytearray:
    """Return a copy of a client's batch that has the fields of ``corrected``, and its checksum."""
    copy = bytearray(batch)
    seal_in_place(copy, header)
    return copy


def stamp_log_append_time(
    buffer: bytearray | memoryview, position: int, size: int, now_ms: int
) -> None:
    """Make ``now_ms`` the time of every record of the batch, and rewrite the checksum.

    Like Kafka: the type bit and the maximum timestamp say it all, records keep their deltas.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + CRC_START)
    _ATTRIBUTES.pack_into(buffer, position + CRC_START, attributes | TIMESTAMP_TYPE_BIT)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, now_ms)
    with memoryview(buffer) as view:
        checksum = crc32c(view[position + CRC_START : position + size])
    _CRC.pack_into(buffer, position + _CRC_AT, checksum)


# --------------------------------------------------------------------------------------- encoding


class Record(NamedTuple):
    """One record; ``timestamp`` in ms, ``headers`` as (name, value) in their order."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: int = codecs.NONE,
    timestamp_type: int = CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Encode one batch; offset deltas are ``record.offset - base_offset``.

    A producer numbers its records 0, 1, 2 ... and leaves ``base_offset`` at 0.
    """
    chosen = list(records)
    if not chosen:
        raise ValueError("a batch holds at least one record")
    base_timestamp = chosen[0].timestamp
    body = b"".join([encode_record(record, base_offset, base_timestamp) for record in chosen])
    attributes = (
        compression
        | (TIMESTAMP_TYPE_BIT if timestamp_type == LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )
    covered = _PACK_COVERED(
        attributes,
        chosen[-1].offset - base_offset,
        base_timestamp,
        max([record.timestamp for record in chosen]),
        producer_id,
        producer_epoch,
        base_sequence,
        len(chosen),
    )
    return _seal(base_offset, leader_epoch, covered + codecs.compress(compression, body))


def encode_single(
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """Encode a batch of one record without headers, twice as fast as ``encode_batch``."""
    key_size = _NULL_SIZE if key is None else varint(len(key))
    value_size = _NULL_SIZE if value is None else varint(len(value))
    # Attributes and both deltas are 0, and so is the number of headers.
    record = b"\0\0\0" + key_size + (key or b"") + value_size + (value or b"") + b"\0"
    covered = _PACK_COVERED(
        attributes, 0, timestamp, timestamp, producer_id, producer_epoch, base_sequence, 1
    )
    return _seal(base_offset, leader_epoch, covered + varint(len(record)) + record)


def seal(header: BatchHeader, body: Buffer) -> bytes:
    """Return a complete batch with its length and checksum."""
    covered = _PACK_COVERED(*header[5:]) + body
    return _seal(header.base_offset, header.partition_leader_epoch, covered)


def seal_in_place(batch: bytearray, header: BatchHeader) -> None:
    """Write a header over the first bytes of ``batch``, with its own length and checksum."""
    _COVERED.pack_into(batch, CRC_START, *header[5:])
    with memoryview(batch) as view:
        checksum = crc32c(view[CRC_START:])
    length = len(batch) - LENGTH_OVERHEAD
    _UNCOVERED.pack_into(batch, 0, header[0], length, header[2], MAGIC, checksum)


def _seal(base_offset: int, leader_epoch: int, covered: bytes) -> bytes:
    """Return a batch; ``covered`` is the part under the checksum, from the attributes on."""
    length = CRC_START - LENGTH_OVERHEAD + len(covered)
    return _PACK_UNCOVERED(base_offset, length, leader_epoch, MAGIC, crc32c(covered)) + covered


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """Encode one record of a batch that begins at ``base_offset`` and ``base_timestamp``."""
    offset, timestamp, key, value, headers = record
    parts = [
        b"\0",  # attributes: no bit has a meaning yet
        varint(timestamp - base_timestamp),
        varint(offset - base_offset),
        *_sized(key),
        *_sized(value),
        varint(len(headers)),
    ]
    for name, content in headers:
        parts += _sized(name.encode())
        parts += _sized(content)
    encoded = b"".join(parts)
    return varint(len(encoded)) + encoded


def _sized(content: bytes | None) -> tuple[bytes, bytes]:
    """Return the length and the bytes of a key, a value or a part of a header."""
    return _NULL_SIZED if content is None else (varint(len(content)), content)


def varint(value: int) -> bytes:
    """Return a number in the zig-zag encoding of variable length."""
    remaining = value << 1 if value >= 0 else (-value << 1) - 1
    if remaining < 0x80:
        return _ONE_BYTE[remaining]
    output = bytearray()
    while remaining > 0x7F:
        output.append((remaining & 0x7F) | 0x80)
        remaining >>= 7
    output.append(remaining)
    return bytes(output)


_ONE_BYTE: Final = [bytes([number]) for number in range(0x80)]
_NULL_SIZE: Final = varint(-1)
_NULL_SIZED: Final = _NULL_SIZE, b""


def control_batch(
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Encode the marker that ends a transaction: one record, one offset, no sequence (M6)."""
    return encode_single(
        timestamp,
        MARKER_KEY.pack(0, COMMIT if commit else ABORT),
        MARKER_VALUE.pack(0, coordinator_epoch),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
    )
