"""Cluster and clients for scripts: leaders, brokers cut off from changes, and the judge."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.storage.replicated.cluster_index import ClusterSnapshot
from tests.broker.moves import STAYS
from tests.cluster.watched import WatchedCluster
from tests.history import checker
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload import scripted
from tests.workload.judge import wait_for_ends
from tests.workload.routing import GROUP, TRANSACTION, Coordinated, Found, Led, Place, Routing
from tests.workload.scripted import Client, Writer, judged

TOPIC = "data"
BROKERS = 3
PLACES = [Led(TOPIC, index) for index in range(BROKERS)]
COORDINATED = {GROUP: "__consumer_offsets", TRANSACTION: "__transaction_state"}


class Stage:
    """Brokers, of which each leads a partition of the topic; and their clients."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster = cluster
        self.addresses = [broker.address for broker in cluster.brokers]
        self.clients: list[Client] = []
        self._deaf: set[int] = set()

    def add(self, client: Client) -> Any:
        """Add a client, whose history is judged with those of the others."""
        self.clients.append(client)
        return client

    def make_internal_topics(self) -> None:
        routing = Routing(self.addresses, Random(SEED), "first")
        for kind in COORDINATED:
            place = Coordinated(kind, "anybody")
            routing.until_answered(place, functools.partial(self._is_found, routing, place))
        routing.close()
        self.cluster.wait_until_served()

    def _is_found(self, routing: Routing, place: Coordinated) -> ErrorCode:
        routing.find(place)
        return ErrorCode.NONE

    def led(self, place: Place) -> Led:
        """Return the ID of the partition of a leader or coordinator."""
        if isinstance(place, Led):
            return place
        server = self.cluster.brokers[0].server
        log = (server.transactions if place.kind == TRANSACTION else server.groups).log
        return Led(COORDINATED[place.kind], log.partition_of(place.key))

    def leader(self, place: Place) -> int:
        number = self.cluster.leader(*self.led(place))
        assert number is not None
        return number

    def snapshot(self) -> ClusterSnapshot:
        """Return the members and leaders, as the store has them."""
        return self.cluster._base.cluster_index().snapshot(0)

    def log(self, place: Led) -> Any:
        """The log of a partition, where it is led."""
        server = self.cluster.brokers[self.leader(place)].server
        return server.logs.logs[self._partition_id(place)]

    def place_led_by(self, number: int) -> Led:
        return next(each for each in PLACES if self.leader(each) == number)

    def coordinates_both(self, name: str) -> bool:
        """Whether one broker coordinates a transformer's transactions and its group."""
        group = Coordinated(GROUP, f"group-{name}")
        return self.leader(Coordinated(TRANSACTION, name)) == self.leader(group)

    def others(self, number: int) -> tuple[int, int]:
        one, other = {*range(BROKERS)} - {number}
        return one, other

    def deafen(self, number: int) -> None:
        """Hide all changes from a broker; its session continues."""
        self._deaf.add(number)
        self.cluster.deafen(number)

    def let_hear(self, number: int) -> None:
        """Undo ``deafen``."""
        self._deaf.remove(number)
        self.cluster.let_hear(number)

    def heartbeat(self, number: int) -> None:
        """Renew a broker's lease, and fence expired sessions as it does."""
        self.cluster.membership(number).beat_once()

    def take(self, place: Place, to: int) -> None:
        """Make a broker lead a partition of another one, whose session continues."""
        led = self.led(place)
        partition_id = self._partition_id(led)
        self.cluster.assign(*led, to)
        wait_until(lambda: self.cluster.brokers[to].serves(partition_id))
        views = [self.cluster.membership(each).view for each in {*range(BROKERS)} - self._deaf]
        wait_until(lambda: {each.leader_of(partition_id).node_id for each in views} == {to})

    def believe(self, client: Client, place: Place, number: int) -> None:
        """Make a client send requests to a broker until an error corrects it."""
        client.routing._found[place] = Found(self.addresses[number])

    def judge(self, wrong: set[str], places: Sequence[Led] = PLACES) -> None:
        """Judge the histories of all clients: these anomalies must be among the errors, if any."""
        self.cluster.wait_until_served()
        wait_for_ends(self.addresses)
        history, report = judged(self.addresses, self.clients, places)
        print("\n".join(checker.lines(report, history)))
        assert report.anomalies >= wrong
        assert bool(report.anomalies) == bool(wrong)

    def _partition_id(self, place: Led) -> int:
        return self.cluster.partition_ids(place.topic)[place.partition]


@contextlib.contextmanager
def running_stage(**config: str) -> Iterator[Stage]:
    """Start brokers that move nothing by themselves."""
    with WatchedCluster(BROKERS, seed=SEED, config=STAYS | config) as cluster:
        cluster.create_topic(TOPIC, BROKERS)
        stage = Stage(cluster)
        stage.make_internal_topics()
        yield stage
        for each in stage.clients:
            each.routing.close()


class Scripted(scripted.Scripted):
    """Producer with a transactional ID that does each step once, on request."""

    def __init__(self, name: str, stage: Stage, version: int) -> None:
        super().__init__(name, stage.addresses, SEED, version)


def written_everywhere(stage: Stage, client: Scripted) -> None:
    """Write to all partitions, so that each broker has to end the transaction in one."""
    for each in PLACES:
        # What every reader is given, or the judge does not know what they might have read.
        stage.add(Writer(f"writer-{each.partition}", stage.addresses, SEED, each)).once()
    client.add(*PLACES)
    for each in PLACES:
        client.write_one(each, f"{client.name}-{each.partition}")
