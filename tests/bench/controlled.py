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
    """Have the broker ask what a client may do; called before its start.

    What no ACL is about is allowed, so that somebody may make the first.
    """
    broker.overrides |= {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    return broker


def give_rights(broker: BrokerProcess) -> None:
    """Let the client do what the rows do with topics, and others something with others."""
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
