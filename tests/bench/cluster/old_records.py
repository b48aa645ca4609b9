"""Old records that only the store has: a takeover of logs that are full of them, and a scan.

PostgreSQL makes these records by itself while no broker runs (``tests/postgresql/old_logs.py``).
Those of the takeover share their bytes, since no client reads them; those of the scan do not. The
scan also reads packed segments of an object store, which is a directory here.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.records import iterate_batches
from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
from tests.bench.cluster.asking import FETCH_VERSION
from tests.bench.cluster.rows import BULK_RECORDS, VALUE_BYTES
from tests.bench.cluster.takeovers import TOPIC, Cluster, Kill, Size, cluster_of
from tests.bench.frames import batch
from tests.bench.load import RequestFailed
from tests.bench.report import table
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import Pair
from tests.counterparts.usage import cpu_time, tree_cpu_time
from tests.postgresql.old_logs import (
    MIB,
    keep_snapshots,
    write_own,
    write_segment,
    write_shared,
)

TAKEOVER_S = 5.0
"""Maximum time of a takeover, after the lease."""
SCAN_MB_PER_S = 80.0
EXTENT_RECORDS = 1000
EXTENTS_AT_ONCE = 64
"""Number of extents in a statement, and of batches in a packed segment."""
SCAN_PARTITIONS = 3
"""One for each broker; one of them has all old records."""
GIB = 1 << 30
_WAIT_MS = 500
_PARTITION_BYTES = 4 * MIB


class Scan(NamedTuple):
    """A log that one consumer reads from its start to its end."""

    log_bytes: int
    cache_bytes: int
    seconds: float
    first_s: float
    """Time until the first records."""
    empty: int
    """Number of fetches that returned no records."""
    broker_cpu_s: float
    store_cpu_s: float
    hits: int
    misses: int


def takeover(partitions: int, gib: float, lease_ms: int) -> Kill:
    """Kill a broker of three that lead ``partitions`` with ``gib`` of old records, all together."""
    with cluster_of(Size(partitions, lease_ms=lease_ms)) as cluster:
        extents = max(1, round(gib * GIB / MIB / partitions))
        cluster.restart(lambda pair: _write_shared(pair, extents), extents * EXTENT_RECORDS)
        cluster.fill()
        return cluster.kill()


def scan(gib: float, cache_mib: int, *, in_objects: bool) -> Scan:
    """Read a log of ``gib`` through a cache of ``cache_mib``.

    ``in_objects``: the log is in an object store, not in PostgreSQL.
    """
    settings = {"barnabas.cache.max.bytes": str(cache_mib * MIB)}
    data = batch(BULK_RECORDS, VALUE_BYTES)
    extents = max(1, round(gib * GIB / len(data)))
    with tempfile.TemporaryDirectory() as directory:
        if in_objects:
            settings["barnabas.storage"] = f"file://{directory}"
        size = Size(SCAN_PARTITIONS, settings=(*settings.items(),), in_memory=in_objects)
        with cluster_of(size) as cluster:
            primary = cluster.pair.primary
            if in_objects:
                primary.wait_for("SELECT address IS NOT NULL FROM barnabas.object_store")
                cluster.restart(lambda pair: _write_segments(pair, data, extents, directory), 0)
                _evict(Path(directory))
            else:
                cluster.restart(lambda pair: _write_own(pair, data, extents), 0)
                _evict(primary.data)
            return _read(cluster, extents * len(data), cache_mib * MIB)


def _evict(directory: Path) -> None:
    """Drop the synced pages of all files below a directory from the page cache."""
    for each in directory.rglob("*"):
        if each.is_file():
            with each.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _write_shared(pair: Pair, extents: int) -> None:
    execute, partitions = pair.primary.execute, _partitions(pair)
    write_shared(execute, 1, partitions, extents, EXTENT_RECORDS)
    keep_snapshots(execute, partitions, extents * EXTENT_RECORDS, extents * MIB)


def _write_own(pair: Pair, data: bytes, extents: int) -> None:
    execute, (partition, *_) = pair.primary.execute, _partitions(pair)
    for some in _portions(extents):
        write_own(execute, 1, partition, data, BULK_RECORDS, some)
    keep_snapshots(execute, [partition], extents * BULK_RECORDS, extents * len(data))
    execute("CHECKPOINT")


def _write_segments(pair: Pair, data: bytes, extents: int, directory: str) -> None:
    execute, (partition, *_) = pair.primary.execute, _partitions(pair)
    ((session,),) = execute("SELECT max(session_id) FROM barnabas.sessions")
    ((cluster_id,),) = execute("SELECT cluster_id FROM barnabas.cluster")
    with closing(ObjectBlobStore.open(Address(f"file://{directory}/{cluster_id}"))) as blobs:
        for some in _portions(extents):
            write_segment(execute, blobs, session, partition, data, BULK_RECORDS, some)
    keep_snapshots(execute, [partition], extents * BULK_RECORDS, extents * len(data))


def _portions(extents: int) -> Iterator[range]:
    """Yield the numbers of the extents, some at a time, and print the progress."""
    for at in range(0, extents, EXTENTS_AT_ONCE):
        some = range(at, min(at + EXTENTS_AT_ONCE, extents))
        yield some
        if at % (16 * EXTENTS_AT_ONCE) == 0:
            print(f"  {some.stop} of {extents} extents written", file=sys.stderr, flush=True)


def _partitions(pair: Pair) -> list[int]:
    """Return the ids of all partitions: no internal topic exists yet."""
    rows = pair.primary.execute("SELECT partition_id FROM barnabas.partitions ORDER BY 1")
    return [partition for (partition,) in rows]


def _read(cluster: Cluster, log_bytes: int, cache_bytes: int) -> Scan:
    highest = cluster.highest()
    partition = max(highest, key=lambda each: highest[each])
    broker, store = cluster.leader_of(partition), cluster.pair.primary
    broker_s, store_s = cpu_time(broker.pid).total_s, tree_cpu_time(store.pid).total_s
    offset, empty, first_s, started_s = 0, 0, 0.0, time.perf_counter()
    with WireClient((HOST, broker.port), "scan") as client:
        while offset < highest[partition]:
            wanted = FetchPartition(
                partition, fetch_offset=offset, partition_max_bytes=_PARTITION_BYTES
            )
            topics = [FetchTopic(topic=TOPIC, partitions=[wanted])]
            request = FetchRequest(
                max_wait_ms=_WAIT_MS, min_bytes=1, max_bytes=2 * _PARTITION_BYTES, topics=topics
            )
            (found,) = client.ask(FETCH, request, FETCH_VERSION).responses[0].partitions
            if found.error_code:
                raise RequestFailed(f"offset {offset} is answered by error {found.error_code}")
            before = offset
            for _, header in iterate_batches(found.records):
                offset = header.next_offset
            empty += offset == before
            first_s = first_s or time.perf_counter() - started_s
    return Scan(
        log_bytes,
        cache_bytes,
        time.perf_counter() - started_s,
        first_s,
        empty,
        cpu_time(broker.pid).total_s - broker_s,
        tree_cpu_time(store.pid).total_s - store_s,
        broker.count("barnabas_cache_hits_total"),
        broker.count("barnabas_cache_misses_total"),
    )


def takeover_table(partitions: int, gib: float, kill: Kill) -> list[str]:
    """Return the table of a takeover."""
    limit_s = kill.lease_s + TAKEOVER_S
    head = ("logs", "GiB", "of the killed broker", "first s", "median s", "last s", "target", "")
    row = (
        f"{partitions:,}",
        f"{gib:g}",
        f"{kill.partitions:,}",
        *(f"{each:.2f}" for each in (kill.served.first, kill.served.middle, kill.served.last)),
        f"<= {limit_s:g} s",
        "met" if kill.served.last <= limit_s else "missed",
    )
    return table([head, row])


def scan_table(found: Scan) -> list[str]:
    """Return the table of a scan."""
    megabytes = found.log_bytes / 1e6
    rate = megabytes / found.seconds
    head = (
        "log MB",
        "cache MB",
        "s",
        "MB/s",
        "target",
        "",
        "first records s",
        "empty fetches",
        "broker's CPU ms a MB",
        "PostgreSQL's CPU ms a MB",
        "hits",
        "misses",
    )
    row = (
        f"{megabytes:,.0f}",
        f"{found.cache_bytes / 1e6:,.0f}",
        f"{found.seconds:.1f}",
        f"{rate:.1f}",
        f">= {SCAN_MB_PER_S:g}",
        "met" if rate >= SCAN_MB_PER_S else "missed",
        f"{found.first_s:.2f}",
        str(found.empty),
        f"{found.broker_cpu_s * 1000 / megabytes:.2f}",
        f"{found.store_cpu_s * 1000 / megabytes:.2f}",
        str(found.hits),
        str(found.misses),
    )
    return table([head, row])
