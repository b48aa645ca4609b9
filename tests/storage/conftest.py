"""What tests of the storage share."""

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem


@pytest.fixture
def disk():
    disk = SimulatedFileSystem()
    disk.make_directory("/data")
    return disk
