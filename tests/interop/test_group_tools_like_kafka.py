"""The output of tools about groups: Kafka's by main class, and kafka-python's, with both brokers.

The same groups are created on Barnabas and on Apache Kafka 4.3.0: one of each protocol with two
live members, one whose member has left, one that only ever committed. One script of commands is for
both; exit codes and lines must be equal.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from tests.counterparts import kafka_tools
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.kafka_tools import ToolResult, run_tool
from tests.counterparts.wire_client import WireClient
from tests.interop.administration import create
from tests.interop.recorded_kafka import Barnabas, plain
from tests.interop.test_kafka_python_admin import run
from tests.requests import codes_of, commit_request, produce_request, produced
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

PARTITIONS = 3
RECORDS = 10
FIRST_MS = 1_790_000_000_000
TOPICS = ("orders", "returns")


def groups(*arguments: str) -> tuple[str, ...]:
    return (kafka_tools.CONSUMER_GROUPS, *arguments)


def reset(group: str, *arguments: str) -> tuple[str, ...]:
    return groups("--reset-offsets", "--group", group, *arguments)


ORDERS = ("--topic", "orders")
SCRIPT: dict[str, tuple[str, ...]] = {
    "list with states": groups("--list", "--state"),
    "list stable and empty": groups("--list", "--state", "Stable,Empty", "--type"),
    "list groups": (kafka_tools.GROUPS, "--list"),
    "list groups of consumers": (kafka_tools.GROUPS, "--list", "--consumer"),
    "offsets in full": groups("--describe", "--all-groups", "--offsets", "--verbose"),
    "members": groups("--describe", "--group", "live-new", "--members"),
    "members in full": groups("--describe", "--all-groups", "--members", "--verbose"),
    "states in full": groups("--describe", "--all-groups", "--state", "--verbose"),
    "describe nobody": groups("--describe", "--group", "nobody"),
    "try a reset": reset("left", *ORDERS, "--to-earliest", "--dry-run"),
    "reset to a time": reset(
        *("left", *ORDERS, "--to-datetime", "2026-09-21T14:13:20.004+00:00", "--execute")
    ),
    "reset by a shift": reset("left", "--topic", "orders:0,1", "--shift-by", "-2", "--execute"),
    "reset everything": reset("committed", "--all-topics", "--to-latest", "--execute"),
    "export a reset": reset("left", *ORDERS, "--to-current", "--dry-run", "--export"),
    "reset of a live group": reset("live-classic", *ORDERS, "--to-earliest", "--execute"),
    "reset of a live consumer group": reset("live-new", *ORDERS, "--to-earliest", "--execute"),
    "reset of nobody": reset("nobody", *ORDERS, "--to-offset", "4", "--execute"),
    "delete offsets": groups("--delete-offsets", "--group", "left", "--topic", "orders:1"),
    "delete offsets in use": groups("--delete-offsets", "--group", "live-new", *ORDERS),
    "offsets afterwards": groups("--describe", "--group", "left", "--group", "committed"),
    "delete groups": groups("--delete", "--group", "left", "--group", "live-classic"),
    "delete nobody": groups("--delete", "--group", "nobody"),
    "list afterwards": groups("--list", "--state"),
    "verifiable producer": (
        *(kafka_tools.VERIFIABLE_PRODUCER, "--topic", "verified", "--max-messages", "20"),
        *("--message-create-time", str(FIRST_MS)),
    ),
    "verifiable consumer": (
        *(kafka_tools.VERIFIABLE_CONSUMER, "--topic", "verified", "--max-messages", "20"),
        *("--group-id", "verifier", "--verbose"),
    ),
    "verifiable consumer, new protocol": (
        *(kafka_tools.VERIFIABLE_CONSUMER, "--topic", "verified", "--max-messages", "20"),
        *("--group-id", "new-verifier", "--verbose", "--group-protocol", "consumer"),
    ),
    "consumer performance": (
        *(kafka_tools.CONSUMER_PERFORMANCE, *ORDERS, "--num-records", "30", "--group", "fast"),
        *("--timeout", "60000"),
    ),
}
"""Kafka's tools, in this order."""

PYTHON_SCRIPT: dict[str, tuple[str, ...]] = {
    "python: list": ("list",),
    "python: list stable": ("list", "--state", "stable"),
    "python: list by type": ("list", "--type", "consumer"),
    "python: describe": ("describe", "-g", "live-classic", "-g", "live-new", "-g", "committed"),
    "python: offsets": ("list-offsets", "-g", "committed"),
    "python: alter": ("alter-offsets", "-g", "committed", "-o", "orders:0:3", "-o", "orders:1:4"),
    "python: alter a live group": ("alter-offsets", "-g", "live-classic", "-o", "orders:0:3"),
    "python: reset": ("reset-offsets", "-g", "committed", "-p", "orders:1", "-s", "latest"),
    "python: offsets after": ("list-offsets", "-g", "committed"),
    "python: delete offsets": ("delete-offsets", "-g", "committed", "-p", "orders:0"),
    "python: remove a member": ("remove-members", "-g", "live-classic", "-i", "static"),
    "python: remove nobody": ("remove-members", "-g", "live-classic", "-i", "somebody"),
    "python: delete": ("delete", "-g", "committed"),
    "python: delete nobody": ("delete", "-g", "nobody"),
}
"""`python -m kafka.admin groups`, after Kafka's tools."""

