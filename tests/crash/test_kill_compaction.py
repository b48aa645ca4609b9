"""kill -9 while a real broker compacts: no acknowledged value of a key is ever lost or undone.

An idempotent producer overwrites a few keys all the time, so that segments are sealed, cleaned and
put in place many times a second; the kills fall wherever they fall, in the middle of a swap too.
After each the files are sound, and a reader finds for every key the last value that was
acknowledged, or one that was sent after it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

KILLS = 3
KEYS = 20
TOPIC = "overwritten"
WAIT_SECONDS = 120
SETTINGS = {"log.cleaner.backoff.ms": "1", "barnabas.checkpoint.interval.ms": "50"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "delete.retention.ms": "0",
}


class Writer:
    """Overwrites keys until told to stop; ``acknowledged`` holds the last number of each key."""

    def __init__(self, servers: str) -> None:
        settings = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1}
        self._producer = Producer(settings)
        self._stop = threading.Event()
        self._may_write = threading.Lock()
        self.acknowledged: dict[int, int] = {}
        self.number = 0
        self._now_ms = int(time.time() * 1000)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._may_write:
                self._write(self.number % KEYS)
            if self.number % KEYS == 0:
                self._producer.poll(0)
                self._stop.wait(0.02)

    def _write(self, key: int) -> None:
        number = self.number
        self.number += 1
        self._now_ms += 20

        def delivered(error: object, _message: object) -> None:
            if error is None:
                self.acknowledged[key] = max(number, self.acknowledged.get(key, -1))

        self._producer.produce(
            TOPIC,
            b"%d" % number,
            b"%d" % key,
            partition=0,
            timestamp=self._now_ms,
            on_delivery=delivered,
        )

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold the writer still with nothing on its way, so that a reader can reach the end."""
        with self._may_write:
            assert self._producer.flush(WAIT_SECONDS) == 0
            yield

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(WAIT_SECONDS) == 0


def read(servers: str) -> list[tuple[int, int, int]]:
    """Return (offset, key, number) of every record; no client may write at the same time.

    A fetch that waits for data answers with the next record of a busy writer, so the client would
    never see an end.
    """
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, int, int]] = []
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append((message.offset(), int(message.key()), int(message.value())))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return found
            else:
                raise AssertionError(error)
    finally:
        consumer.close()
    raise AssertionError("the end was never reached")


def check(broker: BarnabasProcess) -> None:
    command = [sys.executable, "-m", "barnabas", "check", "-d", str(broker.data_directory)]
    environment = broker.python_environment()
    ended = subprocess.run(
        command, env=environment, check=False, timeout=120, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_kills_during_compaction(tmp_path):
    random = Random(20)
    swapped = 0
    with BarnabasProcess(tmp_path / "broker", **SETTINGS) as broker:
        create(broker.bootstrap_servers, TOPIC, partitions=1, configs=COMPACTED)
        writer = Writer(broker.bootstrap_servers)
        try:
            for _ in range(KILLS):
                deadline = time.monotonic() + WAIT_SECONDS
                while broker.output(limit=1 << 20).count("compacted topic") <= swapped:
                    assert time.monotonic() < deadline, "nothing was compacted"
                    time.sleep(0.02)
                time.sleep(random.random() / 2)
                swapped = broker.output(limit=1 << 20).count("compacted topic")
                promised = dict(writer.acknowledged)
                broker.kill()
                check(broker)
                broker.restart()
                with writer.paused():
                    found = read(broker.bootstrap_servers)
                offsets = [offset for offset, _, _ in found]
                assert offsets == sorted(set(offsets))
                latest = {key: number for _, key, number in found}
                for key, number in promised.items():
                    assert latest[key] >= number, (key, number, latest)
        finally:
            writer.end()
        latest = {key: number for _, key, number in read(broker.bootstrap_servers)}
        assert latest == writer.acknowledged
        assert len(read(broker.bootstrap_servers)) < writer.number
