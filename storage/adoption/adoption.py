"""Taking over the data directory of an Apache Kafka that was stopped cleanly.

Kafka's segments stay as they are; only a checkpoint of the storage is missing. It is written once
every topic has its row in the MetaStore. Kafka's own mark of a clean stop is deleted last, so a
crash in between repeats the take-over from the beginning. Afterwards Kafka must not open the
directory as clean any more, for it would trust files that have changed. If the mark exists beside
files of Barnabas, or Kafka's metadata log has grown, Kafka has run since: the start then removes no
record that Kafka has acknowledged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.storage.errors import Corrupt, NotStoppedByKafka, UsedByKafkaSince
from barnabas.storage.files.directory_names import KRAFT_DIRECTORY, partition_of
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.journal.journal_files import FILE_NAME_PREFIX as JOURNAL_PREFIX
from barnabas.storage.log.checkpoint import (
    Checkpoint,
    CorruptFile,
    PartitionCheckpoint,
    decode_offset_checkpoint,
    decode_partition_metadata,
    encode_checkpoint,
)
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.log_directory import PARTITION_METADATA, LogDirectory
from barnabas.storage.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_names import LOG_SUFFIX, SNAPSHOT_SUFFIX
from barnabas.storage.store.checkpoint_work import (
    CHECKPOINT_NAMES,
    CLEANER_CHECKPOINT,
    LOG_START_CHECKPOINT,
)

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
"""The file by which Kafka says that it closed every log."""

KAFKA_STATE: Final = "barnabas-kafka-state"
"""The file with the sizes that Kafka's metadata log had when the directory was taken over."""

_OF_KAFKA: Final = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
"""Files that every Kafka broker writes where its logs are, and that Barnabas never writes."""


@dataclass(frozen=True, slots=True)
class ForeignTopic:
    """A topic as its directories describe it; ``partition_count`` directories without a gap."""

    name: str
    topic_id: bytes
    partition_count: int


def is_foreign(file_system: FileSystem, root: str) -> bool:
    """Return whether a cleanly stopped Kafka left this directory, not yet adopted."""
    return file_system.exists(file_system.join(root, CLEAN_SHUTDOWN)) and not _has_logs_of_ours(
        file_system.list_directory(root)
    )


def refuse_kafkas(file_system: FileSystem, root: str) -> None:
    """Raise if a start would lose records that Apache Kafka has acknowledged.

    Raises NotStoppedByKafka and UsedByKafkaSince. Nothing is changed.
    """
    if not file_system.is_directory(root):
        return
    names = file_system.list_directory(root)
    if not _has_logs_of_ours(names):
        if CLEAN_SHUTDOWN not in names and any(name in names for name in _OF_KAFKA):
            raise NotStoppedByKafka(root, CLEAN_SHUTDOWN)
    elif CLEAN_SHUTDOWN in names:
        raise UsedByKafkaSince(root, f"{CLEAN_SHUTDOWN} exists again")
    elif KAFKA_STATE in names:
        known = file_system.read_file(file_system.join(root, KAFKA_STATE))
        found = _metadata_log_sizes(file_system, root)
        if found not in (b"", known):  # An operator may have removed what Kafka has left.
            raise UsedByKafkaSince(root, f"{KRAFT_DIRECTORY} is not as it was taken over")


def _metadata_log_sizes(file_system: FileSystem, root: str) -> bytes:
    """Return a line for each file of Kafka's metadata log, to which every run of Kafka appends."""
    directory = file_system.join(root, KRAFT_DIRECTORY)
    if not file_system.is_directory(directory):
        return b""
    lines = []
    for name in file_system.list_directory(directory):
        if name.endswith(LOG_SUFFIX):
            file = file_system.open(file_system.join(directory, name))
            lines.append(f"{name} {file.size()}\n")
            file.close()
    return "".join(lines).encode()


def _has_logs_of_ours(names: Iterable[str]) -> bool:
    """Return whether a directory may have records of Barnabas, which need a checkpoint."""
    return any(name in CHECKPOINT_NAMES or name.startswith(JOURNAL_PREFIX) for name in names)


