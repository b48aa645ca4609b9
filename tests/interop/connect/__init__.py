"""Kafka Connect and the connectors in it, through kills of its workers and of the brokers."""
