"""The campaign of ``prove_seeds``: its table, and what it does again."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from tests.interop import prove_seeds
from tests.interop.prove_seeds import TEN, Result, Run, arguments_of, main, results_of, table
from tests.products import for_the_night

PROVED, NOT_PROVED = "PROVED", "NOT PROVED"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def result(program: str, seed: int, verdict: str, causes: str = "", took_s: float = 80.0) -> Result:
    return Result(Run(program, seed, 60.0, "barnabas"), verdict, causes, took_s)


def test_ten_programs_are_five_right_ones_and_five_with_a_mistake():
    assert [result(each, 1, PROVED).is_wrong for each in TEN] == [False] * 5 + [True] * 5


def test_programs_with_mistakes_are_written_apart(tmp_path):
    sources = [
        each
        for name in ("offsets-outside", "acks-without-idempotence")
        for each in arguments_of(Run(name, 1, 60.0, "barnabas"), tmp_path)
        if "java_classes" in str(each)
    ]
    assert len(set(sources)) == 2


def test_table_counts_verdicts_causes_and_times():
    found = [
        result("auto-commit", 1, NOT_PROVED, "auto-commit offsets-outside"),
        result("auto-commit", 2, NOT_PROVED, "offsets-outside", 121.0),
        result("auto-commit", 3, PROVED),
        result("franz-go", 1, PROVED, took_s=75.0),
        result("franz-go", 2, NOT_PROVED),
    ]
    _, right, wrong = table(found)
    assert " ".join(right.split()) == "franz-go 1 of 2 - - 75-80"
    assert " ".join(wrong.split()) == "auto-commit 2 of 3 1 of 3 1 of 3 80-121"


def test_campaign_performs_the_runs_that_its_file_lacks(tmp_path, monkeypatch):
    performed = []

    def perform(runs, _jobs, _directory):
        for each in runs:
            performed.append(each.seed)
            yield Result(each, PROVED, "", 9.0)

    monkeypatch.setattr(prove_seeds, "perform", perform)
    words = ["--programs", "kafka-python", "--seconds", "2", "--directory", str(tmp_path)]
    for seeds in (1, 3, 3):
        assert main([*words, "--seeds", str(seeds)]) == 0
    assert performed == [1, 2, 3]
    assert [each.run.seed for each in results_of(tmp_path / "results.jsonl")] == [1, 2, 3]


@for_the_night(
    beside="tests/interop/test_prove_seeds.py::test_campaign_performs_the_runs_that_its_file_lacks"
)
def test_campaign_continues_after_the_runs_of_its_file(tmp_path, capsys):
    words = ["--programs", "kafka-python", "--seconds", "2", "--directory", str(tmp_path)]
    file = tmp_path / "results.jsonl"
    before = Result(Run("kafka-python", 1, 2.0, "barnabas"), PROVED, "", 9.0)
    file.write_text(json.dumps(asdict(before)) + "\n")
    assert main([*words, "--seeds", "2"]) == 0, capsys.readouterr().out
    first, second = results_of(file)
    assert (first, second.run.seed, second.verdict) == (before, 2, PROVED)
    assert [each.name for each in tmp_path.glob("*.txt")] == []
    assert main([*words, "--seeds", "2"]) == 0
    assert len(results_of(file)) == 2


def test_run_with_another_result_fails_the_campaign_and_keeps_its_output(tmp_path, capsys):
    words = ["--programs", "no-fencing", "--seconds", "0", "--directory", str(tmp_path)]
    assert main([*words, "--seeds", "1"]) == 1, capsys.readouterr().out
    (output,) = tmp_path.glob("*.txt")
    assert "argument --seconds: 0.0 is not a number of seconds" in output.read_text()
    assert " exit code 2 UNEXPECTED " in capsys.readouterr().out
