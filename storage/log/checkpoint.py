"""The files that a restart relies on: the binary checkpoint, and Kafka's text files. Pure data.

Rules of this file:

1. The checkpoint is stored in two files that are written in turn; the newest valid one counts. One
   damaged file counts as missing; with two damaged files the caller must fail.
2. Kafka's files are written as its release 4.3.0 writes them, and read as leniently as it reads
   them. A file that cannot be read raises :class:`CorruptFile`; nothing is guessed.
"""

import base64
import binascii
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

CHECKPOINT_MAGIC = b"BARNCKPT"
CHECKPOINT_VERSION = 3
_FIRST_VERSION = 1
"""Version without fields for compaction; a data directory of the first release has it."""
_UNMARKED_VERSION = 2
"""Version of a directory whose journal may have no mark beside it
(``barnabas.storage.files.commit_mark``)."""

_HEAD = struct.Struct(">8sHBxIqqI")
"""Magic, version, clean flag, checksum of all that follows, generation, sequence, partitions."""
_CHECKED_FROM = 16
_PARTITION = struct.Struct(">qqqqqqqqqq")
_FIRST_PARTITION = struct.Struct(">qqqqqqqq")
_SWAP_COUNT = struct.Struct(">I")
_SWAP = struct.Struct(">qqI")
"""Partition id, generation, how many base offsets follow."""

_TEXT_VERSION = "0"


class CorruptCheckpoint(Exception):
    """The bytes are no whole checkpoint."""


class CorruptFile(Exception):
    """One of Kafka's text files has invalid content."""


class SegmentSwap(NamedTuple):
    """A swap under way: the segments at these offsets become one, at the first of them."""

    partition_id: int
    generation: int
    replaced: tuple[int, ...]


class PartitionCheckpoint(NamedTuple):
    """Position of one partition up to which its segment files alone hold its records.

    ``position`` is the size in bytes of the active segment, ``snapshot_offset`` names the producer
    snapshot to start from. -1 in the last two: not known.

    ``aborted_checksum`` is the CRC32C of the sealed segments' transaction indexes, one after the
    other: unlike other derived files they can be compared with nothing, and a lost entry would show
    aborted data. ``sealed_bytes`` is the size of those segments together: none may go missing.

    Below ``clean_offset`` the log is compacted; below ``compacted_offset``, and nowhere else,
    offsets may be missing.
    """

    partition_id: int
    segment_base_offset: int
    end_offset: int
    position: int
    log_start_offset: int
    snapshot_offset: int
    aborted_checksum: int = -1
    sealed_bytes: int = -1
    clean_offset: int = 0
    compacted_offset: int = 0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint; replay starts with the journal group ``journal_sequence``.

    ``clean``: nothing was appended after it. ``swaps`` are not finished yet. ``marked``: the
    journal's mark exists, which names its newest durable group.
    """

    generation: int
    journal_sequence: int
    partitions: Sequence[PartitionCheckpoint] = ()
    clean: bool = False
    swaps: Sequence[SegmentSwap] = ()
    marked: bool = True


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of the file."""
    data = bytearray(
        _HEAD.pack(
            CHECKPOINT_MAGIC,
            CHECKPOINT_VERSION if checkpoint.marked else _UNMARKED_VERSION,
            checkpoint.clean,
            0,
            checkpoint.generation,
            checkpoint.journal_sequence,
            len(checkpoint.partitions),
        )
    )
    for partition in checkpoint.partitions:
        data += _PARTITION.pack(*partition)
    data += _SWAP_COUNT.pack(len(checkpoint.swaps))
    for partition_id, swap_generation, replaced in checkpoint.swaps:
        data += _SWAP.pack(partition_id, swap_generation, len(replaced))
        data += struct.pack(f">{len(replaced)}q", *replaced)
    struct.pack_into(">I", data, _CHECKED_FROM - 4, _checksum(data))
    return bytes(data)


def _checksum(data: bytes | bytearray) -> int:
    """Return the checksum of the file without the checksum itself."""
    return crc32c(bytes(data[_CHECKED_FROM:]), crc32c(bytes(data[: _CHECKED_FROM - 4])))


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Read a file's bytes; raises :class:`CorruptCheckpoint`."""
    if len(data) < _HEAD.size:
        raise CorruptCheckpoint(f"{len(data)} bytes are too few")
    magic, version, clean, checksum, generation, sequence, count = _HEAD.unpack_from(data)
    if magic != CHECKPOINT_MAGIC:
        raise CorruptCheckpoint(f"magic {magic!r} is not that of a checkpoint")
    if checksum != _checksum(data):
        raise CorruptCheckpoint("the checksum does not match")
    # Only now can fields be believed: a version that is whole but unknown is another matter.
    if not _FIRST_VERSION <= version <= CHECKPOINT_VERSION:
        raise CorruptCheckpoint(f"version {version} is not {CHECKPOINT_VERSION}")
    entry = _FIRST_PARTITION if version == _FIRST_VERSION else _PARTITION
    end = _HEAD.size + count * entry.size
    try:
        swaps, at = ((), end) if version == _FIRST_VERSION else _decode_swaps(data, end)
    except struct.error as error:
        raise CorruptCheckpoint(f"{count} partitions do not fit into {len(data)} bytes") from error
    if len(data) != at:
        raise CorruptCheckpoint(f"{count} partitions do not make {len(data)} bytes")
    entries = entry.iter_unpack(data[_HEAD.size : end])
    partitions = tuple(PartitionCheckpoint(*fields) for fields in entries)
    marked = version > _UNMARKED_VERSION
    return Checkpoint(generation, sequence, partitions, bool(clean), swaps, marked)


