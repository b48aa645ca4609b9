"""The scrubber's results for a data directory, in a file, so that a restart need not find them
again.

Rules of this file:

1. A note is no proof: it counts for a segment while the segment has the same size, and with an
   unreadable file of notes everything is still to be verified.
2. After a crash nothing counts as verified: pages may not have reached the disk as they were.
   Damaged ranges stay offline until they are checked again, and index files are compared with their
   noted checksums, regardless of how the last run ended.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crc32c import crc32c

from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.log.damage import DamagedRange, from_offset, with_findings
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment import Segment

FILE_NAME: Final = "barnabas-scrub"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """Verified part of the sealed segments at a moment; times in ms, or 0 for never."""

    noted_ms: int = 0
    last_full_pass_ms: int = 0
    segments: int = 0
    size_bytes: int = 0
    verified_segments: int = 0
    verified_bytes: int = 0
    damaged_ranges: int = 0


def survey(logs: Iterable[PartitionLog], *, noted_ms: int, last_full_pass_ms: int) -> Progress:
    """Return the verified part of these logs. May run beside the loop."""
    counts = [0, 0, 0, 0, 0]
    for log in logs:
        counts[4] += len(log.damaged)
        for segment in log.local_segments[:-1]:
            counts[0] += 1
            counts[1] += segment.size_bytes
            if segment.verified_ms:
                counts[2] += 1
                counts[3] += segment.size_bytes
    return Progress(noted_ms, last_full_pass_ms, *counts)


def encode_notes(logs: Iterable[PartitionLog], progress: Progress) -> bytes:
    """Return the bytes of the file: a checksum, then JSON. May run outside the loop."""
    partitions = {
        str(log.partition_id): {
            "damaged": [
                [*each, segment.size_bytes]
                for each in log.damaged
                for segment in log.local_segments
                if segment.base_offset == each.segment
            ],
            "segments": [
                [
                    segment.base_offset,
                    segment.size_bytes,
                    segment.verified_ms,
                    -1 if segment.index_checksum is None else segment.index_checksum,
                ]
                for segment in log.local_segments[:-1]
            ],
        }
        for log in logs
        if log.damaged or len(log.segments) > 1
    }
    fields = [getattr(progress, name) for name in Progress.__slots__]
    text = json.dumps({"version": _VERSION, "progress": fields, "partitions": partitions})
    return b"%08x\n%s\n" % (crc32c(text.encode()), text.encode())


def read_notes(file_system: FileSystem, root: str) -> Mapping[str, Any] | None:
    """Return the contents of the file, or None if it does not exist or is torn."""
    try:
        data = file_system.read_file(file_system.join(root, FILE_NAME))
    except FileNotFoundError:
        return None
    checksum, _, text = data.partition(b"\n")
    if checksum != b"%08x" % crc32c(text.removesuffix(b"\n")):
        return None
    notes: dict[str, Any] = json.loads(text)
    return notes if notes["version"] == _VERSION else None


def progress_of(notes: Mapping[str, Any]) -> Progress:
    """Return the scrubber's progress."""
    return Progress(*notes["progress"])


def apply_notes(
    notes: Mapping[str, Any], logs: Iterable[PartitionLog], *, clean: bool
) -> Iterator[PartitionLog]:
    """Apply the notes to their logs; yields logs with damage."""
    for log in logs:
        noted = notes["partitions"].get(str(log.partition_id))
        if noted is None:
            continue
        segments = {segment.base_offset: segment for segment in log.local_segments}
        for base_offset, size_bytes, verified_ms, checksum in noted["segments"]:
            segment = segments.get(base_offset)
            if segment is not None and _is_the_one(segment, size_bytes):
                segment.verified_ms = verified_ms if clean else 0
                segment.index_checksum = None if checksum < 0 else checksum
        for *fields, size_bytes in noted["damaged"]:
            damaged = DamagedRange(*fields)
            segment = segments.get(damaged.segment)
            if segment is not None and _is_the_one(segment, size_bytes):
                segment.verified_ms = 0  # To be checked first: it may have been repaired.
                found = with_findings(
                    log.damaged, damaged.base_offset, damaged.end_offset, (damaged,)
                )
                log.damaged = from_offset(found, log.log_start_offset)
        if log.damaged:
            yield log


def _is_the_one(segment: Segment, size_bytes: int) -> bool:
    return segment.sealed and segment.size_bytes == size_bytes
