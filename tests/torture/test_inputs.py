"""Members of the torture's group read on, though their coordinator moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.testing import Broker
from tests.torture.access import BROKER_SETTINGS
from tests.torture.input_confluent import Input
from tests.torture.settings import LEFT, PARTITIONS, Settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(120), pytest.mark.filterwarnings("ignore")]
RECORDS = 10


def test_librdkafka_asks_a_coordinator_that_has_moved_once_only():
    with Broker(config=BROKER_SETTINGS) as broker:
        broker.create_topic(LEFT, PARTITIONS)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce(LEFT, b"%d" % number, partition=0)
        producer.flush()
        settings = Settings("transformer", "confluent", "member", broker.bootstrap_servers, "", 0)
        journal = SimpleNamespace(moved=lambda _places, _reason: None)
        source = Input(SimpleNamespace(settings=settings, journal=journal))
        found: list[str] = []
        is_lost = False

        def has_read_all() -> bool:
            # As the transformer does: what came while partitions moved is left, and read again.
            nonlocal is_lost
            source.was_moved = False
            reads = source.poll()
            is_lost |= source.was_moved
            if is_lost:
                is_lost = not source.rewind()
            else:
                found.extend(read.value for read in reads)
            return len(found) >= RECORDS

        with broker.intercept(OFFSET_FETCH, fail=ErrorCode.NOT_COORDINATOR, times=1) as refused:
            wait_until(has_read_all, "the member reads what there is", seconds=30)
        source.close()
    assert refused.count == 1
    assert found == [f"{number}" for number in range(RECORDS)]
