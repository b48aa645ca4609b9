"""Shortest failing schedules, by runs that a function stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.faults import Fault, Planned
from barnabas.broker.cli.proving.judge import Input, Observed, Output
from barnabas.broker.cli.proving.minimising import RUNS_MAX, shortest
from barnabas.broker.cli.proving.run import NothingTried, Options, Proof

OPTIONS = Options(["program"], "orders", "invoices")
SCHEDULE = [Planned(float(number), Fault(f"fault-{number}")) for number in range(1, 9)]
INPUTS = [Input("a", 0, 0, b"k")]


class Attempts:
    """Runs that fail if their schedule fulfils a condition."""

    def __init__(self, fails: Callable[[set[str]], bool]) -> None:
        self.schedules: list[Sequence[Planned]] = []
        self._fails = fails

    def __call__(self, planned: Sequence[Planned]) -> Proof:
        self.schedules.append(planned)
        is_wrong = self._fails({each.fault.kind for each in planned})
        outputs = [Output(0, number, ("a",)) for number in range(2 if is_wrong else 1)]
        return Proof(
            OPTIONS, planned, judge.judge(Observed(INPUTS, outputs, {"g": {0: 1}})), [], 1.0
        )


def kinds_after(fails: Callable[[set[str]], bool]) -> tuple[list[str], Attempts]:
    attempts = Attempts(fails)
    failed = attempts(SCHEDULE)
    attempts.schedules.clear()
    found = shortest(failed, attempts, lambda _text: None)
    return [each.fault.kind for each in found.schedule], attempts


def test_one_guilty_fault_is_found_alone():
    kinds, attempts = kinds_after(lambda kinds: "fault-6" in kinds)
    assert kinds == ["fault-6"]
    assert all(planned[0].at_s == 0.3 for planned in attempts.schedules if planned)


def test_two_guilty_faults_keep_their_distance():
    attempts = Attempts(lambda kinds: {"fault-1", "fault-3"} <= kinds)
    found = shortest(attempts(SCHEDULE), attempts, lambda _text: None)
    assert [each.fault.kind for each in found.schedule] == ["fault-1", "fault-3"]
    first, last = found.schedule
    assert last.at_s - first.at_s == pytest.approx(2)


@pytest.mark.parametrize("problem", [CommandError("no broker"), NothingTried("no input", "")])
def test_run_without_a_verdict_leaves_that_of_the_failed_run(problem):
    failed = Attempts(lambda _kinds: True)(SCHEDULE)
    said = []

    def attempt(_planned: Sequence[Planned]) -> Proof:
        raise problem

    assert shortest(failed, attempt, said.append) is failed
    assert f"no verdict: {problem}" in said


def test_program_that_fails_without_faults_needs_none():
    kinds, attempts = kinds_after(lambda _kinds: True)
    assert kinds == []
    assert len(attempts.schedules) == 1


def test_number_of_runs_is_bounded():
    kinds, attempts = kinds_after(lambda kinds: len(kinds) == len(SCHEDULE))
    assert len(kinds) == len(SCHEDULE)
    assert len(attempts.schedules) <= RUNS_MAX
