"""Exactly-once pipelines: which group is read, by which transactional ids, to write which topics.

Found from the offsets that transactions commit. In memory only, and of each thing so many at most:
the pipeline that was not at work for the longest time gives way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.topic_names import INTERNAL

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import Transaction

PIPELINES_MOST: Final = 100
IDS_MOST: Final = 50
"""Maximum number of transactional ids remembered of one pipeline; its first ids are dropped."""
OUTPUTS_MOST: Final = 50
LOOKED_AT_MOST: Final = 256
"""Maximum number of a transaction's partitions that are read when it ends."""
NAME_MOST: Final = 256
"""Groups and ids with longer names are left out."""
SLOT_MS: Final = 10_000
SLOTS: Final = 7
"""Number of slots, of which the last is not full yet: rates are of a minute."""


class Pipeline:
    """Statistics of one group whose offsets are committed in transactions."""

    __slots__ = ("aborts", "commits", "group", "ids", "last_commit_ms", "outputs", "recent", "took")

    def __init__(self, group: str) -> None:
        self.group = group
        self.ids: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.commits = 0
        self.aborts = 0
        self.last_commit_ms = -1
        self.took = -1
        """Milliseconds from the beginning of the last transaction that was committed to its end."""
        self.recent: deque[tuple[int, int]] = deque(maxlen=SLOTS)
        """Commits of the last spans of ten seconds."""

    def commits_per_s(self, now_ms: int) -> float:
        """Return the average number of transactions committed per second in the last minute."""
        now = now_ms // SLOT_MS
        whole = sum(count for slot, count in self.recent if now - SLOTS < slot < now)
        return whole * 1000 / SLOT_MS / (SLOTS - 1)


class Pipelines:
    """All pipelines that were at work since the start."""

    def __init__(self) -> None:
        self._by_group: dict[str, Pipeline] = {}
        self._by_id: dict[str, Pipeline] = {}

    def all(self) -> list[Pipeline]:
        """Return the present pipelines."""
        return list(self._by_group.values())

    def of_id(self, transactional_id: str) -> Pipeline | None:
        """Return the pipeline of the newest offset commit by an ID, or None."""
        return self._by_id.get(transactional_id)

    def forget(self, is_lost: Callable[[str], bool]) -> None:
        """Drop transactional IDs that this broker lost, and pipelines without any other."""
        for key in [key for key in self._by_id if is_lost(key)]:
            del self._by_id.pop(key).ids[key]
        for pipeline in self.all():
            if not pipeline.ids:
                del self._by_group[pipeline.group]

    def reads(self, group: str, transactional_id: str) -> None:
        """Register that a transaction commits offsets of a group."""
        known = self._by_id.get(transactional_id)
        if known is not None and known.group == group:
            return
        if len(group) > NAME_MOST or len(transactional_id) > NAME_MOST:
            return
        pipeline = self._by_group.pop(group, None) or Pipeline(group)
        self._by_group[group] = pipeline
        if known is not None:
            known.ids.pop(transactional_id, None)
        pipeline.ids[transactional_id] = None
        self._by_id[transactional_id] = pipeline
        if len(pipeline.ids) > IDS_MOST:
            oldest = next(iter(pipeline.ids))
            del pipeline.ids[oldest], self._by_id[oldest]
        if len(self._by_group) > PIPELINES_MOST:
            gone = min(self.all(), key=lambda each: (each is pipeline, each.last_commit_ms))
            del self._by_group[gone.group]
            for each in gone.ids:
                del self._by_id[each]

    def decided(self, transaction: Transaction) -> None:
        """Register a transaction that is committed or aborted."""
        pipeline = self._by_id.get(transaction.transactional_id)
        if pipeline is None or not transaction.partitions:
            return
        if not transaction.commits:
            pipeline.aborts += 1
            return
        now_ms = transaction.last_update_ms
        pipeline.commits += 1
        pipeline.last_commit_ms, pipeline.took = now_ms, max(now_ms - transaction.start_ms, 0)
        slot, recent = now_ms // SLOT_MS, pipeline.recent
        if recent and recent[-1][0] == slot:
            recent[-1] = slot, recent[-1][1] + 1
        else:
            recent.append((slot, 1))
        outputs = pipeline.outputs
        for topic, _ in islice(transaction.partitions, LOOKED_AT_MOST):
            if topic not in outputs and topic not in INTERNAL and len(outputs) < OUTPUTS_MOST:
                outputs[topic] = None
