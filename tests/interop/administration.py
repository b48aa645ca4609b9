"""Topics for the tests, through one of the clients under test."""

import time
from collections.abc import Callable

from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60


def admin(bootstrap_servers: str) -> AdminClient:
    """Return librdkafka's admin client."""
    return AdminClient({"bootstrap.servers": bootstrap_servers})


def create(
    bootstrap_servers: str, topic: str, *, partitions: int, configs: dict[str, str] | None = None
) -> None:
    """Create a topic with one replica; raise KafkaException when the broker refuses."""
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=configs or {})
    # The client has to outlive its answers: librdkafka stops when it is collected.
    client = admin(bootstrap_servers)
    client.create_topics([new])[topic].result(TIMEOUT_S)


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is so: Apache Kafka's own metadata follows a change a little later."""
    deadline = time.monotonic() + TIMEOUT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
