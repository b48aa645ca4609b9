"""Metrics of background work: compaction, verification, and upkeep of a cluster's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import COUNTER, GAUGE, Family, value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.cluster.leading.packer import Packer
    from barnabas.broker.cluster.leading.upkeep import UpkeepCounts
    from barnabas.broker.upkeep.cleaning import CleaningCounts
    from barnabas.broker.upkeep.scrubbing import LogScrubber
    from barnabas.storage.replicated.cold_store import ColdStore


def cleaning_families(counts: CleaningCounts) -> Iterator[Family]:
    """Yield the metrics of compaction since the start."""
    for name, doc, number in (
        ("passes", "Completed compactions of a log.", counts.passes),
        ("failures", "Compactions with an error; the log names them.", counts.failures),
        (
            "unreadable_batches",
            "Batches with invalid content under a valid checksum that compaction kept unchanged.",
            counts.unreadable,
        ),
        ("read_bytes", "Bytes that compaction read.", counts.bytes_read),
        ("written_bytes", "Bytes that compaction wrote.", counts.bytes_written),
    ):
        yield value(f"barnabas_compaction_{name}_total", COUNTER, doc, number)
    yield value(
        "barnabas_compaction_last_pass_timestamp_seconds",
        GAUGE,
        "End of the last compaction; 0 before the first one.",
        max(0, counts.last_pass_ms) / 1000,
    )
    yield value(
        "barnabas_compaction_max_dirty_ratio",
        GAUGE,
        "Largest share of a log that waits for compaction.",
        counts.max_dirty_ratio,
    )


def scrubbing_families(scrubber: LogScrubber) -> Iterator[Family]:
    """Yield the progress and findings of verification."""
    counts = scrubber.counts
    damaged = scrubber.damaged()
    for name, doc, number in (
        ("bytes", "Bytes of segments that verification read.", counts.bytes_read),
        ("batches", "Verified batches.", counts.batches),
        ("segments", "Verified segments.", counts.segments),
        (
            "rebuilt_indexes",
            "Segments whose index files contradicted the log and were rebuilt.",
            counts.indexes_rebuilt,
        ),
    ):
        yield value(f"barnabas_scrub_{name}_total", COUNTER, doc, number)
    for name, doc, figure in (
        ("scrub_pending_segments", "Segments left in the present pass.", counts.pending),
        (
            "scrub_last_full_pass_timestamp_seconds",
            "Time when all due segments had last been verified; 0 before that.",
            counts.last_full_pass_ms / 1000,
        ),
        ("damaged_ranges", "Ranges of damaged, offline offsets. Alert on any.", len(damaged)),
        (
            "damaged_offsets",
            "Offsets in the damaged ranges.",
            sum(each.end_offset - each.base_offset for _, each in damaged),
        ),
    ):
        yield value(f"barnabas_{name}", GAUGE, doc, figure)


def cold_families(cold: ColdStore, parked: int) -> Iterator[Family]:
    """Yield the metrics of old records that are read from the cluster's store.

    ``parked``: number of fetches that wait for them.
    """
    cache = cold.cache
    yield value(
        "barnabas_cache_bytes", GAUGE, "Blocks of old records on this disk.", cache.used_bytes
    )
    yield value(
        "barnabas_cold_reads_parked",
        GAUGE,
        "Fetches that wait for old records from the store.",
        parked,
    )
    for name, doc, number in (
        ("cache_hits", "Reads of blocks that were on this disk.", cache.hits),
        ("cache_misses", "Reads of blocks that were not.", cache.misses),
        ("cold_reads", "Reads of old records from the store.", cold.reads),
    ):
        yield value(f"barnabas_{name}_total", COUNTER, doc, number)


def packing_families(packer: Packer) -> Iterator[Family]:
    """Yield the metrics of packing logs into segments in the object store."""
    counts = packer.counts
    for name, doc, number in (
        ("segments_packed", "Parts of logs that this broker packed.", counts.segments),
        ("segment_bytes_packed", "Bytes of the parts of logs that it packed.", counts.bytes_packed),
        (
            "segment_failures",
            "Parts of logs that could not be packed, and are tried again.",
            counts.failures,
        ),
    ):
        yield value(f"barnabas_{name}_total", COUNTER, doc, number)
    for name, doc, figure in (
        (
            "unpacked_bytes",
            "Bytes of the logs led here that have a snapshot and are not packed yet.",
            packer.unpacked_bytes,
        ),
        (
            "oldest_unpacked_seconds",
            "Time for which some log has not been packed as a whole. Alert on an hour.",
            packer.oldest_unpacked_ms / 1000,
        ),
    ):
        yield value(f"barnabas_{name}", GAUGE, doc, figure)


def upkeep_families(counts: UpkeepCounts) -> Iterator[Family]:
    """Yield the metrics of this broker's upkeep of the cluster's store."""
    for name, doc, number in (
        ("snapshots", "Snapshots stored of logs that this broker leads.", counts.snapshots),
        (
            "compacted_bytes",
            "Bytes that compaction freed in PostgreSQL.",
            counts.bytes_compacted,
        ),
        ("extents_deleted", "Pieces of logs deleted from PostgreSQL.", counts.extents_deleted),
        (
            "extents_packed",
            "Pieces of logs that packing copied in PostgreSQL.",
            counts.extents_packed,
        ),
        ("packed_bytes", "Bytes that packing copied in PostgreSQL.", counts.bytes_packed),
        (
            "segments_offloaded",
            "Segments that left this broker's disk, since the store has their records.",
            counts.segments_offloaded,
        ),
        (
            "sessions_forgotten",
            "Rows deleted from PostgreSQL of sessions that ended a week ago.",
            counts.sessions_forgotten,
        ),
    ):
        yield value(f"barnabas_cluster_{name}_total", COUNTER, doc, number)
    for name, doc, size_bytes in (
        (
            "pinned_bytes",
            "Deleted bytes of any log that the store keeps with bytes of other logs.",
            counts.space.pinned_bytes,
        ),
        (
            "packing_backlog_bytes",
            "Those of the pinned bytes that packing would free now, or could not free.",
            counts.space.backlog_bytes,
        ),
    ):
        yield value(f"barnabas_cluster_{name}", GAUGE, doc, size_bytes)
    yield value(
        "barnabas_cluster_upkeep_timestamp_seconds",
        GAUGE,
        "End of the last complete upkeep of PostgreSQL's copy; before the first, its start.",
        counts.looked_ms / 1000,
    )
