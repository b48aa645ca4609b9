"""Rows of the files of a data directory, and the positions where they are damaged. Reads only.

Rules of this file:

1. Damage is a :class:`Problem` with its byte position, never an exception: the rows after it are
   shown as far as they can be found. OSError is the caller's.
2. An index is compared with the log beside it, if there is one.
3. A file's name determines its format, as Kafka and the store name them.
"""

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.storage.dump.dump_batches import Problem, Row, dump_batches, headers_of
from barnabas.storage.dump.dump_journal import dump_journal
from barnabas.storage.files.commit_mark import (
    FILE_BYTES,
    MARK_BYTES,
    MARKS_AT,
    read_files,
    read_marks,
)
from barnabas.storage.files.commit_mark import FILE_NAME as COMMIT_MARK
from barnabas.storage.files.file_system import File, FileSystem
from barnabas.storage.journal.journal_files import FILE_NAME_PREFIX
from barnabas.storage.log.checkpoint import (
    CorruptCheckpoint,
    CorruptFile,
    decode_checkpoint,
    decode_leader_epochs,
    decode_meta_properties,
    decode_offset_checkpoint,
    decode_partition_metadata,
)
from barnabas.storage.log.index import TIME_ENTRY, TRANSACTION_ENTRY, TRANSACTION_VERSION
from barnabas.storage.log.log_directory import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from barnabas.storage.log.producer_entry import ProducerEntry
from barnabas.storage.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from barnabas.storage.log.segment_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from barnabas.storage.metastore.commit_count import SUFFIX as COUNT_SUFFIX
from barnabas.storage.metastore.sqlite import FILE_NAME as METADATA
from barnabas.storage.store.checkpoint_work import CHECKPOINT_NAMES

Item = Row | Problem

_STEM_DIGITS: Final = 20
_INDEX_ENTRY: Final = struct.Struct(">ii")
_SMALL_FILE_BYTES_MAX: Final = 256 * 1024 * 1024
_INDEX_BYTES_MAX: Final = 1024 * 1024 * 1024


class UnknownFile(Exception):
    """The name does not belong to a file of a data directory."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file to dump; ``records``: with the records of batches, or the journal's groups."""

    file_system: FileSystem
    path: str
    records: bool = False
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Take the name off the path."""
        object.__setattr__(self, "name", self.path.rpartition("/")[2])

    @property
    def base_offset(self) -> int:
        """Offset in the file's name."""
        return int(self.name[:_STEM_DIGITS])

    def open(self, suffix: str | None = None) -> File:
        """Open the file, or its neighbour with another suffix."""
        if suffix is None:
            return self.file_system.open(self.path)
        stem, _, _ = self.path.rpartition(".")
        return self.file_system.open(stem + suffix)

    def read(self, limit_bytes: int = _SMALL_FILE_BYTES_MAX) -> bytes:
        """Return the content of a file; raises CorruptFile if it is too large for memory."""
        file = self.open()
        try:
            size = file.size()
            if size > limit_bytes:
                raise CorruptFile(f"{size} bytes are too many for such a file")
            return file.pread(size, 0)
        finally:
            file.close()


def dump_file(source: Source) -> Iterator[Item]:
    """Yield the rows and problems of a file; raises UnknownFile and OSError."""
    return _dumper_of(source.name)(source)


def is_known(name: str) -> bool:
    """Return whether :func:`dump_file` supports files of this name."""
    try:
        _dumper_of(name)
    except UnknownFile:
        return False
    return True


def _dumper_of(name: str) -> "Dumper":
    for pattern, dumper in _DUMPERS.items():
        if re.fullmatch(pattern, name):
            return dumper
    raise UnknownFile(name)


# ------------------------------------------------------------------------------------ batch files


def _dump_log(source: Source) -> Iterator[Item]:
    file = source.open()
    try:
        yield from dump_batches(file, source.base_offset, records=source.records)
    finally:
        file.close()


def _dump_journal(source: Source) -> Iterator[Item]:
    file = source.open()
    try:
        yield from dump_journal(file, entries=source.records)
    finally:
        file.close()


# ---------------------------------------------------------------------------------------- indexes


def _dump_offset_index(source: Source) -> Iterator[Item]:
    base_offset, previous = source.base_offset, (-1, -1)
    log = _log_beside(source)
    try:
        for at, (relative, position) in _entries(source, _INDEX_ENTRY):
            offset = base_offset + relative
            yield Row("index entry", {"offset": offset, "position": position})
            if relative <= previous[0] or position <= previous[1]:
                yield Problem(at, f"offset {offset} at {position} does not follow the entry before")
            elif log is not None and (reason := _index_problem(log, offset, position)):
                yield Problem(at, reason)
            previous = relative, position
        yield from _odd_bytes(source, _INDEX_ENTRY)
    finally:
        if log is not None:
            log.close()


