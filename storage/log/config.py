"""The settings of one partition's log: what a topic's configuration means to storage.

Defaults are Kafka 4.3.0's. The keys' names, their parsing and the broker-wide defaults live in
``broker/config/topic_configs.py``; this module knows values only: storage sees no string.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from barnabas.protocol import compression as codecs
from barnabas.storage.batches.batch_encoding import Encoding

LONG_MAX: Final = 9_223_372_036_854_775_807
DAY_MS: Final = 24 * 60 * 60 * 1000

DELETE: Final = "delete"
COMPACT: Final = "compact"
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
PRODUCER: Final = "producer"
UNCOMPRESSED: Final = "uncompressed"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Effective settings of a log; -1 means "no limit" where Kafka says so.

    A configuration change makes a new instance and hands it to ``PartitionLog.configure``.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    # Kafka's odd default: 1 MiB plus the 12 bytes of offset and length before a batch.
    max_message_bytes: int = 1024 * 1024 + 12
    index_interval_bytes: int = 4096
    index_size_max_bytes: int = 10 * 1024 * 1024
    timestamp_type: str = CREATE_TIME
    timestamp_before_max_ms: int = LONG_MAX
    # One hour since KIP-1030; older releases had no limit.
    timestamp_after_max_ms: int = 60 * 60 * 1000
    cleanup_policy: frozenset[str] = frozenset((DELETE,))
    compression_type: str = PRODUCER
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    replication_factor: int = 1
    """Number of copies that clients see; the log itself keeps no copies."""
    validates_records: bool = False
    """Whether the records of every batch are inspected, large uncompressed ones included."""

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is compacted by key, so that every record needs one."""
        return COMPACT in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """Maximum age of the active segment: compaction needs sealed ones within its maximum
        lag.
        """
        if self.is_compacted:
            return min(self.segment_ms, max(self.max_compaction_lag_ms, 1))
        return self.segment_ms

    @property
    def encoding(self) -> Encoding | None:
        """The codec of all stored batches, or None to keep that of each batch's producer."""
        if self.compression_type == PRODUCER:
            return None
        if self.compression_type == UNCOMPRESSED:
            return Encoding(codecs.NONE, 0, self.max_message_bytes)
        codec = codecs.NAMES.index(self.compression_type)
        levels = {
            codecs.GZIP: self.compression_gzip_level,
            codecs.LZ4: self.compression_lz4_level,
            codecs.ZSTD: self.compression_zstd_level,
        }
        return Encoding(codec, levels.get(codec, 0), self.max_message_bytes)

    def roll_after_ms(self, partition_id: int, base_offset: int) -> int:
        """Return the age that closes a segment: ``roll_ms`` less its part of ``segment.jitter.ms``.

        The part is a number made of partition and offset: it differs between partitions, and a
        restarted broker finds the same one.
        """
        roll_ms = self.roll_ms
        if not self.segment_jitter_ms:
            return roll_ms
        jitter_ms = min(self.segment_jitter_ms, roll_ms)
        return roll_ms - (jitter_ms * crc32c(b"%d %d" % (partition_id, base_offset)) >> 32)

    @property
    def deletes(self) -> bool:
        """Whether retention by time and size applies."""
        return DELETE in self.cleanup_policy
