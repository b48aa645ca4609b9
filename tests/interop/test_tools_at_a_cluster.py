"""Apache Kafka's own clients at a cluster whose brokers die one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.testing import Cluster
from tests.counterparts.postgresql_servers import Server
from tests.interop.tools_at_a_cluster import Copying, copy_while_brokers_die
from tests.postgresql.brokers import Member, running
from tests.products import case
from tests.seeds import SEED
from tests.torture.embedded_brokers import EmbeddedBrokers
from tests.torture.killer import Killer
from tests.torture.process_brokers import ProcessBrokers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

BROKERS = 3
QUICK = {"barnabas.lease.ms": "1000", "group.initial.rebalance.delay.ms": "100"}
QUICK_EVERY_S = 1.5
RECORDS = 240


def copy_beside_embedded_brokers(directory: Path) -> str:
    with Cluster(BROKERS, config=QUICK, seed=SEED) as cluster:
        copying = Copying(cluster.bootstrap_servers, "t", RECORDS, directory)
        with Killer(EmbeddedBrokers(cluster), QUICK_EVERY_S) as killer:
            copying.run()
        copying.judge()
    assert killer.kills >= 2
    return f"{RECORDS} records copied in {copying.transactions} transactions, {killer.kills} kills"


def copy_beside_processes(directory: Path) -> str:
    """Copy while partitions move, too; `make soak-cluster ARGS='--clients tools'` takes longer."""
    with Server() as server:
        members = [Member(directory / f"broker-{each}", server.url) for each in range(BROKERS)]
        with running(members):
            brokers = ProcessBrokers(members)
            return copy_while_brokers_die(
                brokers, directory, SEED, kills=2, moves=1, records=RECORDS
            )


COPIES = {"embedded": copy_beside_embedded_brokers, "processes": copy_beside_processes}


@pytest.mark.parametrize("kind", [case(each, in_test=each == "embedded") for each in COPIES])
def test_every_record_is_copied_once_while_brokers_die_in_turn(tmp_path, say, kind):
    say(COPIES[kind](tmp_path))
