"""The table of actions: each change with its path, fields and permission.

It decides for the page, which draws its forms from it, for the API, for what is allowed and for
what is written to the audit log. A test asks every row in every mode of access.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from barnabas.broker.admin.quotas import DEFAULT
from barnabas.broker.api.checks import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Check,
)
from barnabas.broker.console.actions import (
    broker,
    groups,
    records,
    replay,
    security,
    topics,
    transactions,
)
from barnabas.broker.console.actions.command import Command
from barnabas.broker.console.actions.effect import Plan
from barnabas.broker.console.actions.fields import (
    HEADERS,
    HIDDEN,
    INTEGER,
    LONG,
    MAP,
    ONCE,
    TEXT,
    Field,
)
from barnabas.broker.console.jobs.replay import NAME as REPLAY
from barnabas.broker.console.route import is_name, parts_of, required
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME, shown

Planning: TypeAlias = Callable[[Command], Awaitable[Plan]]
Doing: TypeAlias = Callable[[Command, Plan], Awaitable[Plan | None]]
"""Function that changes something, and returns a plan with more details, if it has any."""


@dataclass(frozen=True, slots=True)
class Action:
    """One row."""

    name: str
    title: str
    method: str
    template: str
    planning: Planning
    doing: Doing
    check: Check
    """Required permission; ``name`` is the name of the resource in the path or the body."""
    fields: tuple[Field, ...] = ()
    is_destructive: bool = False
    """Whether the request must repeat the name of the object and contain ``based_on``."""
    kind: str = ""
    """Kind of the resource in ``/api/v1/allowed``, or empty for the broker."""
    one_of: tuple[str, ...] = ()
    """Fields of which the request needs exactly one."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The template, divided as a request's path is."""
        return parts_of(self.template)

    def resource(self, names: Mapping[str, str], values: Mapping[str, object]) -> str:
        """Return the name of the object that the action changes."""
        name = self.check.name
        return str(names.get(name) or values.get(name) or "") if name else CLUSTER_NAME

    def denial(self, access: Access, resource: str) -> str | None:
        """Return the reason for a denial, or None if the action is allowed."""
        check = self.check
        if access.may_see(check.resource_type, resource, check.operation):
            return None
        for operation, kind in check.or_else:
            if access.may_see(kind, CLUSTER_NAME, operation):
                return None
        needed = f"{shown(check.operation)} on {shown(check.resource_type)}:{resource}"
        return f"{access.principal} lacks {needed}"

    def confirmed_as(self, names: Mapping[str, str]) -> str:
        """Return the text to type for confirmation."""
        return next((names[each[1:-1]] for each in reversed(self.parts) if is_name(each)), "")


_PARTITION: Final = Field("partition", INTEGER, "Number of the partition, or empty for all.")
_CONFIGS: Final = Field(
    "configs",
    MAP,
    "A line for each: key=value, or the key alone to restore its default.",
    required=True,
    label="Configurations",
)
_FORMAT: Final = "Encoding of the text; null: no text."

TOPIC_KIND: Final = "topic"
GROUP_KIND: Final = "group"
TRANSACTION_KIND: Final = "transactional_id"


_ONCE: Final = Field(
    "once", ONCE, "A text of the sender: the broker runs requests with the same text once."
)

_RULE: Final = (
    Field("operation", TEXT, "Operation.", required=True, choices=security.OPERATIONS),
    Field(
        "resource_type",
        TEXT,
        "Type of the resource.",
        required=True,
        choices=security.RESOURCE_TYPES,
    ),
    Field(
        "name",
        TEXT,
        "Name of the resource; * for all, kafka-cluster for the cluster.",
        required=True,
    ),
    Field(
        "pattern",
        TEXT,
        "PREFIXED: all names that begin with the name.",
        choices=security.PATTERNS,
        default=security.PATTERNS[0],
    ),
    Field(
        "permission",
        TEXT,
        "DENY takes precedence over ALLOW.",
        choices=security.PERMISSIONS,
        default=security.PERMISSIONS[0],
    ),
    Field("host", TEXT, "Address or network of the client; * for all.", default="*"),
)

