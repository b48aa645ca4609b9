"""A broker with access control whose clients need not log in, and whose ACLs a test changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.broker.security.acls.acls import Acl
from barnabas.broker.security.acls.authorizer import row_of
from barnabas.broker.security.acls.operations import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire
from tests.broker.security.access_users import AUTHORIZER
from tests.waiting import wait_until

ANYBODY = "User:ANONYMOUS"

TOPIC = ResourceType.TOPIC
GROUP = ResourceType.GROUP
CLUSTER = ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


def right(
    operation: Operation,
    kind: ResourceType,
    name: str = WILDCARD,
    *,
    permission: Permission = Permission.ALLOW,
) -> Acl:
    """Return an ACL for all users, for all names or for one."""
    if kind is CLUSTER:
        name = CLUSTER_NAME
    return Acl(kind, name, PatternType.LITERAL, ANYBODY, "*", operation, permission)


class Rights:
    """The ACLs of a broker: ``give`` and ``take`` count at once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def give(self, *acls: Acl) -> None:
        """Add ACLs."""
        self._change(acls, ())

    def take(self, *acls: Acl) -> None:
        """Remove existing ACLs."""
        self._change((), acls)

    def _change(self, added: tuple[Acl, ...], removed: tuple[Acl, ...]) -> None:
        def change() -> None:
            server = self._broker.server
            assert server.authorizer is not None
            new = [acl for acl in added if acl not in server.authorizer.acls]
            server.metastore.change_acls(list(map(row_of, new)), list(map(row_of, removed)))
            server.authorizer.change(new, removed)

        self._broker.call(change)


@contextmanager
def controlled_broker(*acls: Acl, **settings: str) -> Iterator[tuple[Broker, Rights]]:
    """Run a broker that allows only these ACLs, to all users."""
    config = {"authorizer.class.name": AUTHORIZER}
    config |= {key.replace("_", "."): value for key, value in settings.items()}
    with Broker(config=config) as broker:
        rights = Rights(broker)
        rights.give(*acls)
        yield broker, rights


def topic_of(broker: Broker, name: str, partitions: int = 1) -> Named:
    """A new topic."""
    broker.create_topic(name, partitions)
    return Named(name, broker.call(lambda: broker.server.catalogue.topics[name].topic_id))


def log_end(broker: Broker, topic: Named, partition: int = 0) -> int:
    """Return the number of records, including control records."""
    log = broker.server.catalogue.topics[topic.name].partitions[partition].log
    found: Any = broker.call(lambda: log.high_watermark)
    assert isinstance(found, int)
    return found


def become(broker: Broker, wire: Wire, principal: str) -> None:
    """Make the client of a connection another one."""

    def changed() -> bool:
        name = wire.socket.getsockname()
        for connection in broker.server.sockets.connections:
            if connection._transport.get_extra_info("peername") == name:
                connection.session.access.principal = principal
                connection.session.access._forget()
                return True
        return False

    wait_until(lambda: broker.call(changed), "the connection accepted")
