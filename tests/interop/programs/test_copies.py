"""The judge detects each fault of a program that copies a topic; the page names each program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checkout import ROOT
from tests.history import anomalies
from tests.history.checker import check
from tests.history.model import (
    END,
    POLL,
    SEND,
    History,
    OffsetCommit,
    Operation,
    PartitionEnd,
    Read,
    Write,
)
from tests.interop.programs.copies import INPUT, INPUTS, OUTPUT, OUTPUTS, PARTITIONS, duties
from tests.interop.programs.kinds import PROGRAMS

GROUP = "copies"
SENT = [
    Operation(SEND, "sender", writes=(Write(INPUT, 0, f"sender.{number}", offset=number),))
    for number in range(3 * PARTITIONS)
]
"""All at one partition of the input; at each of the output, three copies."""


def history_of(outputs: list[Read], committed: int = len(SENT)) -> History:
    """Return the history of a program whose outputs these are."""
    inputs = [Read(INPUT, 0, write.offset, write.value) for each in SENT for write in each.writes]
    lengths = {
        place: sum(read.place == place for read in inputs + outputs) for place in INPUTS + OUTPUTS
    }
    return [
        *SENT,
        *duties(SENT, GROUP),
        Operation(POLL, "reader", reads=(*inputs, *outputs)),
        Operation(
            END,
            "final",
            commits=(OffsetCommit(GROUP, INPUT, 0, committed),),
            ends=tuple(PartitionEnd(*place, end, end) for place, end in lengths.items()),
            readers=("reader",),
        ),
    ]


def right() -> list[Read]:
    return [
        Read(OUTPUT, number, offset, f"<sender.{number + PARTITIONS * offset}>")
        for number in range(PARTITIONS)
        for offset in range(3)
    ]


def doubled(outputs: list[Read]) -> list[Read]:
    return [*outputs, outputs[-1]._replace(offset=3)]


def elsewhere(outputs: list[Read]) -> list[Read]:
    return [*outputs, outputs[-1]._replace(partition=0, offset=3)]


def swapped(outputs: list[Read]) -> list[Read]:
    first, second = outputs[:2]
    return [first._replace(value=second.value), second._replace(value=first.value), *outputs[2:]]


def test_copies_that_are_there_once_are_right():
    assert check(history_of(right())).anomalies == set()


@pytest.mark.parametrize(
    ("spoil", "anomaly"),
    [
        (lambda outputs: outputs[1:], anomalies.LOST_WRITE),
        (lambda outputs: outputs[:-1], anomalies.LOST_WRITE),
        (doubled, anomalies.DUPLICATE),
        (elsewhere, anomalies.UNWRITTEN_READ),
        (swapped, anomalies.NONMONOTONIC_SEND),
    ],
    ids=["first lost", "last lost", "doubled", "doubled elsewhere", "swapped"],
)
def test_spoiled_output_is_detected(spoil: Callable[[list[Read]], list[Read]], anomaly: str):
    assert anomaly in check(history_of(spoil(right()))).anomalies


def test_offset_behind_the_outputs_is_detected():
    found = check(history_of(right(), committed=len(SENT) - 1)).anomalies
    assert found == {anomalies.OFFSETS_DIFFER}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_ecosystem_page_names_the_program_and_its_versions(program):
    lines = (ROOT / "docs/ecosystem.md").read_text().splitlines()
    (row,) = [line for line in lines if f"`{program.name}`" in line]
    assert program.versions
    assert [version for version in program.versions if version not in row] == []
