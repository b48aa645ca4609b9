"""Durable logs: a group-commit journal and segments in Kafka's own on-disk format."""