def _index_problem(log: File, offset: int, position: int) -> str:
    """Return the difference between an index entry and the batch at its position, or ""."""
    header = next(headers_of(log, position), None)
    if header is None:
        return f"no batch starts at byte {position} of the log, where offset {offset} should be"
    if header[1].last_offset != offset:
        return f"the batch at byte {position} ends at offset {header[1].last_offset}, not {offset}"
    return ""


def _dump_time_index(source: Source) -> Iterator[Item]:
    base_offset, previous = source.base_offset, (-1, -1)
    log = _log_beside(source)
    headers = headers_of(log, 0) if log is not None else iter(())
    header = next(headers, None)
    try:
        for at, (timestamp, relative) in _entries(source, TIME_ENTRY):
            offset = base_offset + relative
            yield Row("time index entry", {"timestamp": timestamp, "offset": offset})
            if timestamp <= previous[0] or relative < previous[1]:
                yield Problem(at, f"timestamp {timestamp} does not follow the entry before")
                continue
            previous = timestamp, relative
            while header is not None and header[1].last_offset < offset:
                header = next(headers, None)
            if log is None:
                continue
            if header is None or header[1].base_offset > offset:
                yield Problem(at, f"no batch of the log holds offset {offset}")
            elif header[1].max_timestamp != timestamp:
                actual = header[1].max_timestamp
                yield Problem(at, f"the batch of offset {offset} has timestamp {actual}")
        yield from _odd_bytes(source, TIME_ENTRY)
    finally:
        if log is not None:
            log.close()


def _dump_transaction_index(source: Source) -> Iterator[Item]:
    last = source.base_offset - 1
    for at, fields in _entries(source, TRANSACTION_ENTRY):
        version, producer_id, first_offset, last_offset, last_stable_offset = fields
        yield Row(
            "aborted transaction",
            {
                "producer_id": producer_id,
                "first_offset": first_offset,
                "last_offset": last_offset,
                "last_stable_offset": last_stable_offset,
                "version": version,
            },
        )
        if version != TRANSACTION_VERSION:
            yield Problem(at, f"version {version} is not {TRANSACTION_VERSION}")
        elif last_offset <= last or first_offset > last_offset:
            yield Problem(at, f"the transaction that ends at {last_offset} is out of order")
        last = max(last, last_offset)
    yield from _odd_bytes(source, TRANSACTION_ENTRY)


