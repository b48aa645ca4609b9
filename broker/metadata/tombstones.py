"""Removal of the tombstones of deleted topics in a cluster.

Rules of this file:

* A standalone broker removes a tombstone after the topic's directories on its own disk
  (``Catalogue.forget_deleted``). In a cluster no directory outlives its process, so tombstones do
  not depend on the brokers' disks: the controller removes all of them.
* The controller removes a tombstone KEPT_S after it has first seen it, by its own clock; a new
  controller starts from zero. By then every broker in service shows the topic as deleted. Tools
  that inspect the store have had time to find the deleted topic and the data of its partitions.
* Safety does not depend on that time. Requests in flight to a deleted partition are refused by its
  row, which has no leader after the deletion. The row stays as long as the tombstone, and a
  partition without a row counts as led by another broker. Its ID is never reused.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.changes import FOREVER
from barnabas.protocol.errors import KafkaError
from barnabas.storage.metastore.difference import Difference

if TYPE_CHECKING:
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.metadata.changes import Changes
    from barnabas.storage.metastore.interface import MetaStore

logger = logging.getLogger(__name__)

KEPT_S: Final = 600.0
"""Time, in seconds, for which a tombstone is kept: many leases, and much longer than following a
change takes."""


class Tombstones:
    """Tombstones that one broker of a cluster has seen."""

    def __init__(self, metastore: MetaStore, changes: Changes, view: ClusterView) -> None:
        self._metastore = metastore
        self._changes = changes
        self._view = view
        self._seen_s: dict[bytes, float] = {}
        """Time of the first sight, by topic ID."""
        self._is_looking = False

    async def remove_old(self, now_s: float) -> None:
        """Remove old tombstones, if this broker is the controller.

        Call this periodically; ``now_s`` is of a clock that never goes back. It waits for an
        unavailable MetaStore without a timeout, and has no effect while another call runs.
        """
        if self._view.controller_id != self._view.node_id or self._is_looking:
            return
        self._is_looking = True
        try:
            await self._changes.run(lambda: self._remove_old(now_s), FOREVER)
        except KafkaError as error:
            logger.warning("tombstones kept count=%d reason=%s", len(self._seen_s), error)
        finally:
            self._is_looking = False

    async def _remove_old(self, now_s: float) -> None:
        image = await self._changes.image()
        self._seen_s = {
            row.topic_id: self._seen_s.get(row.topic_id, now_s) for row in image.deleted
        }
        for topic_id, seen_s in [*self._seen_s.items()]:
            if now_s - seen_s >= KEPT_S:
                forget = partial(self._metastore.forget_topic, topic_id)
                await self._changes.commit_regardless(forget)
                await self._changes.show(Difference())
                del self._seen_s[topic_id]
