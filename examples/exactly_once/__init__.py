"""Four demonstrations of exactly-once processing; docs/exactly-once.md shows what they print.

`python -m examples.exactly_once localhost:9092` runs all of them against a broker. They need
confluent-kafka and nothing else, and run unchanged against Apache Kafka.
"""
