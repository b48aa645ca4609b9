"""Programs on Flink, Kafka Streams, Spring, Pekko and Benthos copy a topic through kills.

`docs/ecosystem.md` names the versions and the settings.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.history import checker
from tests.interop.programs.kinds import PROGRAMS
from tests.interop.programs.life import Life
from tests.products import for_the_night
from tests.workload.access import BROKER_SETTINGS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.filterwarnings("ignore")]


def errors(broker: BrokerProcess) -> list[str]:
    """Return the errors that Barnabas logged; Apache Kafka logs some after each kill."""
    if broker.name != BarnabasProcess.name:
        return []
    lines = broker.output_path.read_text(errors="replace").splitlines()
    return [line for line in lines if " ERROR " in line or "Traceback" in line]


@for_the_night(
    beside="tests/interop/test_transform.py::test_every_input_is_in_the_committed_output_once"
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program_copies_each_record_once_through_kills(program, broker_class, tmp_path, say):
    with broker_class(tmp_path / "broker", **BROKER_SETTINGS) as broker:
        with Life(broker, program.name, program.command, tmp_path) as life:
            history = life.run()
        assert errors(broker) == []
        report = checker.check(history)
        wrong = report.anomalies - program.forgiven
        assert not wrong, "\n".join(checker.lines(report, history))
    again = Counter(each.anomaly for each in report.violations)
    copies = sum(1 for each in history if each.process.startswith(f"{program.name} from"))
    kills, ends = life.program_kills, len(life.program.ended)
    say(
        f"{program.name}: {copies} records, {kills} kills of the program ({ends} ends by itself),"
        f" {life.broker_kills} of the broker; {dict(again)}"
    )
