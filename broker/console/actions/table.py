"""The table of actions: what can be changed, where, with which fields, by whom.

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
    """Whether its name has to be typed, and what it is based on sent along."""
    kind: str = ""
    """Kind of the resource in ``/api/v1/allowed``, or empty for the broker."""
    one_of: tuple[str, ...] = ()
    """Fields of which exactly one is to be given."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The template, divided as a request's path is."""
        return parts_of(self.template)

    def resource(self, names: Mapping[str, str], values: Mapping[str, object]) -> str:
        """Return the name of what it is done to."""
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


_PARTITION: Final = Field("partition", INTEGER, "Only this one; all of them where it is empty.")
_CONFIGS: Final = Field(
    "configs",
    MAP,
    "A line for each: key=value, or the key alone for its default.",
    required=True,
    label="Configurations",
)
_FORMAT: Final = "What the text stands for; null is no text at all."

TOPIC_KIND: Final = "topic"
GROUP_KIND: Final = "group"
TRANSACTION_KIND: Final = "transactional_id"


_ONCE: Final = Field(
    "once", ONCE, "A text of the sender's: what is sent twice with the same is done once."
)

_RULE: Final = (
    Field("operation", TEXT, "What.", required=True, choices=security.OPERATIONS),
    Field("resource_type", TEXT, "To what.", required=True, choices=security.RESOURCE_TYPES),
    Field("name", TEXT, "Of the resource; * is all, kafka-cluster the cluster.", required=True),
    Field(
        "pattern",
        TEXT,
        "PREFIXED: names that begin with it.",
        choices=security.PATTERNS,
        default=security.PATTERNS[0],
    ),
    Field(
        "permission",
        TEXT,
        "DENY forbids it, whatever else allows it.",
        choices=security.PERMISSIONS,
        default=security.PERMISSIONS[0],
    ),
    Field("host", TEXT, "From where: an address or a network; * is everywhere.", default="*"),
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
            Field("partitions", INTEGER, "As num.partitions says where it is empty."),
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
        (Field("partitions", INTEGER, "How many there are to be.", required=True),),
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
            Field("value", LONG, "What is written."),
            Field("value_format", TEXT, _FORMAT, choices=records.FORMATS, default="text"),
            Field(
                "headers",
                HEADERS,
                "A line for each, in their order: name=value, name:hex=00ff, or the name alone "
                "for null; or as JSON.",
            ),
            Field("partition", INTEGER, "Where it is empty, that of the key, or any."),
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
            Field("topic", TEXT, "Where the records are.", required=True),
            Field("target", TEXT, "The topic they are written to.", required=True),
            Field("offsets", TEXT, "Only these: 0:5 0:10-20, of partition 0 four and ten."),
            Field("filter", TEXT, "Only what a search for it finds."),
            Field("partition", TEXT, "Numbers with commas between; all where it is empty."),
            Field(
                "from",
                TEXT,
                "beginning, offset:N, time:MILLISECONDS or last:N of each partition; the beginning "
                "where it is empty.",
            ),
            Field(
                "until_ms",
                INTEGER,
                "Only records that are older: milliseconds since 1970.",
                label="Written before",
            ),
            Field(
                "partitioning",
                TEXT,
                "Where its key belongs, or the same number.",
                choices=replay.PARTITIONING,
                default=replay.BY_KEY,
            ),
            Field(
                "timestamps",
                TEXT,
                "The time of the replay, or that of the record: retention goes by it.",
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
            Field("before_offset", INTEGER, "Those before it; all of them where it is empty."),
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
                "Offsets to skip; a negative number reads as many again. In place of a position.",
                label="Shift by",
            ),
            Field("topic", TEXT, "Only this one; all that it has read where it is empty."),
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
        (Field("topic", TEXT, "Of which; the group may not be reading it.", required=True),),
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
        "End a transaction that hangs",
        "POST",
        "/api/v1/topics/{topic}/abort",
        transactions.plan_abort_hanging,
        transactions.abort_hanging,
        required(CLUSTER, ALTER),
        (
            Field("partition", INTEGER, "Where it hangs.", required=True),
            Field("start_offset", INTEGER, "Its first offset there.", required=True),
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
            Field("user", TEXT, "Made if there is none of the name.", required=True),
            Field("password", HIDDEN, "It is not stored.", required=True),
            Field(
                "mechanism",
                TEXT,
                "How the user logs in with it.",
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
        "Make a rule",
        "POST",
        "/api/v1/acls",
        security.plan_create_acl,
        security.create_acl,
        required(CLUSTER, ALTER),
        (Field("principal", TEXT, "User:alice, or User:* for everybody.", required=True), *_RULE),
    ),
    Action(
        "acl.delete",
        "Take the rule away",
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
        "Set limits",
        "POST",
        "/api/v1/quotas",
        security.plan_set_quota,
        security.set_quota,
        required(CLUSTER, ALTER_CONFIGS),
        (
            Field("user", TEXT, f"{DEFAULT} for all without a limit of their own."),
            Field("client_id", TEXT, "With a user: those of both."),
            Field("ip", TEXT, "An address; goes without the others."),
            Field(
                "limits",
                MAP,
                "A line for each: producer_byte_rate=1000000, or the key alone for no limit.",
                required=True,
            ),
        ),
    ),
)

KINDS: Final = (TOPIC_KIND, GROUP_KIND, TRANSACTION_KIND)
