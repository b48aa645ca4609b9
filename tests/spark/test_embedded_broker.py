"""Spark with the options of ``client_config`` of the embedded broker, and no others."""

from __future__ import annotations

import confluent_kafka
import pytest

from barnabas.testing import Broker, Security, allow

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

TOPIC, GROUP = "orders", "readers-of-spark"
TIMEOUT_S = 60
RULES = [
    allow("alice", "READ", "WRITE", "DESCRIBE", topic=TOPIC),
    allow("alice", "READ", group=GROUP),
]


def test_spark_reads_with_its_options(spark):
    security = Security(users=["alice"], acls=RULES, client_certificates="required")
    with Broker(security=security) as broker:
        broker.create_topic(TOPIC)
        producer = confluent_kafka.Producer(broker.client_config("alice", "confluent"))
        producer.produce(TOPIC, b"one order")
        assert producer.flush(TIMEOUT_S) == 0
        options = broker.client_config("alice", "spark") | {"kafka.group.id": GROUP}
        source = spark.read.format("kafka").options(subscribe=TOPIC, **options).load()
        assert [bytes(each.value) for each in source.select("value").collect()] == [b"one order"]
