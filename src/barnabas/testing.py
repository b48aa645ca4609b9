"""A real broker inside a test: ``with Broker() as broker:``; see docs/testing.md."""

from barnabas.broker.cli.proving.for_tests import NotProved, prove
from barnabas.broker.client.dialing import connect
from barnabas.broker.testing.cluster import Cluster
from barnabas.broker.testing.cluster_broker import ClusterBroker
from barnabas.broker.testing.embedded import (
    KAFKA_3_9,
    Broker,
    ErrorCode,
    Interception,
    Outcome,
    ReceivedRecord,
)
from barnabas.broker.testing.security import AccessRule, Security, allow, deny
from barnabas.broker.testing.world.scheduler import Stuck
from barnabas.broker.testing.world.world import World

__all__ = [
    "KAFKA_3_9",
    "AccessRule",
    "Broker",
    "Cluster",
    "ClusterBroker",
    "ErrorCode",
    "Interception",
    "NotProved",
    "Outcome",
    "ReceivedRecord",
    "Security",
    "Stuck",
    "World",
    "allow",
    "connect",
    "deny",
    "prove",
]
