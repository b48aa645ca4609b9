"""The tests of the console run in a World; tests/real/console has those with client libraries."""

from tests.worlds import world

__all__ = ["world"]
