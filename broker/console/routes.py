"""The table of routes: method, path, permission and response of each.

The table is data. Routing, permissions and parsing of requests use it; OpenAPI is generated from it
(broker/console/openapi.py), and a test requests every row as a user without permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_DENIED,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    GROUP_DENIED,
    READ,
    TOPIC,
    TOPIC_DENIED,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    Check,
    Denial,
)
from barnabas.broker.console import session, shapes
from barnabas.broker.console.actions import listing
from barnabas.broker.console.jobs.routes import JOB_ROUTES
from barnabas.broker.console.pages import groups, overview, topics, transactions
from barnabas.broker.console.pages.clients import CLIENT_ROUTES
from barnabas.broker.console.pages.events import EVENT_ROUTES
from barnabas.broker.console.pages.group_history import GROUP_HISTORY_ROUTES
from barnabas.broker.console.pages.pipelines import PIPELINE_ROUTES
from barnabas.broker.console.pages.security import SECURITY_ROUTES
from barnabas.broker.console.pages.spark_queries import SPARK_QUERY_ROUTES
from barnabas.broker.console.pages.story import STORY_ROUTES
from barnabas.broker.console.pages.topic_users import TOPIC_USER_ROUTES
from barnabas.broker.console.parameters import Parameter, paged
from barnabas.broker.console.records.routes import RECORD_ROUTES
from barnabas.broker.console.route import Route, names_in
from barnabas.broker.metrics.history import HEAT, NAMES
from barnabas.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class StreamRoute:
    """A path whose answer does not end."""

    template: str
    summary: str
    parameters: tuple[Parameter, ...]


class Match(NamedTuple):
    """A route with the names in the path."""

    route: Route
    names: dict[str, str]


def _each(check: Check) -> Check:
    """Return the check as one of each row of a list."""
    return check._replace(denial=Denial.LEFT_OUT)


_TOPIC: Final = Check(DESCRIBE, TOPIC, "topic", TOPIC_DENIED, Denial.REQUEST)
_GROUP: Final = Check(DESCRIBE, GROUP, "group", GROUP_DENIED, Denial.REQUEST)
_TRANSACTION: Final = Check(
    DESCRIBE, TRANSACTIONAL_ID, "transactional_id", TRANSACTIONAL_ID_DENIED, Denial.REQUEST
)

_THINGS: Final = (
    ("topic", "topic"),
    ("group", "group"),
    ("transactional_id", "transactional id"),
)
_CLUSTER: Final = Check(DESCRIBE, CLUSTER, "", CLUSTER_DENIED, Denial.REQUEST)

_BLOCKED: Final = Route(
    "/api/v1/blocked-partitions",
    "Partitions with blocked read_committed consumers, and their open transactions",
    transactions.list_holders,
    shapes.HolderPage,
    _each(_TOPIC)._replace(operation=READ),
    paged("topic", transactions.HOLDER_ORDERS, "the topic's name"),
)

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "/api/v1/overview",
        "State of the broker: readiness, rates, counts, problems",
        overview.overview,
        shapes.Overview,
        _CLUSTER,
        watched="overview",
    ),
    Route(
        "/api/v1/topics",
        "List of the topics",
        topics.list_topics,
        shapes.TopicPage,
        _each(_TOPIC),
        (
            *paged("topic", topics.TOPIC_ORDERS, "their name"),
            Parameter("internal", "Whether those of the broker itself are in it.", bool, False),
        ),
    ),
    Route(
        "/api/v1/topics/{topic}",
        "One topic: sizes, offsets, configurations",
        topics.describe_one,
        shapes.TopicDescription,
        _TOPIC,
        watched="topic",
    ),
    Route(
        "/api/v1/topics/{topic}/partitions",
        "Partitions of a topic",
        topics.list_partitions,
        shapes.PartitionPage,
        _TOPIC,
        paged("partition", topics.PARTITION_ORDERS),
    ),
    Route(
        "/api/v1/groups",
        "List of the consumer groups",
        groups.list_groups,
        shapes.GroupPage,
        _each(_GROUP),
        (
            *paged("group", groups.ORDERS, "their id"),
            Parameter("state", "Only those in this state.", choices=groups.STATES),
        ),
    ),
    Route(
        "/api/v1/groups/{group}",
        "One group: state, members, lag and its cause",
        groups.describe_one,
        shapes.GroupDescription,
        _GROUP,
        paged("topic", groups.PARTITION_ORDERS),
        watched="group",
    ),
    Route(
        "/api/v1/transactions",
        "List of the transactional IDs",
        transactions.list_transactions,
        shapes.TransactionPage,
        _each(_TRANSACTION),
        (
            *paged("transactional_id", transactions.ORDERS, "their id"),
            Parameter("state", "Only those in this state.", choices=transactions.STATES),
            Parameter("open", "Only those with something that is not over.", bool, False),
        ),
        watched="transactions",
        watched_query={"open": "true", "sort": "start_time_ms"},
    ),
    Route(
        "/api/v1/transactions/{transactional_id}",
        "One transactional ID: state, producer, client, partitions",
        transactions.describe_one,
        shapes.TransactionDescription,
        _TRANSACTION,
        paged("topic", transactions.PARTITION_ORDERS),
        watched="transaction",
    ),
    _BLOCKED,
    replace(_BLOCKED, template="/api/v1/holders", summary="Old name of blocked-partitions"),
    Route(
        "/api/v1/session",
        "The user, and whether the console allows changes",
        session.session,
        session.Session,
        _CLUSTER._replace(denial=Denial.LEFT_OUT),
    ),
    Route(
        "/api/v1/actions",
        "The possible changes with their fields",
        listing.list_actions,
        listing.ActionList,
        _CLUSTER._replace(denial=Denial.LEFT_OUT),
    ),
    Route(
        "/api/v1/allowed",
        "The changes that the user may make to the broker or to the named resources",
        listing.list_allowed,
        listing.PermissionList,
        _CLUSTER._replace(denial=Denial.LEFT_OUT),
        tuple(Parameter(kind, f"A {words}.") for kind, words in _THINGS),
    ),
    Route(
        "/api/v1/storage",
        "The data directory and the disk",
        overview.storage,
        shapes.Storage,
        _CLUSTER,
    ),
    Route(
        "/api/v1/settings",
        "Each key with its value and its source",
        overview.list_settings,
        shapes.SettingPage,
        _CLUSTER._replace(operation=DESCRIBE_CONFIGS),
        (
            *paged("key", overview.SETTING_ORDERS, "the key"),
            Parameter("changed", "Only those that are not at their defaults.", bool, False),
        ),
    ),
    Route(
        "/api/v1/history",
        "Time series of the last ten minutes or the last six hours",
        overview.history,
        shapes.HistoryOfBroker,
        _CLUSTER,
        (
            Parameter(
                "series",
                "Names, with commas between: " + ", ".join((*NAMES, *HEAT)) + ".",
                default=NAMES[0],
            ),
            Parameter("step_s", "Seconds between two values.", int, 1, choices=("1", "10")),
            Parameter("since_ms", "Only values from this time on.", int, 0),
        ),
    ),
    *GROUP_HISTORY_ROUTES,
    *STORY_ROUTES,
    *CLIENT_ROUTES,
    *RECORD_ROUTES,
    *EVENT_ROUTES,
    *PIPELINE_ROUTES,
    *SPARK_QUERY_ROUTES,
    *TOPIC_USER_ROUTES,
    *JOB_ROUTES,
    *SECURITY_ROUTES,
)

LIVE: Final = StreamRoute(
    "/api/v1/live",
    "The newest state of the watched objects, once a second, as server-sent events",
    (
        Parameter(
            "watch",
            "Things, with commas between: "
            + ", ".join(
                f"{route.watched}:{{{route.name_in_path}}}" if route.name_in_path else route.watched
                for route in ROUTES
                if route.watched
            )
            + ". Names are percent-encoded once more.",
            default="overview",
        ),
    ),
)

_BY_LENGTH: Final[Mapping[int, tuple[tuple[Route, tuple[str, ...]], ...]]] = {
    length: tuple((route, route.parts) for route in ROUTES if len(route.parts) == length)
    for length in {len(route.parts) for route in ROUTES}
}


def match(parts: tuple[str, ...]) -> Match:
    """Find the route of a path; raises KafkaError."""
    for route, pattern in _BY_LENGTH.get(len(parts), ()):
        names = names_in(pattern, parts)
        if names is not None:
            return Match(route, names)
    raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "no such path; /api/openapi.json lists them")
