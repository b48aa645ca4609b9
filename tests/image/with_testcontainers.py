"""A user of testcontainers-python: `python with_testcontainers.py zookeeper|kraft`.

Starts a Kafka container with the module's own ways, prints its address, and stops it when standard
input ends.
"""

import sys

from testcontainers.community.kafka import KafkaContainer

# A tag that the module takes for a Confluent release with KRaft.
IMAGE = "barnabas:7.9.0"


def main():
    """Start, tell, wait, stop."""
    kafka = KafkaContainer(IMAGE)
    if sys.argv[1] == "kraft":
        kafka = kafka.with_kraft()
    with kafka:
        print(kafka.get_bootstrap_server(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
