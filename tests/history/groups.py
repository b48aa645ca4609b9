"""Consume, transform, produce: committed offsets and committed outputs are one thing (O1, O2, O6).

Speaks of groups that commit their offsets in transactions, and of outputs that name their source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.history.anomalies import OFFSETS_DIFFER, PROCESSED_TWICE, UNPROCESSED, Violation
from tests.history.evidence import Evidence
from tests.history.model import COMMIT, END, TRANSACTION, UNKNOWN, OffsetCommit, Partition

GroupPlace = tuple[str, Partition]


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield everything in which inputs, offsets and outputs of a group do not agree."""
    outputs = _outputs(evidence)
    yield from _processed_twice(outputs)
    for number, operation in enumerate(evidence.history):
        if operation.kind == END and operation.commits:
            final = {(c.group, c.place): c for c in operation.commits}
            yield from _offsets_differ(evidence, number, final)
            yield from _unprocessed(evidence, final, outputs)


Outputs = dict[str, dict[str, list[tuple[str, int]]]]
"""By group and input: every committed output, and the operation that wrote it."""


def _outputs(evidence: Evidence) -> Outputs:
    found: Outputs = defaultdict(lambda: defaultdict(list))
    for number, operation, write in evidence.writes():
        if write.source and operation.commits and number in evidence.committed:
            found[operation.commits[0].group][write.source].append((write.value, number))
    return found


def _processed_twice(outputs: Outputs) -> Iterator[Violation]:
    for group, by_source in outputs.items():
        for source, found in by_source.items():
            if len(found) > 1:
                values = " and ".join(value for value, _ in found)
                text = f"{group} made {values} of {source}"
                yield Violation(PROCESSED_TWICE, text, tuple(dict.fromkeys(n for _, n in found)))


def _offsets_differ(
    evidence: Evidence, end: int, final: dict[GroupPlace, OffsetCommit]
) -> Iterator[Violation]:
    """Check that the final offsets are the last ones that were committed."""
    promised: dict[GroupPlace, tuple[int, int]] = {}
    possible: dict[GroupPlace, set[int]] = defaultdict(set)
    for number, operation in enumerate(evidence.history[:end]):
        for commit in operation.commits if operation.kind in {COMMIT, TRANSACTION} else ():
            place = commit.group, commit.place
            if number in evidence.committed:
                promised[place] = max(promised.get(place, (-1, -1)), (commit.offset, number))
            elif operation.outcome == UNKNOWN and not operation.writes:
                # Its outputs do not show it.
                possible[place].add(commit.offset)
    # Of groups whose members do not say what they commit there is nothing to compare with.
    groups = {group for group, _ in final} & {group for group, _ in promised.keys() | possible}
    for place in sorted(promised.keys() | final.keys()):
        (group, (topic, partition)) = place
        if group not in groups:
            continue
        wanted, number = promised.get(place, (-1, -1))
        told = final[place].offset if place in final else -1
        if told != wanted and not (told > wanted and told in possible[place]):
            what = "outputs without their offset" if told < wanted else "an offset without outputs"
            text = f"{group} has {told} committed of {topic}-{partition}, not {wanted}: {what}"
            yield Violation(OFFSETS_DIFFER, text, (number,) if number >= 0 else ())


def _unprocessed(
    evidence: Evidence, final: dict[GroupPlace, OffsetCommit], outputs: Outputs
) -> Iterator[Violation]:
    for (place, value), number in evidence.committed_values.items():
        offset = min(evidence.offsets_of[place, value])
        for group, by_source in outputs.items():
            commit = final.get((group, place))
            if commit is not None and offset < commit.offset and value not in by_source:
                text = f"{group} is at {commit.offset} and made nothing of {value} at {offset}"
                yield Violation(UNPROCESSED, text, (number,))
