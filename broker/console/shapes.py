"""What the console's API answers: one frozen class for each shape, from which OpenAPI is made.

Fields are called as in the JSON of the command line where both say the same. Times are in
milliseconds since 1970, sizes in bytes; a ``Wide`` number beyond 2**53 is a string, since
JavaScript would round it; producer ids always are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

WIDE: Final = "wide"
Wide: TypeAlias = Annotated[int, WIDE]
"""A number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Error:
    """Why a request was refused."""

    error: str
    """The name of Kafka's error."""
    message: str


# ----------------------------------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in a list."""

    topic: str
    topic_id: str
    internal: bool
    partitions: int
    """How many."""
    replicas: int
    cleanup_policy: str
    records_max: Wide
    """Offsets between the starts and the ends of its partitions: records, and what markers and
    compaction have taken."""
    size_bytes: Wide
    held_back: Wide
    """Offsets that readers of committed records may not see yet."""


@dataclass(frozen=True, slots=True)
class TopicPage:
    """A page of topics."""

    as_of: Wide
    next: str | None
    """What to give as ``after`` for the next page."""
    items: tuple[TopicRow, ...]


@dataclass(frozen=True, slots=True)
class SettingOfTopic:
    """One configuration of a topic."""

    key: str
    value: str | None
    """None of a secret."""
    source: str


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic."""

    as_of: Wide
    topic: str
    topic_id: str
    internal: bool
    partitions: int
    replicas: int
    cleanup_policy: str
    records_max: Wide
    size_bytes: Wide
    held_back: Wide
    configs: tuple[SettingOfTopic, ...] | None
    """None for who may not see them."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: Wide
    stable_offset: Wide
    """Where readers of committed records stop."""
    end_offset: Wide
    """Where all readers stop: the high watermark."""
    held_back: Wide
    """From the one to the other."""
    size_bytes: Wide
    segments: int


@dataclass(frozen=True, slots=True)
class PartitionPage:
    """A page of a topic's partitions."""

    as_of: Wide
    next: str | None
    topic: str
    items: tuple[PartitionRow, ...]


# ----------------------------------------------------------------------------------- transactions


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id and its latest transaction."""

    transactional_id: str
    state: str
    producer_id: str
    producer_epoch: int
    timeout_ms: int
    start_time_ms: Wide | None
    """None where nothing is open; so are the next two."""
    age_ms: Wide | None
    remaining_ms: Wide | None
    """Until the broker aborts it; None, too, where that is never."""
    coordinator: int
    client: str | None
    """Who used the id last since the broker started."""
    host: str | None
    partition_count: int


@dataclass(frozen=True, slots=True)
class TransactionPage:
    """A page of transactional ids."""

    as_of: Wide
    next: str | None
    items: tuple[TransactionRow, ...]


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """A partition by its name."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id with a page of the partitions of its transaction."""

    as_of: Wide
    next: str | None
    transactional_id: str
    state: str
    producer_id: str
    producer_epoch: int
    timeout_ms: int
    start_time_ms: Wide | None
    age_ms: Wide | None
    remaining_ms: Wide | None
    coordinator: int
    client: str | None
    host: str | None
    partition_count: int
    partitions: tuple[TopicPartition, ...]
    """Those that take part; once it is decided, those that still wait for their marker."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """What a partition knows of a transaction that is open on it."""

    start_offset: Wide
    producer_id: str
    producer_epoch: int
    last_timestamp_ms: Wide
    hanging: bool
    """Whether no coordinator knows it: nothing but an operator will ever end it."""
    transaction: TransactionRow | None
    """None of one that hangs, and for who may not see it."""


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition whose readers of committed records wait."""

    topic: str
    partition: int
    stable_offset: Wide
    end_offset: Wide
    held_back: Wide
    open_count: int
    """Transactions that are open on it."""
    transactions: tuple[OpenTransaction, ...]
    """The first of them; readers wait for the very first."""


@dataclass(frozen=True, slots=True)
class HolderPage:
    """A page of partitions whose readers wait."""

    as_of: Wide
    next: str | None
    items: tuple[HeldPartition, ...]


# ----------------------------------------------------------------------------------------- groups


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in a list."""

    group: str
    state: str
    type: str
    protocol_type: str
    members: int
    """How many."""
    partitions: int
    """With committed offsets."""
    lag: Wide
    """Offsets between what is committed and the ends."""
    lag_readable: Wide
    """Those of them that a reader of committed records can read now."""
    lag_held_back: Wide
    """Those that wait for open transactions."""


@dataclass(frozen=True, slots=True)
class GroupPage:
    """A page of groups."""

    as_of: Wide
    next: str | None
    items: tuple[GroupRow, ...]


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A partition that a group reads, or has read; None where there is nothing to say."""

    topic: str
    partition: int
    committed_offset: Wide | None
    start_offset: Wide | None
    stable_offset: Wide | None
    end_offset: Wide | None
    lag: Wide | None
    lag_readable: Wide | None
    lag_held_back: Wide | None
    member: str | None
    """Whose it is."""
    holder: OpenTransaction | None
    """The first transaction that is open on it."""


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group."""

    member: str
    instance: str | None
    client: str
    host: str
    partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group: a page of its partitions, and its first members."""

    as_of: Wide
    next: str | None
    """For the next page of partitions."""
    group: str
    state: str
    type: str
    coordinator: int
    assignor: str | None
    epoch: int | None
    """Of a consumer group (KIP-848)."""
    lag: Wide
    lag_readable: Wide
    lag_held_back: Wide
    partitions: tuple[GroupPartition, ...]
    member_count: int
    members: tuple[GroupMember, ...]
