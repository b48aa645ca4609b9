"""Enumerations of access control: resources, operations, patterns, permissions.

The numbers are Kafka's, as in ACL requests and in the bit fields of KIP-430, where the bit of an
operation is ``1 << number``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ResourceType(IntEnum):
    """Type of a resource."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Comparison of an ACL's name with that of a resource."""

    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Effect of an ACL."""

    DENY = 2
    ALLOW = 3


class Operation(IntEnum):
    """Operation on a resource; ALL includes every other one."""

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
"""Value in a filter that matches every type, pattern, operation or permission."""
MATCH: Final = 2
"""Value in a filter that matches every pattern that applies to a name."""

CLUSTER_NAME: Final = "kafka-cluster"
"""Name of the one resource of the type CLUSTER."""
WILDCARD: Final = "*"
"""Name of a literal pattern that applies to every name."""

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
"""Operations of each type of resource, besides ALL."""

ASKED_BESIDES: Final = {(Operation.DELETE, ResourceType.CLUSTER)}
"""Operations that are checked although their type does not have them (by DeleteTopics), so ACLs may
name them."""

EVERY_BIT: Final = {
    kind: sum(1 << operation for operation in operations) for kind, operations in SUPPORTED.items()
}
"""All operations of each type as a bit field (KIP-430)."""

IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.ALTER_CONFIGS,)),
}
"""Operations that imply another one if they are allowed; a denial implies nothing."""

NOT_ASKED: Final = -(2**31)
"""Value of a bit field that the request did not select (KIP-430)."""


def shown(value: IntEnum) -> str:
    """Return the name that Kafka's tools print: TransactionalId, LITERAL, READ."""
    if isinstance(value, ResourceType):
        return "".join(part.capitalize() for part in value.name.split("_"))
    return value.name
