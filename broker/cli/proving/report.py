"""Verdict of a run as text, JSON and JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.run import Options, Proof
from barnabas.broker.cli.proving.story import Story

_SHOWN: Final = 3
"""Findings of each kind that are shown as text."""
_FINDINGS_MAX: Final = 1000
"""Findings in JSON."""


class Failure(NamedTuple):
    """Run without a verdict: nothing was tried, or its broker or a command failed."""

    options: Options
    reason: str
    output: str = ""
    """End of the program's output."""


def lines(proof: Proof) -> Iterator[str]:
    """Yield the verdict as lines."""
    verdict = proof.verdict
    kinds = _counted([each.fault.kind for each in proof.performed])
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
    if verdict.outputs and verdict.counts.get(judge.UNEXPLAINED) == verdict.outputs:
        yield "no output has an id: see --id, or --judge for outputs without one"
    if proof.story is not None:
        yield from _story_lines(proof.story)
    yield "PROVED" if verdict.is_proved else "NOT PROVED"


def _story_lines(story: Story) -> Iterator[str]:
    if story.events:
        yield "how it happened:"
        yield from (f"  {e.at_s:8.3f} s  {e.subject:<4} {e.text}" for e in story.events)
    for number, cause in enumerate(story.causes):
        yield f"{'also possible' if number else 'usual cause'}: {cause.text}"
        yield f"  see {cause.page}"


def _counted(names: list[str]) -> str:
    return ", ".join(f"{names.count(each)} {each}" for each in dict.fromkeys(names))


def as_json(proof: Proof) -> dict[str, Any]:
    """Return the verdict for JSON."""
    verdict, options = proof.verdict, proof.options
    story = proof.story
    return {
        "proved": verdict.is_proved,
        "reason": None,
        "expectation": verdict.expectation,
        "seed": options.seed,
        "seconds": round(proof.took_s, 3),
        "inputs": verdict.inputs,
        "outputs": verdict.outputs,
        "exactly_one_effect": verdict.once,
        "counts": verdict.counts,
        "faults": [{"at_s": each.at_s, **_drawn(each.fault._asdict())} for each in proof.performed],
        "ended": [{"process": name, "exit_code": code} for name, code in proof.ended],
        "findings": [_finding(each) for each in verdict.findings[:_FINDINGS_MAX]],
        "story": None
        if story is None
        else {
            "finding": _finding(story.finding),
            "events": [
                {"at_s": round(each.at_s, 3), "process": each.subject, "text": each.text}
                for each in story.events
            ],
            "causes": [
                {"name": each.name, "text": each.text, "page": each.page} for each in story.causes
            ],
        },
    }


def failure_as_json(failure: Failure) -> dict[str, Any]:
    """Return the reason of a run without a verdict for JSON."""
    return {
        "proved": False,
        "reason": failure.reason,
        "output": failure.output,
        "expectation": failure.options.expectation,
        "seed": failure.options.seed,
    }


def _drawn(fault: dict[str, Any]) -> dict[str, Any]:
    return {name: fault[name] for name in ("kind", "seconds", "client", "how") if fault[name]}


def _finding(found: judge.Finding) -> dict[str, Any]:
    source = found.source
    return {
        "kind": found.kind,
        "text": found.text,
        "input": None
        if source is None
        else {"id": source.identity, "partition": source.partition, "offset": source.offset},
        "outputs": [{"partition": each.partition, "offset": each.offset} for each in found.outputs],
    }


def as_junit(proof: Proof) -> str:
    """Return the verdict as JUnit XML, with a test case for each kind of finding."""
    verdict = proof.verdict
    wrong = {each.kind for each in verdict.violations}
    cases = []
    for kind in judge.MEANINGS:
        name = quoteattr(f"no input or output is {kind}")
        if kind not in wrong:
            cases.append(f"  <testcase classname='barnabas.prove' name={name}/>")
            continue
        message = quoteattr(f"{verdict.counts[kind]} {judge.MEANINGS[kind]}")
        has_story = proof.story is not None and proof.story.finding.kind == kind
        words = [each.text for each in verdict.findings if each.kind == kind][:_SHOWN]
        if proof.story is not None and has_story:
            words += _story_lines(proof.story)
        text = escape("\n".join(map(_printable, words)))
        cases.append(
            f"  <testcase classname='barnabas.prove' name={name}>\n"
            f"    <failure message={message}>{text}</failure>\n  </testcase>"
        )
    return _suite(cases, f"failures='{len(wrong)}' time='{proof.took_s:.3f}'")


def failure_as_junit(failure: Failure) -> str:
    """Return JUnit XML with one test case, whose error is the reason of a missing verdict."""
    text = escape("\n".join(map(_printable, failure.output.splitlines())))
    case = (
        "  <testcase classname='barnabas.prove' name='the run has a verdict'>\n"
        f"    <error message={quoteattr(_printable(failure.reason))}>{text}</error>\n  </testcase>"
    )
    return _suite([case], "failures='0' errors='1'")


def _suite(cases: Sequence[str], counts: str) -> str:
    head = f"<testsuite name='barnabas prove' tests='{len(cases)}' {counts}>"
    return "\n".join(["<?xml version='1.0' encoding='UTF-8'?>", head, *cases, "</testsuite>"])


def _printable(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return "".join(each if each.isprintable() else "?" for each in text)
