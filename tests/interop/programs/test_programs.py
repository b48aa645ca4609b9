"""Programs on Flink, Kafka Streams, Spring, Pekko and Benthos copy a topic through kills.

`docs/ecosystem.md` names the versions and the settings.
"""

from __future__ import annotations

import pytest

from barnabas.broker.cli.proving.report import lines
from barnabas.broker.cli.proving.run import Options, prove
from barnabas.broker.cli.proving.schedule import BROKER, KILL
from tests.interop.programs.copies import at_least_once, each_once, made
from tests.interop.programs.kinds import INPUT, OUTPUT, PARTITIONS, PROGRAMS
from tests.products import for_the_night
from tests.seeds import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.filterwarnings("ignore")]

SECONDS = 30
WAIT_S = 240
"""Time for a program to start, and to advance after the last fault."""


@for_the_night(beside="tests/interop/programs/test_copies.py::test_copies_are_judged")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program_copies_each_record_once_through_kills(program, tmp_path, say):
    options = Options(
        program.command(tmp_path), INPUT, OUTPUT, SECONDS, SEED, 1, PARTITIONS,
        faults=(KILL, BROKER), start_s=WAIT_S, settle_s=WAIT_S, own_inputs=made,
        own_judge=at_least_once if program.repeats else each_once,
    )  # fmt: skip
    proof = prove(options)
    assert proof.verdict.is_proved, "\n".join(lines(proof))
    say(f"{program.name}: {'; '.join(list(lines(proof))[:2])}")
