"""The configuration keys of topics: Kafka 4.3.0's, with its types, defaults, limits and synonyms.

A topic's effective value is its own override, else the first of the broker's synonyms that is set
(``retention.ms`` <- ``log.retention.ms`` <- ``log.retention.minutes`` <- ``log.retention.hours``),
else the default. CreateTopics and IncrementalAlterConfigs call ``check_topic_configs``,
DescribeConfigs calls ``describe_topic``, and storage gets its settings from ``log_config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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

_KEYS = (
    ConfigKey(
        "barnabas.record.validation.enable",
        ConfigType.BOOLEAN,
        default=False,
        documented="Whether the records of every batch are looked at before it is taken. Batches "
        "that are compressed or have few records always are, and all of a compacted topic; what is "
        "left are large uncompressed ones, which it makes about a tenth more expensive.",
        synonyms=("barnabas.log.record.validation.enable",),
    ),
    ConfigKey(
        REPLICATION_FACTOR,
        ConfigType.INT,
        1,
        "The replication factor that a topic of a cluster was created with. Clients are told of as "
        "many replicas, or of as many brokers as there are; copies are kept by the store that all "
        "brokers share, whatever this is.",
        Between(1, SHORT_MAX),
        ("default.replication.factor",),
        internal=True,
    ),
    ConfigKey(
        "cleanup.policy",
        ConfigType.LIST,
        ("delete",),
        "What happens to old records: 'delete' drops whole segments by age and size, 'compact' "
        "keeps the latest record of every key; both may be given. Empty keeps everything.",
        OneOf(CLEANUP_POLICIES),
        ("log.cleanup.policy",),
    ),
    ConfigKey(
        "compression.gzip.level",
        ConfigType.INT,
        -1,
        "Level of gzip where compression.type makes the broker compress; -1 is the library's "
        "default.",
        BetweenOr(1, 9, -1),
        ("compression.gzip.level",),
    ),
    ConfigKey(
        "compression.lz4.level",
        ConfigType.INT,
        9,
        "Level of lz4 where compression.type makes the broker compress.",
        Between(1, 17),
        ("compression.lz4.level",),
    ),
    ConfigKey(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "Codec of stored batches. 'producer' keeps what each producer chose. With any other value "
        "the broker compresses batches of other codecs again, one request at a time.",
        OneOf(COMPRESSION_TYPES),
        ("compression.type",),
    ),
    ConfigKey(
        "compression.zstd.level",
        ConfigType.INT,
        3,
        "Level of zstd where compression.type makes the broker compress.",
        Between(-131072, 22),
        ("compression.zstd.level",),
    ),
    ConfigKey(
        "delete.retention.ms",
        ConfigType.LONG,
        DAY_MS,
        "How long compaction keeps a tombstone, so that readers have time to see it.",
        at_least(0),
        ("log.cleaner.delete.retention.ms",),
    ),
    ConfigKey(
        "file.delete.delay.ms",
        ConfigType.LONG,
        60_000,
        "Accepted for compatibility: files are removed as soon as no checkpoint names them, and a "
        "read that has begun keeps its file open.",
        at_least(0),
        ("log.segment.delete.delay.ms",),
    ),
    ConfigKey(
        "flush.messages",
        ConfigType.LONG,
        LONG_MAX,
        "Accepted for compatibility: every acknowledged record is synced before its answer.",
        at_least(1),
        ("log.flush.interval.messages",),
    ),
    ConfigKey(
        "flush.ms",
        ConfigType.LONG,
        LONG_MAX,
        "Accepted for compatibility: every acknowledged record is synced before its answer.",
        at_least(0),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    ConfigKey(
        "follower.replication.throttled.replicas",
        ConfigType.LIST,
        (),
        "Accepted for compatibility: there are no followers to throttle.",
        THROTTLED,
    ),
    ConfigKey(
        "index.interval.bytes",
        ConfigType.INT,
        4096,
        "How many bytes of records lie between two entries of the offset index.",
        at_least(0),
        ("log.index.interval.bytes",),
    ),
    ConfigKey(
        "internal.segment.bytes",
        ConfigType.INT,
        None,
        "Segment size below the minimum of segment.bytes, for tests.",
        None,
        internal=True,
    ),
    ConfigKey(
        "leader.replication.throttled.replicas",
        ConfigType.LIST,
        (),
        "Accepted for compatibility: there are no followers to throttle.",
        THROTTLED,
    ),
    ConfigKey(
        "local.retention.bytes",
        ConfigType.LONG,
        -2,
        "Accepted for compatibility: there is no tiered storage; -2 means retention.bytes.",
        at_least(-2),
        ("log.local.retention.bytes",),
    ),
    ConfigKey(
        "local.retention.ms",
        ConfigType.LONG,
        -2,
        "Accepted for compatibility: there is no tiered storage; -2 means retention.ms.",
        at_least(-2),
        ("log.local.retention.ms",),
    ),
    ConfigKey(
        "max.compaction.lag.ms",
        ConfigType.LONG,
        LONG_MAX,
        "How long a record may stay out of reach of compaction.",
        at_least(1),
        ("log.cleaner.max.compaction.lag.ms",),
    ),
    ConfigKey(
        "max.message.bytes",
        ConfigType.INT,
        1024 * 1024 + 12,
        "Largest batch that a producer may write, as it is sent, compressed or not, and as "
        "compression.type makes of it.",
        at_least(0),
        ("message.max.bytes",),
    ),
    ConfigKey(
        "message.timestamp.after.max.ms",
        ConfigType.LONG,
        60 * 60 * 1000,
        "How far a record's timestamp may lie ahead of the broker's clock.",
        at_least(0),
        ("log.message.timestamp.after.max.ms",),
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        LONG_MAX,
        "How far a record's timestamp may lie behind the broker's clock.",
        at_least(0),
        ("log.message.timestamp.before.max.ms",),
    ),
    ConfigKey(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        "Whose clock a record's timestamp is: the producer's, or the broker's at the append.",
        OneOf(TIMESTAMP_TYPES),
        ("log.message.timestamp.type",),
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        0.5,
        "Share of a log that must be uncompacted before compaction looks at it.",
        Between(0, 1),
        ("log.cleaner.min.cleanable.ratio",),
    ),
    ConfigKey(
        "min.compaction.lag.ms",
        ConfigType.LONG,
        0,
        "How long a record is safe from compaction.",
        at_least(0),
        ("log.cleaner.min.compaction.lag.ms",),
    ),
    ConfigKey(
        "min.insync.replicas",
        ConfigType.INT,
        1,
        "Accepted for compatibility: every acknowledged record is durable, and no replica can be "
        "out of sync.",
        at_least(1),
        ("min.insync.replicas",),
    ),
    ConfigKey(
        "preallocate",
        ConfigType.BOOLEAN,
        default=False,
        documented="Accepted for compatibility: space is reserved ahead of the end of every "
        "segment, in steps of 1 to 32 MiB.",
        synonyms=("log.preallocate",),
    ),
    ConfigKey(
        "remote.log.copy.disable",
        ConfigType.BOOLEAN,
        default=False,
        documented="Accepted for compatibility: there is no tiered storage.",
    ),
    ConfigKey(
        "remote.log.delete.on.disable",
        ConfigType.BOOLEAN,
        default=False,
        documented="Accepted for compatibility: there is no tiered storage.",
    ),
    ConfigKey(
        "remote.storage.enable",
        ConfigType.BOOLEAN,
        default=False,
        documented="Tiered storage; only false is accepted.",
    ),
    ConfigKey(
        "retention.bytes",
        ConfigType.LONG,
        -1,
        "Size above which a partition drops its oldest segments; -1 is no limit.",
        None,
        ("log.retention.bytes",),
    ),
    ConfigKey(
        "retention.ms",
        ConfigType.LONG,
        7 * DAY_MS,
        "Age above which a partition drops its segments; -1 is no limit.",
        at_least(-1),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    ConfigKey(
        "segment.bytes",
        ConfigType.INT,
        1024 * 1024 * 1024,
        "Size at which a segment is closed and the next one begun.",
        at_least(1024 * 1024),
        ("log.segment.bytes",),
    ),
    ConfigKey(
        "segment.index.bytes",
        ConfigType.INT,
        10 * 1024 * 1024,
        "Largest size of a segment's indexes; a full index closes its segment.",
        at_least(4),
        ("log.index.size.max.bytes",),
    ),
    ConfigKey(
        "segment.jitter.ms",
        ConfigType.LONG,
        0,
        "Largest random time taken off segment.ms, so that segments do not all close at once.",
        at_least(0),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ),
    ConfigKey(
        "segment.ms",
        ConfigType.LONG,
        7 * DAY_MS,
        "Age at which a segment is closed even if it is not full.",
        at_least(1),
        ("log.roll.ms", "log.roll.hours"),
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        default=False,
        documented="Accepted for compatibility: there is no replica that could lose records.",
        synonyms=("unclean.leader.election.enable",),
    ),
)

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _KEYS}
"""Every topic key of Kafka 4.3.0 by name, and ours, which begin with ``barnabas.``."""

ACCEPTED: Final = "Accepted for compatibility: "
"""The documentation of a key without effect begins so, and gives the reason."""


def parse_topic_config(name: str, text: str) -> Value:
    """Return the checked value of one topic key; raises ConfigError (UnknownKey for a bad name)."""
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        raise UnknownKey(name)
    return key.parse(text)
