"""Watch of a run: findings that nothing later can mend, from the records of a broker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.proving.identities import Identities, IdRule
from barnabas.broker.cli.proving.judge import ABORTED, AT_LEAST, EXACTLY, TWICE
from barnabas.broker.cli.proving.load import Writer
from barnabas.broker.cli.proving.observer import Observer
from barnabas.broker.cli.proving.watch import Watch
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.errors import Unreachable
from barnabas.testing import Broker
from tests.waiting import wait_until

TOKEN = 7


NUMBERS = count(1)


@pytest.fixture
def topics(shared_broker: Broker) -> tuple[str, str]:
    number = next(NUMBERS)
    source, target = f"watched-inputs-{number}", f"watched-outputs-{number}"
    shared_broker.create_topic(source, 1)
    shared_broker.create_topic(target, 1)
    return source, target


def watch_of(broker: Broker, topics: tuple[str, str], expectation: str = EXACTLY) -> Watch:
    cluster = Cluster([broker.address], 10.0)
    starts = {(topics[0], 0): 0}, {(topics[1], 0): 0}
    ids_of = Identities(IdRule(), TOKEN).of
    return Watch(Observer(cluster, *topics), cluster.close, ids_of, starts, expectation)


def write(broker: Broker, topic: str, keys: Sequence[bytes | None]) -> None:
    """Write records, each in a committed transaction."""
    records = [NewRecord(each, b"value", ()) for each in keys]
    _write(broker, topic, records.__getitem__, len(records), limit=len(records))


def write_inputs(broker: Broker, topic: str, number: int) -> None:
    """Write inputs, some of whose transactions are aborted."""
    _write(broker, topic, Identities(IdRule(), TOKEN).record, number)


def _write(broker: Broker, topic: str, records, number: int, limit: int | None = None) -> None:
    cluster = Cluster([broker.address], 10.0)
    writer = Writer(cluster, topic, records, name=topic, rate=5000, seed=3, limit=limit)
    writer.start()
    wait_until(lambda: writer.numbers >= number, lambda: f"{writer.numbers} of {number}")
    writer.stop()


@pytest.mark.parametrize(("expectation", "found"), [(EXACTLY, TWICE), (AT_LEAST, "")])
def test_second_output_of_an_input_is_found_unless_allowed(
    shared_broker, topics, expectation, found
):
    first, second = (Identities(IdRule(), TOKEN).record(number).key for number in (1, 2))
    watch = watch_of(shared_broker, topics, expectation)
    write(shared_broker, topics[1], [first, second])
    watch.step()
    assert watch.found == ""
    write(shared_broker, topics[1], [second])
    watch.step()
    assert watch.found == found


def test_output_of_an_aborted_input_is_found(shared_broker, topics):
    watch = watch_of(shared_broker, topics)
    write_inputs(shared_broker, topics[0], 200)
    isolations = ("read_committed", "read_uncommitted")
    committed, known = (
        [each.key for each in shared_broker.records(topics[0], isolation).result]
        for isolation in isolations
    )
    write(shared_broker, topics[1], committed)
    watch.step()
    assert watch.found == ""
    aborted = [each for each in known if each not in committed]
    write(shared_broker, topics[1], aborted[:1])
    watch.step()
    assert watch.found == ABORTED


def test_thread_continues_after_a_broker_was_down(shared_broker, topics, monkeypatch):
    record = Identities(IdRule(), TOKEN).record(1)
    write(shared_broker, topics[1], [record.key] * 2)
    watch = watch_of(shared_broker, topics)
    steps = []

    def step() -> None:
        steps.append(len(steps))
        if len(steps) == 1:
            raise Unreachable("the broker is down")
        Watch.step(watch)

    monkeypatch.setattr(watch, "step", step)
    with watch:
        wait_until(lambda: watch.found, lambda: f"{len(steps)} steps")
    assert watch.found == TWICE
    assert steps == [0, 1]
