"""Fixtures of the tests of the storage."""

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem


@pytest.fixture
def disk():
    disk = SimulatedFileSystem()
    disk.make_directory("/data")
    return disk
