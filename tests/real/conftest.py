"""Fixtures of the tests that need the machine."""

from __future__ import annotations

import pytest

from tests.broker.conftest import pytest_asyncio_loop_factories
from tests.broker.handlers.conftest import administration, broker, wire
from tests.secured import Keys

__all__ = ["administration", "broker", "pytest_asyncio_loop_factories", "wire"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Keys and certificates of a broker and its clients, as files."""
    return Keys(tmp_path_factory.mktemp("keys"))
