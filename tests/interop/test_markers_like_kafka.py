"""Markers as Apache Kafka's: its answers, its bytes, and a directory of its own taken over (D6)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.records import read_header
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.crash.transaction_client import (
    Producer,
    committed_offset,
    ends,
    persistent,
    producers,
    stored,
    unchecked_history,
)
from tests.interop.comparison import Answer, check_alike, comparable
from tests.interop.dump import complaints, segment_files
from tests.interop.recorded_kafka import Barnabas, plain
from tests.interop.transactional import Confluent
from tests.requests import create_topic
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

NONE = ErrorCode.NONE
PID = 5000
TOPIC = "marked"
PLACES = [(TOPIC, index) for index in range(8)]
OPEN = [("open", index) for index in range(2)]
FORCED_EPOCH = 40
OFFSETS = "__consumer_offsets"

ON_PURPOSE = {
    "producer id -1": "INVALID_REQUEST says what is wrong; Kafka's -1 says nothing",
    "producer id -7": "Kafka writes it: a control batch of nobody",
    "epoch -1": "as above",
    "epoch -5": "as above",
    "generation -1": "as above",
    "from the future": "Kafka writes it, and every real coordinator is fenced for good",
    "no topics": "Kafka leaves the marker out of its answer",
    "older behind newer": "Kafka keeps one answer for each producer",
}
# No request names a partition twice for one producer: Kafka 4.3.0 never responds to it.


def ask(
    client: WireClient,
    epoch: int,
    *places: tuple[str, int],
    producer_id: int = PID,
    coordinator_epoch: int = 1,
    version: int = 2,
    generation: int = 0,
    commit: bool = True,
) -> Any:
    indexes: dict[str, list[int]] = {}
    for topic, index in places:
        indexes.setdefault(topic, []).append(index)
    topics = [WritableTxnMarkerTopic(*each) for each in indexes.items()]
    marker = WritableTxnMarker(producer_id, epoch, commit, topics, coordinator_epoch, generation)
    return client.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest([marker]), version)


def is_done(answer: Any) -> bool:
    """Whether the one marker was written; false while the partition has no leader yet."""
    (partition,) = answer.markers[0].topics[0].partitions
    return partition.error_code == NONE


def script(client: WireClient) -> Iterator[Answer]:
    """One request after the other; what each leaves is what the next one meets."""
    create_topic(client, TOPIC, len(PLACES))
    find = lambda: client.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)  # noqa: E731
    wait_until(lambda: find().error_code == NONE)
    first = PLACES[0]
    wait_until(lambda: is_done(ask(client, 3, first)))
    yield "again", ask(client, 3, first)
    yield "again, second generation", ask(client, 3, first, generation=2)
    yield "older", ask(client, 2, first)
    yield "older, second generation", ask(client, 2, first, generation=2)
    yield "newer", ask(client, 4, first, generation=2)
    yield "older coordinator", ask(client, 4, first, coordinator_epoch=0)
    yield "older in both", ask(client, 1, first, coordinator_epoch=0)
    yield "unknown topic", ask(client, 4, ("nowhere", 0))
    yield "unknown partitions", ask(client, 4, (TOPIC, 99), PLACES[1])
    yield "negative partition", ask(client, 4, (TOPIC, -1))
    yield "no coordinator", ask(client, 1, PLACES[2], coordinator_epoch=-1)
    yield "below any coordinator", ask(client, 1, PLACES[2], coordinator_epoch=-9)
    yield "generation 127", ask(client, 5, PLACES[2], generation=127)
    yield "version 1", ask(client, 6, PLACES[2], version=1, commit=False)
    yield "largest epoch", ask(client, 32_767, PLACES[3], generation=2)
    yield "largest epoch again", ask(client, 32_767, PLACES[3], generation=2)
    wait_until(lambda: is_done(ask(client, 1, (OFFSETS, 3))))
    yield "offsets again", ask(client, 1, (OFFSETS, 3))
    yield "offsets, older", ask(client, 0, (OFFSETS, 3))
    yield "offsets, older coordinator", ask(client, 1, (OFFSETS, 3), coordinator_epoch=0)
    yield "offsets, no such partition", ask(client, 1, (OFFSETS, 99))
    yield "producer id -1", ask(client, 1, PLACES[4], producer_id=-1)
    yield "producer id -7", ask(client, 1, PLACES[4], producer_id=-7)
    yield "epoch -1", ask(client, -1, PLACES[4])
    yield "epoch -5", ask(client, -5, PLACES[4])
    yield "generation -1", ask(client, 1, PLACES[4], generation=-1)
    yield "from the future", ask(client, 1, PLACES[5], coordinator_epoch=2**30)
    yield "no topics", ask(client, 1)
    yield "nothing", client.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest([]), 2)
    markers = [
        WritableTxnMarker(PID, epoch, False, [WritableTxnMarkerTopic(TOPIC, [6])], 1)
        for epoch in (2, 1)
    ]
    request = WriteTxnMarkersRequest(markers)
    yield "older behind newer", client.ask(WRITE_TXN_MARKERS, request, 2)
    for place in PLACES[:4]:
        yield f"producers of {place}", [*producers(client, place).values()]


def answers(client: WireClient) -> Iterator[Answer]:
    """The script's answers, in which the order of partitions and the time mean nothing."""
    for label, answer in script(client):
        yield label, comparable(answer)


