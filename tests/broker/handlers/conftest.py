"""Fixtures of the handlers' tests."""

import pytest

from tests.broker.harness import Administration


@pytest.fixture
async def administration():
    administration = Administration()
    yield administration
    administration.stop()
    assert administration.fatal == []
