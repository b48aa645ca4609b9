"""kill -9 under commits and rebalances: nothing acknowledged is lost, nothing gone comes back."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.crash.group_load import (
    LOAD_SECONDS_MAX,
    PARTITIONS,
    TOPIC,
    ClassicMember,
    ConsumerMember,
    Keeper,
    Worker,
    fetch,
    have_worked,
)
from tests.crash.test_kill_under_load import kill_during_recovery
from tests.requests import create_topic
from tests.waiting import wait_until

EACH = 3


def everything(broker: BarnabasProcess) -> dict[str, object]:
    """Return all that the broker reports about its groups."""
    deadline = time.monotonic() + LOAD_SECONDS_MAX
    with WireClient(broker) as client:
        while (found := client.ask(LIST_GROUPS, ListGroupsRequest(), 5)).error_code:
            assert found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert time.monotonic() < deadline
            time.sleep(0.01)
        listed = found.groups
        names = sorted(each.group_id for each in listed)
        offsets = {name: fetch(client, name) for name in names}
        described = client.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(names), 5).groups
        consumer_groups = [each.group_id for each in listed if each.group_type == "consumer"]
        request = ConsumerGroupDescribeRequest(sorted(consumer_groups))
        consumers = client.ask(CONSUMER_GROUP_DESCRIBE, request, 1).groups
    return {
        "listed": sorted(listed, key=lambda each: each.group_id),
        "offsets": offsets,
        "described": sorted(described, key=lambda each: each.group_id),
        "consumers": consumers,
    }


def run_until_killed(broker: BarnabasProcess, workers: list[Worker], seconds: float) -> None:
    """Run all workers for a while, kill the broker, raise the errors that workers found."""
    wrong: list[BaseException] = []
    answered = [worker.answered for worker in workers]

    def work(worker: Worker) -> None:
        try:
            worker.run(broker)
        except AssertionError as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    # A busy machine gets the time for something to happen.
    wait_until(lambda: wrong or have_worked(workers, answered), seconds=LOAD_SECONDS_MAX)
    broker.kill()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


@pytest.mark.timeout(900)
@amounts("kills_wanted", in_test=5, at_night=16)
def test_groups_survive_kills(kills_wanted):
    seed = 4
    print(f"seed {seed}")
    random = Random(seed)
    workers: list[Worker] = []
    for number in range(EACH):
        workers.append(Keeper(f"keeper-{number}", Random(seed + number)))
        workers.append(ClassicMember(f"classic-{number}", Random(seed + number)))
        workers.append(ConsumerMember(f"consumer-{number}", Random(seed + number)))
    kills = 0
    with BarnabasProcess(
        barnabas_checkpoint_interval_ms="300",
        barnabas_journal_file_bytes=str(4 << 20),
        barnabas_journal_max_bytes=str(32 << 20),
        barnabas_checkpoint_journal_bytes=str(8 << 20),
        offsets_topic_segment_bytes=str(1 << 20),
        offsets_topic_num_partitions="5",
        group_initial_rebalance_delay_ms="0",
    ) as broker:
        with WireClient(broker) as client:
            create_topic(client, TOPIC, PARTITIONS)
            found = client.ask(FIND_COORDINATOR, FindCoordinatorRequest("keeper-0"), 3)
            assert found.error_code == ErrorCode.NONE
        while kills < kills_wanted:
            run_until_killed(broker, workers, random.uniform(0.05, 0.5))
            kills += 1
            while random.random() < 0.3:
                kill_during_recovery(broker, random)
                kills += 1
            broker.restart()
        with WireClient(broker) as client:
            for worker in workers:
                worker.check(client)
        before = everything(broker)
        broker.kill()
        broker.restart()
        assert everything(broker) == before, "recovering once more changed something (D3, O8)"
    answered = sum(worker.answered for worker in workers)
    members = [worker for worker in workers if not isinstance(worker, Keeper)]
    generations = sum(member.generations for member in members)
    print(f"{kills} kills, {answered} requests answered, {generations} generations")
    assert answered > 10 * kills, "the kills came before anything happened"
    assert all(worker.answered for worker in workers)
    assert generations > kills / 2
