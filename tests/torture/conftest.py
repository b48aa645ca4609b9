"""The torture takes the same brokers as the interop tests."""

from tests.interop.conftest import broker_class, say

__all__ = ["broker_class", "say"]
