"""Adoption of an Apache Kafka's data directory: its metadata (``storage/adoption/adoption.py``).

Users, ACLs and quotas are adopted: a user without permission to read a topic still has none.

Topics keep their IDs and settings, which are in Kafka's metadata log. With the default retention, a
topic with unlimited retention would lose its older records at once. A setting without a meaning
here is left out with a warning; one that cannot be honoured stops the start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.config.topic_values import check_topic_configs
from barnabas.broker.config.types import UpdateMode
from barnabas.broker.security.quotas.quota_limits import entity as entity_of_parts
from barnabas.broker.security.quotas.quota_limits import entity_text
from barnabas.storage.adoption.adoption import (
    adopt,
    foreign_topics,
    highest_producer_id,
    is_foreign,
)
from barnabas.storage.adoption.kraft_metadata import KraftMetadata, read_kraft_metadata
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.metastore.interface import MetaStore, QuotaRow, ScramRow

ADOPTION_LOG: Final = logging.getLogger(__name__)
"""Logger of adopted objects and of those left out."""

SCRAM_MECHANISMS: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Objects by Kafka's numbers."""

PRODUCER_ID_MARGIN: Final = 100_000
"""Distance of new producer IDs from the highest ID in adopted logs. Kafka reserves a thousand IDs
at once, and not all of them appear in the logs. It also does not know the IDs that Barnabas
allocated there before."""


def adopt_if_foreign(
    file_system: FileSystem,
    directory: str,
    metastore: MetaStore,
    config: BrokerConfig,
    log: logging.Logger = ADOPTION_LOG,
) -> bool:
    """Adopt the topics of a cleanly stopped Kafka; return whether the directory was Kafka's.

    The caller has rehearsed this on a copy: no step is undone here. Raises Corrupt, and ConfigError
    for a topic with a setting that cannot be honoured.
    """
    if not is_foreign(file_system, directory):
        return False
    found = read_kraft_metadata(file_system, directory)
    topics = foreign_topics(file_system, directory)
    settings = {
        topic.name: _settings_of(topic.name, found.topic_configs if found else {}, config, log)
        for topic in topics
    }
    rows = {row.topic_id: row for row in metastore.load().topics}
    partition_ids: dict[str, tuple[int, bytes]] = {}
    for topic in topics:
        row = rows.get(topic.topic_id) or metastore.create_topic(
            topic.name, topic.topic_id, topic.partition_count, settings[topic.name]
        )
        for partition in row.partitions:
            name = f"{topic.name}-{partition.index}"
            partition_ids[name] = partition.partition_id, topic.topic_id
    # New IDs must be higher than all that these logs know (S10).
    highest = highest_producer_id(file_system, directory, partition_ids)
    taken = found.next_producer_id if found else 0
    metastore.raise_producer_ids(max(highest + PRODUCER_ID_MARGIN, taken))
    if found is not None:
        _keep_broker_settings(found, metastore, log)
        _keep_access(found, metastore, config, log)
    adopt(file_system, directory, partition_ids)
    log.info("kafka directory taken over partitions=%d", len(partition_ids))
    return True


def _settings_of(
    topic: str,
    all_configs: Mapping[str, Mapping[str, str]],
    config: BrokerConfig,
    log: logging.Logger = ADOPTION_LOG,
) -> dict[str, str]:
    """Return the settings that a topic keeps; raises ConfigError."""
    given = all_configs.get(topic, {})
    kept = {key: text for key, text in given.items() if key in TOPIC_CONFIGS}
    for key in sorted(given.keys() - kept.keys()):
        log.warning("setting not taken over topic=%s key=%s value=%s", topic, key, given[key])
    check_topic_configs(kept, config)
    return kept


def _keep_broker_settings(
    found: KraftMetadata, metastore: MetaStore, log: logging.Logger = ADOPTION_LOG
) -> None:
    """Keep the dynamic settings of all brokers and of this one that can change at run time.

    The other settings configure Apache Kafka only.
    """
    for entity in ("", str(metastore.identity.node_id)):
        kept = {}
        for key, text in found.broker_configs.get(entity, {}).items():
            known = BROKER_CONFIGS.get(key)
            if known is not None and known.update is not UpdateMode.READ_ONLY:
                kept[key] = text
            else:
                log.warning("setting not taken over broker=%s key=%s", entity or "all", key)
        metastore.set_broker_configs(entity, kept)


def _keep_access(
    found: KraftMetadata, metastore: MetaStore, config: BrokerConfig, log: logging.Logger
) -> None:
    """Keep users, permissions and quotas."""
    there = set(metastore.load().acls)  # Of an attempt that was cut short.
    acls = set(found.acls.values()) - there
    if acls:
        metastore.change_acls(list(acls), [])
    if found.acls and not config.authorizer_class_name:
        log.warning(
            "acls taken over, and not enforced without authorizer.class.name count=%d",
            len(found.acls),
        )
    rows = [
        ScramRow(
            each.user,
            SCRAM_MECHANISMS[each.mechanism],
            each.salt,
            each.stored_key,
            each.server_key,
            each.iterations,
        )
        for each in found.scram_credentials.values()
        if each.mechanism in SCRAM_MECHANISMS
    ]
    if rows:
        metastore.change_scram_credentials(rows, [])
    quotas = [
        QuotaRow(entity_text(entity_of_parts(dict(named))), key, value)
        for (named, key), value in found.quotas.items()
    ]
    if quotas:
        metastore.change_quotas(quotas, [])
    log.info(
        "access taken over acls=%d credentials=%d quotas=%d",
        len(found.acls),
        len(rows),
        len(quotas),
    )
