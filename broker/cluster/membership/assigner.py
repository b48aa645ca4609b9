"""Who should lead what: a plan made of the members of a cluster and what they lead now.

Rules of this file:

* A partition that nobody live leads is assigned at once. One that is led stays where it is, but to
  leave a broker that drains, and to level the load when that differs by two or more. So the cluster
  that a plan leads to has no plan.
* A wish counts as if it were met already, and is let be while the wanted broker takes partitions.
* A partition that is pinned to a broker which takes partitions is not moved from there, and returns
  to it, as to Kafka's preferred leader. Without levelling it returns only when it has to move.
* Where all that could take partitions are cordoned, they are given those that nobody would lead
  otherwise, and keep what they lead: nothing goes back to a broker that was emptied.
* All partitions count alike. Of brokers that lead as many, the one is chosen whose hash with the
  partition is the highest (rendezvous hashing): partitions of one topic are spread.
* Who leads a partition carries out a wish; the store compares epochs. A plan made of an old picture
  does no harm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.storage.replicated.cluster_index import Assignment, Led, Member

MOVES_AT_ONCE: Final = 512
"""So many partitions, at most, are on their way from one live broker to another. Few of them are
without a leader at a time (``handovers.py``). A plan is a commit, and a look of every broker."""

_MASK: Final = (1 << 64) - 1


class Plan(NamedTuple):
    """What to ask of the store."""

    assignments: Sequence[Assignment]
    wishes: Mapping[int, int | None]
    """The nodes that are to lead partitions, by id; None: its wish is void."""

    @property
    def is_empty(self) -> bool:
        """Whether everything is as it should be, or on its way there."""
        return not self.assignments and not self.wishes


class Rules(NamedTuple):
    """What operators want of plans."""

    levels: bool = True
    """Whether partitions are moved to level the load, or to where they are pinned.

    Else they stay where they are led.
    """
    cordoned: frozenset[int] = frozenset()
    """Nodes that are to lead nothing, as if they drained, while any other takes partitions."""
    settled: frozenset[int] = frozenset()
    """Nodes of which is settled whether they are cordoned, whatever they say of themselves."""

    def all_cordoned(self, said: frozenset[int]) -> frozenset[int]:
        """Return the nodes that are to lead nothing; ``said``: those that say so of themselves."""
        return (said - self.settled) | self.cordoned


def plan(
    members: Iterable[Member],
    led: Iterable[Led],
    *,
    moves_at_once: int = MOVES_AT_ONCE,
    rules: Rules = Rules(),  # noqa: B008  It is immutable.
) -> Plan:
    """Plan who leads what; ``led`` are all partitions that there are."""
    members = list(members)
    if all(each.is_draining or each.node_id in rules.cordoned for each in members):
        # There is nobody else to lead anything.
        return _Planner(members, moves_at_once, levels=False).plan(led)
    takers = [
        each._replace(is_draining=True) if each.node_id in rules.cordoned else each
        for each in members
    ]
    return _Planner(takers, moves_at_once, levels=rules.levels).plan(led)


class _Planner:
    """One plan while it is made."""

    def __init__(self, members: Iterable[Member], moves_at_once: int, *, levels: bool) -> None:
        live = {member.session: member for member in members}
        self._nodes = {session: member.node_id for session, member in live.items()}
        """Of all live sessions."""
        self._takers = {
            member.node_id: session for session, member in live.items() if not member.is_draining
        }
        """The sessions that take partitions, by their node."""
        self._loads = dict.fromkeys(sorted(self._takers), 0)
        """How many partitions each of them leads once everything is on its way."""
        self._moves_left = moves_at_once
        self._levels = levels
        self._assignments: list[Assignment] = []
        self._wishes: dict[int, int | None] = {}
        self._resting: defaultdict[int, list[int]] = defaultdict(list)
        """Partitions by their leader that are not on their way anywhere, nor pinned there."""
        self._orphans: list[Led] = []
        """Those that nobody live leads, and nobody is to."""
        self._leaving: list[tuple[int, int | None]] = []
        """Partitions of brokers that take none, with the node that they are pinned to."""
        self._returning: list[tuple[int, int]] = []
        """Partitions of others, with the node that they are pinned to: counted there, as above."""

    def plan(self, led: Iterable[Led]) -> Plan:
        """See ``plan`` of the module."""
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
        """Count a partition where it is, or will be; or add it to one of the lists."""
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
                # The store takes back a wish that this meets.
                is_wish_void = led.wanted_node not in {None, heir}
        elif wanted is not None and wanted != leader:
            self._loads[wanted] += 1
            self._moves_left -= 1
        elif leader not in self._takers:
            if pinned is not None:
                self._loads[pinned] += 1
            self._leaving.append((led.partition_id, pinned))
            # A new wish takes the place of the void one, unless nobody can have it now.
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
        """Have a partition go where it is pinned, or to any other, if that is not one too many."""
        if self._moves_left > 0:
            to = self._least_loaded(partition_id) if pinned is None else pinned
            self._wish(partition_id, to)

    def _wish(self, partition_id: int, node_id: int) -> None:
        self._wishes[partition_id] = node_id
        self._moves_left -= 1

    def _least_loaded(self, partition_id: int) -> int:
        """Choose a node that takes one more, and count it there."""
        least = min(self._loads.values())
        candidates = [node_id for node_id, load in self._loads.items() if load == least]
        chosen = max(candidates, key=lambda node_id: _score(partition_id, node_id))
        self._loads[chosen] += 1
        return chosen

    def _level(self) -> None:
        """Have those who lead most give to those who lead least, while that is two less.

        What they give is of all topics: in an order that has nothing to do with that of the ids.
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
                # Once: with ten thousand partitions a choice for each move takes seconds.
                self._resting[giver].sort(key=lambda partition_id: _score(partition_id, giver))
                mixed.add(giver)
            moved = self._resting[giver].pop()
            self._loads[giver] -= 1
            self._loads[taker] += 1
            self._wish(moved, taker)


def _score(partition_id: int, node_id: int) -> int:
    """Mix two ids to a number that is as good as drawn, and the same everywhere (SplitMix64)."""
    mixed = (partition_id * 0x9E3779B97F4A7C15 + node_id * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
