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
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
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
from barnabas.broker.console.route import Route, names_in, required, visible
from barnabas.broker.metrics.history import HEAT, NAMES
from barnabas.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class StreamRoute:
    """A path whose response does not end."""

    template: str
    summary: str
    parameters: tuple[Parameter, ...]


class Match(NamedTuple):
    """A route with the names in the path."""

    route: Route
    names: dict[str, str]


_THINGS: Final = (
    ("topic", "topic"),
    ("group", "group"),
    ("transactional_id", "transactional id"),
)

_BLOCKED: Final = Route(
    "/api/v1/blocked-partitions",
    "Partitions with blocked read_committed consumers, and their open transactions",
    transactions.list_blocked,
    shapes.BlockedPage,
    visible(TOPIC, READ),
    paged("topic", transactions.BLOCKED_ORDERS, "the topic's name"),
)

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "/api/v1/overview",
        "State of the broker: readiness, rates, counts, problems",
        overview.overview,
        shapes.Overview,
        required(CLUSTER),
        watched="overview",
    ),
    Route(
        "/api/v1/topics",
        "List of the topics",
        topics.list_topics,
        shapes.TopicPage,
        visible(TOPIC),
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
        required(TOPIC),
        watched="topic",
    ),
    Route(
        "/api/v1/topics/{topic}/partitions",
        "Partitions of a topic",
        topics.list_partitions,
        shapes.PartitionPage,
        required(TOPIC),
        paged("partition", topics.PARTITION_ORDERS),
    ),
    Route(
        "/api/v1/groups",
        "List of the consumer groups",
        groups.list_groups,
        shapes.GroupPage,
        visible(GROUP),
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
        required(GROUP),
        paged("topic", groups.PARTITION_ORDERS),
        watched="group",
    ),
    Route(
        "/api/v1/transactions",
        "List of the transactional IDs",
        transactions.list_transactions,
        shapes.TransactionPage,
        visible(TRANSACTIONAL_ID),
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
        required(TRANSACTIONAL_ID),
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
        visible(CLUSTER),
    ),
    Route(
        "/api/v1/actions",
        "The possible changes with their fields",
        listing.list_actions,
        listing.ActionList,
        visible(CLUSTER),
    ),
    Route(
        "/api/v1/allowed",
        "The changes that the user may make to the broker or to the named resources",
        listing.list_allowed,
        listing.PermissionList,
        visible(CLUSTER),
        tuple(Parameter(kind, f"A {words}.") for kind, words in _THINGS),
    ),
    Route(
        "/api/v1/storage",
        "The data directory and the disk",
        overview.storage,
        shapes.Storage,
        required(CLUSTER),
    ),
    Route(
        "/api/v1/settings",
        "Each key with its value and its source",
        overview.list_settings,
        shapes.SettingPage,
        required(CLUSTER, DESCRIBE_CONFIGS),
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
        required(CLUSTER),
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
