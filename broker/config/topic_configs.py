"""The configuration keys of topics: Kafka 4.3.0's, with its types, defaults, limits and synonyms.

A topic's effective value is its own override, else the first of the broker's synonyms that is set
(``retention.ms`` <- ``log.retention.ms`` <- ``log.retention.minutes`` <- ``log.retention.hours``),
else the default. CreateTopics and IncrementalAlterConfigs call ``check_topic_configs``,
DescribeConfigs calls ``describe_topic``, and storage gets its settings from ``log_config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.config.attribute_docs import attribute_docs
from barnabas.broker.config.types import (
    LONG_MAX,
    SHORT_MAX,
    Between,
    BetweenOr,
    ConfigKey,
    ConfigType,
    Matches,
    OneOf,
    UnknownKey,
    Validator,
    Value,
    at_least,
)

DAY_MS = 24 * 60 * 60 * 1000

REPLICATION_FACTOR: Final = "barnabas.replication.factor"

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CLEANUP_POLICIES = ("compact", "delete")

THROTTLED = Matches(
    r"\*|[0-9]+:[0-9]+", "'*' or a list of [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, *_ = ConfigType


def _doc_below(name: str) -> str:
    return attribute_docs(TopicKeys)[name.removeprefix("barnabas.").replace(".", "_")]


def _key(
    name: str,
    kind: ConfigType,
    default: Value,
    validator: Validator | None = None,
    synonyms: tuple[str, ...] = (),
    *,
    internal: bool = False,
) -> ConfigKey:
    return ConfigKey(name, kind, default, _doc_below, validator, synonyms, internal=internal)


class TopicKeys:
    """The keys of topics, each with its meaning below it."""

    record_validation_enable: Final = _key(
        "barnabas.record.validation.enable",
        BOOLEAN,
        default=False,
        synonyms=("barnabas.log.record.validation.enable",),
    )
    """Whether the records of every batch are checked before it is accepted. Batches that are
    compressed or have few records always are, and all of a compacted topic; the rest are large
    uncompressed ones, which become about a tenth more expensive."""
    replication_factor: Final = _key(
        REPLICATION_FACTOR,
        INT,
        1,
        Between(1, SHORT_MAX),
        ("default.replication.factor",),
        internal=True,
    )
    """The replication factor that a topic of a cluster was created with. Clients see as many
    replicas, or as many as there are brokers; regardless of it, the store that all brokers share
    keeps the copies."""
    cleanup_policy: Final = _key(
        "cleanup.policy", LIST, ("delete",), OneOf(CLEANUP_POLICIES), ("log.cleanup.policy",)
    )
    """Treatment of old records: 'delete' drops whole segments by age and size, 'compact' keeps the
    latest record of every key; both can be given. If empty, everything is kept."""
    compression_gzip_level: Final = _key(
        "compression.gzip.level", INT, -1, BetweenOr(1, 9, -1), ("compression.gzip.level",)
    )
    """Level of gzip where compression.type makes the broker compress; -1 is the library's
    default."""
    compression_lz4_level: Final = _key(
        "compression.lz4.level", INT, 9, Between(1, 17), ("compression.lz4.level",)
    )
    """Level of lz4 where compression.type makes the broker compress."""
    compression_type: Final = _key(
        "compression.type", STRING, "producer", OneOf(COMPRESSION_TYPES), ("compression.type",)
    )
    """Codec of stored batches. 'producer' keeps the codec of each producer. With any other value
    the broker compresses batches of other codecs again, one request at a time."""
    compression_zstd_level: Final = _key(
        "compression.zstd.level", INT, 3, Between(-131072, 22), ("compression.zstd.level",)
    )
    """Level of zstd where compression.type makes the broker compress."""
    delete_retention_ms: Final = _key(
        "delete.retention.ms", LONG, DAY_MS, at_least(0), ("log.cleaner.delete.retention.ms",)
    )
    """Time for which compaction keeps a tombstone, so that readers can see it."""
    file_delete_delay_ms: Final = _key(
        "file.delete.delay.ms", LONG, 60_000, at_least(0), ("log.segment.delete.delay.ms",)
    )
    """Accepted for compatibility: files are removed as soon as no checkpoint names them, and a
    running read keeps its file open."""
    flush_messages: Final = _key(
        "flush.messages", LONG, LONG_MAX, at_least(1), ("log.flush.interval.messages",)
    )
    """Accepted for compatibility: every acknowledged record is synced before its response."""
    flush_ms: Final = _key(
        "flush.ms",
        LONG,
        LONG_MAX,
        at_least(0),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    """Accepted for compatibility: every acknowledged record is synced before its response."""
    follower_replication_throttled_replicas: Final = _key(
        "follower.replication.throttled.replicas", LIST, (), THROTTLED
    )
    """Accepted for compatibility: there are no followers to throttle."""
    index_interval_bytes: Final = _key(
        "index.interval.bytes", INT, 4096, at_least(0), ("log.index.interval.bytes",)
    )
    """Number of bytes of records between two entries of the offset index."""
    internal_segment_bytes: Final = _key("internal.segment.bytes", INT, None, internal=True)
    """Segment size below the minimum of segment.bytes, for tests."""
    leader_replication_throttled_replicas: Final = _key(
        "leader.replication.throttled.replicas", LIST, (), THROTTLED
    )
    """Accepted for compatibility: there are no followers to throttle."""
    local_retention_bytes: Final = _key(
        "local.retention.bytes", LONG, -2, at_least(-2), ("log.local.retention.bytes",)
    )
    """Accepted for compatibility: there is no tiered storage; -2 means retention.bytes."""
    local_retention_ms: Final = _key(
        "local.retention.ms", LONG, -2, at_least(-2), ("log.local.retention.ms",)
    )
    """Accepted for compatibility: there is no tiered storage; -2 means retention.ms."""
    max_compaction_lag_ms: Final = _key(
        "max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), ("log.cleaner.max.compaction.lag.ms",)
    )
    """Maximum time for which a record can escape compaction."""
    max_message_bytes: Final = _key(
        "max.message.bytes", INT, 1024 * 1024 + 12, at_least(0), ("message.max.bytes",)
    )
    """Maximum size of a batch, both as it is sent and, with compression.type, as it is stored."""
    message_timestamp_after_max_ms: Final = _key(
        "message.timestamp.after.max.ms",
        LONG,
        60 * 60 * 1000,
        at_least(0),
        ("log.message.timestamp.after.max.ms",),
    )
    """Maximum time by which a record's timestamp can be later than the broker's clock."""
    message_timestamp_before_max_ms: Final = _key(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        at_least(0),
        ("log.message.timestamp.before.max.ms",),
    )
    """Maximum time by which a record's timestamp can be earlier than the broker's clock."""
    message_timestamp_type: Final = _key(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        OneOf(TIMESTAMP_TYPES),
        ("log.message.timestamp.type",),
    )
    """Clock of a record's timestamp: the producer's, or the broker's at the append."""
    min_cleanable_dirty_ratio: Final = _key(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        Between(0, 1),
        ("log.cleaner.min.cleanable.ratio",),
    )
    """Share of a log that must be uncompacted before compaction processes it."""
    min_compaction_lag_ms: Final = _key(
        "min.compaction.lag.ms", LONG, 0, at_least(0), ("log.cleaner.min.compaction.lag.ms",)
    )
    """Time for which a record is not compacted."""
    min_insync_replicas: Final = _key(
        "min.insync.replicas", INT, 1, at_least(1), ("min.insync.replicas",)
    )
    """Accepted for compatibility: every acknowledged record is durable, and no replica can lag
    behind."""
    preallocate: Final = _key("preallocate", BOOLEAN, default=False, synonyms=("log.preallocate",))
    """Accepted for compatibility: space is reserved ahead of the end of every segment, in steps of
    1 to 32 MiB."""
    remote_log_copy_disable: Final = _key("remote.log.copy.disable", BOOLEAN, default=False)
    """Accepted for compatibility: there is no tiered storage."""
    remote_log_delete_on_disable: Final = _key(
        "remote.log.delete.on.disable", BOOLEAN, default=False
    )
    """Accepted for compatibility: there is no tiered storage."""
    remote_storage_enable: Final = _key("remote.storage.enable", BOOLEAN, default=False)
    """Tiered storage; only false is accepted."""
    retention_bytes: Final = _key("retention.bytes", LONG, -1, None, ("log.retention.bytes",))
    """Size above which a partition drops its oldest segments; -1 is no limit."""
    retention_ms: Final = _key(
        "retention.ms",
        LONG,
        7 * DAY_MS,
        at_least(-1),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    """Age above which a partition drops its segments; -1 is no limit."""
    segment_bytes: Final = _key(
        "segment.bytes", INT, 1024 * 1024 * 1024, at_least(1024 * 1024), ("log.segment.bytes",)
    )
    """Size at which a segment is closed and the next one is created."""
    segment_index_bytes: Final = _key(
        "segment.index.bytes", INT, 10 * 1024 * 1024, at_least(4), ("log.index.size.max.bytes",)
    )
    """Largest size of a segment's indexes; a full index closes its segment."""
    segment_jitter_ms: Final = _key(
        "segment.jitter.ms", LONG, 0, at_least(0), ("log.roll.jitter.ms", "log.roll.jitter.hours")
    )
    """Largest random time taken off segment.ms, so that segments do not all close at once."""
    segment_ms: Final = _key(
        "segment.ms", LONG, 7 * DAY_MS, at_least(1), ("log.roll.ms", "log.roll.hours")
    )
    """Age at which a segment is closed even if it is not full."""
    unclean_leader_election_enable: Final = _key(
        "unclean.leader.election.enable",
        BOOLEAN,
        default=False,
        synonyms=("unclean.leader.election.enable",),
    )
    """Accepted for compatibility: there is no replica that could lose records."""


_KEYS = [each for each in vars(TopicKeys).values() if isinstance(each, ConfigKey)]

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _KEYS}
"""Every topic key of Kafka 4.3.0 by name, and those of Barnabas, which begin with ``barnabas.``."""

ACCEPTED: Final = "Accepted for compatibility: "
"""The documentation of a key without effect begins so, and gives the reason."""


def parse_topic_config(name: str, text: str) -> Value:
    """Return the checked value of one topic key; raises ConfigError (UnknownKey for a bad name)."""
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        raise UnknownKey(name)
    return key.parse(text)
