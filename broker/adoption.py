"""Taking over an Apache Kafka's data directory: the metadata's side (``storage.adoption``)."""

from __future__ import annotations

import logging
from typing import Final

from storage.adoption import adopt, foreign_topics, highest_producer_id, is_foreign
from storage.io import FileSystem
from storage.metastore.interface import MetaStore

logger = logging.getLogger(__name__)

PRODUCER_ID_MARGIN: Final = 100_000
"""How far above every producer id found in adopted logs ours begin: Kafka hands them out in blocks
of a thousand, and a client may hold one that it has not written with yet."""


def adopt_if_foreign(file_system: FileSystem, directory: str, metastore: MetaStore) -> bool:
    """Make the topics of a cleanly stopped Kafka ours; answers whether there were any to take.

    Topic settings are not in the directory and start as defaults. Raises Corrupt.
    """
    if not is_foreign(file_system, directory):
        return False
    rows = {row.topic_id: row for row in metastore.load().topics}
    partition_ids: dict[str, tuple[int, bytes]] = {}
    for topic in foreign_topics(file_system, directory):
        row = rows.get(topic.topic_id) or metastore.create_topic(
            topic.name, topic.topic_id, topic.partition_count, {}
        )
        for partition in row.partitions:
            name = f"{topic.name}-{partition.index}"
            partition_ids[name] = partition.partition_id, topic.topic_id
    # New ids must stay away from those that these logs know (S10).
    highest = highest_producer_id(file_system, directory, partition_ids)
    metastore.raise_producer_ids(highest + PRODUCER_ID_MARGIN)
    adopt(file_system, directory, partition_ids)
    logger.info("kafka directory taken over partitions=%d", len(partition_ids))
    return True
