"""The core of the two-phase sink on a cluster that loses brokers, and does not get them back."""

from __future__ import annotations

import pytest

from barnabas.spark_connector.ledger.transaction_age import oldest_transaction_ms
from barnabas.testing import Cluster
from tests.interop.sink_cores.faults import PINNING
from tests.interop.spark_sink import PARTITIONS, check_all_is_settled, options
from tests.seeds import SEED

pytestmark = pytest.mark.timeout(280)

LEASE_MS = 1500
BROKERS = 3
KEEPS_ALL, DIES = 0, 2
"""Node numbers: the broker that leads everything, and the broker that dies without having led."""
CONFIG = PINNING | {
    "barnabas.lease.ms": str(LEASE_MS),
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
PATIENCE = {"kafka.delivery.timeout.ms": "60000", "kafka.request.timeout.ms": "5000"}


def give_everything_to(cluster, number, ledger_topic, topic) -> None:
    places = [(topic, each) for each in range(PARTITIONS)]
    single = ("source", ledger_topic, "__transaction_state", "__consumer_offsets")
    for name, partition in [*places, *((each, 0) for each in single)]:
        cluster.move(name, partition, number)


def test_batches_continue_after_one_broker_is_lost_and_another_is_cut_off(topic, start):
    with Cluster(BROKERS, config=CONFIG, seed=SEED) as cluster:
        cluster.create_topic("source")
        cluster.create_topic(topic, partitions=PARTITIONS)
        query = start("two-phase", options(cluster, topic, **PATIENCE))
        query.run(0)
        give_everything_to(cluster, KEEPS_ALL, query.options.ledger_topic, topic)
        watching = query.connected()
        assert oldest_transaction_ms(watching, topic) == 0
        # The others name it until its lease has ended, and only the sweep depends on it.
        cluster.kill(DIES, expire=False)
        query.run(1)
        assert oldest_transaction_ms(watching, topic) == 0
        # It still responds, and considers itself the leader of everything. It gets the first
        # request.
        cluster.cut_from_store(KEEPS_ALL, expire=True)
        query.run(2)
        cluster.mend_to_store(KEEPS_ALL)
        cluster.wait_until_served()
        check_all_is_settled(cluster, query, 3)
