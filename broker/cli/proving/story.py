"""Story of a finding: a timeline of the processes, requests and faults that led to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.broker.cli.proving import calls as names
from barnabas.broker.cli.proving.calls import Call, Spans
from barnabas.broker.cli.proving.causes import Cause, causes_of
from barnabas.broker.cli.proving.judge import Finding, Input, Output
from barnabas.broker.cli.proving.timeline import Event

LINES_MAX: Final = 40
_AROUND_S: Final = 0.5
"""Time before and after the requests concerned whose faults belong to the story."""
_FATE_S: Final = 10.0
"""Time after the last request of a process in which its end or pause belongs to the story."""
_ERRORS_MAX: Final = 6
_DECISIVE, _CLOSE, _BESIDE = range(3)
"""Ranks of events: a long story leaves out the last rank first."""


class Story(NamedTuple):
    """Timeline of a finding and its usual causes."""

    finding: Finding
    events: Sequence[Event]
    causes: Sequence[Cause]


def story_of(
    finding: Finding, calls: Sequence[Call], events: Sequence[Event], source: str, target: str
) -> Story:
    """Return the story of a finding; ``source`` and ``target`` are the topics."""
    requests = _Requests([each for each in calls if each.process], source, target)
    ranks: dict[Event, int] = {}
    for rank, event in requests.events(finding):
        ranks[event] = min(rank, ranks.get(event, rank))
    decisive = [each for each, rank in ranks.items() if rank == _DECISIVE] or list(ranks)

    def distance_s(event: Event) -> float:
        return min(abs(event.at_s - each.at_s) for each in decisive)

    if ranks:
        first_s, last_s = min(ranks).at_s - _AROUND_S, max(ranks).at_s + _AROUND_S
        ranks |= dict.fromkeys(_fates(decisive, events), _DECISIVE)
        concerned = {each.subject for each in ranks}
        errors = requests.errors(concerned, first_s, last_s)
        for each in events:
            if first_s <= each.at_s <= last_s and (not each.subject or each.subject in concerned):
                ranks.setdefault(each, _CLOSE)
        for each in sorted(errors, key=distance_s)[:_ERRORS_MAX]:
            ranks.setdefault(each, _BESIDE)
    by_weight = sorted(ranks, key=lambda each: (ranks[each], distance_s(each), each))
    shown = sorted(by_weight[:LINES_MAX])
    if len(ranks) > LINES_MAX:
        left_out = f"{len(ranks) - LINES_MAX} less decisive events are left out"
        shown.append(Event(shown[-1].at_s, "", left_out))
    return Story(finding, shown, causes_of(finding.kind, calls))


def _fates(decisive: Iterable[Event], events: Sequence[Event]) -> Iterator[Event]:
    """Yield the kill, pause or end of each process that follows its last decisive request."""
    last_s: dict[str, float] = {}
    for each in sorted(decisive):
        last_s[each.subject] = each.at_s
    for process, at_s in last_s.items():
        later = (each for each in events if each.subject == process and each.at_s >= at_s)
        found = next(later, None)
        if found is not None and found.at_s - at_s <= _FATE_S:
            yield found


class _Requests:
    """Requests of the processes, as events in words."""

    def __init__(self, calls: Sequence[Call], source: str, target: str) -> None:
        self._calls = calls
        self._source = source
        self._target = target

    def events(self, finding: Finding) -> Iterator[tuple[int, Event]]:
        """Yield the requests about an input and its outputs, each with its rank."""
        if finding.source is not None:
            yield from self._reads(finding.source)
            yield from self._commits(finding.source, self._processes(finding))
        for output in finding.outputs:
            yield from ((_DECISIVE, each) for each in self._writes(output))

    def errors(self, processes: set[str], first_s: float, last_s: float) -> list[Event]:
        """Return errors that the processes got in a span of time."""
        return [
            Event(each.at_s, each.process, f"{each.api} got {', '.join(each.errors)}")
            for each in self._calls
            if each.errors and each.process in processes and first_s <= each.at_s <= last_s
        ]

    def _reads(self, source: Input) -> Iterator[tuple[int, Event]]:
        for each in self._calls:
            if _has(each.read, source.partition, source.offset):
                isolation = "" if each.isolation else ", read_uncommitted"
                place = f"{self._source}-{source.partition} offset {source.offset}"
                text = f"read the input at {place}{isolation}"
                yield _CLOSE, Event(each.at_s, each.process, text)
                yield from ((_BESIDE, joined) for joined in self._generation(each))

    def _generation(self, read: Call) -> Iterator[Event]:
        """Yield the membership in which a process has read."""
        joined = [
            each
            for each in self._calls
            if each.process == read.process
            and each.api in {names.JOIN, names.NEW_BEAT}
            and each.at_s <= read.at_s
            and each.generation > 0
            and not each.errors
        ]
        if joined:
            last = joined[-1]
            text = f"joined group {last.group}, generation {last.generation}"
            yield Event(last.at_s, last.process, text)

    def _writes(self, output: Output) -> Iterator[Event]:
        for index, each in enumerate(self._calls):
            if _has(each.written, output.partition, output.offset):
                place = f"{self._target}-{output.partition} offset {output.offset}"
                yield Event(
                    each.at_s, each.process, f"wrote the output at {place}, {_manner(each)}"
                )
                yield from self._end(each, self._calls[index + 1 :])

    def _end(self, write: Call, later: Sequence[Call]) -> Iterator[Event]:
        """Yield the end of a write's transaction."""
        if not write.transactional_id:
            return
        for each in later:
            is_same = each.transactional_id == write.transactional_id
            if is_same and each.api == names.END:
                verb = "commit" if each.commits else "abort"
                text = f"requested to {verb} the transaction of {each.transactional_id}"
                yield Event(each.at_s, each.process, f"{text}: {_result(each)}")
                return
            if is_same and each.api == names.INIT:
                text = f"began again with transactional ID {each.transactional_id}, epoch "
                yield Event(each.at_s, each.process, f"{text}{each.epoch}: {_result(each)}")
                return

    def _processes(self, finding: Finding) -> set[str]:
        """Return the processes that have read the input of a finding or written its outputs."""
        source = finding.source
        return {
            each.process
            for each in self._calls
            if (source is not None and _has(each.read, source.partition, source.offset))
            or any(_has(each.written, out.partition, out.offset) for out in finding.outputs)
        }

    def _commits(self, source: Input, processes: set[str]) -> Iterator[tuple[int, Event]]:
        """Yield the first commit that passes an input, and the first one of each process.

        The first one of them that succeeded is decisive.
        """
        seen = set[str]()
        rank = _DECISIVE
        for each in self._calls:
            offset = each.offsets.get(source.partition, -1)
            is_concerned = rank == _DECISIVE or each.process in processes
            if offset > source.offset and each.process not in seen and is_concerned:
                seen.add(each.process)
                how = (
                    f"in the transaction of {each.transactional_id}"
                    if each.api == names.COMMIT_IN_TRANSACTION
                    else "by OffsetCommit, outside of a transaction"
                )
                generation = f", generation {each.generation}" if each.generation >= 0 else ""
                text = f"committed offset {offset} of {self._source}-{source.partition} {how}"
                yield rank, Event(each.at_s, each.process, f"{text}{generation}: {_result(each)}")
                if each.is_answered and not each.errors:
                    rank = _CLOSE


def _has(spans: Spans, partition: int, offset: int) -> bool:
    first, last = spans.get(partition, (0, -1))
    return first <= offset <= last


def _manner(write: Call) -> str:
    if write.transactional_id:
        producer = f"producer {write.producer_id} epoch {write.epoch}"
        return f"in the transaction of {write.transactional_id} ({producer})"
    acks = "all" if write.acks < 0 else write.acks
    kind = "idempotent" if write.is_idempotent else "not idempotent"
    return f"outside of a transaction, acks={acks}, {kind}"


def _result(call: Call) -> str:
    if not call.is_answered:
        return "no response"
    return ", ".join(call.errors) or "done"
