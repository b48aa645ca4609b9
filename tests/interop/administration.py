"""Topics for the tests, through one of the clients under test."""

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
