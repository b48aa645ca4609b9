"""Three whole brokers of which one rule is broken, which the judge of their clients has to see.

Each test is a script: once as brokers are, and the history is right; and once more with the rule
taken out, and the same judge names what is wrong. A broker is made deaf where it must not hear in
time of what another one has taken over: its lease is valid, and the store alone knows better.
"""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from barnabas.broker.coordination.guards import Guards
from barnabas.broker.coordination.leadership_check import LeadershipCheck
from barnabas.broker.coordination.remote_markers import RemoteMarkers
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.cluster_index import Assignment
from barnabas.storage.log_index import Flush, FlushAnswer, Outcome
from barnabas.storage.memory_index import MemoryIndex
from barnabas.testing import Cluster
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.held_peers import HeldPeers
from tests.broker.raw_producer import TIMEOUT_MS
from tests.cluster import transactors
from tests.cluster.clients import Client, Writer
from tests.cluster.routing import GROUP, TRANSACTION, Coordinated, Found, Led, Place, Routing
from tests.cluster.transactors import Transactional, Transformer
from tests.cluster.workload import CLASSIC, IMPLICIT, judged, wait_for_ends
from tests.history import checker
from tests.history.anomalies import GONE, HANGING, PROCESSED_TWICE, TORN_TRANSACTION, UNSEEN
from tests.history.model import FAILED, NOT_KNOWN, UNKNOWN, Operation, Write
from tests.history.model import TRANSACTION as TRANSACTED
from tests.seeds import SEED
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.parametrize("is_broken", [False, True], ids=["whole", "broken"]),
    # Requests that a broker has just begun with when it is killed are dropped as they are.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]

TOPIC = "data"
BROKERS = 3
PLACES = [Led(TOPIC, index) for index in range(BROKERS)]
COORDINATED = {GROUP: "__consumer_offsets", TRANSACTION: "__transaction_state"}


class Stage:
    """Brokers, of which each leads a partition of the topic; and their clients."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.addresses = [broker.address for broker in cluster.brokers]
        self.clients: list[Client] = []
        self._deaf: set[int] = set()

    def add(self, client: Client) -> Any:
        """Have a client's history be judged with those of the others."""
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
        """Which partition the leader or coordinator of something leads."""
        if isinstance(place, Led):
            return place
        server = self.cluster.brokers[0].server
        log = (server.transactions if place.kind == TRANSACTION else server.groups).log
        return Led(COORDINATED[place.kind], log.partition_of(place.key))

    def leader(self, place: Place) -> int:
        number = self.cluster.leader(*self.led(place))
        assert number is not None
        return number

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
        """Let a broker hear of nothing; its session goes on."""
        self._deaf.add(number)
        self._membership(number).look_once = lambda: time.sleep(0.01)

    def let_hear(self, number: int) -> None:
        """Undo ``deafen``."""
        self._deaf.remove(number)
        del self._membership(number).look_once

    def take(self, place: Place, to: int) -> None:
        """Have a broker lead a partition that another one leads, whose session goes on."""
        index = self.cluster._base.cluster_index()
        picture = index.picture(0)
        (session,) = (each.session for each in picture.members if each.node_id == to)
        partition_id = self._partition_id(self.led(place))
        (epoch,) = (each.epoch for each in picture.led if each.partition_id == partition_id)
        assert index.assign([Assignment(partition_id, session, epoch)]) == {partition_id}
        wait_until(lambda: self.cluster.brokers[to].serves(partition_id))
        views = [self._membership(each).view for each in {*range(BROKERS)} - self._deaf]
        wait_until(lambda: {each.leader_of(partition_id).node_id for each in views} == {to})

    def believe(self, client: Client, place: Place, number: int) -> None:
        """Have a client take a broker for who is to be asked, until it hears that this is wrong."""
        client.routing._found[place] = Found(self.addresses[number])

    def judge(self, wrong: set[str]) -> None:
        """Judge what all clients were told: these anomalies are among what is wrong, if any is."""
        self.cluster.wait_until_served()
        wait_for_ends(self.addresses)
        history, report = judged(self.addresses, SEED, self.clients, PLACES)
        print("\n".join(checker.lines(report, history)))
        assert report.anomalies >= wrong
        assert bool(report.anomalies) == bool(wrong)

    def _partition_id(self, place: Led) -> int:
        return self.cluster._partition_ids(place.topic)[place.partition]

    def _membership(self, number: int) -> Any:
        return self.cluster.brokers[number].server._member._membership


