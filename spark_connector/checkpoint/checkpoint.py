"""What Spark's checkpoint says of a batch: up to where it reads, and which query it belongs to.

Spark writes ``offsets/<batch>`` before a batch begins and never changes it: a line with the format,
one with settings, and one line per source with where the batch ends. These ends are what makes a
batch the same batch; those of Kafka sources can be committed to a group, for tools that show lag.
``commits/<batch>`` is there when a batch is finished. Beside them the sinks keep a file of their
own, with the topics and clusters that the checkpoint is about (see `incarnation.py`).

A checkpoint that cannot be reached from here is unknown, which costs the check and the committed
offsets; one that can, but lacks the batch, is not this query's.
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
    """Up to where a batch reads its sources."""

    fingerprint: str
    offsets: SourceOffsets
    """By topic and partition, of Kafka sources; the next offset to read, as a group commits it."""

    @property
    def topics(self) -> list[str]:
        """The names of the topics."""
        return list(dict.fromkeys(topic for topic, _ in self.offsets))


def batch_end(location: str | None, batch_id: int, store: StoreOptions | None = None) -> BatchEnd:
    """Read where a batch ends; an unknown end if the checkpoint cannot be reached from here.

    Raises :class:`CheckpointMismatch` if it can be reached and does not have the batch.
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
    """A digest of where a batch ends; None if the checkpoint does not have that batch.

    ``UNKNOWN`` if the checkpoint cannot be reached.
    """
    text = _read(location, f"offsets/{batch_id}", store)
    if text is None:
        return UNKNOWN
    return _end_of(text).fingerprint if text else None


def is_finished(location: str | None, batch_id: int, store: StoreOptions | None = None) -> bool:
    """Whether Spark has ended a batch, as far as can be seen from here."""
    files = files_at(location, store)
    return files is not None and files.exists(f"commits/{batch_id}")


def has_state(location: str | None, store: StoreOptions | None = None) -> bool:
    """Whether the query of a checkpoint keeps state; true where the checkpoint cannot be read."""
    files = files_at(location, store)
    return files is None or bool(files.names("state"))


def next_batch(location: str | None, store: StoreOptions | None = None) -> int | None:
    """The batch that a query begins with when it starts; None if that cannot be seen from here."""
    files = files_at(location, store)
    if files is None:
        return None
    last = _last_of(files.names("offsets"))
    return last + 1 if last < 0 or files.exists(f"commits/{last}") else last


def query_id(location: str | None, store: StoreOptions | None = None) -> str | None:
    """The id of the query whose checkpoint this is; None if there is none to be seen."""
    text = _read(location, "metadata", store)
    try:
        return str(json.loads(text)["id"]) if text else None
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise CheckpointMismatch(
            f"The checkpoint {location} does not say any more which query it belongs to: its file"
            f" metadata cannot be read ({error!r}); restore the checkpoint, or start a new one."
        ) from None


def check_usable(location: str) -> None:
    """Raise CheckpointUnusable unless files can be read and written there; makes the directory.

    Spark says of the same only that this or that operation has failed.
    """
    try:
        files = files_at(location)
        if files is not None:
            files.read("metadata")
            files.replace(_PROBE, b"")
            files.remove(_PROBE)
    except Exception as error:  # whatever a file system of Hadoop's raises
        why = (
            error.strerror if isinstance(error, OSError) and error.strerror else sentence_of(error)
        )
        raise CheckpointUnusable(
            f"The checkpoint {location} cannot be used ({why}): it needs a directory, or a URI of a"
            " file system of Hadoop's, that this user may write to."
        ) from error
    query_id(location)


def last_end(location: str | None, store: StoreOptions | None = None) -> BatchEnd:
    """Where the latest batch that was planned ends; unknown if there is none."""
    files = files_at(location, store)
    last = -1 if files is None else _last_of(files.names("offsets"))
    return batch_end(location, last, store) if last >= 0 else BatchEnd(UNKNOWN, {})


def incarnation(location: str | None, store: StoreOptions | None = None) -> str | None:
    """What the sinks have noted of topics and clusters; None if that is nothing."""
    return _read(location, INCARNATION, store) or None


def note_incarnation(location: str | None, text: str, store: StoreOptions | None = None) -> None:
    """Note it, if the checkpoint can be written from here; the ledger has it a batch later."""
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
    """The text of a file, empty if it is not there; None if the checkpoint cannot be reached."""
    files = files_at(location, store)
    return None if files is None else (files.read(name) or b"").decode()


def _kafka_offsets(lines: list[str]) -> SourceOffsets:
    """Pick out the sources that look like Kafka's: {topic: {partition: offset}}."""
    offsets: SourceOffsets = {}
    for line in lines:
        for topic_partition, offset in _kafka_offset(line).items():
            # Two sources of one topic: the group has read what both have.
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
