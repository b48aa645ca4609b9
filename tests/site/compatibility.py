"""Write docs/kafka-compatibility.md from the routes of the broker: ``make docs-compatibility``.

With ``--check`` it only reports by its exit code whether the page is current.
"""

from __future__ import annotations

import sys
from typing import Final

# A handler registers its route when it is imported.
import barnabas.broker.handlers
from barnabas.broker.api.dispatch import ROUTES, Route
from barnabas.broker.config.pages.generated_page import write_or_compare
from tests.checkout import ROOT

PAGE: Final = ROOT / "docs" / "kafka-compatibility.md"

REPLICAS: Final = "brokers do not copy partitions to each other"
QUORUM: Final = "brokers have no controller quorum"
SHARE_GROUPS: Final = "share groups (KIP-932) are not implemented"
STREAMS_GROUPS: Final = (
    "streams groups (KIP-1071) are not implemented; Kafka Streams works with "
    "`group.protocol=classic`"
)
TELEMETRY: Final = "the broker does not collect metrics of clients (KIP-714)"
TOKENS: Final = "delegation tokens are not implemented"

ABSENT: Final = {
    "AddRaftVoter": (80, QUORUM),
    "AlterReplicaLogDirs": (34, "a broker has one data directory"),
    "AlterShareGroupOffsets": (91, SHARE_GROUPS),
    "CreateDelegationToken": (38, TOKENS),
    "DeleteShareGroupOffsets": (92, SHARE_GROUPS),
    "DeleteShareGroupState": (86, SHARE_GROUPS),
    "DescribeDelegationToken": (41, TOKENS),
    "DescribeQuorum": (55, QUORUM),
    "DescribeShareGroupOffsets": (90, SHARE_GROUPS),
    "ExpireDelegationToken": (40, TOKENS),
    "GetTelemetrySubscriptions": (71, TELEMETRY),
    "InitializeShareGroupState": (83, SHARE_GROUPS),
    "PushTelemetry": (72, TELEMETRY),
    "ReadShareGroupState": (84, SHARE_GROUPS),
    "ReadShareGroupStateSummary": (87, SHARE_GROUPS),
    "RemoveRaftVoter": (81, QUORUM),
    "RenewDelegationToken": (39, TOKENS),
    "ShareAcknowledge": (79, SHARE_GROUPS),
    "ShareFetch": (78, SHARE_GROUPS),
    "ShareGroupDescribe": (77, SHARE_GROUPS),
    "ShareGroupHeartbeat": (76, SHARE_GROUPS),
    "StreamsGroupDescribe": (89, STREAMS_GROUPS),
    "StreamsGroupHeartbeat": (88, STREAMS_GROUPS),
    "UnregisterBroker": (64, "a broker that stops leaves the cluster by itself"),
    "WriteShareGroupState": (85, SHARE_GROUPS),
}
"""The APIs of Apache Kafka's brokers that Barnabas does not serve: key and reason."""

_GROUPS: Final = "[Groups](groups.md#committed-offsets)"
_TRANSACTIONS: Final = "[Transactions](transactions.md#differences-from-apache-kafka)"
_CONFIGS: Final = "[Settings](administration.md#settings)"
_AUTHENTICATION: Final = (
    "[Authentication](security/reference.md#authentication-differences-from-apache-kafka)"
)
_ACLS: Final = (
    "`SECURITY_DISABLED` without `authorizer.class.name`; "
    "[ACLs](security/reference.md#acls-differences-from-apache-kafka)"
)

