"""Data directories of Apache Kafka."""
