"""The whole content of a metadata store, to be moved to another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from barnabas.storage.metastore.interface import MetadataImage
from barnabas.storage.metastore.tables import Rows


@dataclass(frozen=True, slots=True)
class Contents:
    """Metadata that is copied from a broker's own store to that of a cluster, or back.

    The image's tombstones are not copied: they name directories that only this broker has.
    """

    cluster_id: str
    image: MetadataImage
    secrets: Mapping[str, bytes]
    boot_epoch: int
    """The highest epoch of any leader or coordinator so far."""
    next_partition_id: int
    """A partition id above every id used so far."""


def rows_of(contents: Contents) -> dict[str, Rows]:
    """Return the rows of each table, for any engine, in an order that keys allow."""
    image = contents.image
    settings = [(topic.topic_id, *each) for topic in image.topics for each in topic.configs.items()]
    return {
        "topics": [(topic.topic_id, topic.name) for topic in image.topics],
        "partitions": [
            (row.partition_id, topic.topic_id, row.index)
            for topic in image.topics
            for row in topic.partitions
        ],
        "topic_configs": settings,
        "broker_configs": _owned(image.broker_configs),
        "group_configs": _owned(image.group_configs),
        "acls": list(map(astuple, image.acls)),
        "scram_credentials": list(map(astuple, image.scram_credentials)),
        "quotas": list(map(astuple, image.quotas)),
        "secrets": list(contents.secrets.items()),
    }


def _owned(settings: Mapping[str, Mapping[str, str]]) -> Rows:
    return [(owner, *each) for owner, own in settings.items() for each in own.items()]
