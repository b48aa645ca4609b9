"""The broker itself: its settings, its connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.admin.settings import BROKER, alter_settings
from barnabas.broker.config.listener_settings import describe_settings
from barnabas.broker.console.actions.command import Command, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection


async def plan_configure(command: Command) -> Plan:
    """Return the settings that would change."""
    wanted = command.entries("configs")
    if not wanted:
        raise invalid("configs: name at least one setting")
    await configure(command, dry_run=True)
    before = {each.name: each.shown for each in describe_settings(command.broker.config)}
    changes = tuple(
        Change(name, before.get(name), value, "back to its default" if value is None else None)
        for name, value in wanted.items()
    )
    return Plan("change settings of the broker while it runs", {"changes": len(changes)}, changes)


async def configure(command: Command, _: Plan | None = None, *, dry_run: bool = False) -> None:
    """Change settings of the broker."""
    name, changes = str(command.broker.node_id), command.entries("configs").items()
    await command.wire.run(alter_settings(BROKER, name, changes, dry_run=dry_run))


async def plan_close(command: Command) -> Plan:
    """Return the connection that would be closed."""
    address = command.names["address"]
    _connection(command)
    words = f"close the connection of {address}; the client can connect again"
    return Plan(words, {"connections": 1}, basis=(address,))


async def close(command: Command, _: Plan) -> None:
    """Close a connection."""
    _connection(command).close("closed by an operator")


def _connection(command: Command) -> Connection:
    for each in command.broker.sockets.connections:
        if each.peer == command.names["address"]:
            return each
    raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "no connection from this address")
