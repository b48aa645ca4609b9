"""Fixtures of the tests that need the machine."""

from __future__ import annotations

from tests.broker.conftest import pytest_asyncio_loop_factories
from tests.broker.handlers.conftest import administration, broker, wire

__all__ = ["administration", "broker", "pytest_asyncio_loop_factories", "wire"]
