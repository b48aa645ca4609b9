"""A long start and stop: responses of the probes meanwhile, and the interruption of both."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import urllib.error

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination import coordinator_log
from barnabas.broker.daemon import _started
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.server import BrokerServer
from barnabas.broker.testing.disk.simulated import SimulatedCrash, SimulatedFileSystem
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.toy_coordinator import turn_after_each_batch
from tests.counterparts.offsets_client import OffsetsClient
from tests.http_client import urlopen
from tests.waiting import until
from tests.worlds import world

__all__ = ["world"]

PARTITIONS = 20


class Gate:
    """A barrier that blocks the thread of one disk call until the test resumes or kills it."""

    def __init__(self, name: str, path: str = "") -> None:
        self._name = name
        self._path = path
        self._opened = new_event()
        self._dies = False
        self.reached = new_event()

    def __call__(self, operation) -> None:
        if self._dies:
            raise SimulatedCrash
        if operation.name == self._name and operation.path.endswith(self._path):
            self.reached.set()
            assert self._opened.wait(60)
            if self._dies:
                raise SimulatedCrash

    def open(self) -> None:
        self._opened.set()

    def die(self) -> None:
        self._dies = True
        self._opened.set()


class Machine:
    """A disk and a MetaStore that several brokers use in turn."""

    def __init__(self) -> None:
        self.disk = SimulatedFileSystem()
        self.metastore = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)

    def broker(self, clock: ManualClock | None = None, **changes) -> BrokerServer:
        config = BrokerConfig(
            listeners=("PLAINTEXT://127.0.0.1:0",),
            http_listener="127.0.0.1:0",
            log_dirs=("/data",),
            journal_file_bytes=4 * 1024 * 1024,
            **changes,
        )
        return BrokerServer(config, clock=clock, file_system=self.disk, metastore=self.metastore)

    async def fill(self, server: BrokerServer) -> None:
        topic = await server.catalogue.create_topic("topic", PARTITIONS, {})
        for partition in topic.partitions:
            batch = encode_batch([Record(0, 1_700_000_000_000, None, b"value")])
            partition.log.append(memoryview(bytearray(batch)))
        await server.transactions.durable()


@pytest.fixture
def machine():
    machine = Machine()
    yield machine
    machine.metastore.close()


def ask(server: BrokerServer, page: str) -> tuple[int, dict]:
    assert server.http is not None
    url = "http://{}:{}{}".format(*server.http.address, page)
    try:
        with urlopen(url, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


async def test_a_start_answers_probes_and_says_how_far_it_is(machine):
    first = machine.broker()
    await first.start()
    await machine.fill(first)
    await first.stop()
    gate = machine.disk.before = Gate("list_directory", "/topic-7")
    server = machine.broker()
    starting = asyncio.create_task(server.start())
    await until(gate.reached.is_set)
    assert (await asyncio.to_thread(ask, server, "/livez"))[0] == 200
    status, said = await asyncio.to_thread(ask, server, "/readyz")
    assert status == 503
    assert said["checks"]["storage"] == (
        f"recovering: 7 of {PARTITIONS} partitions open, 0 batches of the journal replayed"
    )
    assert server.http is not None
    for page in ("/metrics", "/config"):
        url = "http://{}:{}{}".format(*server.http.address, page)
        with await asyncio.to_thread(urlopen, url, timeout=30) as answer:
            assert answer.status == 200
    gate.open()
    await starting
    assert (await asyncio.to_thread(ask, server, "/readyz"))[0] == 200
    await server.stop()


async def test_a_start_says_how_much_of_the_journal_it_has_checked(machine, caplog, monkeypatch):
    monkeypatch.setattr("barnabas.broker.opening.local_directory.PROGRESS_LOGGED_EVERY_S", 0)
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    first = machine.broker()
    await first.start()
    await machine.fill(first)
    await first.crash()
    server = machine.broker()
    await server.start()
    assert server.recovery is not None
    assert 0 < server.recovery.verified_bytes <= server.recovery.journal_bytes
    told = [each for each in caplog.messages if each.startswith("recovering ")]
    assert told[0].endswith(f" of at most {server.recovery.journal_bytes} bytes of journal checked")
    assert told[-1].endswith(f"{PARTITIONS} partitions open, 20 batches of the journal replayed")
    await server.stop()


async def test_probes_report_loading_and_failed_coordinators(machine):
    server = machine.broker()
    await server.start()
    await server.groups.ensure()
    assert server.groups.is_coordinator()
    server.groups.log.replayed.clear()
    status, said = await asyncio.to_thread(ask, server, "/readyz")
    assert (status, said["status"]) == (200, "ok")
    assert said["progress"] == {
        "coordinators": "loading __consumer_offsets: 50 of 50 partitions, 0 records replayed"
    }
    server.groups.log.replayed.set()
    await asyncio.wait_for(server.coordinators_loaded(), 30)
    assert "progress" not in (await asyncio.to_thread(ask, server, "/readyz"))[1]
    server.groups.log.shards[7].is_loaded = False
    status, said = await asyncio.to_thread(ask, server, "/readyz")
    assert (status, said["status"]) == (200, "degraded")
    assert said["warnings"]["coordinators"].endswith("are refused: __consumer_offsets-7")
    await server.stop()


async def test_a_start_that_is_cancelled_lets_go_of_everything(machine):
    unheard = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: unheard.append(told))
    first = machine.broker()
    await first.start()
    await machine.fill(first)
    await first.crash()
    gate = machine.disk.before = Gate("list_directory", "/topic-7")
    server = machine.broker()
    asked = asyncio.Event()
    starting = asyncio.create_task(_started(server, asked))
    await until(gate.reached.is_set)
    asked.set()
    await asyncio.sleep(0.05)
    assert not starting.done(), "its thread is still in the files"
    gate.open()
    assert await starting is False
    gc.collect()
    assert unheard == []
    assert server.recovery is not None
    assert server.recovery.opened < PARTITIONS
    last = machine.broker()
    await last.start()
    assert [log.high_watermark for log in last.logs.logs.values()] == [1] * PARTITIONS
    await last.stop()


async def test_a_start_that_fails_is_no_orderly_stop(machine):
    machine.disk.before = Gate("nothing")
    machine.disk.before.die()
    with pytest.raises(SimulatedCrash):
        await _started(machine.broker(), asyncio.Event())


async def test_a_stop_that_takes_too_long_leaves_the_rest_to_the_journal(machine, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    clock = ManualClock(running=True)
    server = machine.broker(clock, shutdown_checkpoint_timeout_ms=3_600_000)
    await server.start()
    await machine.fill(server)
    gate = machine.disk.before = Gate("syncfs")
    stopping = asyncio.create_task(server.stop())
    await until(gate.reached.is_set)
    status, said = await asyncio.to_thread(ask, server, "/readyz")
    assert status == 503
    assert said["checks"]["listeners"].startswith("stopping: checkpoint, 0 of ")
    assert (await asyncio.to_thread(ask, server, "/livez"))[0] == 200
    clock.advance(minutes=55)
    await clock.sleep(0.001)
    assert not stopping.done()
    clock.advance(minutes=5)
    assert await stopping is False
    (line,) = [each for each in caplog.messages if "last checkpoint" in each]
    assert line.startswith("stopped without a last checkpoint, the next start reads the journal ")
    assert "timeout_ms=3600000" in line
    gate.die()
    server.abandon()
    machine.disk = machine.disk.kill()
    again = machine.broker()
    await again.start()
    assert "clean=false partitions=20 batches_replayed=20" in caplog.text
    assert [log.high_watermark for log in again.logs.logs.values()] == [1] * PARTITIONS
    assert await again.stop() is True


async def test_a_stop_has_its_last_checkpoint_behind_the_one_under_way(machine, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    server = machine.broker()
    await server.start()
    await machine.fill(server)
    gate = machine.disk.before = Gate("syncfs")
    server.logs.checkpoint()
    await until(gate.reached.is_set)
    stopping = asyncio.create_task(server.stop())
    await until(lambda: server.stage.name == "STOPPING")
    gate.open()
    assert await stopping is True
    again = machine.broker()
    await again.start()
    assert "clean=true partitions=20 batches_replayed=0" in caplog.text
    await again.stop()


def test_a_broker_of_a_test_knows_whom_it_coordinates_when_it_is_there(monkeypatch):
    """A test broker starts with loaded coordinators, so no first request has to be retried."""
    with Broker(config={"offsets.topic.num.partitions": "1"}) as broker:
        broker.create_topic("t")
        broker.port = broker.address[1]
        with OffsetsClient(broker) as client:
            client.find("g", 0)
            for offset in range(5):
                assert client.commit_plainly("g", {("t", 0): offset}) == {0}
        monkeypatch.setattr(coordinator_log, "LOAD_BEFORE_READY_MS", 0)
        turn_after_each_batch(monkeypatch, turn_s=0.05)
        broker.restart()
        assert not broker.call(lambda: broker.server.groups.is_loading)
