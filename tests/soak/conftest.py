"""The soak takes the same brokers as the interop tests: INTEROP_BROKER=kafka soaks Apache Kafka."""

from tests.interop.conftest import broker_class, say

__all__ = ["broker_class", "say"]
