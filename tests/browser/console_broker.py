"""Brokers with the HTTP port of their console: as a process, or in the process of the tests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.counterparts.probe import free_port
from tests.interop.clients import kafka


class _WithConsole(BrokerProcess):
    """A broker whose console is at `url`, also after a restart."""

    def __init__(self, directory: Path | None = None, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self.http_port = free_port()
        self.overrides.setdefault("barnabas.http.listener", f"{HOST}:{self.http_port}")

    @property
    def url(self) -> str:
        """Address of the console, without a slash at the end."""
        return f"http://{HOST}:{self.http_port}"


class ConsoleBroker(_WithConsole, BarnabasProcess):
    """`with ConsoleBroker() as broker:` a process."""


class EmbeddedConsoleBroker(_WithConsole, EmbeddedBarnabas):
    """`with EmbeddedConsoleBroker() as broker:` a broker in this process."""


@contextlib.contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do something on a thread, beside what else there is, until the event is set at the end."""
    done = threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            work(done)
        except Exception as error:  # noqa: BLE001 - raised where the test can see it
            failures.append(error)

    thread = threading.Thread(target=run, name="meanwhile")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(60)
    assert not thread.is_alive(), "what goes on meanwhile did not end"
    assert failures == []


def producing(
    broker: ConsoleBroker, topic: str, *, pause_s: float = 0.05
) -> contextlib.AbstractContextManager[None]:
    """Send twenty records at a time with kafka-python, repeatedly, during the block."""

    def produce(done: threading.Event) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
        try:
            while not done.wait(pause_s):
                for _ in range(20):
                    producer.send(topic, b"x" * 100)
                producer.flush(timeout=30)
        finally:
            producer.close(timeout=10)

    return meanwhile(produce)