def _decode_swaps(data: bytes, position: int) -> tuple[tuple[SegmentSwap, ...], int]:
    """Return the swaps from ``position`` on, and their end."""
    (count,) = _SWAP_COUNT.unpack_from(data, position)
    position += _SWAP_COUNT.size
    swaps = []
    for _ in range(count):
        partition_id, generation, size = _SWAP.unpack_from(data, position)
        position += _SWAP.size
        replaced = struct.unpack_from(f">{size}q", data, position)
        position += 8 * size
        swaps.append(SegmentSwap(partition_id, generation, replaced))
    return tuple(swaps), position


def newest_checkpoint(*files: bytes | None) -> Checkpoint | None:
    """Return the complete checkpoint with the highest generation among the files, or None."""
    whole = []
    for data in files:
        try:
            whole.append(decode_checkpoint(data or b""))
        except CorruptCheckpoint:
            continue  # torn while it was written; its twin is older but whole
    return max(whole, key=lambda checkpoint: checkpoint.generation, default=None)


# ------------------------------------------------------------------------ Kafka's checkpoint files


def _encode_lines(lines: Iterable[str]) -> bytes:
    """Return a file in the form of Kafka's checkpoints: version, number of entries, entries."""
    entries = list(lines)
    return "\n".join([_TEXT_VERSION, str(len(entries)), *entries, ""]).encode()


def _decode_lines(data: bytes, fields: int) -> list[list[str]]:
    """Return the lines, split at spaces into exactly ``fields`` parts, or none in an empty file."""
    if not data:
        return []  # Kafka creates some of these files empty and fills them much later
    lines = _text(data).splitlines()
    if len(lines) < 2 or lines[0].strip() != _TEXT_VERSION:
        raise CorruptFile(f"expected version {_TEXT_VERSION} and a count")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != _number(lines[1]):
        raise CorruptFile(f"{lines[1]} entries announced, {len(entries)} found")
    for entry in entries:
        if len(entry) != fields:
            raise CorruptFile(f"malformed entry {' '.join(entry)!r}")
    return entries


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptFile("the file is not a text file") from error


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CorruptFile(f"{text!r} is not a number") from error


def encode_offset_checkpoint(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """Return the bytes of a file with an offset for each (topic, partition).

    The format of ``log-start-offset-checkpoint``, ``recovery-point-offset-checkpoint`` and
    ``replication-offset-checkpoint``.
    """
    return _encode_lines(
        f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())
    )


def decode_offset_checkpoint(data: bytes) -> dict[tuple[str, int], int]:
    """Decode the bytes of :func:`encode_offset_checkpoint`; raises :class:`CorruptFile`."""
    return {
        (topic, _number(partition)): _number(offset)
        for topic, partition, offset in _decode_lines(data, 3)
    }


def encode_leader_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """Return ``leader-epoch-checkpoint``: (epoch, start offset) pairs, oldest first."""
    return _encode_lines(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def decode_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    """Read ``leader-epoch-checkpoint``; raises :class:`CorruptFile` (also if it goes back)."""
    epochs = [(_number(epoch), _number(start)) for epoch, start in _decode_lines(data, 2)]
    for (epoch, start), (next_epoch, next_start) in pairwise(epochs):
        if next_epoch <= epoch or next_start < start:
            raise CorruptFile(f"leader epoch {next_epoch} from {next_start} after {epoch}, {start}")
    return epochs


# ------------------------------------------------------------------------- Kafka's property files


def _encode_id(identifier: bytes) -> str:
    return base64.urlsafe_b64encode(identifier).rstrip(b"=").decode()


def _decode_id(text: str) -> bytes:
    try:
        identifier = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptFile(f"{text!r} is not an id") from error
    if len(identifier) != 16:
        raise CorruptFile(f"{text!r} is not an id of 16 bytes")
    return identifier


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return ``partition.metadata`` with the topic ID (16 bytes) of the directory."""
    return f"version: 0\ntopic_id: {_encode_id(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    """Return the topic ID (16 bytes); raises :class:`CorruptFile`."""
    fields = {}
    for line in _text(data).splitlines():
        name, separator, value = line.partition(":")
        if separator:
            fields[name.strip()] = value.strip()
    if fields.get("version") != "0":
        raise CorruptFile("partition metadata of an unknown version")
    return _decode_id(fields.get("topic_id", ""))


class MetaProperties(NamedTuple):
    """``meta.properties``: cluster and node that own the data directory; ``directory_id``: 16
    bytes.
    """

    cluster_id: str
    node_id: int
    directory_id: bytes


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """Return ``meta.properties`` of version 1."""
    return (
        f"cluster.id={properties.cluster_id}\n"
        f"directory.id={_encode_id(properties.directory_id)}\n"
        f"node.id={properties.node_id}\n"
        "version=1\n"
    ).encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Read ``meta.properties`` of version 1; raises :class:`CorruptFile`."""
    fields = {}
    for line in _text(data).splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", "!")):
            # Java's Properties escape ':' and '=' in values with a backslash.
            fields[name.strip()] = value.strip().replace("\\", "")
    if fields.get("version") != "1":
        raise CorruptFile("meta.properties of an unknown version")
    try:
        return MetaProperties(
            fields["cluster.id"], _number(fields["node.id"]), _decode_id(fields["directory.id"])
        )
    except KeyError as error:
        raise CorruptFile(f"meta.properties without {error}") from error
