"""Kafka's wire protocol: bytes to meaning and back, without I/O, clocks or logging."""
