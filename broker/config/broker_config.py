"""The broker's configuration: one frozen dataclass, Kafka's key beside each field.

A field has the name of its key with dots replaced by underscores (without ``barnabas.``), so
``config.log_segment_bytes`` is ``log.segment.bytes``. Type, default, accepted values, synonyms and
documentation are metadata of the field; loading, DescribeConfigs and ``barnabas config`` read them
from there. A default differs from Kafka's because there is one broker (replication factors),
because the kernel chooses better (socket buffers), or because it is safer (listening on this
machine only).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from barnabas.broker.config.features import CONFIGURED_VERSION
from barnabas.broker.config.fields import key_of, setting, topic_default
from barnabas.broker.config.listener_keys import ListenerConfig
from barnabas.broker.config.listeners import (
    HTTP_LISTENER,
    Endpoint,
    endpoints_of,
    parse_http_listener,
)
from barnabas.broker.config.security import SecurityConfig
from barnabas.broker.config.sources import dynamic_settings, synonyms_of
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.config.types import (
    INT_MAX,
    Between,
    ConfigEntry,
    ConfigError,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    Matches,
    OneOf,
    Setting,
    UpdateMode,
    Value,
    at_least,
    format_value,
)

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, *_ = ConfigType
READ_ONLY, PER_BROKER, CLUSTER_WIDE = UpdateMode

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
TOPIC_TO_CREATE = r"[a-zA-Z0-9._-]+:[1-9][0-9]*:-?[0-9]+(:(compact|delete))?"

SEGMENT_SIZES = TOPIC_CONFIGS["segment.bytes"].validator
"""Accepted sizes of segments: an internal topic is created by the rules of all topics."""


@dataclass(frozen=True, slots=True)
class BrokerConfig(SecurityConfig):
    """Every setting of a broker, checked. Make one with ``load_config``
    (config/loading/loader.py).
    """

    # ---------- identity
    node_id: int = setting("node.id", INT, 1, at_least(0), synonyms=("broker.id",))
    """Number of this broker in the cluster. If it is unset, the store of the cluster allocates one,
    which the data directory keeps."""
    cluster_id: str | None = setting(
        "cluster.id", STRING, None, Matches(r"\S{1,64}", "1 to 64 characters without space")
    )
    """Name of the cluster, written into a new data directory; made up once if not given."""
    broker_rack: str | None = setting("broker.rack", STRING, None)
    """Rack of this broker in Metadata responses."""

    # ---------- listeners
    listeners: tuple[str, ...] = setting("listeners", LIST, ("PLAINTEXT://localhost:9092",))
    """Addresses to listen on, NAME://host:port; an empty host means every interface."""
    advertised_listeners: tuple[str, ...] | None = setting("advertised.listeners", LIST, None)
    """Addresses that clients receive, by listener name; without one a client receives the address
    it dialled."""
    listener_security_protocol_map: str = setting(
        "listener.security.protocol.map",
        STRING,
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    )
    """Security protocol of each listener name."""
    controller_listener_names: tuple[str, ...] = setting("controller.listener.names", LIST, ())
    """Listeners that are not opened, because there is no separate controller."""

    # ---------- data directory
    log_dirs: tuple[str, ...] | None = setting("log.dirs", LIST, None)
    """The data directory; several are refused. In a cluster it is a cache, and every start empties
    it."""
    log_dir: tuple[str, ...] = setting("log.dir", LIST, ("./data",))
    """The data directory where log.dirs is not set."""

    # ---------- topics
    num_partitions: int = setting("num.partitions", INT, 1, at_least(1))
    """Number of partitions of a topic that is created without a number."""
    default_replication_factor: int = setting("default.replication.factor", INT, 1)
    """Replication factor of a topic created without one of its own. A single broker has one
    replica; in a cluster clients see this number (see barnabas.replication.factor of topics)."""
    auto_create_topics_enable: bool = setting("auto.create.topics.enable", BOOLEAN, True)
    """Whether asking for an unknown topic creates it."""
    delete_topic_enable: bool = setting("delete.topic.enable", BOOLEAN, True)
    """Whether topics may be deleted."""
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit", INT, 2000, at_least(1)
    )
    """Maximum number of partitions in one DescribeTopicPartitions response."""
    create_topics: tuple[str, ...] = setting(
        "barnabas.create.topics",
        LIST,
        (),
        Matches(TOPIC_TO_CREATE, "name:partitions:replication[:cleanup.policy],..."),
    )
    """Topics to create at the start, name:partitions:replication[:cleanup.policy]."""

    # ---------- defaults of topics
    log_cleanup_policy: tuple[str, ...] = topic_default("log.cleanup.policy", of="cleanup.policy")
    log_segment_bytes: int = topic_default("log.segment.bytes", of="segment.bytes")
    log_roll_ms: int | None = topic_default("log.roll.ms", of="segment.ms", default=None)
    log_roll_hours: int = topic_default(
        "log.roll.hours", of="segment.ms", kind=INT, default=168, update=READ_ONLY
    )
    log_roll_jitter_ms: int | None = topic_default(
        "log.roll.jitter.ms", of="segment.jitter.ms", default=None
    )
    log_roll_jitter_hours: int = topic_default(
        "log.roll.jitter.hours", of="segment.jitter.ms", kind=INT, update=READ_ONLY
    )
    log_retention_ms: int | None = topic_default(
        "log.retention.ms", of="retention.ms", default=None
    )
    log_retention_minutes: int | None = topic_default(
        "log.retention.minutes", of="retention.ms", kind=INT, default=None, update=READ_ONLY
    )
    log_retention_hours: int = topic_default(
        "log.retention.hours", of="retention.ms", kind=INT, default=168, update=READ_ONLY
    )
    log_retention_bytes: int = topic_default("log.retention.bytes", of="retention.bytes")
    log_index_interval_bytes: int = topic_default(
        "log.index.interval.bytes", of="index.interval.bytes"
    )
    log_index_size_max_bytes: int = topic_default(
        "log.index.size.max.bytes", of="segment.index.bytes"
    )
    log_segment_delete_delay_ms: int = topic_default(
        "log.segment.delete.delay.ms", of="file.delete.delay.ms"
    )
    log_preallocate: bool = topic_default("log.preallocate", of="preallocate")
    log_record_validation_enable: bool = topic_default(
        "barnabas.log.record.validation.enable", of="barnabas.record.validation.enable"
    )
    log_message_timestamp_type: str = topic_default(
        "log.message.timestamp.type", of="message.timestamp.type"
    )
    log_message_timestamp_before_max_ms: int = topic_default(
        "log.message.timestamp.before.max.ms", of="message.timestamp.before.max.ms"
    )
    log_message_timestamp_after_max_ms: int = topic_default(
        "log.message.timestamp.after.max.ms", of="message.timestamp.after.max.ms"
    )
    message_max_bytes: int = topic_default("message.max.bytes", of="max.message.bytes")
    compression_type: str = topic_default("compression.type", of="compression.type")
    compression_gzip_level: int = topic_default(
        "compression.gzip.level", of="compression.gzip.level"
    )
    compression_lz4_level: int = topic_default("compression.lz4.level", of="compression.lz4.level")
    compression_zstd_level: int = topic_default(
        "compression.zstd.level", of="compression.zstd.level"
    )
    min_insync_replicas: int = topic_default("min.insync.replicas", of="min.insync.replicas")
    unclean_leader_election_enable: bool = topic_default(
        "unclean.leader.election.enable", of="unclean.leader.election.enable"
    )
    log_local_retention_bytes: int = topic_default(
        "log.local.retention.bytes", of="local.retention.bytes"
    )
    log_local_retention_ms: int = topic_default("log.local.retention.ms", of="local.retention.ms")
    log_flush_interval_messages: int = topic_default(
        "log.flush.interval.messages", of="flush.messages"
    )
    log_flush_interval_ms: int | None = topic_default(
        "log.flush.interval.ms", of="flush.ms", default=None
    )
    log_flush_scheduler_interval_ms: int = topic_default(
        "log.flush.scheduler.interval.ms", of="flush.ms", update=READ_ONLY
    )

    # ---------- cleaning
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms", LONG, 300_000, at_least(1)
    )
    """Interval at which segments are checked against the retention limits."""
    log_cleaner_enable: bool = setting("log.cleaner.enable", BOOLEAN, True)
    """Whether compacted topics are compacted."""
    log_cleaner_threads: int = setting(
        "log.cleaner.threads", INT, 1, at_least(0), update=CLUSTER_WIDE
    )
    """Logs compacted at the same time; 0 stops compaction."""
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms", LONG, 15_000, at_least(0), update=CLUSTER_WIDE
    )
    """Pause of compaction when there is nothing to do."""
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        at_least(1024 * 1024),
        update=CLUSTER_WIDE,
    )
    """Memory for the keys of all passes of compaction at a time; a pass without room waits."""
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, update=CLUSTER_WIDE
    )
    """Limit of the bytes that compaction reads and writes in a second."""
    log_cleaner_delete_retention_ms: int = topic_default(
        "log.cleaner.delete.retention.ms", of="delete.retention.ms"
    )
    log_cleaner_min_cleanable_ratio: float = topic_default(
        "log.cleaner.min.cleanable.ratio", of="min.cleanable.dirty.ratio"
    )
    log_cleaner_min_compaction_lag_ms: int = topic_default(
        "log.cleaner.min.compaction.lag.ms", of="min.compaction.lag.ms"
    )
    log_cleaner_max_compaction_lag_ms: int = topic_default(
        "log.cleaner.max.compaction.lag.ms", of="max.compaction.lag.ms"
    )

    # ---------- connections and requests
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes", INT, 100 * 1024 * 1024, at_least(1)
    )
    """Largest request."""
    socket_send_buffer_bytes: int = setting("socket.send.buffer.bytes", INT, -1, at_least(-1))
    """The kernel's send buffer of a connection; -1 leaves it to the kernel, which adapts it."""
    socket_receive_buffer_bytes: int = setting("socket.receive.buffer.bytes", INT, -1, at_least(-1))
    """The kernel's receive buffer of a connection; -1 leaves it to the kernel, which adapts it."""
    socket_listen_backlog_size: int = setting("socket.listen.backlog.size", INT, 1024, at_least(1))
    """Connections that may wait to be accepted."""
    connections_max_idle_ms: int = setting("connections.max.idle.ms", LONG, 600_000)
    """Time after which an idle connection is closed; -1 means never. After brokers joined or left,
    less for clients that have added offsets to a transaction (docs/clients/librdkafka.md)."""
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes", LONG, 256 * 1024 * 1024, at_least(-1)
    )
    """Memory for requests that are incomplete or wait, all connections together; -1 is no limit.
    Silent or slow clients are disconnected while others wait for it."""
    fetch_max_bytes: int = setting("fetch.max.bytes", INT, 57_671_680, at_least(1024))
    """Maximum size of the records in one response to Fetch, in bytes."""
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0)
    )
    """Fetch sessions kept at a time."""
    fetch_session_partitions_max: int = setting(
        "barnabas.fetch.session.partitions.max", INT, 75_000, at_least(0)
    )
    """Partitions that all fetch sessions together remember, 500 bytes each."""

    # ---------- producers
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms", INT, 86_400_000, at_least(1), update=CLUSTER_WIDE
    )
    """Time for which an idle producer's sequence numbers are kept."""
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1)
    )
    """Interval at which expired producers are removed."""

    # ---------- consumer groups
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions", INT, 50, at_least(1)
    )
    """Partitions of __consumer_offsets."""
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor", SHORT, 1, at_least(1)
    )
    """Accepted for compatibility: one broker has one replica."""
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes", INT, 104_857_600, SEGMENT_SIZES
    )
    """Segment size of __consumer_offsets."""
    offsets_retention_minutes: int = setting("offsets.retention.minutes", INT, 10_080, at_least(1))
    """Time for which the offsets of a group without members are kept."""
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms", LONG, 600_000, at_least(1)
    )
    """Interval at which expired offsets are removed."""
    offset_metadata_max_bytes: int = setting("offset.metadata.max.bytes", INT, 4096, at_least(0))
    """Maximum size of the metadata of a committed offset, in bytes."""
    # Kafka: 3000, which is three seconds of silence at each first start of a consumer.
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms", INT, 0, at_least(0)
    )
    """Time for which a new group waits for more members before its first assignment."""
    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms", INT, 6000, at_least(0)
    )
    """Shortest session timeout a member may ask for."""
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms", INT, 1_800_000, at_least(0)
    )
    """Maximum session timeout that a member can request."""
    group_max_size: int = setting("group.max.size", INT, INT_MAX, at_least(1))
    """Maximum number of members of a classic group."""
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms", INT, 45_000, at_least(1)
    )
    """Session timeout of groups of the new protocol."""
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1)
    )
    """Heartbeat interval of groups of the new protocol."""
    group_consumer_max_size: int = setting("group.consumer.max.size", INT, INT_MAX, at_least(1))
    """Maximum number of members of a group of the new protocol."""
    group_consumer_min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1)
    )
    """Shortest session timeout of groups of the new protocol."""
    group_consumer_max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1)
    )
    """Maximum session timeout of groups of the new protocol."""
    group_consumer_min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1)
    )
    """Shortest heartbeat interval of groups of the new protocol."""
    group_consumer_max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1)
    )
    """Maximum heartbeat interval of groups of the new protocol."""
    group_consumer_assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms", INT, 1000, at_least(0), update=CLUSTER_WIDE
    )
    """Shortest time between two assignments of a group of the new protocol."""
    group_consumer_min_assignment_interval_ms: int = setting(
        "group.consumer.min.assignment.interval.ms", INT, 0, at_least(0)
    )
    """Lower limit of group.consumer.assignment.interval.ms."""
    group_consumer_max_assignment_interval_ms: int = setting(
        "group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0)
    )
    """Upper limit of group.consumer.assignment.interval.ms."""
    group_consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors", LIST, ("uniform", "range"), OneOf(("uniform", "range"))
    )
    """Assignors that members may ask for; the first one is the default."""
    group_consumer_migration_policy: str = setting(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        Matches(
            "(?i)(bidirectional|upgrade|downgrade|disabled)",
            "bidirectional, upgrade, downgrade or disabled",
        ),
    )
    """Directions in which a group with members can change its protocol."""

    # ---------- transactions
    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms", INT, 900_000, at_least(1)
    )
    """Maximum transaction timeout that a producer can request."""
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions", INT, 50, at_least(1)
    )
    """Partitions of __transaction_state."""
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor", SHORT, 1, at_least(1)
    )
    """Accepted for compatibility: one broker has one replica."""
    transaction_state_log_min_isr: int = setting(
        "transaction.state.log.min.isr", INT, 1, at_least(1)
    )
    """Accepted for compatibility: one broker has one replica."""
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes", INT, 104_857_600, SEGMENT_SIZES
    )
    """Segment size of __transaction_state."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1)
    )
    """Interval at which expired transactional ids are removed."""
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms", INT, 604_800_000, at_least(1)
    )
    """Time for which an idle transactional id is kept."""
    transactional_id_expiration_prefixes: tuple[str, ...] = setting(
        "barnabas.transactional.id.expiration.prefixes",
        LIST,
        (),
        Matches(r".+:[1-9][0-9]{0,17}", "prefix:milliseconds,..."),
    )
    """Transactional ids that are used once and forgotten sooner, prefix:milliseconds; the longest
    prefix counts."""

    transaction_version: int = setting(CONFIGURED_VERSION, INT, 2, Between(0, 2))
    """Level of Kafka's feature transaction.version until one is set by kafka-features: 2 offers
    clients the protocol of KIP-890, 0 and 1 only the one before it. In a cluster that of the first
    broker counts."""
    transaction_wait_ms: int = setting("barnabas.transaction.wait.ms", INT, 100, at_least(0))
    """Time for which a request waits for the end of the previous transaction, before the error
    CONCURRENT_TRANSACTIONS, after which clients sleep. 0 means no wait, as in Apache Kafka. In a
    cluster the default is 500."""

    transaction_two_phase_commit_enable: bool = setting(
        "transaction.two.phase.commit.enable", BOOLEAN, False
    )
    """Whether a producer may ask for transactions without a timeout, and take over one that is open
    (KIP-939). Needs barnabas.transaction.version 1 or 2."""

    # ---------- Barnabas
    request_receive_timeout_ms: int = setting(
        "barnabas.request.receive.timeout.ms", LONG, 30_000, at_least(1)
    )
    """Time in which a client must send one request completely."""
    request_max_bytes: int = setting(
        "barnabas.request.max.bytes", INT, 16 * 1024 * 1024, at_least(1024 * 1024)
    )
    """Largest request that is not a Produce."""
    request_elements_max: int = setting(
        "barnabas.request.elements.max", INT, 100_000, at_least(10_000)
    )
    """Maximum number of elements in the arrays of one request, such as topics, partitions or
    groups."""
    request_undivided_elements_max: int = setting(
        "barnabas.request.undivided.elements.max", INT, 40_000, at_least(1000)
    )
    """The same for requests that are handled in one go, such as JoinGroup, LeaveGroup and
    DeleteTopics, which all others wait for; and most partitions of one fetch session."""
    connection_pipeline_max_requests: int = setting(
        "barnabas.connection.pipeline.max.requests", INT, 1000, at_least(1)
    )
    """Maximum number of outstanding responses of one connection before its next request is
    handled."""
    connection_write_buffer_bytes: int = setting(
        "barnabas.connection.write.buffer.bytes", INT, 1024 * 1024, at_least(64 * 1024)
    )
    """Size of the unread responses of a connection, in bytes, above which its next request is not
    handled."""
    http_listener: str = setting(
        "barnabas.http.listener",
        STRING,
        "127.0.0.1:9644",
        Matches(HTTP_LISTENER, "host:port, or empty"),
    )
    """Address for /metrics, /livez, /readyz, /config and /api, host:port; an empty host means every
    interface, an empty value none at all."""
    console_access: str = setting(
        "barnabas.console.access", STRING, "auto", OneOf(("none", "read", "write", "auto"))
    )
    """Access of the console and its API on the HTTP port: none, read only, or also write. With auto
    it is write on a loopback address, and where users authenticate."""
    console_records: bool = setting("barnabas.console.records", BOOLEAN, True)
    """Whether the console and its API show records to users with READ permission."""
    console_history: bool = setting("barnabas.console.history", BOOLEAN, True)
    """Whether the last six hours of the broker's own figures are kept in memory, in less than two
    megabytes."""
    metrics_partitions: bool = setting("barnabas.metrics.partitions", BOOLEAN, True)
    """Whether /metrics has series for each partition."""
    log_level: str = setting("barnabas.log.level", STRING, "INFO", OneOf(LOG_LEVELS))
    """Least important log line that is written."""
    log_format: str = setting("barnabas.log.format", STRING, "text", OneOf(("text", "json")))
    """Form of the log lines."""

    settings: Mapping[str, tuple[Setting, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Sources of each set key, in the order of their precedence."""

    def value(self, name: str) -> Value:
        """Return the value of a key by Kafka's name for it."""
        value: Value = getattr(self, FIELD_NAMES[name])
        return value

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners to open, with their advertised addresses; raises ConfigError."""
        return endpoints_of(
            self.listeners,
            self.advertised_listeners or (),
            self.listener_security_protocol_map,
            self.controller_listener_names,
        )

    @property
    def http_address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP port, or None without one; raises ConfigError."""
        return parse_http_listener(self.http_listener)

    @property
    def offers_two_phase_commit(self) -> bool:
        """Whether KIP-939 is served, which version 0 of the records cannot store."""
        return self.transaction_two_phase_commit_enable and self.transaction_version > 0

    @property
    def data_directory(self) -> str:
        """Data directory; raises ConfigError for several."""
        directories = self.log_dirs or self.log_dir
        if len(directories) > 1:
            reason = "Several data directories are not supported, give one"
            raise ConfigError("log.dirs", ",".join(directories), reason)
        if not directories:
            raise ConfigError("log.dirs", "", "One data directory is needed")
        return directories[0]

    def for_listener(self, name: str) -> ListenerConfig:
        """Return the settings of one listener: its own, else the broker's."""
        return ListenerConfig(self, BROKER_CONFIGS, name)

    def synonyms(self, names: Iterable[str]) -> Iterator[ConfigSynonym]:
        """Yield the possible sources of the value of the first of ``names``; see config_sources."""
        return synonyms_of(names, self.settings, BROKER_CONFIGS)

    def describe(self) -> list[ConfigEntry]:
        """Return every key with its value, source and synonyms, as DescribeConfigs does."""
        return [self._describe(key) for key in BROKER_CONFIGS.values()]

    def _describe(self, key: ConfigKey) -> ConfigEntry:
        given = self.settings.get(key.name)
        return ConfigEntry(
            name=key.name,
            value=format_value(self.value(key.name)),
            type=key.type,
            source=given[0].source if given else ConfigSource.DEFAULT,
            read_only=key.update is READ_ONLY,
            synonyms=tuple(self.synonyms(_NAMES.get(key.name, (key.name,)))),
            documentation=key.doc,
        ).without_secrets()

    def with_settings(self, given: Mapping[str, tuple[Setting, ...]]) -> BrokerConfig:
        """Return a configuration with ``given`` over the present settings; raises ConfigError.

        The settings of a key are sorted, the winner first. A key without effect keeps only its
        sources.
        """
        settings = dict(self.settings)
        changes: dict[str, Any] = {}
        for name, more in given.items():
            key = BROKER_CONFIGS.get(name)
            merged = sorted((*more, *settings.get(name, ())), key=lambda each: each.source)
            if not merged:
                continue
            settings[name] = tuple(merged)
            if key is not None:
                changes[FIELD_NAMES[name]] = key.parse(merged[0].text)
        return replace(self, settings=settings, **changes)

    def with_dynamic(
        self, cluster: Mapping[str, str], broker: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """Return this configuration under the settings that clients made while the broker runs.

        ``cluster`` holds for every broker, ``broker`` for this one and wins (KIP-226). Call it on
        the configuration that was loaded, not on a result. Raises ConfigError for a key that is
        unknown, cannot change while the broker runs, or has a bad value.
        """
        return self.with_settings(dynamic_settings(cluster, broker or {}, BROKER_CONFIGS))


_FIELDS = {each.name: key_of(BrokerConfig, each) for each in fields(BrokerConfig) if each.metadata}

BROKER_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _FIELDS.values()}
"""The supported broker keys, by Kafka's name."""

FIELD_NAMES: Final[Mapping[str, str]] = {key.name: name for name, key in _FIELDS.items()}
"""The attribute of BrokerConfig that holds a key's value."""

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    name: key.synonyms[place:]
    for key in TOPIC_CONFIGS.values()
    for place, name in enumerate(key.synonyms)
}
"""The broker's keys for the defaults of a topic, each with the keys used if it is not set."""
