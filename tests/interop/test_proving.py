"""`barnabas prove` with the programs of ``examples/proving``: right ones pass, mistakes are found.

docs/prove.md has the table of what they got.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.cli.proving.causes import CAUSES
from tests.checkout import ROOT
from tests.counterparts.apache_kafka import ApacheKafka
from tests.interop.proving import (
    ALSO_AUTO_COMMIT,
    NOT_PROVED,
    PROVED,
    RIGHT,
    SPARK,
    WRONG,
    prove,
)
from tests.products import case, for_the_night
from tests.seeds import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

QUICK_S = 8
LONG_S = 60
SEEDS = 2
"""Runs of each program at night."""
PAGE = ROOT / "docs" / "prove.md"


@pytest.fixture
def kafka_servers(tmp_path: Path) -> Iterator[str]:
    """An Apache Kafka without the inputs of another program."""
    with ApacheKafka(tmp_path / "kafka") as running:
        yield running.bootstrap_servers


@pytest.mark.parametrize(
    ("program", "seconds", "seed"),
    [
        case(RIGHT[0], QUICK_S, SEED, in_test=True),
        *(
            case(program, LONG_S, SEED + number, in_test=False)
            for program in RIGHT
            for number in range(SEEDS)
        ),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_right_program_is_proved(program, seconds, seed, tmp_path, say):
    proved = prove(program, tmp_path, "--seconds", seconds, "--seed", seed)
    say(proved.line(program.name, seed))
    assert proved.code == PROVED, proved.output


def test_mistake_is_found_by_kills_and_named(tmp_path):
    quickly = ("--seconds", QUICK_S, "--seed", SEED, "--faults", "kill")
    found = prove(ALSO_AUTO_COMMIT, tmp_path, *quickly)
    assert found.code == NOT_PROVED, found.output
    assert ALSO_AUTO_COMMIT.cause in found.pages


@for_the_night(beside="tests/interop/test_proving.py::test_mistake_is_found_by_kills_and_named")
@pytest.mark.parametrize("seed", [SEED + number for number in range(SEEDS)])
@pytest.mark.parametrize("mistake", WRONG, ids=lambda mistake: mistake.name)
def test_mistake_is_found_and_named(mistake, seed, tmp_path, say):
    found = prove(mistake, tmp_path, "--seconds", LONG_S, "--seed", seed)
    say(found.line(mistake.name, seed))
    assert found.code == NOT_PROVED, found.output
    assert mistake.cause in found.pages


@for_the_night(beside="tests/interop/test_proving.py::test_right_program_is_proved")
@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.name)
def test_right_program_is_proved_on_apache_kafka(program, kafka_servers, tmp_path, say):
    on_kafka = ("--bootstrap-server", kafka_servers, "--seconds", LONG_S, "--seed", SEED)
    proved = prove(program, tmp_path, *on_kafka)
    say(proved.line(f"{program.name}, Apache Kafka", SEED))
    assert proved.code == PROVED, proved.output


@for_the_night(beside="tests/interop/test_proving.py::test_mistake_is_found_by_kills_and_named")
@pytest.mark.parametrize("mistake", WRONG, ids=lambda mistake: mistake.name)
def test_mistake_is_found_on_apache_kafka(mistake, kafka_servers, tmp_path, say):
    on_kafka = ("--bootstrap-server", kafka_servers, "--seconds", LONG_S, "--seed", SEED)
    found = prove(mistake, tmp_path, *on_kafka)
    say(found.line(f"{mistake.name}, Apache Kafka", SEED))
    assert found.code == NOT_PROVED, found.output
    assert mistake.cause in found.pages


def test_page_shows_the_end_of_a_story():
    (cause,) = [each for each in CAUSES if each.name == "offsets-outside"]
    assert f"usual cause: {cause.text}\n  see {cause.page}\nNOT PROVED\n" in PAGE.read_text()


def test_page_explains_each_cause():
    headings = {
        line.lstrip("#").strip().lower().replace(" ", "-")
        for line in PAGE.read_text().splitlines()
        if line.startswith("##")
    }
    assert [each.name for each in CAUSES if each.page.partition("#")[2] not in headings] == []


@pytest.mark.parametrize("program", [*RIGHT, SPARK], ids=lambda program: program.name)
def test_page_names_the_program_and_its_version(program):
    (row,) = [
        line for line in PAGE.read_text().splitlines() if line.startswith(f"| [{program.name}]")
    ]
    assert program.version in row
    assert program.source.relative_to(ROOT).as_posix() in row