def _entries(source: Source, entry: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield position and fields of an index's entries, without the reserved zeros after them."""
    data = source.read(_INDEX_BYTES_MAX)
    used = len(data.rstrip(b"\0"))
    count = -(-used // entry.size)
    if not count and len(data) == entry.size:
        # An entry may be all zeros, like an unused slot: the only one in the file counts.
        count = 1
    for number in range(min(count, len(data) // entry.size)):
        yield number * entry.size, entry.unpack_from(data, number * entry.size)


def _odd_bytes(source: Source, entry: struct.Struct) -> Iterator[Item]:
    size = len(source.read(_INDEX_BYTES_MAX))
    if size % entry.size:
        yield Problem(size - size % entry.size, "the file ends inside an entry")


def _log_beside(source: Source) -> File | None:
    try:
        return source.open(LOG_SUFFIX)
    except FileNotFoundError:
        return None


# ------------------------------------------------------------------------------- producer snapshot


def _dump_snapshot(source: Source) -> Iterator[Item]:
    try:
        state = decode_snapshot(source.read(), append_time_ms=-1)
    except (CorruptSnapshot, CorruptFile) as error:
        yield Problem(0, str(error))
        return
    for entry in state.entries():
        yield Row("producer", _producer(entry))


def _producer(entry: ProducerEntry) -> dict[str, Any]:
    row = entry.row
    batch = entry.batches[-1] if entry.batches else None
    return {
        "producer_id": row.producer_id,
        "producer_epoch": row.epoch,
        "coordinator_epoch": row.coordinator_epoch,
        "transaction_first_offset": row.transaction_first_offset,
        "last_timestamp": row.last_timestamp,
        "first_sequence": batch.first_sequence if batch else -1,
        "last_sequence": row.last_sequence,
        "last_offset": batch.last_offset if batch else -1,
        "cached_batches": len(entry.batches),
        "append_time_ms": entry.append_time_ms,
    }


# ------------------------------------------------------------------------------------ small files


def _dump_checkpoint(source: Source) -> Iterator[Item]:
    checkpoint = decode_checkpoint(source.read())
    yield Row(
        "checkpoint",
        {
            "generation": checkpoint.generation,
            "journal_sequence": checkpoint.journal_sequence,
            "clean": checkpoint.clean,
            "partitions": len(checkpoint.partitions),
        },
    )
    for partition in checkpoint.partitions:
        yield Row("partition", partition._asdict())
    for swap in checkpoint.swaps:
        yield Row("swap", swap._asdict())


def _dump_commit_mark(source: Source) -> Iterator[Item]:
    """Yield the files that the journal must have, and its newest durable group."""
    data = source.read()
    if len(data) < FILE_BYTES:
        yield Problem(len(data), f"the file ends here, it should have {FILE_BYTES} bytes")
        return
    slots = read_files(data)
    newest = max((each for each in slots if each is not None), default=None, key=lambda it: it[0])
    for number, slot in enumerate(slots):
        yield Row(
            "journal files",
            {
                "slot": number,
                "generation": -1 if slot is None else slot[0],
                "files": -1 if slot is None else len(slot[1]),
                "valid": slot is not None,
                "newest": slot is not None and slot == newest,
            },
        )
    if newest is None:
        yield Problem(0, "neither list of files can be read")
    else:
        for number, size in sorted(newest[1].items()):
            yield Row("journal file", {"number": number, "size": size})
    yield from _marks(data, MARKS_AT, "group")


def _dump_commit_count(source: Source) -> Iterator[Item]:
    """Yield the number of commits that the metadata store has seen."""
    yield from _marks(source.read().ljust(MARK_BYTES, b"\0"), 0, "commits")


def _marks(data: bytes, position: int, counted: str) -> Iterator[Item]:
    marks = read_marks(data, position)
    newest = max((mark for mark in marks if mark is not None), default=None)
    for number, mark in enumerate(marks):
        fields = {
            "slot": number,
            counted: -1 if mark is None else mark,
            "valid": mark is not None,
            "newest": mark is not None and mark == newest,
        }
        yield Row("mark", fields)
    if newest is None:
        yield Problem(position, "neither mark can be read")


def _dump_leader_epochs(source: Source) -> Iterator[Item]:
    for epoch, start_offset in decode_leader_epochs(source.read()):
        yield Row("leader epoch", {"epoch": epoch, "start_offset": start_offset})


def _dump_offset_checkpoint(source: Source) -> Iterator[Item]:
    for (topic, partition), offset in decode_offset_checkpoint(source.read()).items():
        yield Row("offset", {"topic": topic, "partition": partition, "offset": offset})


def _dump_partition_metadata(source: Source) -> Iterator[Item]:
    yield Row("partition metadata", {"topic_id": decode_partition_metadata(source.read())})


def _dump_meta_properties(source: Source) -> Iterator[Item]:
    yield Row("meta properties", decode_meta_properties(source.read())._asdict())


Dumper = Callable[[Source], Iterator[Item]]


def _small(dumper: Dumper) -> Dumper:
    """Return a dumper that reports an invalid file as a problem."""

    def dump(source: Source) -> Iterator[Item]:
        try:
            yield from dumper(source)
        except (CorruptFile, CorruptCheckpoint) as error:
            yield Problem(0, str(error))

    return dump


_OFFSET: Final = r"\d{20}"
_DUMPERS: Final[dict[str, Dumper]] = {
    _OFFSET + re.escape(LOG_SUFFIX): _dump_log,
    _OFFSET + r"-\d{10}\.checkpoint": _dump_log,  # A snapshot of Kafka's own metadata log.
    _OFFSET + re.escape(INDEX_SUFFIX): _small(_dump_offset_index),
    _OFFSET + re.escape(TIME_INDEX_SUFFIX): _small(_dump_time_index),
    _OFFSET + re.escape(TRANSACTION_INDEX_SUFFIX): _small(_dump_transaction_index),
    _OFFSET + re.escape(SNAPSHOT_SUFFIX): _dump_snapshot,
    re.escape(FILE_NAME_PREFIX) + r"\d+": _dump_journal,
    "|".join(map(re.escape, CHECKPOINT_NAMES)): _small(_dump_checkpoint),
    re.escape(COMMIT_MARK): _small(_dump_commit_mark),
    re.escape(METADATA + COUNT_SUFFIX): _small(_dump_commit_count),
    re.escape(LEADER_EPOCH_CHECKPOINT): _small(_dump_leader_epochs),
    r"[a-z-]+-offset-checkpoint|recovery-point-offset-checkpoint": _small(_dump_offset_checkpoint),
    re.escape(PARTITION_METADATA): _small(_dump_partition_metadata),
    r"meta\.properties": _small(_dump_meta_properties),
}
