"""Committed offsets of groups over time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container

from tests.history.evidence import Evidence
from tests.history.groups import GroupPlace
from tests.history.model import OK


class Committed:
    """Highest offset that was known to be committed, by time.

    ``kinds``: kinds of the operations that prove an offset, from their end on.
    """

    def __init__(self, evidence: Evidence, kinds: Container[str]) -> None:
        found: dict[GroupPlace, list[tuple[int, int, int]]] = defaultdict(list)
        for number, operation in enumerate(evidence.history):
            if operation.kind in kinds and operation.outcome == OK:
                for each in operation.commits:
                    entry = operation.completed_ns, each.offset, number
                    found[each.group, each.place].append(entry)
        self._known: dict[GroupPlace, list[tuple[int, int, int]]] = {}
        for place, entries in found.items():
            rising: list[tuple[int, int, int]] = []
            for entry in sorted(entries):
                if not rising or entry[1] > rising[-1][1]:
                    rising.append(entry)
            self._known[place] = rising

    def before(self, place: GroupPlace, at_ns: int) -> tuple[int, int] | None:
        """Return the highest offset at a time, and the operation that proves it."""
        known = self._known.get(place, [])
        at = bisect_right(known, at_ns, key=lambda entry: entry[0])
        return known[at - 1][1:] if at else None

    def all_before(self, at_ns: int) -> dict[GroupPlace, tuple[int, int]]:
        """Return the same of each group and partition that had an offset at that time."""
        found = {place: self.before(place, at_ns) for place in self._known}
        return {place: known for place, known in found.items() if known is not None}
