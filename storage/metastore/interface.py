"""The broker's interface to a metadata store, independent of its engine.

Rules of this interface:

* Every method that changes something is **one durable, atomic commit**: when it returns the change
  survives kill -9 and power loss, when it raises no part of the change exists. That commit is the
  unit of crash consistency; two changes that must come together are one method.
* Ids are never reused: partition ids only grow, producer ids are allocated once (S10), the boot
  epoch only rises (D6). A topic created again under an old name has a new topic id.
* Deleting a topic is two commits. ``delete_topic`` hides it and frees its name; the row stays as a
  tombstone until ``forget_topic`` is called after its directories were removed. A crash between
  leaves a tombstone, which start-up sweeps.
* Methods are synchronous (an embedded commit takes 0.2 ms to 5 ms) and not re-entrant: one caller
  at a time. Any thread may be that caller.
* A change that was computed from an image names the version of that image (``based_on``): with
  several brokers, it is compared in the same commit. Settings, for one, are replaced as a whole,
  and settings that another broker changed in between would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

Result = TypeVar("Result")

PRODUCER_ID_BLOCK = 1000
"""Producer ids taken at once, as Kafka does: one commit per thousand producers."""


class MetaStoreError(Exception):
    """The store cannot be used; whether a commit under way was made durable is not known."""


class MetaStoreRefused(MetaStoreError):
    """A change was rolled back (no space, or a lock on the file); the store stays usable."""


class IdentityMismatch(MetaStoreError):
    """The store belongs to another cluster or another node."""


class Outdated(Exception):
    """Other brokers have changed something since the picture that a change was computed from."""


class TopicExists(Exception):
    """A live topic has this name."""


class TopicNotFound(Exception):
    """The topic id belongs to no live topic."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of this node: ``cluster_id`` is Kafka's 22 characters of URL-safe base64."""

    cluster_id: str
    node_id: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition: its number within the topic, and its permanent id."""

    partition_id: int
    index: int


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic; ``partitions`` in order of their index, which has no gaps."""

    topic_id: bytes
    name: str
    partitions: tuple[PartitionRow, ...]
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AclRow:
    """One rule of access control, in Kafka's numbers (broker/security/acls/operations.py)."""

    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class ScramRow:
    """A user's data for one SCRAM mechanism: never the password itself."""

    user: str
    mechanism: str
    """The name of the mechanism, for example "SCRAM-SHA-256"."""
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One limit of an entity, which is the canonical text of its components."""

    entity: str
    key: str
    value: float


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Everything a broker loads at start; ``deleted`` are the tombstones left to sweep.

    ``broker_configs`` has dynamic settings by entity: a node id in decimal, "" for the cluster-wide
    default, or another name for settings that brokers share. ``group_configs`` has settings by
    group.
    """

    topics: tuple[TopicRow, ...]
    deleted: tuple[TopicRow, ...]
    broker_configs: Mapping[str, Mapping[str, str]]
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    acls: tuple[AclRow, ...] = ()
    scram_credentials: tuple[ScramRow, ...] = ()
    quotas: tuple[QuotaRow, ...] = ()
    next_producer_id: int = 0
    """The next producer id to allocate; all ids below may be in use."""
    version: int = field(default=0, compare=False)
    """Version of this image: it grows with every commit that changes the image, and may grow with
    others."""


class MetaStore(Protocol):
    """Metadata of one cluster; see the rules at the head of this module."""

    @property
    def identity(self) -> Identity:
        """Return this node's identity; fixed when the store was created."""

    @property
    def version(self) -> int:
        """Return a version no older than the newest commit made through this object.

        With no other store over the same metadata, it is that of the image.
        """

    @property
    def boot_epoch(self) -> int:
        """Return the durable boot epoch, or 0 before the first ``begin_boot``."""

    def based_on(self, version: int, change: Callable[[], Result]) -> Result:
        """Make one change, by a call of this object in ``change``, and return what that does.

        The change was computed from the content at ``version`` or earlier. If another object has
        committed since then, raises Outdated and changes nothing.
        """

    def begin_boot(self) -> int:
        """Raise the boot epoch by one and return it; every start calls this once (D6)."""

    def raise_boot_epoch(self, at_least: int) -> int:
        """Make the boot epoch at least ``at_least`` and return it, never lowering it."""

    def allocate_producer_ids(self) -> range:
        """Return the next PRODUCER_ID_BLOCK producer ids, never to be returned again (S10)."""

    def raise_producer_ids(self, at_least: int) -> None:
        """Raise the next producer ID to ``at_least``: foreign logs may have lower ones."""

    def load(self) -> MetadataImage:
        """Return all topics, tombstones and settings as one consistent picture."""

    def create_topic(
        self, name: str, topic_id: bytes, partition_count: int, configs: Mapping[str, str]
    ) -> TopicRow:
        """Create a topic with its partitions and settings; raise TopicExists."""

    def create_partitions(self, topic_id: bytes, total_count: int) -> tuple[PartitionRow, ...]:
        """Extend a topic to ``total_count`` partitions, return the new; raise TopicNotFound."""

    def delete_topic(self, topic_id: bytes) -> None:
        """Hide a topic, free its name and leave a tombstone; raise TopicNotFound."""

    def forget_topic(self, topic_id: bytes) -> None:
        """Remove a tombstone whose directories were removed; no error if it is removed already."""

    def set_topic_configs(self, topic_id: bytes, configs: Mapping[str, str]) -> None:
        """Replace all settings of a topic; raise TopicNotFound."""

    def set_broker_configs(self, entity: str, configs: Mapping[str, str]) -> None:
        """Replace all dynamic settings of a node (its id in decimal) or of the cluster ("")."""

    def set_group_configs(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Replace all settings of a consumer group, which need not exist."""

    def change_acls(self, added: Sequence[AclRow], removed: Sequence[AclRow]) -> None:
        """Add ACLs, and remove others; an existing ACL is not added twice, a missing one is no
        error.
        """

    def change_scram_credentials(
        self, upserted: Sequence[ScramRow], deleted: Sequence[tuple[str, str]]
    ) -> None:
        """Set credentials, and delete others by user and mechanism; a missing one is no error."""

    def change_quotas(
        self, set_values: Sequence[QuotaRow], removed: Sequence[tuple[str, str]]
    ) -> None:
        """Set limits, and remove others by entity and key; a missing one is no error."""

    def keep_secret(self, name: str, new: bytes) -> bytes:
        """Return the secret stored under a name, after storing ``new`` if there was none.

        For random bytes that have to be the same after a restart.
        """

    def close(self) -> None:
        """Release the store; a closed store must not be used again."""
