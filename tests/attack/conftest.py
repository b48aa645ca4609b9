"""The attacks say their figures as the interop tests do; the broker is always this one."""

from tests.interop.conftest import say

__all__ = ["say"]
