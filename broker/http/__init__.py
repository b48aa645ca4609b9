"""The HTTP port: metrics and health, off the Kafka listeners."""
