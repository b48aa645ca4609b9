"""Rows of Spark as record batches of Kafka: columns, partitions, headers, encoding."""
