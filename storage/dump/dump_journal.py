"""Rows of a journal file: the groups of its newest run, then where older ones lie behind them."""

from collections.abc import Iterator
from typing import Final

from barnabas.storage.dump.dump_batches import Problem, Row
from barnabas.storage.files.file_system import File
from barnabas.storage.journal.journal_format import (
    BLOCK_BYTES,
    KIND_BATCHES,
    KIND_LOG_START,
    Entry,
    GroupHeader,
    decode_entries,
    decode_header,
    table_bytes,
)

_GROUP_BYTES_MAX: Final = 1024 * 1024 * 1024
_KINDS: Final = {KIND_BATCHES: "batches", KIND_LOG_START: "log start"}


def dump_journal(file: File, *, entries: bool) -> Iterator[Row | Problem]:
    """Yield the commit groups of a file from its start, then the size of the rest, if any."""
    size, position = file.size(), 0
    expected: int | None = None
    while position < size:
        header = _header_at(file, position)
        if header is None or (expected is not None and header.sequence != expected):
            break
        found = _entries_at(file, position, header)
        yield Row(
            "group",
            {
                "sequence": header.sequence,
                "position": position,
                "size": header.group_bytes,
                "entries": header.entry_count,
                "crc": header.crc,
                "previous_crc": header.previous_crc,
                "valid": found is not None,
            },
        )
        if found is None:
            reason = f"group {header.sequence} is not whole; the last one of all may be torn"
            yield Problem(position, reason)
        elif entries:
            yield from (Row("entry", _describe(entry)) for entry in found)
        expected = header.sequence + 1
        position += header.padded_bytes
    if position < size:
        yield Row("rest", {"position": position, "size": size - position})


def _header_at(file: File, position: int) -> GroupHeader | None:
    prefix = memoryview(file.pread(BLOCK_BYTES, position))
    size = table_bytes(prefix)
    if size is None:
        return None
    return decode_header(memoryview(file.pread(size, position)))


def _entries_at(file: File, position: int, header: GroupHeader) -> list[Entry] | None:
    if header.group_bytes > _GROUP_BYTES_MAX:
        return None
    return decode_entries(memoryview(file.pread(header.group_bytes, position)), header)


def _describe(entry: Entry) -> dict[str, object]:
    return {
        "kind": _KINDS.get(entry.kind, str(entry.kind)),
        "partition_id": entry.partition_id,
        "base_offset": entry.base_offset,
        "next_offset": entry.next_offset,
        "leader_epoch": entry.leader_epoch,
        "size": len(entry.body),
    }
