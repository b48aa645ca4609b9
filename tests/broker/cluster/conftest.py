"""The tests of clusters run in a World; those with client libraries are in tests/real/cluster."""

from tests.worlds import world

__all__ = ["world"]
