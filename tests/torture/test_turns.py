"""A short round on three brokers in this process; `make soak-cluster` takes long ones."""

from __future__ import annotations

import pytest

from barnabas.testing import Cluster
from tests.products import for_the_night
from tests.seeds import SEED
from tests.torture.embedded_brokers import EmbeddedBrokers
from tests.torture.turns import OWN_IDS, TurnsTorture, told, unexpected
from tests.workload.access import BROKER_SETTINGS
from tests.workload.fleet import WIRE_KINDS

LEASE_MS = 1000
KILLS, EVERY_S = 3, 1.5
QUICK = {
    ("writer", "confluent"),
    ("writer", "kafka_python"),
    ("writer", "aiokafka"),
    ("writer", "java"),
    ("sender", "confluent"),
    ("transformer", "confluent"),
    ("reader", "confluent"),
}
KINDS = [each for each in OWN_IDS if (each.role, each.library) in QUICK]


@for_the_night(beside="tests/cluster/test_at_random.py::test_clients_lose_nothing")
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
def test_no_client_fails_while_brokers_die_in_turn_and_are_restarted(tmp_path, say):
    config = {**BROKER_SETTINGS, "barnabas.lease.ms": str(LEASE_MS)}
    with Cluster(brokers=3, config=config, seed=SEED) as cluster:
        torture = TurnsTorture(EmbeddedBrokers(cluster), tmp_path, print, KINDS, EVERY_S)
        outcome = torture.run(SEED, KILLS * EVERY_S, harms_broker=True)
    say(told(outcome))
    assert outcome.report.violations == []
    assert outcome.wrong == []
    assert unexpected(outcome) == []
    assert +outcome.faults == {"kill_broker": KILLS, "stop_broker": 3}
    written = {name.rpartition("-")[0] for name in outcome.committed}
    by_wire = {(each.role, each.library) for each in WIRE_KINDS}
    kinds = {each for each in QUICK | by_wire if each[0] != "reader"}
    assert written == {f"{role}-{library}" for role, library in kinds}