DIFFERENCES: Final = {
    "AlterConfigs": f"Settings of client metrics are rejected. {_CONFIGS}",
    "AlterPartitionReassignments": (
        "No data moves. A broker that is alone accepts the present assignment only. In a "
        "cluster the first "
        "replica becomes the leader, and the partition is pinned to it."
    ),
    "AlterUserScramCredentials": _AUTHENTICATION,
    "ConsumerGroupDescribe": "At most 100,000 partitions in one response.",
    "ConsumerGroupHeartbeat": (
        "[Groups of the consumer protocol](groups.md#groups-of-the-consumer-protocol)"
    ),
    "CreateAcls": _ACLS,
    "DeleteAcls": _ACLS,
    "DescribeAcls": _ACLS,
    "DescribeConfigs": _CONFIGS,
    "DescribeGroups": "At most 16 MiB of members in one response.",
    "DescribeLogDirs": "One directory.",
    "DescribeProducers": (
        "In a cluster a broker that is shown among the replicas forwards the request to "
        "the partition leader, for 10 s "
        "at most. CLUSTER_ACTION on the cluster suffices, as READ on the topic does."
    ),
    "DescribeTransactions": f"At most 10,000 IDs in one request. {_TRANSACTIONS}",
    "DescribeUserScramCredentials": _AUTHENTICATION,
    "ElectLeaders": (
        "`ELECTION_NOT_NEEDED` for each partition. In a cluster a pinned partition "
        "returns to its broker, after the response."
    ),
    "EndTxn": _TRANSACTIONS,
    "FindCoordinator": "Share groups have no coordinator.",
    "IncrementalAlterConfigs": f"Settings of client metrics are rejected. {_CONFIGS}",
    "InitProducerId": f"Version 6 (KIP-939) is served and not unstable. {_TRANSACTIONS}",
    "ListOffsets": "The largest timestamp, with `read_committed`: the youngest stable record.",
    "ListPartitionReassignments": "Always empty: no data moves.",
    "ListTransactions": f"At most 100,000 IDs in one response. {_TRANSACTIONS}",
    "OffsetCommit": _GROUPS,
    "OffsetFetch": (
        f"At most 10,000 groups in one request. {_GROUPS}; [closed "
        "connections](closed-connections.md#offsetfetch)"
    ),
    "Produce": (
        "Versions 0 to 2 are advertised, as in Apache Kafka, and not served. [Rules of a "
        "batch](batch-header.md)"
    ),
    "SaslAuthenticate": _AUTHENTICATION,
    "SyncGroup": (
        "`REBALANCE_IN_PROGRESS` while the group is being loaded; Apache Kafka returns "
        "`COORDINATOR_LOAD_IN_PROGRESS`."
    ),
    "TxnOffsetCommit": _GROUPS,
    "UpdateFeatures": (
        "`group.version` stays at 1. Lower levels of `metadata.version` are accepted and "
        "have no effect."
    ),
}
"""Differences from Apache Kafka 4.3.0, by API."""

_INTRODUCTION: Final = """\
# Kafka compatibility

Barnabas serves {served} of the {all} APIs that a broker of Apache Kafka 4.3.0 serves to clients,
each in all versions that Apache Kafka 4.3.0 serves. `make docs-compatibility` writes the page from
the routes of the broker, and a test compares it with the definitions in Apache Kafka's jars.

## APIs

| API | Key | Versions | What differs from Apache Kafka 4.3.0 |
|---|---|---|---|
"""

_ABSENT: Final = """
## APIs that are absent

ApiVersions does not list them, so a client library reports that the broker does not support the
request.

| API | Key | Reason |
|---|---|---|
"""

_ELSEWHERE: Final = """
## Behaviour

| Subject | Differences |
|---|---|
| settings, defaults, Kafka's tools | [Administration](administration.md) |
| groups and committed offsets | [Groups](groups.md) |
| transactions | [Transactions](transactions.md#differences-from-apache-kafka) |
| headers of record batches | [Batch headers](batch-header.md) |
| authentication and ACLs | [Security](security/reference.md) |
| connections that the broker closes | [Closed connections](closed-connections.md) |
| replicas in a cluster | [A cluster](cluster.md#limits) |

There is no replication between brokers, no tiered storage, no Kerberos and no ZooKeeper. Apache
Kafka cannot open a data directory that Barnabas has used: [Migration](migration.md).
"""


def served() -> list[Route]:
    """Return the routes of the Kafka API, in the order of their keys."""
    assert barnabas.broker.handlers
    return sorted(ROUTES, key=lambda route: route.key)


def page() -> str:
    """Return the page."""
    routes = served()
    rows = "".join(
        f"| {route.name} | {route.key} | {_versions(route)} | {DIFFERENCES.get(route.name, '')} |\n"
        for route in routes
    )
    absent = "".join(f"| {name} | {key} | {why} |\n" for name, (key, why) in sorted(ABSENT.items()))
    counts = {"served": len(routes), "all": len(routes) + len(ABSENT)}
    return f"{_INTRODUCTION.format(**counts)}{rows}{_ABSENT}{absent}{_ELSEWHERE}"


def _versions(route: Route) -> str:
    first = route.min_version
    return f"{first}" if first == route.max_version else f"{first} to {route.max_version}"


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    return write_or_compare(
        PAGE, page(), module="tests.site.compatibility", target="docs-compatibility"
    )


if __name__ == "__main__":
    sys.exit(main())
