"""Names of readers, as far as a caller may see them.

DESCRIBE on a topic shows how far a connection reads it, and not whose the connection is: Apache
Kafka shows users and addresses to no caller, and client ids to those with DESCRIBE on the group. So
user and address need DESCRIBE on the cluster, like the list of connections; the client id needs
that as well, or DESCRIBE on a group that has a member of this client id and host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from barnabas.broker.api.checks import CLUSTER, GROUP
from barnabas.broker.console.pacing import CLIENT_UNITS
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.coordinator.groups.classic import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.network.connection import Connection
    from barnabas.coordinator.groups.group import Group


class ReaderNames:
    """Rules for one request."""

    def __init__(self, members: frozenset[tuple[str, str]], *, has_cluster: bool) -> None:
        """``members``: client ids and hosts in groups that the caller may describe."""
        self._members = members
        self._has_cluster = has_cluster

    @classmethod
    async def of(cls, question: Question) -> Self:
        """Return the rules for the caller of ``question``."""
        if question.access.may_see(CLUSTER, CLUSTER_NAME):
            return cls(frozenset(), has_cluster=True)
        return cls(await _described_members(question), has_cluster=False)

    def client(self, connection: Connection) -> str | None:
        """Return the client id of a connection, or `None` if the caller may not see it."""
        is_member = (connection.client_id, f"/{connection.peer_host}") in self._members
        return connection.client_id if self._has_cluster or is_member else None

    def address(self, connection: Connection) -> str | None:
        """Return the address of a connection, or `None` if the caller may not see it."""
        return connection.peer if self._has_cluster else None

    def user(self, connection: Connection) -> str | None:
        """Return the principal of a connection, or `None` if the caller may not see it."""
        return str(connection.session.principal) if self._has_cluster else None


async def _described_members(question: Question) -> frozenset[tuple[str, str]]:
    """Return client ids and hosts of the members of groups that the caller may describe."""
    groups, found = question.broker.groups, set()
    if not groups.is_coordinator() or groups.is_loading:
        return frozenset()
    for machine in groups.machines:
        for group_id, group in list(machine.groups.items()):
            await question.pace.spend()
            if not group.members or not question.access.may_see(GROUP, group_id):
                continue
            for member in _clients_of(group):
                await question.pace.spend(CLIENT_UNITS)
                found.add(member)
    return frozenset(found)


def _clients_of(group: Group) -> list[tuple[str, str]]:
    """Return client id and host of each member."""
    if isinstance(group, ConsumerGroup):
        return [(each.client_id, each.client_host) for each in group.members.values()]
    if isinstance(group, ClassicGroup):
        return [(each.client_id, each.client_host) for each in group.members.values()]
    return []
