"""The object store that the brokers of a cluster share, as it is configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.config.cluster import STORAGE
from barnabas.broker.config.types import ConflictingValues

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.storage.objects.object_blob_store import ObjectBlobStore


def opener_of(config: BrokerConfig) -> Callable[[str], ObjectBlobStore] | None:
    """Return an opener of the object store of a cluster by its ID, or None without a store.

    Nothing is connected yet. Raises ConfigError.
    """
    if config.storage is None:
        return None
    try:
        from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
    except ImportError as error:
        reason = (
            f"{STORAGE} needs the package obstore: run pip install '.[objects]' in a checkout "
            f"of Barnabas ({error})"
        )
        raise ConflictingValues(STORAGE, config.storage, reason) from None
    address = Address(
        config.storage,
        endpoint=config.storage_endpoint,
        region=config.storage_region,
        access_key=config.storage_access_key,
        secret_key=config.storage_secret_key,
        path_style=config.storage_path_style,
        allow_http=config.storage_allow_http,
    )
    directories: dict[str, int] = {}
    return lambda cluster_id: ObjectBlobStore.open(address.below(cluster_id), directories)
