"""Partitions go to and fro between three brokers while clients write, commit and end transactions.

Each moves by itself, so that a transaction's coordinator, its data and its offsets are on any
brokers. What the clients were told, and what is there in the end, has to be one history.
"""

from __future__ import annotations

import time
from random import Random

import pytest

from tests.broker.moving import MovingBroker, MovingCluster, moving_brokers
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.scripted import servers_of
from tests.workload.settings import PARTITIONS, TOPICS
from tests.workload.simulated import Workload

INTERNAL = {"__consumer_offsets": 2, "__transaction_state": 3}
MOVES = 25


class Mover:
    """Takes partitions from one broker and gives them to another, in every way there is."""

    def __init__(self, cluster: MovingCluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random

    def move(self) -> None:
        cluster = self.cluster
        partition_id = self.random.choice([*cluster.leader])
        former = cluster.leader[partition_id]
        new = self.random.choice(cluster.others(former))
        kind = self.random.choice(("planned", "planned", "told", "late", "again", "session"))
        if kind == "planned":
            cluster.move(new, partition_id)
        elif kind == "told":
            cluster.give(new, partition_id)
        elif kind == "late":
            cluster.assign(new, partition_id)
            new.learn()
            cluster.served(new, partition_id)
            time.sleep(self.random.random() * 0.05)  # The former one learns it by being refused.
            cluster.tell()
        elif kind == "again":
            cluster.give(former, partition_id)
        else:
            self.lose_session(former)
        time.sleep(self.random.random() * 0.03)

    def lose_session(self, broker: MovingBroker) -> None:
        """Have other brokers lead what one has led, which goes on in another session."""
        cluster, session = self.cluster, broker.runner.session
        ids = [each for each, leader in cluster.leader.items() if leader is broker]
        broker.lose_session()
        wait_until(lambda: broker.runner.session != session)
        for each in ids:
            cluster.assign(self.random.choice(cluster.brokers), each)
        cluster.tell()
        for each in ids:
            cluster.served(cluster.leader[each], each)


@pytest.mark.parametrize("number", range(3))
def test_clients_lose_nothing(number):
    seed = SEED + number
    with moving_brokers(dict.fromkeys(TOPICS, PARTITIONS) | INTERNAL, 3, seed=seed) as cluster:
        cluster.waits_for_loads = False  # They move while they are read, too.
        everything = [each for ids in cluster.ids.values() for each in ids]
        for at, partition_id in enumerate(everything):
            cluster.give(cluster.brokers[at % 3], partition_id)
        with Workload(servers_of(each.address for each in cluster.brokers), seed) as workload:
            workload.goes_on()
            mover = Mover(cluster, Random(seed))
            for _ in range(MOVES):
                mover.move()
                workload.raise_errors()
            workload.goes_on()
            workload.end()
            workload.judge()
