"""Signals that ask the command for its end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.running.runner import Running, watch
from barnabas.spark_connector.session.stopping import Stop, Stopped
from tests.spark_connector.test_command import FakeQuery
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def query():
    return FakeQuery()


def test_the_first_signal_asks_for_the_end_and_the_second_does_not_wait():
    stop = Stop()
    stop.on_signals()
    stop.waits = True
    os.kill(os.getpid(), signal.SIGTERM)
    wait_until(lambda: stop.is_asked)
    with pytest.raises(Stopped):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_second_signal_ends_the_wait_for_a_batch(query):
    pipeline = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))
    stop = Stop()
    stop.on_signals()
    stop.waits = True
    stop.ask()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    with pytest.raises(Stopped):
        watch([Running.of(pipeline, query, "/checkpoints/a")], lambda _batch: None, stop)
    timer.join()


def test_where_nothing_runs_yet_the_first_signal_waits_for_nothing():
    stop = Stop()
    stop.on_signals()
    with pytest.raises(Stopped):
        os.kill(os.getpid(), signal.SIGTERM)
