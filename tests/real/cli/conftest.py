"""Brokers of the machine for commands that are processes."""

from tests.broker.cli.conftest import own_broker, own_shell, shared_broker, shell

__all__ = ["own_broker", "own_shell", "shared_broker", "shell"]