def foreign_topics(file_system: FileSystem, root: str) -> list[ForeignTopic]:
    """Return every topic with directories here, by name. Raises Corrupt if they contradict."""
    partitions: dict[tuple[str, bytes], set[int]] = {}
    for name in file_system.list_directory(root):
        named = partition_of(name)
        path = file_system.join(root, name, PARTITION_METADATA)
        if named is None or not file_system.exists(path):
            continue
        partitions.setdefault((named[0], _topic_id(file_system, path)), set()).add(named[1])
    for (topic, _), indexes in partitions.items():
        if indexes != set(range(len(indexes))):
            path = file_system.join(root, topic)
            raise Corrupt(path, 0, f"only the partitions {sorted(indexes)} exist")
    return [
        ForeignTopic(topic, topic_id, len(indexes))
        for (topic, topic_id), indexes in sorted(partitions.items())
    ]


def _topic_id(file_system: FileSystem, path: str) -> bytes:
    try:
        return decode_partition_metadata(file_system.read_file(path))
    except CorruptFile as error:
        raise Corrupt(path, 0, str(error)) from error


def highest_producer_id(file_system: FileSystem, root: str, names: Iterable[str]) -> int:
    """Return the largest producer ID in the newest snapshots of the directories, or -1.

    A Kafka that stops cleanly writes one at the end of every log that has producers.
    """
    highest = -1
    for name in names:
        path = file_system.join(root, name)
        snapshots = [
            file for file in file_system.list_directory(path) if file.endswith(SNAPSHOT_SUFFIX)
        ]
        if not snapshots:
            continue
        newest = file_system.join(path, max(snapshots))
        try:
            state = decode_snapshot(file_system.read_file(newest), append_time_ms=0)
        except CorruptSnapshot as error:
            raise Corrupt(newest, 0, str(error)) from error
        highest = max([highest, *(row.producer_id for row in state.producers())])
    return highest


def adopt(
    file_system: FileSystem, root: str, partition_ids: Mapping[str, tuple[int, bytes]]
) -> None:
    """Write the first checkpoint over foreign logs, then remove Kafka's mark.

    ``partition_ids``: our id and the topic's for each directory name.
    """
    starts = _offsets_in(file_system, root, LOG_START_CHECKPOINT)
    cleaned = _offsets_in(file_system, root, CLEANER_CHECKPOINT)
    positions = [
        _position(LogDirectory(file_system, root, name, topic_id), partition_id, starts, cleaned)
        for name, (partition_id, topic_id) in partition_ids.items()
    ]
    # Where Kafka is killed in the directory later, nothing else says that it has run.
    file_system.write_file_atomically(
        file_system.join(root, KAFKA_STATE), _metadata_log_sizes(file_system, root)
    )
    path = file_system.join(root, CHECKPOINT_NAMES[1])
    checkpoint = Checkpoint(1, 1, positions, marked=False)
    file_system.write_file_atomically(path, encode_checkpoint(checkpoint))
    file_system.unlink(file_system.join(root, CLEAN_SHUTDOWN))
    file_system.sync_directory(root)


def _offsets_in(file_system: FileSystem, root: str, name: str) -> dict[tuple[str, int], int]:
    path = file_system.join(root, name)
    if not file_system.exists(path):
        return {}
    try:
        return decode_offset_checkpoint(file_system.read_file(path))
    except CorruptFile as error:
        raise Corrupt(path, 0, str(error)) from error


def _position(
    directory: LogDirectory,
    partition_id: int,
    starts: Mapping[tuple[str, int], int],
    cleaned: Mapping[tuple[str, int], int],
) -> PartitionCheckpoint:
    """Return the end of a foreign log, after one pass over the headers of its last segment."""
    topic, _, index = directory.name.rpartition("-")
    bases = sorted(
        int(name.removesuffix(LOG_SUFFIX))
        for name in directory.list_files()
        if name.endswith(LOG_SUFFIX)
    )
    if not bases:
        return PartitionCheckpoint(partition_id, 0, 0, 0, 0, 0)
    segment = Segment(directory, bases[-1], LogConfig().index_interval_bytes, created_ms=0)
    segment.written_bytes = segment.size_bytes = segment.file.size()
    end_offset = segment.base_offset
    for _, header, _ in segment.scan(0):
        end_offset = header.next_offset
    segment.close()
    start_offset = max(starts.get((topic, int(index)), 0), bases[0])
    clean_offset = min(cleaned.get((topic, int(index)), 0), segment.base_offset)
    return PartitionCheckpoint(
        partition_id,
        segment.base_offset,
        end_offset,
        segment.size_bytes,
        start_offset,
        0,
        clean_offset=clean_offset,
        compacted_offset=clean_offset,
    )
