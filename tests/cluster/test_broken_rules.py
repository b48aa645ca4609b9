"""Three brokers with one rule broken, which the judge of their clients must detect.

Each test runs a script twice: with all rules, where the history is right, and without one rule,
where the same judge names the anomaly. A broker that must not notice in time that another one has
taken over is cut off from changes: its lease is valid, and the store alone knows better.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
from barnabas.broker.cluster.coordinating.remote_markers import RemoteMarkers
from barnabas.broker.cluster.coordinating.verification_guards import Guards
from barnabas.broker.cluster.peers.sessions import PeerLink
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.replicated.log_index import Flush, FlushAnswer, Outcome
from barnabas.storage.runtime.clock import counter_ns
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.cluster.stage import PLACES, Scripted, Stage, running_stage, written_everywhere
from tests.history.anomalies import (
    ABORTED_READ,
    HANGING,
    PROCESSED_TWICE,
    TORN_TRANSACTION,
    UNSEEN,
)
from tests.history.model import FAILED, OK, UNKNOWN, Write
from tests.products import case
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.judge import wait_for_ends
from tests.workload.routing import GROUP, TRANSACTION, Coordinated, Led
from tests.workload.scripted import Transformer, Writer
from tests.workload.wire_transactions import CLASSIC, IMPLICIT
from tests.worlds import world

__all__ = ["world"]

LATE_MS = 3000
"""Delay of a coordinator's response: longer than the end of a transaction takes."""

pytestmark = [
    pytest.mark.parametrize(
        "is_broken",
        [case(False, in_test=True), case(True, in_test=False)],
        ids=["whole", "broken"],
    ),
    # Requests that a broker has just started when it is killed are dropped as they are.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]


@pytest.fixture
def stage():
    with running_stage() as made:
        yield made


def test_without_the_compare_what_is_acknowledged_is_overtaken_f1(stage, monkeypatch, is_broken):
    """A broker whose partition was taken from it writes there, and has not heard of it."""
    place = PLACES[0]
    former = stage.leader(place)
    present, _ = stage.others(former)
    writer = stage.add(Writer("writer", stage.addresses, SEED, place))
    writer.once()
    stage.deafen(former)
    stage.take(place, present)
    if is_broken:
        monkeypatch.setattr(MemoryIndex, "_led_elsewhere", lambda *_given: frozenset())
    stage.believe(writer, place, former)
    writer.once()
    stage.let_hear(former)
    stage.judge({UNSEEN} if is_broken else set())


def test_without_guards_a_batch_hangs_behind_its_transactions_end_r7(stage, monkeypatch, is_broken):
    """The coordinator's word on a batch comes when its client has given up, and has aborted."""
    name = "guarded"
    coordinator = stage.leader(Coordinated(TRANSACTION, name))
    leader, _ = stage.others(coordinator)
    place = stage.place_led_by(leader)
    if is_broken:
        monkeypatch.setattr(Guards, "take", lambda *_given: True)
    client = stage.add(Scripted(name, stage, CLASSIC))
    client.begin()
    client.add(place)
    client.writes = [Write(*place, "given up")]
    settings = {"producer_id": client.producer_id, "producer_epoch": client.epoch}
    records = batch(b"given up", base_sequence=0, transactional=True, **settings)
    intercept = stage.cluster.brokers[coordinator].intercept
    with (
        intercept(ADD_PARTITIONS_TO_TXN, delay_ms=LATE_MS) as verified,
        Wire(stage.addresses[leader]) as wire,
    ):
        named = Named(place.topic)
        request = produce_request(CLASSIC, named, (place.partition, records), transactional_id=name)
        wire.send(PRODUCE, request, CLASSIC)
        wait_until(lambda: verified.count)
        client._ask_coordinator(*client.end_request(commit=False))
        client.note(FAILED)
        wait_for_ends(stage.addresses)
        (answer,) = wire.receive().responses[0].partition_responses
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
    """The coordinator has lost its shard, and not the partition that its marker is for."""
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


def test_a_marker_in_front_of_its_decision_ends_what_is_not_decided_r2(
    stage, monkeypatch, is_broken
):
    """The coordinator is cut off from the store, reaches the other brokers, and dies."""
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
    """Report a decision in flight to the store as durable."""
    debt = DEBT(markers, shard, transaction)
    if debt is not None:
        debt.is_durable = True
    return debt


DEBT = RemoteMarkers._debt


def test_a_late_copy_of_a_marker_ends_the_next_transaction_r10(
    stage, world, monkeypatch, is_broken
):
    """A marker that was sent again arrives a second time, when the next transaction is open."""
    client = stage.add(Scripted("late", stage, CLASSIC))
    leader, _ = stage.others(stage.leader(client.coordinator))
    place = stage.place_led_by(leader)
    port = stage.addresses[leader][1]
    if is_broken:
        monkeypatch.setattr(PeerLink, "end", lambda *_given: None)
    client.begin()
    for number, outcome in enumerate((OK, OK, FAILED)):
        client.writes, client.begun_ns = [], counter_ns()
        client.add(place)
        client.write_one(place, f"late-{number}")
        if number == 1:
            # The marker of this transaction does not arrive before the mend. After its timeout,
            # the coordinator sends another one over a new connection.
            client.routing.close()
            world.network.stall(port)
        if number == 2:
            world.network.mend(port)
            world.sleep(1)
        client._ask_coordinator(*client.end_request(commit=outcome == OK))
        client.note(outcome)
    stage.judge({ABORTED_READ} if is_broken else set())


def test_an_answer_from_memory_has_inputs_processed_twice_o6(stage, monkeypatch, is_broken):
    """A transformer restarts, and fetches its offsets from a broker that has lost its group."""
    source, target, _ = PLACES
    writer = stage.add(Writer("writer", stage.addresses, SEED, source))
    # A broker cut off from changes cannot end transactions for partitions with unknown leaders.
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
    """Write an input, and process it."""
    writer.once()
    transformer.once()
