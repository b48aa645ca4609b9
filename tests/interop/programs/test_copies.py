"""Judge of the programs that copy a topic."""

from __future__ import annotations

import pytest

from barnabas.broker.client.topic_reader import ReceivedRecord
from tests.interop.programs.copies import at_least_once, each_once, made
from tests.interop.programs.kinds import INPUT, OUTPUT


def record(topic: str, partition: int, offset: int, value: str) -> ReceivedRecord:
    return ReceivedRecord(topic, partition, offset, 0, None, value.encode(), ())


INPUTS = [record(INPUT, 0, number, f"input.{number}") for number in (1, 4)]
COPIES = [record(OUTPUT, 1, 0, "<input.1>"), record(OUTPUT, 1, 1, "<input.4>")]
LATE = record(OUTPUT, 1, 2, "<input.1>")
"""Written again after a later one."""


@pytest.mark.parametrize(
    ("outputs", "problems", "severe"),
    [
        (COPIES, [], []),
        (COPIES[1:], ["(1, '<input.1>') is missing"], ["(1, '<input.1>') is missing"]),
        (
            [*COPIES, LATE],
            [
                "(1, '<input.1>') was written 2 times",
                "(1, '<input.1>') was written after a later one",
            ],
            [],
        ),
        (
            [*COPIES, record(OUTPUT, 0, 0, "<input.4>")],
            ["(0, '<input.4>') belongs to no input"],
            ["(0, '<input.4>') belongs to no input"],
        ),
    ],
)
def test_copies_are_judged(outputs, problems, severe):
    assert list(each_once(INPUTS, outputs)) == problems
    assert list(at_least_once(INPUTS, outputs)) == severe


def test_inputs_end_with_their_number():
    assert made(7).value == b"input.7"
