"""Consume, transform, produce: every input takes effect once, in spite of kills at any time.

``barnabas prove`` tries the workers of each library: it kills, pauses and adds instances, and kills
the broker. At Apache Kafka it disturbs the workers alone. By day test_proving.py has a program on
kafka-python.
"""

from __future__ import annotations

from collections import Counter

import pytest

from barnabas.broker.cli.proving.report import lines
from barnabas.broker.cli.proving.run import Options, prove
from tests.checkout import PYTHONPATH
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST
from tests.groups.scenario import BROKER_SETTINGS
from tests.interop.transform_worker import GAVE_UP, WORKERS, command_line
from tests.products import case
from tests.seeds import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
FAULTS_S = 10


@pytest.fixture
def servers(broker_class, tmp_path):
    """The address of Apache Kafka; none for Barnabas, which ``barnabas prove`` starts and kills."""
    if broker_class is BarnabasProcess:
        yield ()
        return
    with broker_class(tmp_path / "broker", **BROKER_SETTINGS) as broker:
        yield [(HOST, broker.port)]


@pytest.mark.parametrize(
    "library", [case(each, in_test=each != "kafka-python") for each in WORKERS]
)
def test_every_input_is_in_the_committed_output_once(library, servers, monkeypatch, say):
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    command = command_line(library, "application")
    proof = prove(Options(command, "input", "output", FAULTS_S, SEED, servers=servers))
    assert proof.verdict.is_proved, "\n".join(lines(proof))
    ends = Counter(code for _, code in proof.ended)
    assert set(ends) <= GAVE_UP, ends
    say(f"{library}: {proof.verdict.once} records once; workers ended by themselves: {dict(ends)}")
