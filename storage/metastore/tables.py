"""The tables of a metadata store, and the code on their rows that all engines share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from itertools import starmap
from typing import Any, Final, TypeAlias

from barnabas.storage.metastore.interface import (
    AclRow,
    MetadataImage,
    PartitionRow,
    QuotaRow,
    ScramRow,
    TopicRow,
)

Rows: TypeAlias = Sequence[tuple[object, ...]]

TABLES: Final = {
    "cluster": "format_version, cluster_id, node_id, boot_epoch, next_producer_id",
    "topics": "topic_id, name, deleted",
    "partitions": "partition_id, topic_id, partition_index",
    "topic_configs": "topic_id, name, value",
    "broker_configs": "entity, name, value",
    "group_configs": "group_id, name, value",
    "acls": "resource_type, name, pattern, principal, host, operation, permission",
    "scram_credentials": "user_name, mechanism, salt, stored_key, server_key, iterations",
    "quotas": "entity, name, value",
    "secrets": "name, value",
}
"""Every table whose content matters, with its columns."""
_REPLACED_BY: Final = {
    "broker_configs": "entity",
    "group_configs": "group_id",
    "acls": TABLES["acls"],
    "scram_credentials": "user_name, mechanism",
    "quotas": "entity, name",
}
"""Columns of the keys by which rows are replaced."""


def replacement(table: str, place: str, schema: str = "") -> tuple[str, str]:
    """Return the statements that delete rows by their keys, and that insert rows.

    ``place`` stands for a value in the dialect of the engine.
    """
    keys = " AND ".join(f"{each} = {place}" for each in _REPLACED_BY[table].split(", "))
    places = ", ".join(place for _ in TABLES[table].split(", "))
    delete = f"DELETE FROM {schema}{table} WHERE {keys}"  # noqa: S608  Our names.
    insert = f"INSERT INTO {schema}{table} VALUES ({places})"  # noqa: S608
    # An ACL may exist already.
    return delete, f"{insert} ON CONFLICT DO NOTHING" if table == "acls" else insert


class ReplacedTables:
    """The changes of a MetaStore that replace rows by their keys."""

    def _replace(self, table: str, keys: Rows, rows: Rows) -> None:
        """Delete the rows that have one of the keys, and insert rows, as one change."""
        raise NotImplementedError

    def set_broker_configs(self, entity: str, configs: Mapping[str, str]) -> None:
        """Replace all dynamic settings of a node or of the cluster."""
        rows = [(entity, *each) for each in configs.items()]
        self._replace("broker_configs", [(entity,)], rows)

    def set_group_configs(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Replace all settings of a consumer group."""
        rows = [(group_id, *each) for each in configs.items()]
        self._replace("group_configs", [(group_id,)], rows)

    def change_acls(self, added: Sequence[AclRow], removed: Sequence[AclRow]) -> None:
        """Add and remove ACLs."""
        self._replace("acls", list(map(astuple, removed)), list(map(astuple, added)))

    def change_scram_credentials(
        self, upserted: Sequence[ScramRow], deleted: Sequence[tuple[str, str]]
    ) -> None:
        """Set and delete credentials."""
        keys = [*deleted, *((row.user, row.mechanism) for row in upserted)]
        self._replace("scram_credentials", keys, list(map(astuple, upserted)))

    def change_quotas(
        self, set_values: Sequence[QuotaRow], removed: Sequence[tuple[str, str]]
    ) -> None:
        """Set and remove limits."""
        keys = [*removed, *((row.entity, row.key) for row in set_values)]
        self._replace("quotas", keys, list(map(astuple, set_values)))


def image_of(
    rows: Callable[[str], Iterable[tuple[Any, ...]]], *, next_producer_id: int, version: int
) -> MetadataImage:
    """Return the sorted image of a store; ``rows`` returns the rows of a table."""
    partitions: defaultdict[bytes, list[PartitionRow]] = defaultdict(list)
    for partition_id, topic_id, index in sorted(rows("partitions"), key=lambda row: row[1:]):
        partitions[topic_id].append(PartitionRow(partition_id, index))
    configs = _by_owner(rows("topic_configs"))
    topics: dict[bool, list[TopicRow]] = {False: [], True: []}
    for topic_id, name, is_deleted in sorted(rows("topics"), key=lambda row: (row[1], row[0])):
        topic = TopicRow(topic_id, name, tuple(partitions[topic_id]), configs.get(topic_id, {}))
        topics[bool(is_deleted)].append(topic)
    return MetadataImage(
        tuple(topics[False]),
        tuple(topics[True]),
        _by_owner(rows("broker_configs")),
        _by_owner(rows("group_configs")),
        acls=tuple(starmap(AclRow, sorted(rows("acls")))),
        scram_credentials=tuple(starmap(ScramRow, sorted(rows("scram_credentials")))),
        quotas=tuple(starmap(QuotaRow, sorted(rows("quotas")))),
        next_producer_id=next_producer_id,
        version=version,
    )


def _by_owner(rows: Iterable[tuple[Any, ...]]) -> dict[Any, dict[str, str]]:
    """Return settings by owner, each given as (owner, name, value)."""
    settings: defaultdict[Any, dict[str, str]] = defaultdict(dict)
    for owner, name, value in sorted(rows):
        settings[owner][name] = value
    return dict(settings)
