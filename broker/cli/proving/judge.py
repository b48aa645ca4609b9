"""Judge of a run: what became of each input, by the outputs and the committed offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from barnabas.broker.admin.exchange import gathered

EXACTLY, AT_LEAST, AT_MOST = "exactly-once", "at-least-once", "at-most-once"
EXPECTATIONS: Final = (EXACTLY, AT_LEAST, AT_MOST)

LOST, TWICE, OUT_OF_ORDER = "lost", "twice", "out of order"
ABORTED, UNEXPLAINED, UNCONSUMED = "from an aborted transaction", "unexplained", "not consumed"
BEHIND = "offset behind its output"
WRONG = "wrong"

PROBLEMS_MAX: Final = 1000
"""Problems of a user's function that are kept."""
MEANINGS: Final = {
    LOST: "inputs without an output, although their offset was committed",
    TWICE: "inputs with more than one output",
    OUT_OF_ORDER: "outputs of one key in another order than their inputs",
    ABORTED: "outputs of inputs whose transaction was aborted",
    UNEXPLAINED: "outputs that no input explains",
    UNCONSUMED: "inputs that the program did not consume in time",
    WRONG: "problems that the function of the user has found",
    BEHIND: "inputs with an output whose offset was not committed: a restart would repeat them",
}
_ALLOWED: Final = {
    EXACTLY: frozenset[str](),
    AT_LEAST: frozenset({TWICE, OUT_OF_ORDER, BEHIND}),
    AT_MOST: frozenset({LOST}),
}
"""Findings that an expectation allows."""


class Input(NamedTuple):
    """A record of the input; ``is_committed``: whether its transaction was committed."""

    identity: str
    partition: int
    offset: int
    key: bytes | None
    is_committed: bool = True


class Output(NamedTuple):
    """A record of the output, as a `read_committed` consumer gets it, with the ids that it has."""

    partition: int
    offset: int
    identities: tuple[str, ...]
    text: str = ""
    """The record for people."""


class Finding(NamedTuple):
    """One thing that is wrong."""

    kind: str
    text: str
    source: Input | None = None
    outputs: tuple[Output, ...] = ()


@dataclass
class Verdict:
    """Findings of a run, and the number of inputs with exactly one output."""

    inputs: int = 0
    once: int = 0
    outputs: int = 0
    expectation: str = EXACTLY
    findings: list[Finding] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind."""
        return dict(Counter(each.kind for each in self.findings))

    @property
    def violations(self) -> list[Finding]:
        """Findings that the expectation does not allow, the worst kinds first."""
        order = list(MEANINGS)
        wrong = [each for each in self.findings if each.kind not in _ALLOWED[self.expectation]]
        return sorted(wrong, key=lambda each: order.index(each.kind))

    @property
    def is_proved(self) -> bool:
        """Whether the run had inputs and nothing is wrong."""
        return bool(self.inputs) and not self.violations


class Observed(NamedTuple):
    """Everything that a verdict is made of."""

    inputs: Sequence[Input]
    outputs: Sequence[Output]
    committed: Mapping[int, int] | None
    """Committed offsets of the group by partition, or ``None`` if no group has any."""


def judge(observed: Observed, expectation: str = EXACTLY) -> Verdict:
    """Compare outputs with inputs."""
    wanted = [each for each in observed.inputs if each.is_committed]
    verdict = Verdict(len(wanted), outputs=len(observed.outputs), expectation=expectation)
    effects = gathered((name, each) for each in observed.outputs for name in each.identities)
    for each in wanted:
        found = effects.get(each.identity, [])
        if len(found) == 1:
            verdict.once += 1
        verdict.findings += _fate(each, found, observed.committed)
    verdict.findings += _aborted(observed.inputs, effects)
    verdict.findings += _unexplained(observed.inputs, observed.outputs)
    verdict.findings += _out_of_order(wanted, effects)
    return verdict


def judge_by(problems: Iterable[str], observed: Observed, expectation: str) -> Verdict:
    """Return the verdict of a user's function, which has found ``problems``."""
    wanted = [each for each in observed.inputs if each.is_committed]
    verdict = Verdict(len(wanted), outputs=len(observed.outputs), expectation=expectation)
    verdict.findings = [Finding(WRONG, str(each)) for each in islice(problems, PROBLEMS_MAX)]
    if not verdict.findings:
        verdict.once = len(wanted)
    return verdict


def _fate(
    source: Input, found: Sequence[Output], committed: Mapping[int, int] | None
) -> Iterator[Finding]:
    is_passed = committed is None or source.offset < committed.get(source.partition, 0)
    if not found and is_passed:
        text = f"{_named(source)} has no output"
        if committed is not None:
            text += f"; the group is at offset {committed[source.partition]}"
        yield Finding(LOST, text, source)
    elif not found:
        yield Finding(UNCONSUMED, f"{_named(source)} was not consumed", source)
    elif len(found) > 1:
        places = ", ".join(f"partition {each.partition} offset {each.offset}" for each in found)
        text = f"{_named(source)} has {len(found)} outputs: {places}"
        yield Finding(TWICE, text, source, tuple(found))
    elif not is_passed:
        at = (committed or {}).get(source.partition, 0)
        text = f"{_named(source)} has an output, but the group is at offset {at}"
        yield Finding(BEHIND, text, source, tuple(found))


def _aborted(inputs: Iterable[Input], effects: Mapping[str, list[Output]]) -> Iterator[Finding]:
    """Find effects of aborted inputs; a record of a file may have been written again since."""
    inputs = list(inputs)
    committed = {each.identity for each in inputs if each.is_committed}
    for each in inputs:
        if each.identity not in committed and (found := effects.get(each.identity)):
            text = f"{_named(each)} was aborted, and has an output"
            yield Finding(ABORTED, text, each, tuple(found))


def _unexplained(inputs: Iterable[Input], outputs: Iterable[Output]) -> Iterator[Finding]:
    known = {each.identity for each in inputs}
    for output in outputs:
        if not known.intersection(output.identities):
            place = f"partition {output.partition} offset {output.offset}"
            text = f"no input explains {output.text} at {place}"
            yield Finding(UNEXPLAINED, text, None, (output,))


def _out_of_order(
    inputs: Iterable[Input], effects: Mapping[str, list[Output]]
) -> Iterator[Finding]:
    """Compare the first outputs of the inputs of a key, in each partition of the output."""
    last: dict[tuple[bytes, int], tuple[Input, Output]] = {}
    for each in sorted(inputs, key=lambda each: (each.partition, each.offset)):
        found = effects.get(each.identity)
        if each.key is None or not found:
            continue
        first = min(found, key=lambda output: output.offset)
        before = last.get((each.key, first.partition))
        if before is not None and before[1].offset > first.offset:
            text = (
                f"{_named(each)} came after {before[0].identity}, and its output at offset "
                f"{first.offset} precedes that at {before[1].offset}"
            )
            yield Finding(OUT_OF_ORDER, text, each, (first, before[1]))
        else:
            last[each.key, first.partition] = each, first


def _named(source: Input) -> str:
    return f"input {source.identity} (partition {source.partition} offset {source.offset})"