@pytest.fixture
def stage():
    with Cluster(BROKERS, seed=SEED, config={"auto.leader.rebalance.enable": "false"}) as cluster:
        cluster.create_topic(TOPIC, BROKERS)
        stage = Stage(cluster)
        stage.make_internal_topics()
        yield stage
        for each in stage.clients:
            each.routing.close()


class Scripted(Transactional):
    """A producer with a transactional id that does one thing when it is told to, and once."""

    begun_ns = NOT_KNOWN

    def __init__(self, name: str, stage: Stage, version: int) -> None:
        super().__init__(name, stage.addresses, SEED, version)

    def begin(self) -> None:
        """Get an epoch, which ends what another one has left open; begin a transaction."""
        request = InitProducerIdRequest(self.name, TIMEOUT_MS)
        answer = self._ask_coordinator(INIT_PRODUCER_ID, request, 4)
        self._use(answer.producer_id, answer.producer_epoch)
        self.begun_ns = time.monotonic_ns()

    def end_request(self, *, commit: bool) -> tuple[Any, EndTxnRequest, int]:
        version = 3 if self.is_classic else 5
        return END_TXN, EndTxnRequest(self.name, self.producer_id, self.epoch, commit), version

    def note(self, outcome: str) -> None:
        """Note what it knows of its transaction, whose commit it has asked for or not."""
        now_ns = time.monotonic_ns()
        asked_ns = NOT_KNOWN if outcome == FAILED else now_ns
        told = Operation(TRANSACTED, self.name, outcome, self.begun_ns, asked_ns, now_ns)
        self.history.append(replace(told, producer=self.name, writes=tuple(self.writes)))


def test_without_the_compare_what_is_acknowledged_is_overtaken_f1(stage, monkeypatch, is_broken):
    """A broker whose partition was taken from it writes there, and has not heard of it."""
    place = PLACES[0]
    former = stage.leader(place)
    present, _ = stage.others(former)
    writer = stage.add(Writer("writer", stage.addresses, SEED, place))
    writer.once()
    writer.done = 1
    stage.deafen(former)
    stage.take(place, present)
    if is_broken:
        monkeypatch.setattr(MemoryIndex, "_led_elsewhere", lambda *_given: frozenset())
    stage.believe(writer, place, former)
    writer.once()
    stage.let_hear(former)
    stage.judge({GONE, UNSEEN} if is_broken else set())


def test_without_guards_a_batch_hangs_behind_its_transactions_end_r7(stage, monkeypatch, is_broken):
    """The coordinator's word on a batch comes when its client has given up, and has aborted."""
    name = "guarded"
    leader, _ = stage.others(stage.leader(Coordinated(TRANSACTION, name)))
    place = stage.place_led_by(leader)
    if is_broken:
        monkeypatch.setattr(Guards, "take", lambda *_given: True)
    client = stage.add(Scripted(name, stage, CLASSIC))
    client.begin()
    client.add(place)
    held = HeldPeers(stage.cluster.brokers[leader])
    held.holds = True
    client.writes = [Write(*place, "given up")]
    settings = {"producer_id": client.producer_id, "producer_epoch": client.epoch}
    records = batch(b"given up", base_sequence=0, transactional=True, **settings)
    with Wire(stage.addresses[leader]) as wire:
        named = Named(place.topic)
        request = produce_request(CLASSIC, named, (place.partition, records), transactional_id=name)
        wire.send(PRODUCE, request, CLASSIC)
        held.wait_for_one()
        client._ask_coordinator(*client.end_request(commit=False))
        client.note(FAILED)
        wait_for_ends(stage.addresses)
        held.let_go()
        (answer,) = wire.receive().responses[0].partition_responses
    held.leave()
    assert answer.error_code == (0 if is_broken else ErrorCode.NOT_ENOUGH_REPLICAS)
    stage.judge({HANGING} if is_broken else set())


def commit_by_item(index: MemoryIndex, session: int, flush: Flush) -> FlushAnswer:
    """Commit what can be committed of a flush, and say of the rest that it is refused."""
    refused = index._led_elsewhere(session, flush)
    items = [each for each in flush.items if each.partition_id not in refused]
    starts = [each for each in flush.starts if each.partition_id not in refused]
    answer = COMMIT_FLUSH(index, session, replace(flush, items=items, starts=starts))
    if not refused or answer.outcome is not Outcome.COMMITTED:
        return answer
    index._sessions[session].next_flushes[flush.lane] = flush.number
    return FlushAnswer(Outcome.REFUSED, refused)


COMMIT_FLUSH = MemoryIndex.commit_flush


