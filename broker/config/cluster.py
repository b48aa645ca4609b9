"""Settings of a broker that is one of several, which share a store of metadata and logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from barnabas.broker.config.fields import setting
from barnabas.broker.config.storage import StorageConfig
from barnabas.broker.config.types import (
    Between,
    ConfigType,
    ConflictingValues,
    Matches,
    UpdateMode,
)

METADATA: Final = "barnabas.metadata"
STORAGE: Final = "barnabas.storage"
FLUSH_OBJECT_MIN: Final = "barnabas.flush.object.min.bytes"
FLUSH_OBJECT_MIN_BYTES: Final = 256 * 1024
"""Default with an object store: below it an upload costs more than the storage for a month."""
CORDONED: Final = "cordoned.log.dirs"
"""The setting of a broker that is to lead nothing."""
TRANSACTION_WAIT: Final = "barnabas.transaction.wait.ms"
TRANSACTION_WAIT_MS: Final = 500
"""Default in a cluster, where the end of a transaction takes several commits of the store."""

_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret", "scram_client_key")
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[\w.-]+)(:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ObjectsConfig(StorageConfig):
    """Object store of a cluster, and the size of the flushes that go into it."""

    storage: str | None = setting(
        STORAGE,
        ConfigType.STRING,
        None,
        Matches(
            r"(s3|gs|az)://[^\s/?#@]+(/[^\s?#@]+)?|file:///[^\s?#]+",
            "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///directory",
        ),
    )
    """Address of the object store for large flushes of a cluster, the same for all of its brokers:
    s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, or file:///directory on a
    file system that all brokers share. Without one all records are kept in PostgreSQL."""
    storage_endpoint: str | None = setting(
        "barnabas.storage.endpoint",
        ConfigType.STRING,
        None,
        Matches(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", "http://host:port or https://host:port"),
    )
    """Address of the server of an S3-compatible or Azure store, instead of the provider's."""
    storage_region: str | None = setting("barnabas.storage.region", ConfigType.STRING, None)
    """Region of the bucket, for s3://."""
    storage_access_key: str | None = setting(
        "barnabas.storage.access.key", ConfigType.PASSWORD, None
    )
    """Access key ID for s3://, or account name for az://. Without one the environment and the role
    of the instance count."""
    storage_secret_key: str | None = setting(
        "barnabas.storage.secret.key", ConfigType.PASSWORD, None
    )
    """Secret access key for s3://, account key for az://, or service account key for gs://."""
    storage_path_style: bool = setting("barnabas.storage.path.style", ConfigType.BOOLEAN, True)
    """Whether the bucket is in the path of a request to s3://, not in its host name."""
    storage_allow_http: bool = setting("barnabas.storage.allow.http", ConfigType.BOOLEAN, False)
    """Whether an endpoint without TLS is accepted."""
    objects_delete_delay_ms: int = setting(
        "barnabas.objects.delete.delay.ms", ConfigType.LONG, 24 * 3_600_000, Between(0)
    )
    """Time between the deletion of an object's last record and that of the object, at least the
    period from which PostgreSQL can be restored."""


