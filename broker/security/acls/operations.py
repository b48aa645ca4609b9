"""What access control speaks of: resources, operations on them, patterns, permissions.

The numbers are Kafka's, of the ACL requests and of the bit fields of KIP-430, where the bit of an
operation is ``1 << number``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ResourceType(IntEnum):
    """What an operation is done to."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of an ACL is compared with that of a resource."""

    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether an ACL is for or against."""

    DENY = 2
    ALLOW = 3


class Operation(IntEnum):
    """What is done to a resource; ALL stands for every other one."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


ANY: Final = 1
"""Stands for everything in a filter, of types, patterns, operations and permissions alike."""
MATCH: Final = 2
"""In a filter, for every pattern that applies to a name."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of the type CLUSTER."""
WILDCARD: Final = "*"
"""A literal pattern with this name applies to every name."""

SUPPORTED: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that each type of resource knows, besides ALL."""

ASKED_BESIDES: Final = {(Operation.DELETE, ResourceType.CLUSTER)}
"""What is asked for although it is none of those (by DeleteTopics), so ACLs may be about it."""

EVERY_BIT: Final = {
    kind: sum(1 << operation for operation in operations) for kind, operations in SUPPORTED.items()
}
"""All of them as a bit field (KIP-430)."""

IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.ALTER_CONFIGS,)),
}
"""Which other operations allow one where they are allowed; of a denial nothing follows."""

NOT_ASKED: Final = -(2**31)
"""The value of a bit field that stands for "the request did not ask" (KIP-430)."""


def shown(value: IntEnum) -> str:
    """Return how Kafka's tools write a name of these: TransactionalId, LITERAL, READ."""
    if isinstance(value, ResourceType):
        return "".join(part.capitalize() for part in value.name.split("_"))
    return value.name
