"""Each answer to Produce, OffsetCommit and EndTxn leaves after the sync that covers its bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce import PRODUCE
from tests.attack.process import AttackedBroker
from tests.attack.shim import Event, Kind, Shim, events
from tests.attack.sync_promise import Promise, broken, evidence
from tests.broker.data_plane import Named, batch, produce_request
from tests.counterparts.offsets_client import OffsetsClient
from tests.crash.transaction_client import NONE, Producer, persistent
from tests.requests import create_topic

CLIENTS = 6
ROUNDS = 12
TOPIC = "promised"
SIZES = (50, 50, 50, 3_000, 70_000, 600_000)
EMPTY_ONGOING_PREPARED = 3


class Watched(OffsetsClient):
    """A client with unique correlation ids."""

    def __init__(self, broker: AttackedBroker, number: int) -> None:
        super().__init__(broker)
        self._connection._next_correlation_id = (number + 1) * 1_000_000

    @property
    def newest(self) -> int:
        """The correlation id of the newest request."""
        return self._connection._next_correlation_id - 1


def work(broker: AttackedBroker, number: int, seed: int) -> Iterator[Promise]:
    """Write, commit and pay; yield what was promised."""
    random = Random(f"{seed} {number}")
    with Watched(broker, number) as client:
        for turn in range(ROUNDS):
            serial = b"%08d" % (number * ROUNDS + turn)
            word = b"record-" + serial
            data = batch(word.ljust(random.choice(SIZES), b"."))
            answer = client.ask(PRODUCE, produce_request(9, Named(TOPIC), (number, data)), 9)
            assert answer.responses[0].partition_responses[0].error_code == NONE
            yield Promise(client.newest, word)
            yield _commit(client, number, serial, turn)
            yield _pay(client, number, serial)


def _commit(client: Watched, number: int, serial: bytes, offset: int) -> Promise:
    word = b"commit-" + serial
    partition = OffsetCommitRequestPartition(number, offset, -1, word.decode())
    topic = OffsetCommitRequestTopic(TOPIC, partitions=[partition])
    answer = client.ask(OFFSET_COMMIT, OffsetCommitRequest("group", topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == NONE
    return Promise(client.newest, word)


def _pay(client: Watched, number: int, serial: bytes) -> Promise:
    word = b"transaction-" + serial
    producer = Producer(client, word.decode())
    producer.begin((TOPIC, number))
    assert persistent(producer.end) == NONE
    return Promise(client.newest, word, EMPTY_ONGOING_PREPARED)


@pytest.mark.slow
def test_every_answer_leaves_after_the_sync_that_covers_it(tmp_path, say):
    seed = int(os.environ.get("ATTACK_SEED", "20261123"))
    trace = tmp_path / "trace"
    variables = Shim(tmp_path / "shim").tracing(trace, "barnabas-journal-")
    with AttackedBroker(tmp_path / "broker", variables) as broker:
        with OffsetsClient(broker) as client:
            create_topic(client, TOPIC, CLIENTS)
            client.find("group", 0)
            client.find("any", 1)
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [
                pool.submit(lambda each: list(work(broker, each, seed)), number)
                for number in range(CLIENTS)
            ]
            promises = [promise for each in working for promise in each.result()]
        broker.kill()
    found = evidence(events(trace))
    kinds = [event.kind for event in events(trace)]
    counts = ", ".join(f"{kinds.count(kind)} {kind.name}" for kind in Kind)
    say(f"{len(promises)} promises, seed {seed}; {counts}")
    assert len(promises) == CLIENTS * ROUNDS * 3
    assert broken(promises, found) == []


# ------------------------------------------------------------------------------------- the judge

JOURNAL, SOCKET = 7, 9
WORD = b"record-00000001"
PROMISE = [Promise(5, WORD)]


def answer(correlation_id):
    return struct.pack(">iih", 6, correlation_id, 0)


WRITTEN = Event(Kind.WRITTEN, JOURNAL, 0, b"group of " + WORD)
BEGUN, SYNCED = Event(Kind.SYNC_BEGUN, JOURNAL, 0, b""), Event(Kind.SYNCED, JOURNAL, 0, b"")
DURABLE = WRITTEN._replace(kind=Kind.WRITTEN_DURABLY)
SENT = Event(Kind.SENT, SOCKET, 0, answer(4) + answer(5))


@pytest.mark.parametrize(
    ("trace", "kept"),
    [
        ([WRITTEN, BEGUN, SYNCED, SENT], True),
        ([DURABLE, SENT], True),
        ([WRITTEN, SENT, BEGUN, SYNCED], False),
        ([WRITTEN, BEGUN, SENT, SYNCED], False),
        ([BEGUN, WRITTEN, SYNCED, SENT], False),
        ([WRITTEN, BEGUN._replace(descriptor=8), SYNCED._replace(descriptor=8), SENT], False),
        ([WRITTEN, BEGUN, SYNCED], False),
        ([SENT], False),
    ],
)
def test_the_judge_knows_which_sync_covers_what(trace, kept):
    assert (not broken(PROMISE, evidence(trace))) is kept


def test_a_transaction_is_promised_by_the_record_of_its_decision():
    promise = [Promise(5, WORD, 2)]
    assert broken(promise, evidence([DURABLE, SENT, DURABLE]))
    assert not broken(promise, evidence([DURABLE, DURABLE, SENT]))


def test_an_answer_in_pieces_leaves_with_its_first_byte():
    pieces = [SENT._replace(data=piece) for piece in (answer(4) + answer(5)[:8], answer(5)[8:])]
    assert broken(PROMISE, evidence([pieces[0], DURABLE, pieces[1]]))
    assert not broken(PROMISE, evidence([DURABLE, *pieces]))
