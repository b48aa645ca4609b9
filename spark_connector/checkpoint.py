"""What Spark's checkpoint says of a batch: up to where it reads, and which query it belongs to.

Spark writes ``offsets/<batch>`` before a batch begins and never changes it: a line with the format,
one with settings, and one line per source with where the batch ends. These ends are what makes a
batch the same batch; those of Kafka sources can be committed to a group, for tools that show lag.

The file is read through Spark's JVM where there is one (the driver's own process), and otherwise
directly: local paths, and whatever ``pyarrow.fs`` knows by its URI. A checkpoint that cannot be
reached from here is unknown, which costs the check and the committed offsets; one that can, but
lacks the batch, is not this query's.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from spark_connector.errors import CheckpointMismatch

UNKNOWN = ""
"""The fingerprint of a batch whose checkpoint cannot be read from here; equal to any other."""

_LINES_BEFORE_SOURCES = 2
_NO_OFFSET = "-"
_LARGEST_FILE_BYTES = 64 * 1024 * 1024

SourceOffsets = dict[tuple[str, int], int]


class BatchEnd(NamedTuple):
    """Up to where a batch reads its sources."""

    fingerprint: str
    offsets: SourceOffsets
    """By topic and partition, of Kafka sources; the next offset to read, as a group commits it."""


def batch_end(location: str | None, batch_id: int) -> BatchEnd:
    """Read where a batch ends; an unknown end if the checkpoint cannot be reached from here.

    Raises :class:`CheckpointMismatch` if it can be reached and does not have the batch.
    """
    if location is None:
        return BatchEnd(UNKNOWN, {})
    text = _read(location, f"offsets/{batch_id}")
    if text is None:
        return BatchEnd(UNKNOWN, {})
    lines = text.splitlines()[_LINES_BEFORE_SOURCES:]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return BatchEnd(digest, _kafka_offsets(lines))


def fingerprint(location: str | None, batch_id: int) -> str:
    """A digest of where the batch ends; ``UNKNOWN`` if the checkpoint cannot be reached."""
    return batch_end(location, batch_id).fingerprint


def source_offsets(location: str | None, batch_id: int) -> SourceOffsets:
    """Where the batch ends in Kafka sources; empty if there are none, or nothing is known."""
    return batch_end(location, batch_id).offsets


def query_id(location: str | None) -> str | None:
    """The id of the query whose checkpoint this is; None if it cannot be reached from here."""
    text = None if location is None else _read(location, "metadata")
    return None if text is None else str(json.loads(text)["id"])


def _kafka_offsets(lines: list[str]) -> SourceOffsets:
    """Pick out the sources that look like Kafka's: {topic: {partition: offset}}."""
    offsets: SourceOffsets = {}
    for line in lines:
        for place, offset in _kafka_offset(line).items():
            # Two sources of one topic: the group has read what both have.
            offsets[place] = min(offset, offsets.get(place, offset))
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


# ---------------------------------------------------------------------------------------- reading


def _read(location: str, name: str) -> str | None:
    """The text of a file in the checkpoint; None if the checkpoint cannot be reached."""
    gateway = _jvm()
    if gateway is not None:
        return _checked(_read_by_jvm(gateway, location, name), location, name)
    path = local_path(location)
    if path is None:
        return _checked(_read_by_uri(location, name), location, name)
    if not os.path.isdir(path):
        # A path alone may mean another file system, whose name only the JVM knows.
        _unreachable(location, "there is no such local directory")
        return None
    try:
        with Path(path, name).open(encoding="utf-8") as file:
            return file.read(_LARGEST_FILE_BYTES)
    except FileNotFoundError:
        return _checked(b"", location, name)


def _checked(content: bytes | None, location: str, name: str) -> str | None:
    if content == b"":
        raise CheckpointMismatch(
            f"The checkpoint {location} has no file {name}: give the sink the option"
            " checkpointLocation of the very query that it writes for."
        )
    return None if content is None else content.decode()


def local_path(location: str) -> str | None:
    """The path, if the location is a local one: ``/a/b``, ``file:/a/b`` or ``file:///a/b``."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return unquote(parts.path)
    return None if parts.scheme else location


def _jvm() -> Any:  # noqa: ANN401 - py4j has no types
    """The SparkContext of this process; None in a worker, and where PySpark is not in use."""
    pyspark = sys.modules.get("pyspark")
    context: Any = None
    if pyspark is not None:
        context = pyspark.SparkContext._active_spark_context  # noqa: SLF001 - no public way
    return context


def _read_by_jvm(context: Any, location: str, name: str) -> bytes:  # noqa: ANN401
    """Read through Hadoop's file systems; nothing if the file is not there."""
    jvm = context._jvm  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(f"{location.rstrip('/')}/{name}")
    files = path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
    if not files.exists(path):
        return b""
    stream = files.open(path)
    try:
        return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
    finally:
        stream.close()


def _read_by_uri(location: str, name: str) -> bytes | None:
    from pyarrow import fs

    # Hadoop's names of the same store.
    uri = location.replace("s3a://", "s3://", 1).replace("s3n://", "s3://", 1)
    try:
        files, path = fs.FileSystem.from_uri(uri)
        whole = f"{path.rstrip('/')}/{name}"
        if files.get_file_info(whole).type == fs.FileType.NotFound:
            return b""
        with files.open_input_file(whole) as file:
            return bytes(file.read(_LARGEST_FILE_BYTES))
    except (OSError, ValueError) as error:  # pyarrow's errors are kinds of these
        _unreachable(location, str(error))
        return None


def _unreachable(location: str, why: str) -> None:
    warnings.warn(
        f"The checkpoint {location} cannot be read from {platform.node()} ({why}): batches are"
        " not compared with it, and no source offsets are committed to a group.",
        RuntimeWarning,
        stacklevel=3,
    )
