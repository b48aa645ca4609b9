"""Settings of the object store that has large flushes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.broker.config.fields import setting
from barnabas.broker.config.storage import StorageConfig
from barnabas.broker.config.types import Between, ConfigType, Matches

STORAGE: Final = "barnabas.storage"


@dataclass(frozen=True, slots=True)
class ObjectsConfig(StorageConfig):
    """Object store of a cluster, and what goes into it."""

    object_store: str | None = setting(
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
    object_store_endpoint: str | None = setting(
        "barnabas.storage.endpoint",
        ConfigType.STRING,
        None,
        Matches(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", "http://host:port or https://host:port"),
    )
    """Address of the server of an S3-compatible or Azure store, instead of the provider's."""
    object_store_region: str | None = setting("barnabas.storage.region", ConfigType.STRING, None)
    """Region of the bucket, for s3://."""
    object_store_access_key: str | None = setting(
        "barnabas.storage.access.key", ConfigType.PASSWORD, None
    )
    """Access key ID for s3://, or account name for az://. Without one the environment and the role
    of the instance count."""
    object_store_secret_key: str | None = setting(
        "barnabas.storage.secret.key", ConfigType.PASSWORD, None
    )
    """Secret access key for s3://, account key for az://, or service account key for gs://."""
    object_store_path_style: bool = setting("barnabas.storage.path.style", ConfigType.BOOLEAN, True)
    """Whether the bucket is in the path of a request to s3://, not in its host name."""
    object_store_allow_http: bool = setting(
        "barnabas.storage.allow.http", ConfigType.BOOLEAN, False
    )
    """Whether an endpoint without TLS is accepted."""
    objects_delete_delay_ms: int = setting(
        "barnabas.objects.delete.delay.ms", ConfigType.LONG, 24 * 3_600_000, Between(0)
    )
    """Time for which an object of the object store is kept after its last record was deleted: at
    least as long as the period from which PostgreSQL can be restored."""
