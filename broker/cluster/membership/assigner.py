"""Planner of leaders: assigns partitions to the members of a cluster, from what they lead now.

Rules of this file:

* A partition without a live leader is assigned at once. A partition with one moves only away from a
  draining broker, or to level the load if it differs by two or more. So the state that a plan leads
  to needs no further plan.
* A wish counts as if it were met already, and stays while the wanted broker takes partitions.
* A partition that is pinned to a broker that takes partitions stays there and returns there, as to
  Kafka's preferred leader. Without levelling it returns only when it has to move.
* If all possible brokers are cordoned, they get the partitions without a leader and keep those that
  they lead. No partition returns to a broker that was emptied.
* All partitions count alike. Among equally loaded brokers the one with the highest hash of broker
  and partition is chosen (rendezvous hashing), which spreads the partitions of one topic.
* The partition's leader carries out a wish, and the store compares epochs. So a plan from an old
  snapshot does no harm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.storage.replicated.cluster_index import Assignment, Led, Member

MOVES_AT_ONCE: Final = 512
"""Maximum number of partitions that move between live brokers at a time. Few of them are without a
leader at once (``handovers.py``). A plan costs one commit and one poll of every broker."""

_MASK: Final = (1 << 64) - 1


class Plan(NamedTuple):
    """Assignments and wishes for the store."""

    assignments: Sequence[Assignment]
    wishes: Mapping[int, int | None]
    """Wanted node by partition ID, or None to withdraw a wish."""

    @property
    def is_empty(self) -> bool:
        """Whether no partition needs an assignment or a changed wish."""
        return not self.assignments and not self.wishes


class Rules(NamedTuple):
    """Operators' settings for plans."""

    levels: bool = True
    """Whether partitions move to level the load, and to the broker that they are pinned to.
    Otherwise partitions stay at their leader."""
    cordoned: frozenset[int] = frozenset()
    """Nodes that must not lead partitions, as if they were draining, while other nodes take
    them."""
    settled: frozenset[int] = frozenset()
    """Nodes whose cordon is set by the cluster, so that their own configuration does not count."""

    def all_cordoned(self, by_configuration: frozenset[int]) -> frozenset[int]:
        """Return all cordoned nodes; ``by_configuration`` are those that cordon themselves."""
        return (by_configuration - self.settled) | self.cordoned


def plan(
    members: Iterable[Member],
    led: Iterable[Led],
    *,
    moves_at_once: int = MOVES_AT_ONCE,
    rules: Rules = Rules(),  # noqa: B008  It is immutable.
) -> Plan:
    """Plan the leaders of ``led``, which must be all partitions."""
    members = list(members)
    if all(each.is_draining or each.node_id in rules.cordoned for each in members):
        # No other node could lead partitions.
        return _Planner(members, moves_at_once, levels=False).plan(led)
    takers = [
        each._replace(is_draining=True) if each.node_id in rules.cordoned else each
        for each in members
    ]
    return _Planner(takers, moves_at_once, levels=rules.levels).plan(led)


