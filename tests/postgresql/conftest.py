"""Servers that the tests of a file share: an index names nothing that another one has."""

import pytest

from tests.counterparts.postgresql_servers import Pair, Server


@pytest.fixture(scope="module")
def server():
    """A single server."""
    with Server() as running:
        yield running


@pytest.fixture
def pair():
    """A primary and its synchronous standby, of which a test may do what it likes."""
    with Pair() as running:
        yield running
