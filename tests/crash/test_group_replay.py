"""Groups after a crash of the embedded broker: with a disk that loses what was not synced."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.offset_records import commit_record
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.group_metadata_record import (
    GROUP_METADATA_RECORD,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from barnabas.protocol.records import Record as LogRecord
from barnabas.protocol.records import encode_batch
from barnabas.testing import Broker
from tests.counterparts.wire_client import WireClient
from tests.crash.group_load import (
    LOAD_SECONDS_MAX,
    PARTITIONS,
    TOPIC,
    ClassicMember,
    ConsumerMember,
    Keeper,
    fetch,
    have_worked,
)
from tests.crash.test_kill_groups import everything
from tests.waiting import wait_until

GROUPS = 10_000
CRASHES = 12


@pytest.fixture
def broker():
    with Broker(config={"offsets.topic.num.partitions": "5"}) as running:
        running.create_topic(TOPIC, PARTITIONS)
        running.port = running.address[1]
        with WireClient(running) as client:
            found = client.ask(FIND_COORDINATOR, FindCoordinatorRequest("group"), 3)
            assert found.error_code == ErrorCode.NONE
        yield running


@pytest.mark.timeout(600)
def test_groups_survive_crashes_that_lose_what_was_not_synced(broker):
    seed = 11
    print(f"seed {seed}, broker's seed {broker.seed}")
    random = Random(seed)
    workers = [
        Keeper("keeper-1", Random(seed)),
        Keeper("keeper-2", Random(seed + 1)),
        ClassicMember("classic", Random(seed)),
        ConsumerMember("consumer", Random(seed)),
    ]
    for _ in range(CRASHES):
        wrong: list[BaseException] = []
        answered = [worker.answered for worker in workers]

        def work(worker, wrong=wrong) -> None:
            try:
                worker.run(broker)
            except AssertionError as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.05, 0.3))
        # A busy machine gets the time for something to happen.
        wait_until(
            lambda w=wrong, a=answered: w or have_worked(workers, a), seconds=LOAD_SECONDS_MAX
        )
        broker.crash()
        for thread in threads:
            thread.join()
        broker.restart()
        if wrong:
            raise wrong[0]
    with WireClient(broker) as client:
        for worker in workers:
            worker.check(client)
            assert worker.answered > CRASHES
    before = everything(broker)
    broker.crash()
    broker.restart()
    assert everything(broker) == before, "recovering once more changed something (D3, O8)"


def group_records(name: str, topic_id: bytes, now_ms: int) -> list[Record]:
    """A stable classic group of two members that has committed every partition."""
    members = [
        MemberMetadata(f"{name}-{at}", None, "client", "/127.0.0.1", 60_000, 1_800_000, b"s", b"a")
        for at in range(2)
    ]
    value = GroupMetadataValue("consumer", 3, "range", members[0].member_id, now_ms, members)
    commits = [
        commit_record(
            name, TOPIC, at, CommittedOffset(at, 0, "", now_ms, BY_RETENTION, topic_id, -1)
        )
        for at in range(PARTITIONS)
    ]
    return [Record(GROUP_METADATA_RECORD, GroupMetadataKey(name), value, 3), *commits]


def write_groups(server) -> None:
    """Write the records of many groups, one batch for each, as their decisions did."""
    now_ms = server.clock.now_ms()
    assert server.groups.is_coordinator()
    topic = server.catalogue.topic(server.groups.log.topic_name)
    topic_id = server.catalogue.topic(TOPIC).topic_id
    for number in range(GROUPS):
        name = f"group-{number}"
        records = [
            LogRecord(at, now_ms, *record.encode(), ())
            for at, record in enumerate(group_records(name, topic_id, now_ms))
        ]
        log = topic.partitions[server.groups.log.partition_of(name)].log
        log.append_records(memoryview(bytearray(encode_batch(records))))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_groups_are_replayed(broker, capsys):
    broker.call(lambda: write_groups(broker.server))
    broker.restart()  # An orderly stop makes all of it durable.
    broker.crash()
    started = time.monotonic()
    broker.restart()
    ready = time.monotonic()
    while broker.call(lambda: broker.server.groups.is_loading):
        time.sleep(0.005)
    loaded = time.monotonic()
    groups = broker.server.groups
    with capsys.disabled():
        print(
            f"\n  {GROUPS} groups, {groups.log.replay.records} records: "
            f"ready after {ready - started:.2f} s, all replayed after {loaded - started:.2f} s"
        )
    assert groups.log.replay.records == GROUPS * (1 + PARTITIONS)
    assert sum(len(machine.keys()) for machine in groups.machines) == GROUPS
    with WireClient(broker) as client:
        for number in (0, 17, GROUPS - 1):
            expected = {at: (at, "") for at in range(PARTITIONS)}
            assert fetch(client, f"group-{number}") == expected
            group = broker.call(lambda name=f"group-{number}": groups.machine_of(name).groups[name])
            assert group.state_name == "Stable"