ON_PURPOSE: dict[str, str] = {}
UNEQUAL = {"timestamp", "avg_throughput", "target_throughput"}
Said = tuple[int, list[str]]
"""An exit code, and lines."""


class Groups:
    """`with Groups(broker):` the groups, their members polling in a thread."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._members: list[Consumer] = []
        self.ids: list[str] = []
        """The ids of the live members, in the order in which they joined."""
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        servers = self._broker.bootstrap_servers
        for topic in TOPICS:
            # The records are older than what a topic keeps by default.
            create(servers, topic, partitions=PARTITIONS, configs={"retention.ms": "-1"})
        create(servers, "verified", partitions=1, configs={"retention.ms": "-1"})
        produce(self._broker)
        left = self._join("left", "client", "range", "orders")
        commit_as_member(left)
        left.close()
        self._members.remove(left)
        # Apache Kafka has no topic for commits before a client has looked for a coordinator.
        commit(self._broker, "committed", {0: 4, 1: 10})
        # One after the other, so that generations and epochs are equal.
        self._join("live-classic", "one", "range", "orders", instance="static")
        self._join("live-classic", "two", "range", "orders")
        self._join("live-new", "one", None, "orders")
        commit_as_member(self._members[-1])
        # Each has a topic of its own: assignments must not depend on their random ids.
        self._join("live-new", "two", None, "returns", instance="static")
        wait_until(self._know_their_epoch, "an epoch is known to all members a heartbeat later")
        self.ids = [member.memberid() for member in self._members]
        self._poller.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        if self._poller.ident is not None:
            self._poller.join()
        for member in self._members:
            member.close()

    def _join(
        self, group: str, client: str, assignor: str | None, topic: str, instance: str = ""
    ) -> Consumer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self._broker.bootstrap_servers,
            "group.id": group,
            "client.id": client,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        if instance:
            settings["group.instance.id"] = instance
        if assignor:
            settings |= {"partition.assignment.strategy": assignor, "heartbeat.interval.ms": 200}
        else:
            settings["group.protocol"] = "consumer"
        member = Consumer(settings)
        member.subscribe([topic])
        self._members.append(member)

        def has_partitions() -> bool:
            self._poll_for(0.05)
            return bool(member.assignment())

        wait_until(has_partitions, f"{client} of {group} is assigned something")
        return member

    def _know_their_epoch(self) -> bool:
        self._poll_for(0.1)
        with WireClient(self._broker) as client:
            request = ConsumerGroupDescribeRequest(["live-new"])
            (group,) = client.ask(CONSUMER_GROUP_DESCRIBE, request, 1).groups
        epochs = {each.member_epoch for each in group.members}
        return group.group_state == "Stable" and epochs == {group.group_epoch}

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._poll_for(0.1)

    def _poll_for(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while True:
            for member in self._members:
                member.poll(0.01)
            if time.monotonic() >= until_s:
                break


def produce(broker: BrokerProcess) -> None:
    """Append a batch of ten records, a millisecond apart, to each partition of the topics."""
    records = [Record(n, FIRST_MS + n, None, b"x" * 100) for n in range(RECORDS)]
    batch = memoryview(encode_batch(records))
    with WireClient(broker) as client:
        for topic, number in itertools.product(TOPICS, range(PARTITIONS)):
            request = produce_request({(topic, number): batch})

            def is_produced(request: Any = request) -> bool:
                code = produced(client.ask(PRODUCE, request, 9)).error_code
                # Apache Kafka leads a partition a little later than it creates it.
                assert code in {0, 3, 6}
                return code == 0

            wait_until(is_produced, "a leader takes records")


def commit(broker: BrokerProcess, group: str, offsets: dict[int, int]) -> None:
    """Commit offsets without a member, as a tool does."""
    request = commit_request(group, {("orders", n): offset for n, offset in offsets.items()})
    with WireClient(broker) as client:

        def is_committed() -> bool:
            codes = set(codes_of(client.ask(OFFSET_COMMIT, request, 8)))
            # Apache Kafka makes its topic first: not available, loading, not the coordinator.
            assert codes <= {0, 14, 15, 16}
            return codes == {0}

        wait_until(is_committed, "a commit by hand")


def commit_as_member(member: Consumer) -> None:
    member.commit(
        offsets=[TopicPartition("orders", number, number + 3) for number in range(PARTITIONS)],
        asynchronous=False,
    )


def run_script(broker: BrokerProcess) -> dict[str, Said]:
    """Run both scripts against one broker."""
    said = {}
    with Groups(broker) as groups:
        for label, (main_class, *arguments) in SCRIPT.items():
            where = ("--bootstrap-server", broker.bootstrap_servers)
            said[label] = comparable(run_tool(main_class, *where, *arguments), broker, groups.ids)
        for label, python_arguments in PYTHON_SCRIPT.items():
            result = run_kafka_python(broker, *python_arguments)
            said[label] = comparable(result, broker, groups.ids)
    return said


def run_kafka_python(broker: BrokerProcess, *arguments: str) -> ToolResult:
    return ToolResult(*run(broker.bootstrap_servers, "groups", *arguments))


SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> dict[str, Said]:
    """The output of every command about the groups of Barnabas."""
    with Barnabas(tmp_path_factory.mktemp("ours"), **SETTINGS) as broker:
        return run_script(broker)


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory) -> Iterator[BrokerProcess]:
    with ApacheKafka(tmp_path_factory.mktemp("theirs"), **SETTINGS) as running:
        yield running


def comparable(result: ToolResult, broker: BrokerProcess, ids: Sequence[str]) -> Said:
    """Return the exit code and the lines, without what two brokers cannot have in common."""
    text = result.output.replace(broker.bootstrap_servers, "<broker>")
    for number, member_id in enumerate(ids):
        text = text.replace(member_id, f"<member {number}>")
    # When something was logged, and by whom.
    text = re.sub(r"^\S+ main (ERROR|WARN) |^\[\S+ \S+\] ", "", text, flags=re.MULTILINE)
    lines = text.splitlines()
    if text.startswith(("{", "[{")):
        return result.exit_code, _what_happened(lines)
    if text.startswith("start.time"):
        # Of a measurement: how much, not how fast.
        return result.exit_code, [field for line in lines for field in line.split(", ")[2:5:2]]
    # Columns are as wide as the longest id; groups and members come in any order.
    lines = [" ".join(line.split()) for line in lines]
    return result.exit_code, sorted(line for line in lines if line and not line.startswith("at "))


def _what_happened(lines: Sequence[str]) -> list[str]:
    """Return lines of JSON without what depends on time.

    That is: times, how much one poll returned, and an assignment of nothing. Kafka's client reports
    one where a heartbeat assigns a topic before the client's own metadata tells that topic's name
    (KIP-848); which of the two answers comes first is chance, at either broker.
    """
    events = [json.loads(line) for line in lines]
    if isinstance(events[0], list):
        return [json.dumps(_in_order(events), sort_keys=True)]
    committed = [event for event in events if event.get("name") == "offsets_committed"]
    happened = []
    for event in events:
        is_partial = event.get("name") == "records_consumed" or event in committed[:-1]
        is_of_nothing = event.get("name") == "partitions_assigned" and not event["partitions"]
        if not is_partial and not is_of_nothing:
            kept = {key: each for key, each in event.items() if key not in UNEQUAL}
            happened.append(json.dumps(_in_order(kept), sort_keys=True))
    return happened


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_in_order(each) for each in value), key=repr)
    return value


@pytest.mark.parametrize("label", [*SCRIPT, *PYTHON_SCRIPT])
def test_tools_say_the_same_of_groups(ours, kafka, label):
    mine, theirs = plain(ours[label]), kafka.observe("scripts", run_script)[label]
    if label in ON_PURPOSE:
        assert mine != theirs
    else:
        assert mine == theirs


def test_the_scripts_do_what_they_say(ours):
    """Equal answers could be equally wrong."""
    said = {label: "\n".join(lines) for label, (_, lines) in ours.items()}
    failed = {label for label, (code, _) in ours.items() if code}
    assert failed == set()
    assert "live-new returns 2" in said["offsets in full"]
    assert "live-new <member 3> static /127.0.0.1 two 3" in said["members in full"]
    assert "live-classic <broker> (1) range Stable" in said["states in full"]
    assert "left orders 2 4" in said["reset to a time"]
    assert "left orders 1 2" in said["reset by a shift"]
    assert "the current state is Stable" in said["reset of a live group"]
    assert "GroupSubscribedToTopicException" in said["delete offsets in use"]
    assert "left orders 1 " not in said["offsets afterwards"]
    assert "These consumer groups were deleted successfully: 'left'" in said["delete groups"]
    for consumer in ("verifiable consumer", "verifiable consumer, new protocol"):
        assert said[consumer].count('"name": "record_data"') == 20
        assert '"offset": 20' in said[consumer]
    assert said["consumer performance"].splitlines()[-1] == "30"
    assert '"latest_offset": 10' in said["python: offsets after"]
    assert said["python: remove nobody"] == '{"somebody": "UnknownMemberIdError"}'
