"""Circles of dependencies: by the order of writes, by reads of writes, and by time.

Only reads may not run in a circle; see `anomalies` for what is normal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.history.anomalies import (
    CIRCULAR_FLOW,
    CIRCULAR_FLOW_PROCESS,
    CIRCULAR_FLOW_REALTIME,
    NOTE_CIRCULAR_FLOW,
    NOTE_DIRTY_WRITE,
    NOTE_DIRTY_WRITE_PROCESS,
    NOTE_DIRTY_WRITE_REALTIME,
    Violation,
)
from tests.history.evidence import Evidence
from tests.history.graph import Graph
from tests.history.model import MOVED, NOT_KNOWN, OK

Dependencies = Graph[int, str]


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield circles of reads, each in the first of the three classes that it is in."""
    reads = _read_dependencies(evidence)
    known: set[int] = set()
    for kind, graph in (
        (CIRCULAR_FLOW, reads),
        (CIRCULAR_FLOW_PROCESS, reads | _process_order(evidence)),
        (CIRCULAR_FLOW_REALTIME, reads | _real_time_order(evidence)),
    ):
        for circle in graph.cycles():
            operations = tuple(edge.source for edge in circle)
            if known.isdisjoint(operations):
                text = "; ".join(f"#{e.source} before #{e.target}: {e.label}" for e in circle)
                yield Violation(kind, text, operations)
            known.update(operations)


def notes(evidence: Evidence) -> dict[str, int]:
    """Count the circles that are normal: parts of the graph that have any."""
    writes = _write_dependencies(evidence)
    graphs = {
        NOTE_DIRTY_WRITE: writes,
        NOTE_DIRTY_WRITE_PROCESS: writes | _process_order(evidence),
        NOTE_DIRTY_WRITE_REALTIME: writes | _real_time_order(evidence),
        NOTE_CIRCULAR_FLOW: writes | _read_dependencies(evidence),
    }
    return {name: sum(1 for _ in graph.components()) for name, graph in graphs.items()}


def _write_dependencies(evidence: Evidence) -> Dependencies:
    graph: Dependencies = Graph()
    for (topic, partition), log in evidence.logs().items():
        for (_, before), (offset, after) in pairwise(log):
            graph.add(before, after, f"wrote {topic}-{partition} before offset {offset}")
    return graph


def _read_dependencies(evidence: Evidence) -> Dependencies:
    graph: Dependencies = Graph()
    for number, _operation, read in evidence.reads():
        found = evidence.writers.get((read.place, read.value))
        if found is not None and number in evidence.committed and found[0] in evidence.committed:
            graph.add(found[0], number, f"its {read.value} was read")
    return graph


def _process_order(evidence: Evidence) -> Dependencies:
    graph: Dependencies = Graph()
    last: dict[str, int] = {}
    for number, operation in enumerate(evidence.history):
        if number in evidence.committed and operation.kind != MOVED:
            before = last.get(operation.process)
            if before is not None:
                graph.add(before, number, f"{operation.process} did it before")
            last[operation.process] = number
    return graph


def _real_time_order(evidence: Evidence) -> Dependencies:
    """An edge from each operation that was complete before another one started.

    Operations that were complete before the start of one of those have no edge of their own.
    """
    graph: Dependencies = Graph()
    begins: dict[int, list[int]] = defaultdict(list)
    completions: dict[int, list[int]] = defaultdict(list)
    for number, operation in enumerate(evidence.history):
        if number in evidence.committed and operation.kind != MOVED:
            begins[operation.invoked_ns].append(number)
            # The end of an operation with an unknown outcome is unknown.
            if operation.outcome == OK and operation.completed_ns != NOT_KNOWN:
                completions[operation.completed_ns].append(number)
    complete: set[int] = set()
    before: dict[int, set[int]] = {}
    for at_ns in sorted(begins.keys() | completions.keys()):
        for number in begins[at_ns]:
            before[number] = set(complete)
            for earlier in complete:
                graph.add(earlier, number, "was complete before it began")
        for number in completions[at_ns]:
            complete -= before.pop(number, set())
            complete.add(number)
    return graph
