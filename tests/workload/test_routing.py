"""Requests of a client by wire whose connections are lost."""

from __future__ import annotations

from barnabas.testing import Broker, World
from tests.broker.data_plane import Wire
from tests.seeds import SEED
from tests.workload.drivers.wire import Sender
from tests.workload.operations import Write
from tests.workload.settings import LEFT, Kind, Settings


def test_no_batch_overtakes_one_whose_connection_is_lost(monkeypatch):
    """A broker without state of the producer accepts any first sequence number, as Kafka does."""
    send, to_lose = Wire.send, [1]

    def send_unless_lost(wire, *arguments):
        if to_lose:
            to_lose.pop()
            raise ConnectionResetError
        send(wire, *arguments)

    with World(SEED), Broker(seed=SEED) as broker:
        for topic in (LEFT, "other"):
            broker.create_topic(topic, 1)
        settings = Settings.of(Kind("bulk", "wire"), "sender", broker.bootstrap_servers, SEED)
        sender = Sender(settings)
        sender.send([Write("other", 0, "before")])
        monkeypatch.setattr(Wire, "send", send_unless_lost)
        writes = [Write(LEFT, 0, "first"), Write("other", 0, "between"), Write(LEFT, 0, "second")]
        acked, error = sender.send(writes)
    assert error is None
    assert [each.offset for each in acked if each.topic == LEFT] == [0, 1]
