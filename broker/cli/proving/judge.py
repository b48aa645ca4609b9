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


def is_allowed(kind: str, expectation: str) -> bool:
    """Return whether an expectation allows a kind of findings."""
    return kind in _ALLOWED[expectation]


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
        wrong = [each for each in self.findings if not is_allowed(each.kind, self.expectation)]
        return sorted(wrong, key=lambda each: order.index(each.kind))

    @property
    def is_proved(self) -> bool:
        """Whether the run had inputs and nothing is wrong."""
        return bool(self.inputs) and not self.violations


class Observed(NamedTuple):
    """Everything that a verdict is made of."""

    inputs: Sequence[Input]
    outputs: Sequence[Output]
    groups: Mapping[str, Mapping[int, int]]
    """Committed offsets by partition, of each group that has committed some during the run."""


def judge(observed: Observed, expectation: str = EXACTLY) -> Verdict:
    """Compare outputs with inputs."""
    wanted = [each for each in observed.inputs if each.is_committed]
    verdict = Verdict(len(wanted), outputs=len(observed.outputs), expectation=expectation)
    effects = gathered((name, each) for each in observed.outputs for name in each.identities)
    for each in wanted:
        found = effects.get(each.identity, [])
        if len(found) == 1:
            verdict.once += 1
        verdict.findings += _fate(each, found, observed.groups)
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
    source: Input, found: Sequence[Output], groups: Mapping[str, Mapping[int, int]]
) -> Iterator[Finding]:
    """Compare an input with its outputs, and with the offsets of each group on its own."""
    offsets = {name: each.get(source.partition, 0) for name, each in groups.items()}
    passed = [name for name, offset in offsets.items() if source.offset < offset]
    behind = [name for name in offsets if name not in passed]
    if not found and (passed or not groups):
        text = f"{_named(source)} has no output"
        yield Finding(LOST, "; ".join([text, *_places(passed, offsets)]), source)
    elif not found:
        yield Finding(UNCONSUMED, f"{_named(source)} was not consumed", source)
    elif len(found) > 1:
        places = ", ".join(f"partition {each.partition} offset {each.offset}" for each in found)
        text = f"{_named(source)} has {len(found)} outputs: {places}"
        yield Finding(TWICE, text, source, tuple(found))
    elif behind:
        text = f"{_named(source)} has an output"
        yield Finding(BEHIND, "; ".join([text, *_places(behind, offsets)]), source, tuple(found))


def _places(names: Iterable[str], offsets: Mapping[str, int]) -> list[str]:
    return [f"group {name} is at offset {offsets[name]}" for name in names]


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
