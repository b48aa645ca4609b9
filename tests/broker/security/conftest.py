"""The tests of security run in a World; those of TLS are in tests/real/security."""

from tests.worlds import world

__all__ = ["world"]
