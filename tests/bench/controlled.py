"""Brokers with ACLs for the benchmark: its client has rights by some, others by many more."""

from __future__ import annotations

from barnabas.broker.security.acls.operations import (
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.protocol.messages.create_acls import AclCreation
from tests.broker.security.access_users import add_acls, allow
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient

OTHERS = 1000
RIGHTS = (Operation.WRITE, Operation.READ, Operation.CREATE, Operation.DELETE)


def control(broker: BrokerProcess) -> BrokerProcess:
    """Turn on the authorizer of a broker before its start.

    Objects without an ACL are open, so that the client can create the first ACL.
    """
    broker.overrides |= {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    return broker


def give_rights(broker: BrokerProcess) -> None:
    """Allow the client the requests of the rows on its topics, and other users some on others."""
    own = [
        AclCreation(
            ResourceType.TOPIC,
            "bench-",
            PatternType.PREFIXED,
            "User:ANONYMOUS",
            "*",
            operation,
            Permission.ALLOW,
        )
        for operation in RIGHTS
    ]
    others = [
        each
        for number in range(OTHERS)
        for each in allow(f"u{number}", ResourceType.TOPIC, f"topic-{number}", Operation.WRITE)
    ]
    with WireClient(broker) as admin:
        add_acls(admin, [*own, *others])
