"""`barnabas prove --spark`: exactly-once sinks are proved, and Spark's own sink writes twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from examples import spark_data
from examples.proving import ledger_judge
from tests.checkout import ROOT
from tests.interop.proving import EXAMPLES, NOT_PROVED, PROVED, SPARK, STOCK_SINK, Proved, proved
from tests.products import for_the_night
from tests.seeds import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1300)]

SECONDS = 30
RUN_LIMIT_S = 1200
PAYMENTS = 4000
DISTURBED = ("--seconds", SECONDS, "--seed", SEED)
COPY = ("--input", "orders", "--output", "invoices", *DISTURBED)
LEDGER = ("--input", "payments", "--output", "movements", "--id", "json:id", "--rate", 100)


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
def test_ledger_is_proved(tmp_path, say):
    found = prove_ledger(tmp_path)
    say(found.line("examples/spark_ledger.py", SEED))
    assert found.code == PROVED, found.output
    assert f"{PAYMENTS} inputs, {2 * PAYMENTS} outputs" in found.output


def prove_ledger(directory: Path) -> Proved:
    """Try the ledger with payments of a file, and with its judge."""
    lines = [
        json.dumps({"key": each.key, "value": json.dumps(each.value)})
        for each in spark_data.payments(PAYMENTS)
    ]
    (directory / "payments.jsonl").write_text("\n".join(lines))
    judged = ("--replay", "payments.jsonl", "--judge", EXAMPLES / "ledger_judge.py")
    pipeline = ("--spark", ROOT / "examples" / "spark_ledger.py")
    return proved([*LEDGER, *DISTURBED, *judged, *pipeline], directory, RUN_LIMIT_S)


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
