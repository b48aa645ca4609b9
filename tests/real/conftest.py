"""Fixtures of the tests that need the machine."""

import pytest

from barnabas.testing import Broker
from tests.broker.conftest import pytest_asyncio_loop_factories
from tests.broker.data_plane import Wire
from tests.broker.handlers.conftest import administration

__all__ = ["administration", "pytest_asyncio_loop_factories"]


@pytest.fixture(scope="module")
def broker():
    """A broker for the tests of a file; a file that needs another one has a fixture of its own."""
    with Broker() as running:
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as opened:
        yield opened
