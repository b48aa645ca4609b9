"""The tests of the Spark connector run in a World; those of its processes and of TLS are in
tests/real/spark_connector."""

from tests.worlds import world

__all__ = ["world"]
