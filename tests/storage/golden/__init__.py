"""A data directory as Apache Kafka 4.3.0 left it after a clean shutdown, to compare with.

Idempotent producers wrote it: ``java-*`` Kafka's console producer with one codec each, all others
librdkafka. ``plain`` is uncompressed, ``comp-*`` has one codec each,
``append-time`` has LogAppendTime. ``segments`` has four segments (``index.interval.bytes`` 1000,
timestamps out of order, an open transaction at its end). ``tx`` has four aborted and four
committed transactions, ``open`` has two aborted transactions and one still open, in two segments
because its marker is years younger than its records.

Beside it, one as Barnabas 0.1.0 left it when it was killed: without a mark beside its journal.
"""

import io
import tarfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).with_name("kafka-4.3.0-data.tar.xz")
UNMARKED = Path(__file__).with_name("barnabas-0.1.0-killed.tar.xz")
PARTITIONS = (
    "append-time-0",
    "comp-gzip-0",
    "comp-lz4-0",
    "comp-snappy-0",
    "comp-zstd-0",
    "java-gzip-0",
    "java-lz4-0",
    "java-snappy-0",
    "java-zstd-0",
    "open-0",
    "plain-0",
    "segments-0",
    "tx-0",
)


@cache
def kafka_files() -> dict[str, bytes]:
    """Content of every file, by its path in the data directory."""
    return _files(ARCHIVE)


@cache
def unmarked_files() -> dict[str, bytes]:
    """The same of the directory that Barnabas 0.1.0 left."""
    return _files(UNMARKED)


def _files(path: Path) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
        return {
            member.name: archive.extractfile(member).read()
            for member in archive.getmembers()
            if member.isfile()
        }


def segments(partition: str) -> list[tuple[int, bytes]]:
    """(base offset, content of the log file) of a partition's segments, in order."""
    return sorted(
        (int(path.rpartition("/")[2].removesuffix(".log")), data)
        for path, data in kafka_files().items()
        if path.startswith(partition + "/") and path.endswith(".log")
    )


def index_interval_bytes(partition: str) -> int:
    """The setting under which Kafka wrote the indexes of ``partition``."""
    return 1000 if partition == "segments-0" else 4096
