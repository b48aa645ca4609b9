"""`barnabas prove --spark`: exactly-once sinks are proved, and Spark's own sink writes twice."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from examples.proving import enrichment_judge, ledger_judge, sessions_judge
from tests.checkout import ROOT
from tests.counterparts.apache_kafka import ApacheKafka
from tests.interop.proving import NOT_PROVED, PROVED, SPARK, STOCK_SINK, proved
from tests.products import for_the_night
from tests.seeds import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1300)]

SECONDS = 30
RUN_LIMIT_S = 1200
DISTURBED = ("--seconds", SECONDS, "--seed", SEED)
COPY = ("--input", "orders", "--output", "invoices", *DISTURBED)


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


@for_the_night(beside="tests/interop/test_proving.py::test_right_program_is_proved")
@pytest.mark.parametrize(
    ("program", "code"),
    [(SPARK, PROVED), (STOCK_SINK, NOT_PROVED)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_sinks_get_the_same_verdicts_on_apache_kafka(program, code, tmp_path, say):
    with ApacheKafka(tmp_path / "kafka") as kafka:
        words = [*COPY, "--bootstrap-server", kafka.bootstrap_servers, *program.words(tmp_path)]
        found = proved(words, tmp_path, RUN_LIMIT_S)
    say(found.line(f"{program.name}, Apache Kafka", SEED))
    assert found.code == code, found.output
    assert code == PROVED or "\ntwice: " in found.output


@for_the_night(beside="tests/interop/test_proving_spark.py::test_judge_of_the_ledger_finds_a_loss")
@pytest.mark.parametrize("name", ["ledger", "sessions", "enrichment"])
def test_example_is_proved(name, tmp_path, say):
    """The file names the topics, the inputs and the judge."""
    pipeline = ROOT / "examples" / f"spark_{name}.py"
    found = proved(["--spark", pipeline, *DISTURBED], tmp_path, RUN_LIMIT_S)
    say(found.line(pipeline.name, SEED))
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


def order(number: int, **more: object) -> Value:
    fields = {"order": number, "customer": 6, "cents": 100 + number}
    return Value(json.dumps(fields | more).encode())


def test_judge_of_the_enrichment_finds_wrong_countries_and_doubles():
    inputs = [order(1), order(2)]
    assert list(enrichment_judge.judge(inputs, [order(n, country="CH") for n in (1, 2)])) == []
    outputs = [order(1, country="CH"), order(1, country="CH"), order(2)]
    assert list(enrichment_judge.judge(inputs, outputs)) == [
        "order 2 of customer 6 in CH is missing",
        "order 1 of customer 6 in CH is wrong, or written too often",
        "order 2 of customer 6 in None is wrong, or written too often",
    ]


@pytest.mark.parametrize("judge", [ledger_judge, sessions_judge, enrichment_judge])
def test_inputs_of_a_judge_are_the_same_in_every_run(judge):
    made = [judge.inputs(number) for number in range(200)]
    assert made == [judge.inputs(number) for number in range(200)]
    assert len(set(made)) == 200
    (problem, *_) = judge.judge([Value(value.encode()) for _, value in made], [])
    assert problem
