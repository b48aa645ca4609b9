"""The journal's bytes: journal groups of entries, as one `fdatasync` made them durable.

Rules of this format (version 1):

1. A journal group starts on a 4 KiB boundary and is padded to the next one with zeros.
2. Sequences of journal groups rise by one within a run of the broker; a start-up may leave a gap,
   and the checkpoint names the first sequence after it. Stale groups of a recycled file have lower
   sequences and therefore never pass for new ones. Two copies of a data directory that were used
   separately have the same sequences. So each journal group except the first of a run names the CRC
   of its predecessor's header, and with it all headers and tables back to the first (not the
   bodies).
3. The header's CRC covers the header and the entry table. A batch's own bytes are covered by the
   batch's CRC (from byte 21 on) and, before byte 21, by the table. An entry's batches must follow
   each other from its base offset to its next offset, have its leader epoch, and fill its body. So
   no byte of a journal group goes unchecked, and no byte is summed twice.
4. Only one journal group is in flight at a time, so only the last one can be torn (D7). An
   unreadable group followed by a readable one is corruption, never a torn tail.

```
header  magic 8s | version u16 | reserved u16 | entry count u32 | sequence u64 | group bytes u64
        | CRC of the previous group's header u32 | CRC32C of header (this field 0) and table u32
table   entry count times: kind u8 | pad 3 | leader epoch i32 | partition id i64
        | base offset i64 | next offset i64 | body bytes u32 | reserved u32
bodies  in table order
```
"""

import struct
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from barnabas.protocol.records import CRC_START, LENGTH_OVERHEAD
from barnabas.protocol.records import HEADER as BATCH_HEADER
from barnabas.protocol.records import HEADER_BYTES as BATCH_HEADER_BYTES
from barnabas.protocol.records import MAGIC as MAGIC_OF_BATCHES

BLOCK_BYTES: Final = 4096
FORMAT_VERSION: Final = 1
MAGIC: Final = b"BARNJRNL"

KIND_BATCHES: Final = 1
"""Batches of one partition, back to back."""
KIND_LOG_START: Final = 2

GROUP_HEADER: Final = struct.Struct("<8sHHIQQII")
GROUP_HEADER_BYTES: Final = GROUP_HEADER.size
_CRC_POSITION: Final = GROUP_HEADER_BYTES - 4
_CRC: Final = struct.Struct("<I")
_NO_CRC: Final = b"\0\0\0\0"

ENTRY: Final = struct.Struct("<BxxxiqqqII")
ENTRY_BYTES: Final = ENTRY.size
ENTRIES_MAX: Final = 1 << 22


class Entry:
    """One row of a journal group's table, and its bytes (empty for LOG_START).

    A plain class: mypyc has no memoryview among the fields of a tuple or a dataclass.
    """

    __slots__ = ("base_offset", "body", "kind", "leader_epoch", "next_offset", "partition_id")

    def __init__(
        self,
        kind: int,
        leader_epoch: int,
        partition_id: int,
        base_offset: int,
        next_offset: int,
        body: memoryview,
    ) -> None:
        self.kind = kind
        self.leader_epoch = leader_epoch
        self.partition_id = partition_id
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.body = body


@dataclass(frozen=True, slots=True)
class GroupHeader:
    """The header of a journal group; its own CRC was good."""

    sequence: int
    entry_count: int
    group_bytes: int
    previous_crc: int
    crc: int

    @property
    def padded_bytes(self) -> int:
        """Length of the journal group on disk, with padding."""
        return padded(self.group_bytes)


def padded(size_bytes: int) -> int:
    """Round up to the next 4 KiB boundary."""
    return (size_bytes + BLOCK_BYTES - 1) & ~(BLOCK_BYTES - 1)


def encode_header(
    sequence: int, entry_count: int, table: bytes | bytearray, body_bytes: int, previous_crc: int
) -> tuple[bytes, int]:
    """Encode a journal group's header; returns its bytes and its CRC, which its successor names."""
    group_bytes = GROUP_HEADER_BYTES + len(table) + body_bytes
    header = GROUP_HEADER.pack(
        MAGIC, FORMAT_VERSION, 0, entry_count, sequence, group_bytes, previous_crc, 0
    )
    crc = crc32c(table, crc32c(header))
    return header[:_CRC_POSITION] + _CRC.pack(crc), crc


def decode_header(view: memoryview) -> GroupHeader | None:
    """Read the header at the start of ``view``; None unless magic, bounds and CRC are good.

    ``view`` must reach at least to the end of the entry table; a table that does not fit is None.
    """
    if len(view) < GROUP_HEADER_BYTES:
        return None
    magic, version, _, count, sequence, size, previous, crc = GROUP_HEADER.unpack_from(view)
    table_end = GROUP_HEADER_BYTES + count * ENTRY_BYTES
    if magic != MAGIC or version != FORMAT_VERSION or count > ENTRIES_MAX or size < table_end:
        return None
    if len(view) < table_end:
        return None
    actual = crc32c(_NO_CRC, crc32c(view[:_CRC_POSITION]))
    actual = crc32c(view[GROUP_HEADER_BYTES:table_end], actual)
    return GroupHeader(sequence, count, size, previous, crc) if actual == crc else None


def table_bytes(prefix: memoryview) -> int | None:
    """Return the size of header and table according to a journal group's header.

    None if the bytes are not a header. The size is not verified: use it for the size of a read
    only.
    """
    if len(prefix) < GROUP_HEADER_BYTES:
        return None
    magic, version, _, count, *_ = GROUP_HEADER.unpack_from(prefix)
    if magic != MAGIC or version != FORMAT_VERSION or count > ENTRIES_MAX:
        return None
    return GROUP_HEADER_BYTES + int(count) * ENTRY_BYTES


def decode_entries(view: memoryview, header: GroupHeader) -> list[Entry] | None:
    """Return a journal group's entries, or None if a body is missing or fails its check (a torn
    group).
    """
    if len(view) < header.group_bytes:
        return None
    entries: list[Entry] = []
    position = GROUP_HEADER_BYTES + header.entry_count * ENTRY_BYTES
    for row in ENTRY.iter_unpack(view[GROUP_HEADER_BYTES:position]):
        kind, leader_epoch, partition_id, base_offset, next_offset, body_bytes, _ = row
        body = view[position : position + body_bytes]
        entry = Entry(kind, leader_epoch, partition_id, base_offset, next_offset, body)
        if len(body) < body_bytes or not _body_is_good(entry):
            return None
        entries.append(entry)
        position += body_bytes
    return entries if position == header.group_bytes else None


def _body_is_good(entry: Entry) -> bool:
    if entry.kind == KIND_LOG_START:
        return not entry.body
    if entry.kind != KIND_BATCHES:
        return False
    body, offset, position = entry.body, entry.base_offset, 0
    while position + BATCH_HEADER_BYTES <= len(body):
        fields = BATCH_HEADER.unpack_from(body, position)
        base_offset, batch_length, leader_epoch, magic, crc, _, last_offset_delta = fields[:7]
        end = position + batch_length + LENGTH_OVERHEAD
        if not (
            base_offset == offset
            and position + BATCH_HEADER_BYTES <= end <= len(body)
            and leader_epoch == entry.leader_epoch
            and magic == MAGIC_OF_BATCHES
            and last_offset_delta >= 0
            and crc32c(body[position + CRC_START : end]) == crc
        ):
            return False
        offset += last_offset_delta + 1
        position = end
    return position == len(body) > 0 and offset == entry.next_offset
