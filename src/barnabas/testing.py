"""A real broker inside a test: ``with Broker() as broker:``; see docs/testing.md."""

from barnabas.broker.testing.embedded import (
    KAFKA_3_9,
    Broker,
    ErrorCode,
    Interception,
    Outcome,
    ReceivedRecord,
)

__all__ = ["KAFKA_3_9", "Broker", "ErrorCode", "Interception", "Outcome", "ReceivedRecord"]
