"""Metrics of background work: compaction, verification, and upkeep of a cluster's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import COUNTER, GAUGE, Family, value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.cluster.leading.upkeep import UpkeepCounts
    from barnabas.broker.upkeep.cleaning import CleaningCounts
    from barnabas.broker.upkeep.scrubbing import LogScrubber
    from barnabas.storage.replicated.cold_store import ColdStore


def cleaning_families(counts: CleaningCounts) -> Iterator[Family]:
    """Yield the metrics of compaction since the start."""
    for name, doc, number in (
        ("passes", "Passes of compaction that came to their end.", counts.passes),
        ("failures", "Passes of compaction that met an error.", counts.failures),
        (
            "unreadable_batches",
            "Batches with garbage under a valid checksum that compaction met and kept.",
            counts.unreadable,
        ),
        ("read_bytes", "Bytes of segments that compaction read.", counts.bytes_read),
        ("written_bytes", "Bytes of segments that it put in place.", counts.bytes_written),
    ):
        yield value(f"barnabas_compaction_{name}_total", COUNTER, doc, number)
    yield value(
        "barnabas_compaction_last_pass_timestamp_seconds",
        GAUGE,
        "When the last pass ended; 0 before the first.",
        max(0, counts.last_pass_ms) / 1000,
    )
    yield value(
        "barnabas_compaction_max_dirty_ratio",
        GAUGE,
        "The largest share of a log that could be compacted and is not, at the last look.",
        counts.max_dirty_ratio,
    )


def scrubbing_families(scrubber: LogScrubber) -> Iterator[Family]:
    """Yield the progress and findings of verification."""
    counts = scrubber.counts
    damaged = scrubber.damaged()
    for name, doc, number in (
        ("bytes", "Bytes of segments read to verify them.", counts.bytes_read),
        ("batches", "Batches of segments that were verified.", counts.batches),
        ("segments", "Segments that were verified.", counts.segments),
        (
            "rebuilt_indexes",
            "Segments whose index files contradicted the log and were written anew.",
            counts.indexes_rebuilt,
        ),
    ):
        yield value(f"barnabas_scrub_{name}_total", COUNTER, doc, number)
    for name, doc, figure in (
        ("scrub_pending_segments", "Segments that are still to be verified.", counts.pending),
        (
            "scrub_last_full_pass_timestamp_seconds",
            "When everything that was due had been verified; 0: not yet.",
            counts.last_full_pass_ms / 1000,
        ),
        ("damaged_ranges", "Ranges of offsets that are not served.", len(damaged)),
        (
            "damaged_offsets",
            "Offsets in these ranges.",
            sum(each.end_offset - each.base_offset for _, each in damaged),
        ),
    ):
        yield value(f"barnabas_{name}", GAUGE, doc, figure)


def cold_families(cold: ColdStore) -> Iterator[Family]:
    """Yield the metrics of old records that are read from the cluster's store."""
    cache = cold.cache
    yield value(
        "barnabas_cache_bytes", GAUGE, "Blocks of old records on this disk.", cache.used_bytes
    )
    for name, doc, number in (
        ("cache_hits", "Reads of blocks that were on this disk.", cache.hits),
        ("cache_misses", "Reads of blocks that were not.", cache.misses),
        ("cold_reads", "Reads of old records from the store.", cold.reads),
    ):
        yield value(f"barnabas_{name}_total", COUNTER, doc, number)


def upkeep_families(counts: UpkeepCounts) -> Iterator[Family]:
    """Yield the metrics of this broker's upkeep of the cluster's store."""
    for name, doc, number in (
        ("snapshots", "Snapshots kept of logs led here.", counts.snapshots),
        (
            "compacted_bytes",
            "By how much less the store has of logs led here since they were compacted.",
            counts.bytes_compacted,
        ),
        ("extents_deleted", "Extents of any log that were garbage.", counts.extents_deleted),
        (
            "segments_offloaded",
            "Segments that left this broker's disk, since the store has their records.",
            counts.segments_offloaded,
        ),
        (
            "sessions_forgotten",
            "Rows deleted of sessions, and of ways to the metadata, that were over for long.",
            counts.sessions_forgotten,
        ),
    ):
        yield value(f"barnabas_cluster_{name}_total", COUNTER, doc, number)
    yield value(
        "barnabas_cluster_upkeep_timestamp_seconds",
        GAUGE,
        "When the last look at all logs led here ended; before the first: when upkeep began.",
        counts.looked_ms / 1000,
    )
