"""The tests of the HTTP port run in a World."""

from tests.worlds import world

__all__ = ["world"]
