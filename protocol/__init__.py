"""Bytes and their meaning: Kafka's wire protocol and record formats, without any I/O."""
