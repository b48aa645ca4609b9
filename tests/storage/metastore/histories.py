"""Random but repeatable histories of changes for any metadata store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from barnabas.storage.metastore.interface import AclRow, MetaStore, QuotaRow, ScramRow

NAMES = ("a", "a.b", "b")
TOPIC_CONFIGS = ({}, {"retention.ms": "1000"}, {"cleanup.policy": "compact", "segment.ms": "5000"})
NODES = ("", "1", "2")
BROKER_CONFIGS = ({}, {"log.retention.ms": "2000"}, {"log.cleanup.policy": "compact"})
GROUP_CONFIGS = ({}, {"consumer.session.timeout.ms": "50000"})
ACLS = tuple(
    AclRow(2, name, 3, f"User:{user}", "*", operation, permission)
    for name in ("a", "b")
    for user in ("x", "y")
    for operation, permission in ((3, 3), (4, 3), (3, 2))
)
OWNERS = (("x", "SCRAM-SHA-256"), ("x", "SCRAM-SHA-512"), ("y", "SCRAM-SHA-256"))
SALTS = (b"1", b"2")
LIMITS = (
    ('[["user","x"]]', "producer_byte_rate"),
    ('[["user","x"]]', "consumer_byte_rate"),
    ('[["client-id",null]]', "producer_byte_rate"),
    ('[["ip","10.0.0.1"]]', "connection_creation_rate"),
)


class Step(NamedTuple):
    """One change; the numbers say of what and to what, as far as there is something."""

    name: str
    which: int
    what: int


def histories() -> st.SearchStrategy[list[Step]]:
    """Draw what happens to a store, in order."""
    numbers = st.integers(0, 11)
    return st.lists(st.builds(Step, st.sampled_from(sorted(CHANGES)), numbers, numbers))


def make(store: MetaStore, steps: Iterable[Step], first: int = 1) -> int:
    """Apply a history; return the number of the step after it.

    Topics get the number of their step as their id.
    """
    number = first - 1
    for number, step in enumerate(steps, start=first):
        CHANGES[step.name](store, step, number)
    return number + 1


def topic_id(number: int) -> bytes:
    """Return the id of the topic that a step of this number makes."""
    return number.to_bytes(16)


def _pick(among: Any, number: int) -> Any:
    return among[number % len(among)]


def _create(store: MetaStore, step: Step, number: int) -> None:
    name = _pick(NAMES, step.which)
    if all(row.name != name for row in store.load().topics):
        configs = _pick(TOPIC_CONFIGS, step.what)
        store.create_topic(name, topic_id(number), 1 + step.what % 3, configs)


def _grow(store: MetaStore, step: Step, _number: int) -> None:
    if topics := store.load().topics:
        row = _pick(topics, step.which)
        store.create_partitions(row.topic_id, len(row.partitions) + 1 + step.what % 2)


def _delete(store: MetaStore, step: Step, _number: int) -> None:
    if topics := store.load().topics:
        store.delete_topic(_pick(topics, step.which).topic_id)


def _configure(store: MetaStore, step: Step, _number: int) -> None:
    if topics := store.load().topics:
        configs = _pick(TOPIC_CONFIGS, step.what)
        store.set_topic_configs(_pick(topics, step.which).topic_id, configs)


def _configure_brokers(store: MetaStore, step: Step, _number: int) -> None:
    store.set_broker_configs(_pick(NODES, step.which), _pick(BROKER_CONFIGS, step.what))


def _configure_group(store: MetaStore, step: Step, _number: int) -> None:
    store.set_group_configs(_pick(NAMES, step.which), _pick(GROUP_CONFIGS, step.what))


def _change_acls(store: MetaStore, step: Step, _number: int) -> None:
    chosen = {_pick(ACLS, step.which), _pick(ACLS, step.what)}
    there = set(store.load().acls)
    store.change_acls(sorted(chosen - there, key=repr), sorted(chosen & there, key=repr))


def _set_credential(store: MetaStore, step: Step, _number: int) -> None:
    row = ScramRow(*_pick(OWNERS, step.which), _pick(SALTS, step.what), b"k", b"v", 4096)
    store.change_scram_credentials([row], [])


def _delete_credential(store: MetaStore, step: Step, _number: int) -> None:
    store.change_scram_credentials([], [_pick(OWNERS, step.which)])


def _set_quota(store: MetaStore, step: Step, _number: int) -> None:
    store.change_quotas([QuotaRow(*_pick(LIMITS, step.which), 1.0 + step.what % 2)], [])


def _remove_quota(store: MetaStore, step: Step, _number: int) -> None:
    store.change_quotas([], [_pick(LIMITS, step.which)])


def _give_out_ids(store: MetaStore, _step: Step, _number: int) -> None:
    store.allocate_producer_ids()


CHANGES: dict[str, Callable[[MetaStore, Step, int], None]] = {
    "create": _create,
    "grow": _grow,
    "delete": _delete,
    "configure": _configure,
    "configure brokers": _configure_brokers,
    "configure group": _configure_group,
    "change acls": _change_acls,
    "set credential": _set_credential,
    "delete credential": _delete_credential,
    "set quota": _set_quota,
    "remove quota": _remove_quota,
    "give out ids": _give_out_ids,
}
