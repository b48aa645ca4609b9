"""One OffsetCommit of very many partitions: it survives any power loss whole or not at all."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.testing.disk.simulated import Operation, SimulatedFileSystem
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.testing import Broker
from tests.broker.long_commit import long_commit
from tests.broker.sample_requests import error_codes
from tests.counterparts.wire_client import WireClient
from tests.products import case

GROUP = "many"
TOPICS = 3
CONFIG = {"offsets.topic.num.partitions": "1"}


def committed(broker: Broker) -> list[int]:
    """Every offset of the group, as the state machine has it."""
    broker.port = broker.address[1]
    topics = broker.call(lambda: broker.server.groups.machine_of(GROUP).offsets.of_group(GROUP))
    return [each.offset for partitions in topics.values() for each in partitions.values()]


class Cuts:
    """The states that a power loss would leave, at every change of the disk."""

    def __init__(self, disk: SimulatedFileSystem, random: Random, draws: int) -> None:
        self.disks: list[SimulatedFileSystem] = []
        self._disk = disk
        self._random = random
        self._draws = draws

    def __call__(self, _operation: Operation) -> None:
        self.disks += [self._disk.crash(self._random) for _ in range(self._draws)]


@pytest.mark.parametrize(
    ("draws", "partitions"), [case(1, 700, in_test=True), case(3, 2000, in_test=False)]
)
def test_a_power_loss_leaves_all_of_a_long_commit_or_nothing(draws, partitions):
    with Broker(config=CONFIG) as broker:
        print(f"seed {broker.seed}")
        for number in range(TOPICS):
            broker.create_topic(f"topic-{number}", partitions)
        broker.port = broker.address[1]
        with WireClient(broker) as client:
            client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
            answers = [client.ask(OFFSET_COMMIT, long_commit(GROUP, 1, TOPICS, partitions), 8)]
            disk = broker._file_system
            assert isinstance(disk, SimulatedFileSystem)
            disk.after = cuts = Cuts(disk, Random(broker.seed), draws)
            answers.append(client.ask(OFFSET_COMMIT, long_commit(GROUP, 2, TOPICS, partitions), 8))
            disk.after = None
        metastore = copy_of(broker._metastore)
    assert all(set(error_codes(answer)) == {ErrorCode.NONE} for answer in answers)
    count = TOPICS * partitions
    found = [*map(tuple, (committed_on(disk, metastore) for disk in cuts.disks))]
    print(f"{len(found)} cuts, {sum(each[0] == 2 for each in found)} of them behind the commit")
    assert set(found) <= {(1,) * count, (2,) * count}
    assert found[-1] == (2,) * count


def copy_of(metastore: SqliteMetaStore) -> SqliteMetaStore:
    """Return the MetaStore of the next start: every commit of the MetaStore is durable."""
    ours = metastore.identity
    copy = SqliteMetaStore.open(MEMORY, node_id=ours.node_id, new_cluster_id=ours.cluster_id)
    copy._connection.deserialize(metastore._connection.serialize())
    return copy


def committed_on(disk: SimulatedFileSystem, metastore) -> list[int]:
    after = Broker(config=CONFIG)
    after._file_system, after._metastore = disk, copy_of(metastore)
    with after:
        while after.call(lambda: after.server.groups.is_loading):
            pass
        return committed(after)
