"""Topics that the configuration names, created at a start: "ready" means that they exist."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.changes import FOREVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.cluster.serving.placement import Placement
    from barnabas.broker.metadata.catalogue import Catalogue

logger = logging.getLogger("barnabas.broker.server")

ANY_FACTOR: Final = -1


async def create_configured_topics(catalogue: Catalogue, placement: Placement) -> None:
    """Create the missing topics of ``barnabas.create.topics``; raises KafkaError."""
    broker_config = catalogue.configs.broker_config
    for item in broker_config.create_topics:
        name, partitions, replication, *policy = item.split(":")
        factor = int(replication)
        if not placement.is_in_cluster and factor not in {1, ANY_FACTOR}:
            logger.warning("replication factor reduced to 1 topic=%s given=%s", name, replication)
            factor = ANY_FACTOR
        placement.check_factor(factor)
        own: Mapping[str, str | None] = {"cleanup.policy": policy[0]} if policy else {}
        configs = placement.configs_with(factor, own, broker_config)
        await catalogue.ensure_topic(name, int(partitions), configs, FOREVER)
