"""Transactions of kafka-python, whose sockets are the kernel's."""

from __future__ import annotations

import contextlib

import pytest
from kafka import KafkaProducer

from barnabas.testing import Broker
from tests.broker.handlers.test_features import (
    NONE,
    TRANSACTIONS,
    UNSAFE,
    finalized,
    update,
)


@pytest.fixture
def broker():
    with Broker() as found:
        yield found


def test_transactions_follow_the_level(broker, wire):
    def levels_of_shards():
        return {each.transaction_version for each in broker.server.transactions.machines}

    settings = {"bootstrap_servers": broker.bootstrap_servers, "transactional_id": "id"}
    with contextlib.closing(KafkaProducer(**settings)) as producer:
        producer.init_transactions()
        assert broker.call(levels_of_shards) == {2}
        assert update(wire, (TRANSACTIONS, 0, UNSAFE))[0] == NONE
        assert TRANSACTIONS not in finalized(wire)[1], "level 0 is not named"
        assert broker.call(levels_of_shards) == {0}
        # A producer that started by the other level continues.
        producer.begin_transaction()
        producer.send("t", b"value").get(60)
        producer.commit_transaction()
