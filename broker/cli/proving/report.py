"""Verdict of a run as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.run import Proof

_SHOWN: Final = 3
"""Findings of each kind that are shown."""


def lines(proof: Proof) -> Iterator[str]:
    """Yield the verdict as lines."""
    verdict = proof.verdict
    kinds = _counted([each.fault.kind for each in proof.schedule])
    yield f"{verdict.inputs} inputs, {verdict.outputs} outputs, {proof.took_s:.0f} s"
    yield f"faults, seed {proof.options.seed}: {kinds or 'none'}"
    if proof.ended:
        yield f"processes that ended by themselves: {len(proof.ended)}"
    yield f"exactly one effect: {verdict.once}"
    wrong = {each.kind for each in verdict.violations}
    for kind, count in verdict.counts.items():
        note = "" if kind in wrong else f" (allowed: {verdict.expectation})"
        yield f"{kind}: {count}, {judge.MEANINGS[kind]}{note}"
        shown = [each for each in verdict.findings if each.kind == kind][:_SHOWN]
        yield from (f"  {each.text}" for each in shown)
        if count > _SHOWN:
            yield f"  and {count - _SHOWN} more"
    yield "PROVED" if verdict.is_proved else "NOT PROVED"


def _counted(names: list[str]) -> str:
    return ", ".join(f"{names.count(each)} {each}" for each in dict.fromkeys(names))
