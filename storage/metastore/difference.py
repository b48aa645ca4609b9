"""Difference between two images of the metadata; only such differences change a broker's view.

Rules of this file:

* Ids decide, not names: a topic created again under an old name is a deletion and a creation.
* An existing partition stays as it is: its id and its index never change, and topics never shrink.
  So two images of a topic differ by the partitions at the end, and by its settings.
* Tombstones are not compared: they are pending deletions on each broker's own disk.
* Settings are replaced as a whole, as the MetaStore does it; no settings at all: an empty mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.storage.metastore.interface import (
    AclRow,
    MetadataImage,
    PartitionRow,
    QuotaRow,
    ScramRow,
    TopicRow,
)

Key = TypeVar("Key")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class GrownTopic:
    """A topic, and the partitions that it has gained, in order of their index."""

    topic_id: bytes
    partitions: tuple[PartitionRow, ...]


@dataclass(frozen=True, slots=True)
class ConfiguredTopic:
    """A topic that is in both images, and all its settings in the newer one."""

    topic_id: bytes
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes that turn the older of two images into the newer; empty by default.

    One entity may be both removed and added if it changed: removals have to be applied first.
    """

    topics_deleted: tuple[bytes, ...] = ()
    """IDs of the topics."""
    topics_created: tuple[TopicRow, ...] = ()
    topics_grown: tuple[GrownTopic, ...] = ()
    topics_configured: tuple[ConfiguredTopic, ...] = ()
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """All settings (see ``MetadataImage``) of each entity whose settings have changed."""
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """All settings of each group whose settings have changed."""
    acls_removed: tuple[AclRow, ...] = ()
    acls_added: tuple[AclRow, ...] = ()
    scram_deleted: tuple[tuple[str, str], ...] = ()
    """User and mechanism of each credential."""
    scram_upserted: tuple[ScramRow, ...] = ()
    quotas_removed: tuple[tuple[str, str], ...] = ()
    """Entity and key of each quota."""
    quotas_set: tuple[QuotaRow, ...] = ()
    next_producer_id: int | None = None
    """See ``MetadataImage``, or None if no more ids were allocated."""


def difference(old: MetadataImage, new: MetadataImage) -> Difference:
    """Return the changes from ``old`` to ``new``, a later image of the same cluster."""
    known = {row.topic_id: row for row in old.topics}
    left = {row.topic_id for row in new.topics}
    kept = [(known[row.topic_id], row) for row in new.topics if row.topic_id in known]
    acls_removed, acls_added = _changed({row: row for row in old.acls}, {r: r for r in new.acls})
    scram_deleted, scram_upserted = _changed(_by_owner(old), _by_owner(new))
    quotas_removed, quotas_set = _changed(_by_limit(old), _by_limit(new))
    is_behind = old.next_producer_id < new.next_producer_id
    return Difference(
        topics_deleted=tuple(topic_id for topic_id in known if topic_id not in left),
        topics_created=tuple(row for row in new.topics if row.topic_id not in known),
        topics_grown=tuple(
            GrownTopic(row.topic_id, row.partitions[len(before.partitions) :])
            for before, row in kept
            if len(before.partitions) < len(row.partitions)
        ),
        topics_configured=tuple(
            ConfiguredTopic(row.topic_id, row.configs)
            for before, row in kept
            if before.configs != row.configs
        ),
        broker_configs=_changed_configs(old.broker_configs, new.broker_configs),
        group_configs=_changed_configs(old.group_configs, new.group_configs),
        acls_removed=acls_removed,
        acls_added=acls_added,
        scram_deleted=scram_deleted,
        scram_upserted=scram_upserted,
        quotas_removed=quotas_removed,
        quotas_set=quotas_set,
        next_producer_id=new.next_producer_id if is_behind else None,
    )


def _by_owner(image: MetadataImage) -> dict[tuple[str, str], ScramRow]:
    return {(row.user, row.mechanism): row for row in image.scram_credentials}


def _by_limit(image: MetadataImage) -> dict[tuple[str, str], QuotaRow]:
    return {(row.entity, row.key): row for row in image.quotas}


def _changed(
    old: Mapping[Key, Row], new: Mapping[Key, Row]
) -> tuple[tuple[Key, ...], tuple[Row, ...]]:
    """Return the keys that were removed, and the rows that are new or have changed."""
    return (
        tuple(key for key in old if key not in new),
        tuple(row for key, row in new.items() if old.get(key) != row),
    )


def _changed_configs(
    old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, str]]:
    return {
        owner: new.get(owner, {})
        for owner in (*new, *(each for each in old if each not in new))
        if old.get(owner, {}) != new.get(owner, {})
    }
