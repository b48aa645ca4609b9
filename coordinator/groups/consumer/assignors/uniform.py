"""Uniform: every member gets as many partitions as the others, and keeps what it had.

Like Kafka's assignor of this name it promises two things. Members that want the same topics differ
by one partition at most, and no partition moves that need not. Members that want different topics
are balanced topic by topic: no member has two partitions more than another that could take one of
them, up to a bound on the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final

from barnabas.coordinator.groups.consumer.assignors.specification import (
    PartitionCount,
    Subscribers,
    all_want_the_same,
)
from barnabas.coordinator.groups.consumer.member import Partitions

ROUNDS_MAX: Final = 16
"""Passes over all topics while balancing; one or two are enough where they overlap little."""

TopicPartition = tuple[bytes, int]


def assign(subscribers: Subscribers, partition_count: PartitionCount) -> dict[str, Partitions]:
    """Keep valid partitions, assign the others, then balance."""
    if not subscribers:
        return {}
    plan = _Plan(subscribers, partition_count)
    if all_want_the_same(subscribers):
        plan.cut_to_quota()
        plan.fill_to_quota()
    else:
        plan.hand_out()
        plan.balance()
    return plan.result()


class _Plan:
    """The assignment in the making."""

    def __init__(self, subscribers: Subscribers, partition_count: PartitionCount) -> None:
        self.members = sorted(subscribers)
        self.takers: dict[bytes, list[str]] = {}
        for member_id in self.members:
            for topic_id in subscribers[member_id].topic_ids:
                self.takers.setdefault(topic_id, []).append(member_id)
        self.counts = {topic_id: partition_count(topic_id) for topic_id in self.takers}
        self.owners: dict[TopicPartition, str] = {}
        self.given: dict[str, dict[TopicPartition, None]] = {}
        """Assigned partitions by member; a dict, since its order matters."""
        for member_id in self.members:
            kept = dict.fromkeys(self._still_wanted(subscribers, member_id))
            self.given[member_id] = kept
            self.owners.update(dict.fromkeys(kept, member_id))

    def _still_wanted(self, subscribers: Subscribers, member_id: str) -> Iterator[TopicPartition]:
        """Yield the member's previous partitions that it may keep."""
        subscriber = subscribers[member_id]
        for topic_id in sorted(subscriber.topic_ids & subscriber.target.keys()):
            for partition in sorted(subscriber.target[topic_id]):
                each = (topic_id, partition)
                if partition < self.counts[topic_id] and each not in self.owners:
                    yield each

    def _free(self, topic_ids: Iterable[bytes]) -> Iterator[TopicPartition]:
        for topic_id in topic_ids:
            for partition in range(self.counts[topic_id]):
                if (topic_id, partition) not in self.owners:
                    yield topic_id, partition

    def result(self) -> dict[str, Partitions]:
        """Return the plan in the form of an assignor's result."""
        found: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in self.members}
        for (topic_id, partition), member_id in self.owners.items():
            found[member_id].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(those) for topic_id, those in topics.items()}
            for member_id, topics in found.items()
        }

    # ---------------------------------------------------------------- all members want the same

    def cut_to_quota(self) -> None:
        """Take the partitions beyond a fair share from each member.

        If the shares are uneven, the members with most partitions keep one more first.
        """
        least, rest = divmod(sum(self.counts.values()), len(self.members))
        self.quotas = dict.fromkeys(self.members, least)
        for member_id in sorted(self.members, key=lambda each: -len(self.given[each]))[:rest]:
            self.quotas[member_id] += 1
        for member_id in self.members:
            kept = self.given[member_id]
            for each in list(kept)[self.quotas[member_id] :]:
                del self.owners[each]
                del kept[each]

    def fill_to_quota(self) -> None:
        """Give each member its missing partitions."""
        free = self._free(sorted(self.counts))
        for member_id in self.members:
            missing = self.quotas[member_id] - len(self.given[member_id])
            self.owners.update(dict.fromkeys(list(islice(free, missing)), member_id))

    # ------------------------------------------------------------------- members want other topics

    def hand_out(self) -> None:
        """Give free partitions to the member with the fewest, topics with few subscribers first."""
        for topic_id in self._most_crowded_first():
            loads = [(len(self.given[each]), each) for each in self.takers[topic_id]]
            heapify(loads)
            for each in list(self._free([topic_id])):
                load, member_id = loads[0]
                self._give(each, member_id)
                heapreplace(loads, (load + 1, member_id))

    def balance(self) -> None:
        """Move partitions from the members with most to those with fewest while that helps."""
        topic_ids = [each for each in self._most_crowded_first() if len(self.takers[each]) > 1]
        for _ in range(ROUNDS_MAX):
            if not sum(self._balance_topic(topic_id) for topic_id in topic_ids):
                return

    def _balance_topic(self, topic_id: bytes) -> int:
        """Balance one topic by moving partitions between members; return the number of moves."""
        takers = self.takers[topic_id]
        movable: dict[str, list[TopicPartition]] = {member_id: [] for member_id in takers}
        for partition in range(self.counts[topic_id]):
            movable[self.owners[topic_id, partition]].append((topic_id, partition))
        least = [(len(self.given[each]), each) for each in takers]
        most = [(-len(self.given[each]), each) for each in takers if movable[each]]
        heapify(least)
        heapify(most)
        moved = 0
        while most:
            load, giver = -most[0][0], most[0][1]
            lowest, receiver = least[0]
            if lowest != len(self.given[receiver]):  # It has given since.
                heapreplace(least, (len(self.given[receiver]), receiver))
                continue
            if load - lowest <= 1:
                break
            if not movable[giver]:
                heappop(most)
                continue
            self._give(movable[giver].pop(), receiver)
            heapreplace(most, (1 - load, giver))
            heapreplace(least, (lowest + 1, receiver))
            moved += 1
        return moved

    def _most_crowded_first(self) -> list[bytes]:
        """Return topics in order: first those with many partitions for few subscribers."""

        def order(topic_id: bytes) -> tuple[float, int, bytes]:
            takers = len(self.takers[topic_id])
            return -self.counts[topic_id] / takers, takers, topic_id

        return sorted(self.takers, key=order)

    def _give(self, each: TopicPartition, member_id: str) -> None:
        holder = self.owners.get(each)
        if holder is not None:
            del self.given[holder][each]
        self.owners[each] = member_id
        self.given[member_id][each] = None
