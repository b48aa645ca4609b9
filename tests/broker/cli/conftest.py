"""A broker for the commands, and the commands against it, in a World.

Commands as processes are in tests/real/cli.
"""

import pytest

from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.worlds import world

__all__ = ["world"]


@pytest.fixture(scope="module")
def shared_broker():
    """One broker for a module; its tests use topics of their own."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def shell(shared_broker, monkeypatch):
    """Run a command against the shared broker."""
    return Shell(monkeypatch, shared_broker.bootstrap_servers)


@pytest.fixture
def own_broker():
    """A broker that a test may stop or hold up."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def own_shell(own_broker, monkeypatch):
    """Run a command against the test's own broker."""
    return Shell(monkeypatch, own_broker.bootstrap_servers)
