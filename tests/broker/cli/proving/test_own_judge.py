"""Judges of users, and the errors of their files."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.identities import Made
from barnabas.broker.cli.proving.judge import Input, Observed
from barnabas.broker.cli.proving.own_judge import judge_file
from barnabas.broker.cli.records.record_text import NewRecord

OBSERVED = Observed([Input("a", 0, 0, b"k")], [], {"g": {0: 1}})


def test_function_of_a_file_is_returned(tmp_path):
    path = tmp_path / "totals.py"
    path.write_text("def judge(inputs, outputs):\n    yield f'{len(inputs)} {len(outputs)}'\n")
    assert list(judge_file(str(path)).judge([1, 2], [3]) or ()) == ["2 1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        ("x = 1", r"has no function judge\(inputs, outputs\)"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_file_without_a_judge_is_refused(tmp_path, text, message):
    path = tmp_path / "totals.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CommandError, match=message):
        judge_file(str(path))


def test_file_has_inputs_and_tables_as_texts(tmp_path):
    path = tmp_path / "orders.py"
    path.write_text(
        "TABLES = {'customers': [('1', 'AT'), (None, 'CH')]}\n"
        "def inputs(number):\n    return str(number), f'order {number}'\n"
        "def judge(inputs, outputs):\n    pass\n"
    )
    found = judge_file(str(path))
    assert found.inputs is not None
    made = Made(found.inputs, 7)
    assert made.record(3) == NewRecord(b"3", b"order 3", ())
    assert made.of(made.record(3)) == ["order 3"]
    first, second = found.tables["customers"]
    assert (first, second) == (NewRecord(b"1", b"AT", ()), NewRecord(None, b"CH", ()))


def test_problems_are_findings_and_none_is_a_proof():
    wrong = judge.judge_by(["account-1: 5, not 6"], OBSERVED, judge.EXACTLY)
    assert not wrong.is_proved
    assert wrong.counts == {judge.WRONG: 1}
    assert wrong.findings[0].text == "account-1: 5, not 6"
    assert judge.judge_by([], OBSERVED, judge.EXACTLY).is_proved


def test_problems_are_bounded():
    many = (str(number) for number in range(10 * judge.PROBLEMS_MAX))
    assert len(judge.judge_by(many, OBSERVED, judge.EXACTLY).findings) == judge.PROBLEMS_MAX
