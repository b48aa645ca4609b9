"""Anomalies of committed offsets: as coordinators return them, and as their log has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.history.anomalies import (
    COMMIT_NOT_LOGGED,
    COMMIT_UNSEEN,
    LOG_DIFFERS,
    LOG_WENT_BACK,
    OFFSET_WENT_BACK,
    OFFSETS_CHANGED,
    REFUSED_COMMIT_LOGGED,
    Violation,
)
from tests.history.committed import Committed
from tests.history.evidence import Evidence
from tests.history.groups import GroupPlace
from tests.history.model import (
    COMMIT,
    END,
    FAILED,
    LOGGED,
    LOOK,
    NOT_KNOWN,
    OK,
    OUTAGE,
    TRANSACTION,
    Operation,
)
from tests.history.reads import named


def find(evidence: Evidence) -> Iterator[Violation]:
    """Yield everything that is wrong with committed offsets."""
    yield from _lower(evidence, LOOK, OFFSET_WENT_BACK, "{place} went from {before} to {now}")
    text = "{place}: {now} was returned, {before} had been acknowledged"
    yield from _lower(evidence, COMMIT, COMMIT_UNSEEN, text)
    yield from _changed(evidence)
    for number, operation in enumerate(evidence.history):
        if operation.kind == LOGGED:
            yield from _log(number, operation)
            yield from _commits_in_log(evidence, number, operation)


def _lower(evidence: Evidence, kind: str, anomaly: str, text: str) -> Iterator[Violation]:
    """Find each LOOK with a lower offset than an operation of ``kind`` that ended before the LOOK.

    Where the two overlap, either may have the lower offset.
    """
    committed = Committed(evidence, {kind})
    for number, operation in enumerate(evidence.history):
        if operation.kind != LOOK:
            continue
        found = {(c.group, c.place): c.offset for c in operation.commits}
        for place, (before, earlier) in committed.all_before(operation.invoked_ns).items():
            now = found.get(place, NOT_KNOWN if place[0] in operation.groups else before)
            if now < before:
                said = text.format(place=_named(place), now=now, before=before)
                yield Violation(anomaly, said, (earlier, number))


def _changed(evidence: Evidence) -> Iterator[Violation]:
    """Find offsets that changed from one END to the next without a commit."""
    before: dict[str, tuple[int, dict[GroupPlace, int]]] = {}
    for number, operation in enumerate(evidence.history):
        if operation.kind in {COMMIT, TRANSACTION}:
            for each in operation.commits:
                before.pop(each.group, None)
        if operation.kind != END:
            continue
        found: dict[str, dict[GroupPlace, int]] = defaultdict(dict)
        for each in operation.commits:
            found[each.group][each.group, each.place] = each.offset
        for group, offsets in found.items():
            earlier, old = before.get(group, (number, offsets))
            for place in sorted(old.keys() | offsets.keys()):
                one, other = old.get(place, NOT_KNOWN), offsets.get(place, NOT_KNOWN)
                if one != other:
                    text = f"{_named(place)} was {one}, and is {other} without a commit"
                    yield Violation(OFFSETS_CHANGED, text, (earlier, number))
            before[group] = number, offsets


def _log(number: int, operation: Operation) -> Iterator[Violation]:
    """In the log no offset goes back, and the last one is what the coordinator returns."""
    highest: dict[GroupPlace, int] = {}
    last: dict[GroupPlace, int] = {}
    for each in operation.logged:
        place = each.group, each.place
        if each.group not in operation.groups:
            continue
        if each.offset == NOT_KNOWN:
            last.pop(place, None)
            continue
        if each.offset < highest.get(place, 0):
            text = f"{_named(place)}: {each.offset} stands behind {highest[place]}"
            yield Violation(LOG_WENT_BACK, text, (number,))
        highest[place] = last[place] = each.offset
    found = {(c.group, c.place): c.offset for c in operation.commits}
    for place in sorted(last.keys() | found.keys()):
        in_log, returned = last.get(place, NOT_KNOWN), found.get(place, NOT_KNOWN)
        if in_log != returned:
            text = f"{_named(place)} is {in_log} in the log, and {returned} was returned"
            yield Violation(LOG_DIFFERS, text, (number,))


def _commits_in_log(evidence: Evidence, log: int, logged: Operation) -> Iterator[Violation]:
    """Each acknowledged commit that has a name is in the log, and no refused one."""
    written = {(c.metadata, c.group, c.place): c.offset for c in logged.logged}
    outages = [each for each in evidence.history if each.kind == OUTAGE]
    for number, operation in enumerate(evidence.history):
        if operation.kind != COMMIT or not operation.metadata:
            continue
        for each in operation.commits:
            if each.group not in logged.groups:
                continue
            offset = written.get((operation.metadata, each.group, each.place))
            what = f"{operation.metadata} of {_named((each.group, each.place))}"
            if operation.outcome == OK and offset != each.offset:
                yield Violation(COMMIT_NOT_LOGGED, f"{what} is not in the log", (number, log))
            # A library sends a commit again after a broken connection: over an outage the error may
            # be that of the second request, with the same name.
            is_over_outage = any(
                operation.invoked_ns <= outage.completed_ns
                and operation.completed_ns >= outage.invoked_ns
                for outage in outages
            )
            if operation.outcome == FAILED and offset is not None and not is_over_outage:
                yield Violation(REFUSED_COMMIT_LOGGED, f"{what} is in the log", (number, log))


def _named(place: GroupPlace) -> str:
    return f"{place[0]}:{named(place[1])}"
