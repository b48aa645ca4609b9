"""The tombstones of deleted topics in a cluster: who removes them, and when.

Rules of this file:

* A broker that is alone owes its own disk the removal of directories, and its tombstones go with
  that (``Catalogue.forget_deleted``). In a cluster no directory outlives its process, so no broker
  owes anything for a tombstone: the controller removes all of them.
* It removes one KEPT_S after it has first seen it, by its own clock; a new controller begins anew.
  By then every broker that is in service shows the topic as deleted, and who looks into the store
  to see what became of a topic, or of what its partitions hold, has had the time to.
* Nothing that must not happen is kept from happening by that time: what is on its way to a deleted
  partition is refused by the row that says who leads it, for that is nobody from the deletion on.
  The row stays for as long as the tombstone does, and a partition without a row is one that
  somebody else leads. Its id is never given to another.
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
"""Many leases of a broker, and many times what one takes to follow a change."""


class Tombstones:
    """The tombstones as one broker of a cluster has seen them."""

    def __init__(self, metastore: MetaStore, changes: Changes, view: ClusterView) -> None:
        self._metastore = metastore
        self._changes = changes
        self._view = view
        self._seen_s: dict[bytes, float] = {}
        """When each was seen first, by topic id."""
        self._is_looking = False

    async def look(self, now_s: float) -> None:
        """Remove those that were seen long enough ago, if this broker is the controller.

        Call it from time to time; ``now_s`` is of a clock that never goes back. Waits for the
        MetaStore however long that is away, and changes nothing when it is called meanwhile.
        """
        if self._view.controller_id != self._view.node_id or self._is_looking:
            return
        self._is_looking = True
        try:
            await self._changes.run(lambda: self._look(now_s), FOREVER)
        except KafkaError as error:
            logger.warning("tombstones kept count=%d reason=%s", len(self._seen_s), error)
        finally:
            self._is_looking = False

    async def _look(self, now_s: float) -> None:
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
