"""`barnabas prove --spark`: exactly-once sinks are proved, and Spark's own sink writes twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from examples import spark_data
from examples.proving import ledger_judge, sessions_judge
from tests.checkout import ROOT
from tests.interop.proving import EXAMPLES, NOT_PROVED, PROVED, SPARK, STOCK_SINK, proved
from tests.products import for_the_night
from tests.seeds import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1300)]

SECONDS = 30
RUN_LIMIT_S = 1200
INPUTS = 4000
DISTURBED = ("--seconds", SECONDS, "--seed", SEED)
COPY = ("--input", "orders", "--output", "invoices", *DISTURBED)


class Example(NamedTuple):
    """A pipeline whose outputs are other records than its inputs."""

    pipeline: str
    source: str
    target: str
    inputs: Callable[[int], Iterable[spark_data.Record]]
    judge: str


LEDGER = Example("spark_ledger.py", "payments", "movements", spark_data.payments, "ledger_judge.py")
SESSIONS = Example(
    "spark_sessions.py", "clicks", "sessions", spark_data.clicks, "sessions_judge.py"
)


class Value(NamedTuple):
    """A record, as a judge gets it."""

    value: bytes | None


@for_the_night(beside="tests/interop/test_proving.py::test_right_program_is_proved")
def test_exactly_once_sink_is_proved(tmp_path, say):
    found = proved([*COPY, *SPARK.words(tmp_path)], tmp_path, RUN_LIMIT_S)
    say(found.line(SPARK.name, SEED))
    assert found.code == PROVED, found.output


@for_the_night(beside="tests/interop/test_proving.py::test_mistake_is_found_by_kills_and_named")
def test_own_sink_of_spark_writes_twice(tmp_path, say):
    found = proved([*COPY, *STOCK_SINK.words(tmp_path)], tmp_path, RUN_LIMIT_S)
    say(found.line(STOCK_SINK.name, SEED))
    assert found.code == NOT_PROVED, found.output
    assert "\ntwice: " in found.output
    assert STOCK_SINK.cause in found.pages


@for_the_night(beside="tests/interop/test_proving_spark.py::test_judge_of_the_ledger_finds_a_loss")
@pytest.mark.parametrize("example", [LEDGER, SESSIONS], ids=lambda example: example.pipeline)
def test_example_is_proved(example, tmp_path, say):
    lines = [
        json.dumps({"key": each.key, "value": json.dumps({"id": number} | each.value)})
        for number, each in enumerate(example.inputs(INPUTS))
    ]
    (tmp_path / "inputs.jsonl").write_text("\n".join(lines))
    topics = ("--input", example.source, "--output", example.target, "--id", "json:id")
    judged = ("--replay", "inputs.jsonl", "--judge", EXAMPLES / example.judge)
    pipeline = ("--spark", ROOT / "examples" / example.pipeline)
    found = proved([*topics, *judged, *DISTURBED, *pipeline], tmp_path, RUN_LIMIT_S)
    say(found.line(example.pipeline, SEED))
    assert found.code == PROVED, found.output


def payment(number: int) -> Value:
    return Value(b'{"id": %d, "from": 1, "to": 2, "cents": 5}' % number)


def movement(number: int, account: int, cents: int) -> Value:
    return Value(b'{"payment": %d, "account": %d, "cents": %d}' % (number, account, cents))


def test_judge_of_the_ledger_finds_a_loss():
    movements = [movement(7, 1, -5), movement(7, 2, 5)]
    assert list(ledger_judge.judge([payment(7)], movements)) == []
    missing, twice = ledger_judge.judge([payment(7)], [movements[0]] * 2)
    assert missing == "payment 7: the movement of 5 cents on account 2 is missing"
    assert twice == "payment 7: -5 cents on account 1 were written too often"


def click(user: str, minute: int) -> Value:
    return Value(json.dumps({"user": user, "second": 60 * minute}).encode())


def session(user: str, began: int, ended: int, clicks: int) -> Value:
    fields = {"user": user, "began": 60 * began, "ended": 60 * ended, "clicks": clicks}
    return Value(json.dumps(fields | {"pages": 1}).encode())


def test_judge_of_the_sessions_finds_wrong_ones():
    clicks = [click("a", minute) for minute in (0, 29, 60, 200)]
    first, second = session("a", 0, 59, 2), session("a", 60, 90, 1)
    assert list(sessions_judge.judge(clicks, [first, second])) == []
    assert list(sessions_judge.judge(clicks, [])) == ["no session was written"]
    problems = list(sessions_judge.judge(clicks, [second, second, session("a", 60, 90, 2)]))
    assert [each.rpartition(") ")[2] for each in problems] == [
        "is missing",
        "was written 2 times",
        "is not one of the clicks",
    ]
