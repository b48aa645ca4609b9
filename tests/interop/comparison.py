"""Barnabas and Apache Kafka answer one script of requests, and every answer must be equal.

Apache Kafka's answers are recorded: see recorded_kafka.py. `comparable` removes what two brokers
cannot have in common: ids, ports, epochs, the text of messages. Intended differences are listed
beside each script, with their reasons, and must differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.wire import ZERO_UUID
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop.recorded_kafka import RecordedKafka, plain
from tests.requests import produce_request, produced

UNEQUAL = {
    "topic_id",
    "cluster_id",
    "port",
    "leader_epoch",
    "producer_id",
    "documentation",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "last_timestamp",
    "transaction_start_time_ms",
}
"""Fields that two brokers cannot agree on; only whether they are set is compared."""

NOT_LEADER_YET = {3, 5, 6}

Answer = tuple[str, Any]
Family = Callable[[WireClient], Iterator[Answer]]


def comparable(value: Any, name: str = "") -> Any:
    """Turn a response into plain data in which equal answers are equal."""
    if name in UNEQUAL:
        return value not in (None, "", -1, ZERO_UUID)
    if is_dataclass(value):
        found = {
            each.name: comparable(getattr(value, each.name), each.name) for each in fields(value)
        }
        # Some of Kafka's errors have no message, some of its successes an empty one.
        found.pop("error_message", None)
        # A tagged field of Barnabas, null outside of a cluster with an object store.
        if found.get("lacks_object_store", ()) is None:
            del found["lacks_object_store"]
        return found
    if isinstance(value, list):
        return sorted((comparable(each) for each in value), key=repr)
    return value


def check_alike(
    ours: BrokerProcess,
    kafka: RecordedKafka,
    case: str,
    family: Family,
    on_purpose: Mapping[str, str],
) -> None:
    """Put a script to Barnabas; compare its answers with those that Apache Kafka gave to it."""
    theirs = kafka.observe(case, lambda broker: answers_to(broker, family))
    check_equal(answers_to(ours, family), theirs, on_purpose)


def check_equal(
    ours_answers: Mapping[str, Any], their_answers: Mapping[str, Any], on_purpose: Mapping[str, str]
) -> None:
    """Compare two brokers' answers by their labels; those on purpose must differ."""
    ours, theirs = plain(ours_answers), plain(their_answers)
    assert ours
    unrecorded, removed = sorted(ours.keys() - theirs), sorted(theirs.keys() - ours)
    assert not unrecorded, f"no answers of Apache Kafka to {unrecorded}: run `make record`"
    assert not removed, f"no answers of Barnabas to {removed}: run `make record` if that is meant"
    differing = {label for label, answer in ours.items() if answer != theirs[label]}
    expected = on_purpose.keys() & ours.keys()
    for label in sorted(differing - expected):
        assert ours[label] == theirs[label], label
    assert differing == expected


def answers_to(broker: BrokerProcess, family: Family) -> dict[str, Any]:
    """Return a broker's answers to a script, by label."""
    with WireClient(broker) as client:
        return dict(family(client))


def now_ms() -> int:
    """The time for records: Kafka's retention takes older ones away."""
    return time.time_ns() // 1_000_000


def produce(client: WireClient, topic: str, index: int, batch: bytes) -> None:
    """Append one batch, as soon as the partition has a leader."""
    request = produce_request({(topic, index): batch})
    deadline = time.monotonic() + 60
    while True:
        code = produced(client.ask(PRODUCE, request, 9)).error_code
        if code not in NOT_LEADER_YET or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert code == 0