def test_answers_and_bytes_are_kafkas(kafka, tmp_path):
    with Barnabas(tmp_path / "ours") as ours:
        check_alike(ours, kafka, "answers", answers, ON_PURPOSE)
        markers = plain(control_batches(ours))
        assert len(markers) >= 10
        assert markers == kafka.observe("markers", control_batches)
        assert ours.terminate() == 0
        assert complaints(segment_files(ours.data_directory)) == []


def control_batches(broker: BrokerProcess) -> list[Any]:
    """The markers of the first partitions, without what time and place decide."""
    with WireClient(broker) as client:
        found = [batch for place in PLACES[:4] for batch in stored(client, place)]
    return [
        # Base offset and size, magic, attributes and delta, then all from the producer id on.
        (batch[:12], batch[16:17], batch[21:27], batch[43:], read_header(batch).is_control)
        for batch in found
    ]


@pytest.mark.nightly  # Its directory is what Barnabas takes over.
def test_transactions_of_a_kafka_continue_after_its_adoption(live_kafka):
    """Open ones are committed by their clients, and our markers are later than all of Kafka's."""
    with WireClient(live_kafka) as client:
        create_topic(client, "open", len(OPEN))
        for kind in (0, 1):
            find = partial(client.ask, FIND_COORDINATOR, FindCoordinatorRequest("g", kind), 3)
            wait_until(lambda find=find: find().error_code == NONE)
        for producer_id, epoch in ((PID, FORCED_EPOCH), (PID + 1, 2**31 - 1)):
            forced = partial(ask, client, 9, OPEN[1], producer_id=producer_id)
            wait_until(lambda forced=forced, epoch=epoch: is_done(forced(coordinator_epoch=epoch)))
        open_ones = [
            # They are open until another broker has been started in the place of this one.
            Producer(client, f"open-{each}", each, timeout_ms=900_000)
            for each in (CLASSIC, TRANSACTIONS_V2)
        ]
        for producer in open_ones:
            producer.begin(*OPEN)
            send = lambda producer=producer: producer.send_offsets(  # noqa: E731
                producer.key, OPEN[0], 7
            )
            assert persistent(send) == NONE
        before = {place: ends(client, place) for place in OPEN}
    assert live_kafka.terminate() in {0, 143}
    taken_over = BarnabasProcess(live_kafka.directory, node_id="1")
    with taken_over as broker, WireClient(broker) as client:
        assert {place: ends(client, place) for place in OPEN} == before
        for producer in open_ones:
            producer.client = client
            assert committed_offset(client, producer.key, OPEN[0], wait=False) is None
            producer.open(OPEN[0])
            assert persistent(producer.end) == NONE
            assert committed_offset(client, producer.key, OPEN[0]) == 7
            confluent = Confluent(broker.bootstrap_servers, producer.key)
            confluent.begin()
            confluent.send(*OPEN[0], b"went on")
            confluent.commit()
            confluent.close()
        found = unchecked_history(client)  # The other test has ended by hand what never was.
        for producer in open_ones:
            assert found.latest(producer.key).state.is_idle
        ours = found.partitions[OPEN[1]].markers[-1]
        assert ours.coordinator_epoch > FORCED_EPOCH
        for place in OPEN:
            stable, end = ends(client, place)
            assert stable == end
