"""The tests of metrics run in a World; tests/real/metrics has those of processor time."""

from tests.worlds import world

__all__ = ["world"]
