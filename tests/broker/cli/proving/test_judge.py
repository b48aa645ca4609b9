"""Judge of a run: each finding, and the expectations that allow it."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.judge import Input, Observed, Output

COMMITTED = {"g": {0: 10}}


def inputs(*identities: str) -> list[Input]:
    return [Input(each, 0, offset, b"k") for offset, each in enumerate(identities)]


def output(offset: int, *identities: str, partition: int = 0) -> Output:
    return Output(partition, offset, identities, f"text {offset}")


def kinds(observed: Observed, expectation: str = judge.EXACTLY) -> dict[str, int]:
    return judge.judge(observed, expectation).counts


def test_one_output_for_each_input_is_proved():
    verdict = judge.judge(Observed(inputs("a", "b"), [output(0, "a"), output(1, "b")], COMMITTED))
    assert (verdict.inputs, verdict.once, verdict.outputs) == (2, 2, 2)
    assert verdict.is_proved
    assert verdict.findings == []


def test_run_without_inputs_is_not_proved():
    assert not judge.judge(Observed([], [], {})).is_proved


def test_input_before_the_committed_offset_without_output_is_lost():
    assert kinds(Observed(inputs("a", "b"), [output(0, "a")], COMMITTED)) == {judge.LOST: 1}
    assert kinds(Observed(inputs("a", "b"), [output(0, "a")], {})) == {judge.LOST: 1}


def test_input_after_the_committed_offset_without_output_is_not_consumed():
    assert kinds(Observed(inputs("a", "b"), [output(0, "a")], {"g": {0: 1}})) == {
        judge.UNCONSUMED: 1
    }
    assert kinds(Observed(inputs("a"), [], {"g": {1: 5}})) == {judge.UNCONSUMED: 1}


def test_record_that_was_aborted_and_written_again_has_its_output_once():
    twice = [Input("a", 0, 0, b"k", is_committed=False), Input("a", 0, 1, b"k")]
    assert judge.judge(Observed(twice, [output(0, "a")], COMMITTED)).is_proved
    assert kinds(Observed(twice[:1], [output(0, "a")], COMMITTED)) == {judge.ABORTED: 1}


def test_input_with_two_outputs_is_twice_and_names_both():
    verdict = judge.judge(
        Observed(inputs("a"), [output(3, "a"), output(9, "a", partition=1)], COMMITTED)
    )
    (finding,) = verdict.violations
    assert finding.kind == judge.TWICE
    assert finding.text == (
        "input a (partition 0 offset 0) has 2 outputs: partition 0 offset 3, partition 1 offset 9"
    )


def test_output_past_the_committed_offset_is_behind():
    assert kinds(Observed(inputs("a"), [output(0, "a")], {"g": {0: 0}})) == {judge.BEHIND: 1}


def test_each_of_several_groups_counts_for_itself():
    groups = {"ahead": {0: 2}, "slow": {0: 1}}
    verdict = judge.judge(Observed(inputs("a", "b"), [output(0, "a"), output(1, "b")], groups))
    (finding,) = verdict.findings
    assert finding.kind == judge.BEHIND
    assert finding.text == (
        "input b (partition 0 offset 1) has an output; group slow is at offset 1"
    )
    (lost,) = judge.judge(Observed(inputs("a", "b"), [output(0, "a")], groups)).findings
    assert lost.kind == judge.LOST
    assert lost.text == "input b (partition 0 offset 1) has no output; group ahead is at offset 2"


def test_output_of_an_aborted_input_is_from_an_aborted_transaction():
    aborted = Input("a", 0, 0, b"k", is_committed=False)
    assert kinds(
        Observed([aborted, *inputs("b")], [output(0, "a"), output(1, "b")], COMMITTED)
    ) == {judge.ABORTED: 1}


def test_output_without_a_known_id_is_unexplained():
    found = judge.judge(Observed(inputs("a"), [output(0, "a"), output(1, "z")], COMMITTED))
    assert found.counts == {judge.UNEXPLAINED: 1}
    assert found.findings[0].text == "no input explains text 1 at partition 0 offset 1"


def test_outputs_of_one_key_in_another_order_are_found_within_a_partition():
    source = inputs("a", "b")
    assert kinds(Observed(source, [output(0, "b"), output(1, "a")], COMMITTED)) == {
        judge.OUT_OF_ORDER: 1
    }
    elsewhere = [output(0, "b"), output(1, "a", partition=1)]
    assert kinds(Observed(source, elsewhere, COMMITTED)) == {}
    other_key = [source[0], source[1]._replace(key=b"other")]
    assert kinds(Observed(other_key, [output(0, "b"), output(1, "a")], COMMITTED)) == {}


@pytest.mark.parametrize(
    ("expectation", "twice", "lost"),
    [
        (judge.EXACTLY, False, False),
        (judge.AT_LEAST, True, False),
        (judge.AT_MOST, False, True),
    ],
)
def test_expectation_allows_its_findings(expectation, twice, lost):
    doubled = Observed(inputs("a"), [output(0, "a"), output(1, "a")], COMMITTED)
    missing = Observed(inputs("a"), [], COMMITTED)
    assert judge.judge(doubled, expectation).is_proved is twice
    assert judge.judge(missing, expectation).is_proved is lost