ACTIONS: Final[tuple[Action, ...]] = (
    Action(
        "topic.create",
        "Create a topic",
        "POST",
        "/api/v1/topics",
        topics.plan_create,
        topics.create,
        required(TOPIC, CREATE, (CREATE, CLUSTER)),
        (
            Field("topic", TEXT, "Letters, digits, dots, dashes, underscores.", required=True),
            Field("partitions", INTEGER, "Number of partitions, or empty for num.partitions."),
            Field("configs", MAP, "A line for each: key=value.", label="Configurations"),
        ),
    ),
    Action(
        "topic.configure",
        "Change configurations",
        "PATCH",
        "/api/v1/topics/{topic}/settings",
        topics.plan_configure,
        topics.configure,
        required(TOPIC, ALTER_CONFIGS),
        (_CONFIGS,),
        kind=TOPIC_KIND,
    ),
    Action(
        "topic.add_partitions",
        "Add partitions",
        "POST",
        "/api/v1/topics/{topic}/partitions",
        topics.plan_add_partitions,
        topics.add_partitions,
        required(TOPIC, ALTER),
        (Field("partitions", INTEGER, "New total number of partitions.", required=True),),
        kind=TOPIC_KIND,
    ),
    Action(
        "records.produce",
        "Produce a record",
        "POST",
        "/api/v1/topics/{topic}/records",
        records.plan_produce,
        records.produce,
        required(TOPIC, WRITE),
        (
            Field("key", TEXT, "Records with the same key go to the same partition."),
            Field("key_format", TEXT, _FORMAT, choices=records.FORMATS, default="null"),
            Field("value", LONG, "Value of the record."),
            Field("value_format", TEXT, _FORMAT, choices=records.FORMATS, default="text"),
            Field(
                "headers",
                HEADERS,
                "A line for each, in their order: name=value, name:hex=00ff, or the name alone "
                "for null; or as JSON.",
            ),
            Field(
                "partition", INTEGER, "Number of the partition, or empty to choose it by the key."
            ),
            _ONCE,
        ),
        kind=TOPIC_KIND,
    ),
    Action(
        REPLAY,
        "Replay records",
        "POST",
        "/api/v1/jobs",
        replay.plan_replay,
        replay.replay,
        required(TOPIC, WRITE)._replace(name="target"),
        (
            Field("topic", TEXT, "Topic to read.", required=True),
            Field("target", TEXT, "Topic to write.", required=True),
            Field(
                "offsets",
                TEXT,
                "Only these offsets: 0:5 0:10-20 are offsets 5 and 10 to 20 of partition 0.",
            ),
            Field("filter", TEXT, "Only records that match this search."),
            Field("partition", TEXT, "Numbers, separated by commas, or empty for all partitions."),
            Field(
                "from",
                TEXT,
                "beginning, offset:N, time:MILLISECONDS or last:N of each partition; empty for the "
                "beginning.",
            ),
            Field(
                "until_ms",
                INTEGER,
                "Only older records: milliseconds since 1970.",
                label="Written before",
            ),
            Field(
                "partitioning",
                TEXT,
                "Partition by the key of the record, or the same number.",
                choices=replay.PARTITIONING,
                default=replay.BY_KEY,
            ),
            Field(
                "timestamps",
                TEXT,
                "Time of the replay, or of the record; retention depends on it.",
                choices=replay.TIMES,
                default=replay.NOW,
            ),
            _ONCE,
        ),
        kind=TOPIC_KIND,
    ),
    Action(
        "job.cancel",
        "Cancel the job",
        "DELETE",
        "/api/v1/jobs/{transactional_id}",
        replay.plan_cancel,
        replay.cancel,
        required(TRANSACTIONAL_ID, WRITE),
        kind=TRANSACTION_KIND,
    ),
    Action(
        "topic.delete_records",
        "Delete records",
        "DELETE",
        "/api/v1/topics/{topic}/records",
        topics.plan_delete_records,
        topics.delete_records,
        required(TOPIC, DELETE),
        (
            _PARTITION,
            Field(
                "before_offset",
                INTEGER,
                "Delete the records before this offset, or empty for all records.",
            ),
        ),
        is_destructive=True,
        kind=TOPIC_KIND,
    ),
    Action(
        "topic.delete",
        "Delete the topic",
        "DELETE",
        "/api/v1/topics/{topic}",
        topics.plan_delete,
        topics.delete,
        required(TOPIC, DELETE, (DELETE, CLUSTER)),
        is_destructive=True,
        kind=TOPIC_KIND,
    ),
    Action(
        "group.reset_offsets",
        "Reset offsets",
        "POST",
        "/api/v1/groups/{group}/reset-offsets",
        groups.plan_reset_offsets,
        groups.reset_offsets,
        required(GROUP, READ),
        (
            Field(
                "to",
                TEXT,
                "beginning, end, an offset, -N for the last N, or @2026-01-31T12:00:00.",
                label="New position",
            ),
            Field(
                "by",
                INTEGER,
                "Number of offsets to skip, instead of a position; if negative, to read again.",
                label="Shift by",
            ),
            Field("topic", TEXT, "Topic, or empty for all topics of the group."),
            _PARTITION,
        ),
        is_destructive=True,
        kind=GROUP_KIND,
        one_of=("to", "by"),
    ),
    Action(
        "group.delete_offsets",
        "Delete offsets of a topic",
        "DELETE",
        "/api/v1/groups/{group}/offsets",
        groups.plan_delete_offsets,
        groups.delete_offsets,
        required(GROUP, DELETE),
        (Field("topic", TEXT, "Topic; no member of the group may read it now.", required=True),),
        is_destructive=True,
        kind=GROUP_KIND,
    ),
    Action(
        "group.delete",
        "Delete the group",
        "DELETE",
        "/api/v1/groups/{group}",
        groups.plan_delete,
        groups.delete,
        required(GROUP, DELETE),
        is_destructive=True,
        kind=GROUP_KIND,
    ),
    Action(
        "transaction.abort",
        "Abort the transaction",
        "POST",
        "/api/v1/transactions/{transactional_id}/abort",
        transactions.plan_abort,
        transactions.abort,
        required(TRANSACTIONAL_ID, WRITE),
        is_destructive=True,
        kind=TRANSACTION_KIND,
    ),
    Action(
        "transaction.abort_hanging",
        "Abort hanging transaction",
        "POST",
        "/api/v1/topics/{topic}/abort",
        transactions.plan_abort_hanging,
        transactions.abort_hanging,
        required(CLUSTER, ALTER),
        (
            Field("partition", INTEGER, "Partition with the hanging transaction.", required=True),
            Field(
                "start_offset",
                INTEGER,
                "First offset of the transaction in the partition.",
                required=True,
            ),
        ),
        is_destructive=True,
        kind=TOPIC_KIND,
    ),
    Action(
        "broker.configure",
        "Change settings",
        "PATCH",
        "/api/v1/settings",
        broker.plan_configure,
        broker.configure,
        required(CLUSTER, ALTER_CONFIGS),
        (_CONFIGS,),
    ),
    Action(
        "connection.close",
        "Close the connection",
        "DELETE",
        "/api/v1/clients/{address}",
        broker.plan_close,
        broker.close,
        required(CLUSTER, ALTER),
        is_destructive=True,
    ),
    Action(
        "user.set",
        "Set a user's password",
        "POST",
        "/api/v1/users",
        security.plan_set_user,
        security.set_user,
        required(CLUSTER, ALTER),
        (
            Field("user", TEXT, "Name; the broker creates the user if needed.", required=True),
            Field("password", HIDDEN, "It is not stored.", required=True),
            Field(
                "mechanism",
                TEXT,
                "SCRAM mechanism.",
                choices=security.MECHANISM_NAMES,
                default=security.MECHANISM_DEFAULT,
            ),
        ),
    ),
    Action(
        "user.delete",
        "Delete the user",
        "DELETE",
        "/api/v1/users/{user}",
        security.plan_delete_user,
        security.delete_user,
        required(CLUSTER, ALTER),
        is_destructive=True,
    ),
    Action(
        "acl.create",
        "Add an ACL",
        "POST",
        "/api/v1/acls",
        security.plan_create_acl,
        security.create_acl,
        required(CLUSTER, ALTER),
        (Field("principal", TEXT, "User:alice, or User:* for all users.", required=True), *_RULE),
    ),
    Action(
        "acl.delete",
        "Delete the ACL",
        "DELETE",
        "/api/v1/acls/{principal}",
        security.plan_delete_acl,
        security.delete_acl,
        required(CLUSTER, ALTER),
        _RULE,
        is_destructive=True,
    ),
    Action(
        "quota.set",
        "Set quotas",
        "POST",
        "/api/v1/quotas",
        security.plan_set_quota,
        security.set_quota,
        required(CLUSTER, ALTER_CONFIGS),
        (
            Field("user", TEXT, f"User name, or {DEFAULT} for users without a quota."),
            Field("client_id", TEXT, "Client ID; with a user, the quota is for the pair."),
            Field("ip", TEXT, "IP address; not with user or client_id."),
            Field(
                "limits",
                MAP,
                "A line for each: producer_byte_rate=1000000, or the key alone to remove it.",
                required=True,
                label="Quotas",
            ),
        ),
    ),
)

KINDS: Final = (TOPIC_KIND, GROUP_KIND, TRANSACTION_KIND)