def test_committing_by_item_leaves_a_marker_without_its_decision_f1(stage, monkeypatch, is_broken):
    """Who decides has lost the coordination, and not the partition that its marker is for."""
    client = stage.add(Scripted("torn", stage, CLASSIC))
    coordinated = client.coordinator
    former = stage.leader(coordinated)
    present, _ = stage.others(former)
    client.begin()
    written_everywhere(stage, client)
    stage.deafen(former)
    stage.take(coordinated, present)
    if is_broken:
        monkeypatch.setattr(MemoryIndex, "commit_flush", commit_by_item)
    with Wire(stage.addresses[former]) as wire:
        answer = wire.ask(*client.end_request(commit=True))
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    client.note(UNKNOWN)
    stage.let_hear(former)
    client.begin()
    stage.judge({TORN_TRANSACTION} if is_broken else set())


def written_everywhere(stage: Stage, client: Scripted) -> None:
    """Write to all partitions, so that each broker has to end the transaction in one."""
    for each in PLACES:
        # What every reader is given, or the judge does not know what they might have read.
        stage.add(Writer(f"writer-{each.partition}", stage.addresses, SEED, each)).once()
    client.add(*PLACES)
    for each in PLACES:
        client.write(each, f"{client.name}-{each.partition}")


def test_a_marker_in_front_of_its_decision_ends_what_is_not_decided_r2(
    stage, monkeypatch, is_broken
):
    """Who decides is cut off from the store, and dies, and does reach the other brokers."""
    client = stage.add(Scripted("early", stage, CLASSIC))
    former = stage.leader(client.coordinator)
    elsewhere = [stage.place_led_by(each) for each in stage.others(former)]
    if is_broken:
        monkeypatch.setattr(RemoteMarkers, "_debt", debt_of_what_is_not_durable)
    client.begin()
    written_everywhere(stage, client)
    before = watermarks(stage, elsewhere)
    stage.cluster.cut_from_store(former)
    with Wire(stage.addresses[former]) as wire:
        wire.send(*client.end_request(commit=True))
        if is_broken:
            wait_until(lambda: all(map(operator.gt, watermarks(stage, elsewhere), before)))
        else:
            transactions = stage.cluster.brokers[former].server.transactions
            wait_until(lambda: transactions.is_deciding(client.name))
        stage.cluster.kill(former)
    stage.cluster.mend_to_store(former)
    client.note(UNKNOWN)
    stage.cluster.restart(former)
    client.begin()
    stage.judge({TORN_TRANSACTION} if is_broken else set())


def watermarks(stage: Stage, places: Sequence[Led]) -> list[int]:
    return [stage.log(each).high_watermark for each in places]


def debt_of_what_is_not_durable(markers: RemoteMarkers, shard: Any, transaction: Any) -> Any:
    """Say of a decision that is on its way to the store that it is durable."""
    debt = DEBT(markers, shard, transaction)
    if debt is not None:
        debt.is_durable = True
    return debt


DEBT = RemoteMarkers._debt


def test_an_answer_from_memory_has_inputs_processed_twice_o6(stage, monkeypatch, is_broken):
    """A transformer starts anew, and asks a broker for its offsets that has lost its group."""
    monkeypatch.setattr(transactors, "COMMITS", 1)
    source, target, _ = PLACES
    writer = stage.add(Writer("writer", stage.addresses, SEED, source))
    # Who is deaf cannot have its own transactions end where it does not know who leads.
    name = next(each for each in map(str, range(100)) if not stage.coordinates_both(each))
    transformer = stage.add(new_transformer(name, stage, source, target))
    coordinated = Coordinated(GROUP, transformer.group)
    process(writer, transformer)
    wait_for_ends(stage.addresses)
    former = stage.leader(coordinated)
    present, _ = stage.others(former)
    stage.deafen(former)
    stage.take(coordinated, present)
    stage.believe(transformer, coordinated, present)
    process(writer, transformer)
    if is_broken:
        monkeypatch.setattr(LeadershipCheck, "check", lambda _all, _partition, then: then(True))
    restarted = stage.add(new_transformer(name, stage, source, target))
    stage.believe(restarted, coordinated, former)
    restarted.once()
    stage.let_hear(former)
    stage.judge({PROCESSED_TWICE} if is_broken else set())


def new_transformer(name: str, stage: Stage, source: Led, target: Led) -> Transformer:
    return Transformer(name, stage.addresses, SEED, IMPLICIT, source, target)


def process(writer: Writer, transformer: Transformer) -> None:
    """Have an input written, and something made of it."""
    writer.once()
    writer.done += 1
    transformer.once()
    transformer.done += 1
