"""Fixtures of the handlers' tests."""

import pytest

from barnabas.testing import Broker
from tests.broker.data_plane import Wire
from tests.broker.harness import Administration
from tests.worlds import world

__all__ = ["world"]


@pytest.fixture(scope="module")
def broker():
    """A broker for the tests of a file; a file that needs another one has a fixture of its own."""
    with Broker() as running:
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as opened:
        yield opened


@pytest.fixture
async def administration():
    administration = Administration()
    yield administration
    administration.stop()
    assert administration.fatal == []