class _Planner:
    """State of one plan under construction."""

    def __init__(self, members: Iterable[Member], moves_at_once: int, *, levels: bool) -> None:
        live = {member.session: member for member in members}
        self._nodes = {session: member.node_id for session, member in live.items()}
        """Node IDs of all live sessions."""
        self._takers = {
            member.node_id: session for session, member in live.items() if not member.is_draining
        }
        """Sessions that take partitions, by node ID."""
        self._loads = dict.fromkeys(sorted(self._takers), 0)
        """Number of partitions that each taker leads once all moves are done."""
        self._moves_left = moves_at_once
        self._levels = levels
        self._assignments: list[Assignment] = []
        self._wishes: dict[int, int | None] = {}
        self._resting: defaultdict[int, list[int]] = defaultdict(list)
        """Partitions by leader that neither move nor are pinned."""
        self._orphans: list[Led] = []
        """Partitions without a live leader and without a wanted or pinned node."""
        self._leaving: list[tuple[int, int | None]] = []
        """Partitions to move away from brokers that take no partitions, each with the node that it
        is pinned to, or None."""
        self._returning: list[tuple[int, int]] = []
        """Partitions of other brokers, with the node that they are pinned to; the load counts them
        there."""

    def plan(self, led: Iterable[Led]) -> Plan:
        """Return the plan; see ``plan`` of the module."""
        for each in led:
            self._sort(each)
        if self._takers:
            for each in self._orphans:
                self._assign(each, self._least_loaded(each.partition_id))
            for partition_id, node_id in [*self._leaving, *self._returning]:
                self._move(partition_id, node_id)
            if self._levels:
                self._level()
        return Plan(self._assignments, self._wishes)

    def _sort(self, led: Led) -> None:
        """Count a partition where it is or will be, or add it to one of the lists."""
        leader = None if led.session is None else self._nodes.get(led.session)
        wanted = led.wanted_node if led.wanted_node in self._takers else None
        pinned = led.pinned_node if led.pinned_node in self._takers else None
        is_wish_void = led.wanted_node is not None and (wanted is None or wanted == leader)
        if leader is None:
            heir = wanted if pinned is None else pinned
            if heir is None:
                self._orphans.append(led)
            else:
                self._loads[heir] += 1
                self._assign(led, heir)
                # The store withdraws a wish that this assignment meets.
                is_wish_void = led.wanted_node not in {None, heir}
        elif wanted is not None and wanted != leader:
            self._loads[wanted] += 1
            self._moves_left -= 1
        elif leader not in self._takers:
            if pinned is not None:
                self._loads[pinned] += 1
            self._leaving.append((led.partition_id, pinned))
            # A new wish replaces the void one, unless no node can take the partition now.
            is_wish_void = is_wish_void and not self._takers
        elif pinned is not None and pinned != leader and self._levels:
            self._loads[pinned] += 1
            self._returning.append((led.partition_id, pinned))
            is_wish_void = False
        else:
            self._loads[leader] += 1
            if pinned is None:
                self._resting[leader].append(led.partition_id)
        if is_wish_void:
            self._wishes[led.partition_id] = None

    def _assign(self, led: Led, node_id: int) -> None:
        self._assignments.append(Assignment(led.partition_id, self._takers[node_id], led.epoch))

    def _move(self, partition_id: int, pinned: int | None) -> None:
        """Wish for the pinned node or the least loaded one, within the limit of moves."""
        if self._moves_left > 0:
            to = self._least_loaded(partition_id) if pinned is None else pinned
            self._wish(partition_id, to)

    def _wish(self, partition_id: int, node_id: int) -> None:
        self._wishes[partition_id] = node_id
        self._moves_left -= 1

    def _least_loaded(self, partition_id: int) -> int:
        """Choose the least loaded node for one more partition, and count it there."""
        least = min(self._loads.values())
        candidates = [node_id for node_id, load in self._loads.items() if load == least]
        chosen = max(candidates, key=lambda node_id: _score(partition_id, node_id))
        self._loads[chosen] += 1
        return chosen

    def _level(self) -> None:
        """Move partitions from the most to the least loaded node until their loads differ by one at
        most.

        The moved partitions are chosen in a hashed order, so they spread over all topics.
        """
        mixed: set[int] = set()
        while self._moves_left > 0:
            givers = [node_id for node_id in self._loads if self._resting[node_id]]
            if not givers:
                return
            giver = max(givers, key=lambda node_id: self._loads[node_id])
            taker = min(self._loads, key=lambda node_id: self._loads[node_id])
            if self._loads[giver] - self._loads[taker] < 2:
                return
            if giver not in mixed:
                # Sort once: a choice for each move takes seconds with ten thousand partitions.
                self._resting[giver].sort(key=lambda partition_id: _score(partition_id, giver))
                mixed.add(giver)
            moved = self._resting[giver].pop()
            self._loads[giver] -= 1
            self._loads[taker] += 1
            self._wish(moved, taker)


def _score(partition_id: int, node_id: int) -> int:
    """Return a hash of the two IDs that is the same at every broker (SplitMix64)."""
    mixed = (partition_id * 0x9E3779B97F4A7C15 + node_id * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