@dataclass(frozen=True, slots=True)
class ClusterConfig(ObjectsConfig):
    """Store and membership of a cluster, and connections between its brokers."""

    metadata: str | None = setting(
        METADATA,
        ConfigType.PASSWORD,
        None,
        Matches(r"postgres(ql)?://\S+", "postgresql://user:password@host:port/database"),
    )
    """Address of the PostgreSQL that the brokers of a cluster share, postgresql://...; of several
    hosts the primary is used. Metadata and records are kept there, and log.dirs is a cache. Without
    one the broker is alone."""
    flush_object_min_bytes: int = setting(FLUSH_OBJECT_MIN, ConfigType.INT, 1024 * 1024, Between(1))
    """Size in bytes from which a flush of a cluster's broker stores its records before the commit,
    several flushes at once. A smaller flush has its records in the commit. With an object store the
    default is 262144."""
    flush_ms: int = setting("barnabas.flush.ms", ConfigType.INT, 250, Between(0, 5000))
    """Maximum time for which a broker with an object store collects records before a flush, while
    they arrive so fast that the flush becomes an object. It waits less if all producers wait for
    their responses. With 0 each flush leaves at once."""
    flush_max_bytes: int = setting(
        "barnabas.flush.max.bytes",
        ConfigType.INT,
        8 * 1024 * 1024,
        Between(1024 * 1024, 64 * 1024 * 1024),
    )
    """Size in bytes of the collected records from which a flush to the object store begins before
    that time; a larger request is flushed as a whole."""
    objects_uploads_max: int = setting(
        "barnabas.objects.uploads.max", ConfigType.INT, 4, Between(0, 64)
    )
    """Maximum number of flushes whose records are stored before their commit, each on a connection;
    0: the records of each flush go with its commit."""
    pack_bytes: int = setting(
        "barnabas.pack.bytes", ConfigType.INT, 64 * 1024 * 1024, Between(1, 1024 * 1024 * 1024)
    )
    """Bytes of a log of a cluster with an object store from which its leader packs them into an
    object of their own, with which they are deleted."""
    pack_ms: int = setting("barnabas.pack.ms", ConfigType.LONG, 600_000, Between(1000))
    """Time after which the leader of a log packs fewer bytes, too; a few kilobytes stay in
    PostgreSQL."""
    lease_ms: int = setting("barnabas.lease.ms", ConfigType.INT, 10_000, Between(1000, 300_000))
    """Time after which other brokers take over the partitions of a silent broker of a cluster."""
    cache_max_bytes: int = setting(
        "barnabas.cache.max.bytes", ConfigType.LONG, 1024 * 1024 * 1024, Between(0)
    )
    """Bytes of old records that a broker of a cluster keeps in log.dirs after consumers have read
    them from the store, and as many bytes of segments that it has written itself, of all partitions
    together. With 0 it keeps all segments, and loads each log whole when it becomes its leader.
    While the disk has less than 256 MiB free beside barnabas.disk.reserve.bytes, it keeps fewer."""
    cold_read_timeout_ms: int = setting(
        "barnabas.cold.read.timeout.ms", ConfigType.INT, 10_000, Between(1)
    )
    """Time after which a read of old records from the store of a cluster counts as failed. A fetch
    of them waits no longer than its fetch.max.wait.ms, and fails once the read
    is older than this."""
    auto_leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable", ConfigType.BOOLEAN, True
    )
    """Whether partitions of a cluster are moved automatically until all brokers lead equally many,
    and back to their pinned broker. Otherwise they stay where they are led; partitions of a broker
    that stops or is drained still move to others."""
    cordoned_log_dirs: tuple[str, ...] = setting(
        CORDONED, ConfigType.LIST, (), update=UpdateMode.PER_BROKER
    )
    """Set to *, or to its data directory, to drain one broker of a cluster: others lead its
    partitions, and it gets no new ones until the setting is removed. `barnabas cluster drain` sets
    it while the broker runs; a value in the broker's file applies from its start, unless a value,
    even an empty one, is set while it runs."""
    inter_broker_listener_name: str | None = setting(
        "inter.broker.listener.name", ConfigType.STRING, None
    )
    """Listener for requests between the brokers of a cluster. If empty, the listener with
    security.inter.broker.protocol is used."""
    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol", ConfigType.STRING, "PLAINTEXT"
    )
    """Name of the listener at which the brokers of a cluster ask each other, where
    inter.broker.listener.name is not set."""
    sasl_mechanism_inter_broker_protocol: str = setting(
        "sasl.mechanism.inter.broker.protocol", ConfigType.STRING, "GSSAPI"
    )
    """SASL mechanism by which the brokers of a cluster log in to each other, as the user of that
    listener's login module. GSSAPI is not available."""
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms", ConfigType.LONG, 10_000, Between(1)
    )
    """Time for which a broker of a cluster waits for a connection to another one."""

    @property
    def is_of_cluster(self) -> bool:
        """Whether the configuration is that of a broker of a cluster."""
        return self.metadata is not None


def check_object_store(config: ClusterConfig) -> None:
    """Raise ConfigError for an object store without a cluster."""
    if config.storage is not None and not config.is_of_cluster:
        reason = f"{STORAGE} is of the brokers of a cluster: set {METADATA}, too"
        raise ConflictingValues(STORAGE, config.storage, reason)


def check_cordoned(cordoned: Sequence[str], data_directory: str) -> None:
    """Raise ConfigError for missing cordoned directories, with Kafka's message."""
    given = ",".join(cordoned)
    if "*" in cordoned and len(cordoned) > 1:
        reason = f"When {CORDONED} is set to *, it must not contain other values"
        raise ConflictingValues(CORDONED, given, reason)
    missing = [each for each in cordoned if each not in ("*", data_directory)]
    if missing:
        reason = (
            f"All entries in {CORDONED} must be present in log.dirs or log.dir."
            f" Missing entries : {', '.join(missing)}"
        )
        raise ConflictingValues(CORDONED, given, reason)


def has_password(address: str) -> bool:
    """Return whether the address of a PostgreSQL has, or may have, a secret."""
    found = _parts(address)
    return found is None or found[1]


def without_password(address: str) -> str:
    """Return hosts and database of a PostgreSQL address, without secrets."""
    found = _parts(address)
    return "postgresql://..." if found is None else found[0]


def _parts(address: str) -> tuple[str, bool] | None:
    """Return the visible part of an address, and whether it has a secret, or None if it is unclear.

    A password with a character that should have been escaped is not part of the visible text.
    """
    try:
        split = urlsplit(address)
    except ValueError:
        return None
    user, _, hosts = split.netloc.rpartition("@")
    clear = all(_HOST.fullmatch(each) for each in hosts.split(",")) or not hosts
    if not clear or "@" in f"{split.path}{split.query}{split.fragment}":
        return None
    has_secret = ":" in user or any(key in parse_qs(split.query) for key in _SECRETS)
    return f"postgresql://{hosts}{split.path}", has_secret
