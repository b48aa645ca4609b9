"""Batches in Spark's checkpoint: the end offsets of each batch, and the ID of the query.

Spark writes ``offsets/<batch>`` before a batch begins and never changes it: a line with the format,
one with settings, and for each source one with the end offsets. Two batches with the same end
offsets are the same batch. The end offsets of Kafka sources can be committed to a group, for tools
that show lag. Spark writes ``commits/<batch>`` when a batch has finished. The sinks keep a file
beside these, with the IDs of topics and clusters (see `cluster/incarnation.py`).

If the checkpoint is unreachable from this process, batches are not compared with it and no offsets
are committed. A reachable checkpoint without the batch belongs to another query.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from typing import Final, NamedTuple

from barnabas.spark_connector.checkpoint.checkpoint_files import files_at
from barnabas.spark_connector.errors import CheckpointMismatch, CheckpointUnusable
from barnabas.spark_connector.failures.sentences import sentence_of
from barnabas.spark_connector.settings.store_options import StoreOptions

UNKNOWN = ""
"""The fingerprint of a batch whose checkpoint cannot be read from here; equal to any other."""

_LINES_BEFORE_SOURCES = 2
_NO_OFFSET = "-"
INCARNATION: Final = "barnabas-incarnation.json"
_PROBE: Final = ".barnabas-probe"

SourceOffsets = dict[tuple[str, int], int]


class BatchEnd(NamedTuple):
    """End offsets of a batch in its sources."""

    fingerprint: str
    offsets: SourceOffsets
    """Next offset to read, by topic and partition, of Kafka sources."""

    @property
    def topics(self) -> list[str]:
        """The names of the topics."""
        return list(dict.fromkeys(topic for topic, _ in self.offsets))


def batch_end(location: str | None, batch_id: int, store: StoreOptions | None = None) -> BatchEnd:
    """Return the end of a batch, or an unknown end if the checkpoint is unreachable from here.

    Raises :class:`CheckpointMismatch` if the checkpoint is reachable and lacks the batch.
    """
    name = f"offsets/{batch_id}"
    text = _read(location, name, store)
    if text is None:
        return BatchEnd(UNKNOWN, {})
    if not text:
        raise CheckpointMismatch(
            f"The checkpoint {location} has no file {name}: give the sink the option"
            " checkpointLocation of the very query that it writes for."
        )
    return _end_of(text)


def fingerprint(
    location: str | None, batch_id: int, store: StoreOptions | None = None
) -> str | None:
    """Return a digest of the end of a batch, or `None` if the checkpoint lacks the batch.

    Return ``UNKNOWN`` if the checkpoint is unreachable.
    """
    text = _read(location, f"offsets/{batch_id}", store)
    if text is None:
        return UNKNOWN
    return _end_of(text).fingerprint if text else None


def is_finished(location: str | None, batch_id: int, store: StoreOptions | None = None) -> bool:
    """Return whether the checkpoint is reachable and records the end of a batch."""
    files = files_at(location, store)
    return files is not None and files.exists(f"commits/{batch_id}")


def has_state(location: str | None, store: StoreOptions | None = None) -> bool:
    """Return whether the query keeps state; true if the checkpoint is unreachable."""
    files = files_at(location, store)
    return files is None or bool(files.names("state"))


def next_batch(location: str | None, store: StoreOptions | None = None) -> int | None:
    """Return a starting query's first batch, or `None` if the checkpoint is unreachable."""
    files = files_at(location, store)
    if files is None:
        return None
    last = _last_of(files.names("offsets"))
    return last + 1 if last < 0 or files.exists(f"commits/{last}") else last


def query_id(location: str | None, store: StoreOptions | None = None) -> str | None:
    """Return the ID of the checkpoint's query, or `None` if it has none or is unreachable."""
    text = _read(location, "metadata", store)
    try:
        return str(json.loads(text)["id"]) if text else None
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise CheckpointMismatch(
            f"The checkpoint {location} does not say any more which query it belongs to: its file"
            f" metadata cannot be read ({error!r}); restore the checkpoint, or start a new one."
        ) from None


def check_usable(location: str) -> None:
    """Create the directory; raise CheckpointUnusable unless files can be read and written there.

    Spark would report only the operation that failed.
    """
    try:
        files = files_at(location)
        if files is not None:
            files.read("metadata")
            files.replace(_PROBE, b"")
            files.remove(_PROBE)
    except Exception as error:  # file systems of Hadoop raise errors of any class
        why = (
            error.strerror if isinstance(error, OSError) and error.strerror else sentence_of(error)
        )
        raise CheckpointUnusable(
            f"The checkpoint {location} cannot be used ({why}): it needs a directory, or a URI of a"
            " file system of Hadoop's, that this user may write to."
        ) from error
    query_id(location)


def last_end(location: str | None, store: StoreOptions | None = None) -> BatchEnd:
    """Return the end of the latest planned batch, or an unknown end if there is none."""
    files = files_at(location, store)
    last = -1 if files is None else _last_of(files.names("offsets"))
    return batch_end(location, last, store) if last >= 0 else BatchEnd(UNKNOWN, {})


def incarnation(location: str | None, store: StoreOptions | None = None) -> str | None:
    """Return the text that a sink noted about topics and clusters, or `None` if there is none."""
    return _read(location, INCARNATION, store) or None


def note_incarnation(location: str | None, text: str, store: StoreOptions | None = None) -> None:
    """Write the text if the checkpoint is writable; a batch later the ledger has it as well."""
    files = files_at(location, store)
    if files is None:
        return
    try:
        files.replace(INCARNATION, text.encode())
    except CheckpointUnusable as error:
        _warn_of_note(str(error))
    except OSError as error:  # pyarrow's errors are kinds of it
        _warn_of_note(
            f"The checkpoint {location} cannot be written from {platform.node()} ({error})."
        )


def _warn_of_note(reason: str) -> None:
    warnings.warn(
        f"{reason} Topics that are made again before the next batch is decided are not noticed.",
        RuntimeWarning,
        stacklevel=3,
    )


def _end_of(text: str) -> BatchEnd:
    lines = text.splitlines()[_LINES_BEFORE_SOURCES:]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return BatchEnd(digest, _kafka_offsets(lines))


def _last_of(names: list[str]) -> int:
    # Beside the batches are checksums and unfinished files, whose names begin with a dot.
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _read(location: str | None, name: str, store: StoreOptions | None) -> str | None:
    """Return the text of a file, empty if absent, or `None` if the checkpoint is unreachable."""
    files = files_at(location, store)
    return None if files is None else (files.read(name) or b"").decode()


def _kafka_offsets(lines: list[str]) -> SourceOffsets:
    """Return the offsets of the sources in Kafka's format: {topic: {partition: offset}}."""
    offsets: SourceOffsets = {}
    for line in lines:
        for topic_partition, offset in _kafka_offset(line).items():
            # With two sources of one topic, the group has read what both have read.
            offsets[topic_partition] = min(offset, offsets.get(topic_partition, offset))
    return offsets


def _kafka_offset(line: str) -> SourceOffsets:
    if line.strip() == _NO_OFFSET:
        return {}
    try:
        found = json.loads(line)
        return {
            (topic, int(partition)): offset
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
            if isinstance(offset, int) and offset >= 0
        }
    except (ValueError, AttributeError):
        return {}  # another kind of source
