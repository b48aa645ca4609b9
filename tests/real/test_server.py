"""The broker as a whole: start, addresses, the orderly end, and the other one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.broker.client.topic_reader import read_topic
from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.daemon import loop_factory, ready_line
from barnabas.broker.http.pages import readiness
from barnabas.broker.network.socket_server import ListenError
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.server import BrokerServer
from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.files.file_system import AlreadyLocked
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.testing import Broker
from tests.broker.toy import RawClient, request
from tests.requests import produce_request
from tests.waiting import until

BOTH_LOOPS = True

READY = "[KafkaServer id=1] started: Transitioning from RECOVERY to RUNNING (Kafka Server started)"


def config(directory, *listeners, **changes):
    return BrokerConfig(
        listeners=listeners or ("PLAINTEXT://127.0.0.1:0",),
        http_listener="",
        log_dirs=(str(directory),),
        journal_file_bytes=4 * 1024 * 1024,
        **changes,
    )


def one_record(topic, acks=-1):
    batch = encode_batch([Record(0, 1_700_000_000_000, None, b"value")])
    return produce_request({(topic, 0): batch}, acks=acks)


def brokers_of(address):
    with WireClient(address) as client:
        response = client.ask(METADATA, MetadataRequest(topics=[]), 12)
    return [(each.host, each.port) for each in response.brokers]


class Started:
    def __init__(self, server):
        self.server = server

    async def __aenter__(self):
        await self.server.start()
        return self.server

    async def __aexit__(self, *_):
        await self.server.stop()


# ---------------------------------------------------------------------------------- addresses


async def test_every_interface_means_ipv4_and_ipv6_on_one_port(tmp_path):
    async with Started(BrokerServer(config(tmp_path, "PLAINTEXT://:0"))) as server:
        host, port = server.listeners[0].bound
        assert host == "localhost"
        for dialled in ("127.0.0.1", "::1"):
            # Told to come back to the address it dialled.
            assert await asyncio.to_thread(brokers_of, (dialled, port)) == [(dialled, port)]


async def test_localhost_is_both_families_too(tmp_path):
    async with Started(BrokerServer(config(tmp_path, "PLAINTEXT://localhost:0"))) as server:
        port = server.listeners[0].bound[1]
        for dialled in ("127.0.0.1", "::1"):
            assert await asyncio.to_thread(brokers_of, (dialled, port)) == [(dialled, port)]


async def test_client_gets_the_address_of_its_listener(tmp_path):
    settings = config(
        tmp_path,
        "INSIDE://127.0.0.1:0",
        "OUTSIDE://127.0.0.1:0",
        advertised_listeners=("OUTSIDE://kafka.example.com:19092",),
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    )
    async with Started(BrokerServer(settings)) as server:
        inside, outside = (listener.bound for listener in server.listeners)
        assert inside[1] != outside[1]
        assert await asyncio.to_thread(brokers_of, inside) == [inside]
        assert await asyncio.to_thread(brokers_of, outside) == [("kafka.example.com", 19092)]


async def test_a_port_in_use_is_one_line_and_nothing_stays_open(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = BrokerServer(
            config(
                tmp_path,
                "A://127.0.0.1:0",
                f"B://127.0.0.1:{port}",
                listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
            )
        )
        with pytest.raises(ListenError, match=rf"^cannot listen on B://127.0.0.1:{port}: .*in use"):
            await server.start()
        with pytest.raises(OSError):
            socket.create_connection(server.listeners[0].bound)
    async with Started(BrokerServer(config(tmp_path))):  # the directory is free again
        pass


async def test_foreign_host_stops_the_start_with_one_line(tmp_path):
    with pytest.raises(ListenError, match=r"PLAINTEXT://192\.0\.2\.1:0: "):
        await BrokerServer(config(tmp_path, "PLAINTEXT://192.0.2.1:0")).start()
    with pytest.raises(ListenError, match=r"PLAINTEXT://no\.such\.invalid:0: "):
        await BrokerServer(config(tmp_path, "PLAINTEXT://no.such.invalid:0")).start()


async def test_a_directory_serves_one_broker_at_a_time(tmp_path):
    async with Started(BrokerServer(config(tmp_path))) as server:
        with pytest.raises(AlreadyLocked):
            await BrokerServer(config(tmp_path)).start()
        assert await asyncio.to_thread(brokers_of, server.listeners[0].bound)


# ------------------------------------------------------------------------------------ the ends


async def test_topics_of_the_configuration_exist_when_the_broker_is_ready(tmp_path):
    wanted = ("orders:3:1", "latest:1:1:compact")
    for _ in range(2):
        async with Started(BrokerServer(config(tmp_path, create_topics=wanted))) as server:
            assert len(server.catalogue.topic("orders").partitions) == 3
            assert server.catalogue.topic("latest").configs == {"cleanup.policy": "compact"}
            assert ready_line(server) == READY


async def test_an_orderly_stop_leaves_no_journal_to_replay(tmp_path, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    for expected in ("empty=true", "clean=true"):
        caplog.clear()
        async with Started(BrokerServer(config(tmp_path, create_topics=("t:1:1",)))) as server:
            assert expected in caplog.text
            with await asyncio.to_thread(WireClient, server.listeners[0].bound) as client:
                await asyncio.to_thread(client.ask, PRODUCE, one_record("t"), 9)
    async with Started(BrokerServer(config(tmp_path))) as server:
        with await asyncio.to_thread(WireClient, server.listeners[0].bound) as client:
            records = await asyncio.to_thread(read_topic, client, "t")
    assert [record.offset for record in records] == [0, 1]


async def test_the_cluster_keeps_its_id_and_every_start_has_its_epoch(tmp_path):
    seen = []
    for _ in range(2):
        async with Started(BrokerServer(config(tmp_path))) as server:
            seen.append((server.cluster_id, server.logs.leader_epoch))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] < seen[1][1]


async def test_an_answer_in_flight_leaves_before_the_broker_stops():
    async with Broker() as broker:
        await broker.create_topic("t")
        client = await RawClient.to(broker.address)
        chunks = PRODUCE.encode_request(one_record("t"), 9)
        frame = request(0, b"".join(map(bytes, chunks)), version=9, tags=b"\0", correlation_id=5)
        await client.send(frame)
        (connection,) = broker.server.sockets.connections
        await until(lambda: connection.requests == 1)
        await broker.stop()
        correlation_id, body = await client.answer()
        assert correlation_id == 5
        (answer,) = PRODUCE.decode_response(memoryview(body), 1, 9).responses
        assert answer.partition_responses[0].error_code == 0
        await client.close()
        await broker.restart()
        assert len(await broker.records("t")) == 1


@pytest.fixture
def simulated():
    metastore = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)
    file_system = SimulatedFileSystem()
    yield BrokerServer(config("/data"), file_system=file_system, metastore=metastore)
    metastore.close()


async def test_a_full_disk_is_said_once_and_so_is_its_end(caplog):
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    metastore = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)
    disk = SimulatedFileSystem(capacity_bytes=1 << 30)
    server = BrokerServer(config("/data"), file_system=disk, metastore=metastore, clock=clock)
    await server.start()
    for capacity_bytes, full in ((1 << 24, True), (1 << 24, True), (1 << 30, False)):
        disk.capacity_bytes = capacity_bytes
        clock.advance(seconds=1)
        assert server.logs.full is full
    assert caplog.text.count("disk full, appends are refused directory=/data") == 1
    assert caplog.text.count("disk has room again directory=/data") == 1
    await server.stop()
    metastore.close()


async def test_a_disk_without_the_reserve_is_full_from_the_first_moment(caplog):
    metastore = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)
    disk = SimulatedFileSystem(capacity_bytes=5_000_000)
    settings = config("/data", disk_reserve_bytes=2_000_000)
    clock = ManualClock()
    server = BrokerServer(settings, file_system=disk, metastore=metastore, clock=clock)
    await server.start()
    try:
        free_bytes = disk.free_bytes("/data")
        found = f"full, appends are refused: /data: {free_bytes} bytes free, 2000000 reserved"
        assert readiness(server)["disk"] == found
        assert f"directory=/data ({free_bytes} bytes free" in caplog.text
        disk.capacity_bytes = 1 << 30
        clock.advance(seconds=1)
        assert readiness(server)["disk"] == "ok"
        server.logs.disk_full(full=True)
        await asyncio.sleep(0)
        assert readiness(server)["disk"].endswith("; a write found no room")
    finally:
        server.logs.disk_full(full=False)
        await server.stop()
        metastore.close()


async def test_an_fsync_error_ends_the_broker_and_nothing_is_answered(simulated, caplog):
    server, file_system = simulated, simulated.file_system
    await server.start()
    await server.catalogue.create_topic("t", 1, {})
    client = await RawClient.to(server.listeners[0].bound)
    chunks = PRODUCE.encode_request(one_record("t"), 9)
    for number in range(1, 30):
        file_system.fail(file_system.operations + number, errno.EIO)
    await client.send(request(0, b"".join(map(bytes, chunks)), version=9, tags=b"\0"))
    assert await client.closed() == b""
    failure = await asyncio.wait_for(server.wait_for_failure(), 60)
    assert isinstance(failure, OSError)
    assert failure.errno == errno.EIO
    assert server.failure is failure
    critical = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert len(critical) == 1
    assert critical[0].exc_info is None
    server.fatal(ValueError("a second one is not heard"))
    assert server.failure is failure
    await client.close()
    await server.crash()


async def test_failure_is_set_before_it_is_logged(simulated, monkeypatch):
    """A supervisor on another thread reads the log next."""
    server = simulated
    await server.start()
    seen = []
    monkeypatch.setattr(
        "barnabas.broker.server.logger.critical", lambda *_: seen.append(server.failure)
    )
    server.fatal(OSError(errno.EIO, "Input/output error"))
    assert seen == [None]
    assert server.failure is not None
    await server.crash()


async def test_a_background_task_that_fails_is_fatal(simulated):
    server = simulated
    await server.start()

    async def fail():
        raise ZeroDivisionError

    server.spawn(fail(), "a task")
    assert isinstance(await asyncio.wait_for(server.wait_for_failure(), 60), ZeroDivisionError)
    await server.crash()


async def test_retention_and_checkpoints_follow_the_clock():
    async with Broker(config={"log.retention.check.interval.ms": "1000"}) as broker:
        await broker.create_topic(
            "t", 1, {"retention.ms": "60000", "segment.ms": "60000", "internal.segment.bytes": "1"}
        )
        generation = broker.server.logs.generation
        for _ in range(3):
            with await asyncio.to_thread(WireClient, broker.address) as client:
                await asyncio.to_thread(client.ask, PRODUCE, one_record("t"), 9)
        log = broker.server.catalogue.partition("t", 0).log
        broker.clock.advance(minutes=10)
        await until(lambda: log.log_start_offset > 0)
        await until(lambda: broker.server.logs.generation > generation)


# ---------------------------------------------------------------------------------- the process

PROGRAM = """
import errno, sys, time
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.daemon import run
from barnabas.storage.files.io import LocalFile

directory, fault = sys.argv[1:]

def ready(line):
    def fails(*_):
        raise OSError(errno.EIO, "planted")
    if fault == "eio":
        LocalFile.pwritev_durable = fails
    if fault == "stuck":
        LocalFile.pwritev_durable = lambda *_: (print("stuck", flush=True), time.sleep(1000))
    print(line, flush=True)

config = BrokerConfig(
    listeners=("PLAINTEXT://127.0.0.1:0",), log_dirs=(directory,), create_topics=("t:1:1",),
    shutdown_timeout_ms=60_000, journal_file_bytes=4 * 1024 * 1024, http_listener="",
)
sys.exit(run(config, ready))
"""


@pytest.fixture
def start(tmp_path):
    root = Path(__file__).parents[2]
    processes = []

    def start_with(fault="none"):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path), fault],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline().startswith("listening on PLAINTEXT://127.0.0.1:")
        assert process.stdout.readline() == READY + "\n"
        return process

    yield start_with
    for process in processes:
        process.kill()
        process.communicate()


def listening_port(process):
    """The port a process listens on, from the kernel's table of sockets."""
    inodes = set()
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # A file that was open for a moment only.
            inodes.add(os.readlink(descriptor).removeprefix("socket:"))
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"[{fields[9]}]" in inodes:
            return int(fields[1].partition(":")[2], 16)
    raise AssertionError("it listens nowhere")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_0(start, number):
    process = start()
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_an_fsync_error_ends_the_process_with_1_and_no_traceback(start):
    process = start("eio")
    address = "127.0.0.1", listening_port(process)
    with WireClient(address) as client, pytest.raises(ConnectionError):
        client.ask(PRODUCE, one_record("t"), 9)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "broker stops: what was written is not safe" in errors
    assert "Traceback" not in errors


def test_a_second_signal_does_not_wait(start):
    process = start("stuck")
    with WireClient(("127.0.0.1", listening_port(process))) as client:
        _, chunks = client._connection.request(PRODUCE, 9, one_record("t"))
        client._socket.sendall(b"".join(chunks))
        assert process.stdout.readline().strip() == "stuck"
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        # Two that come at once are one: a busy machine may not have looked at the first one yet.
        for _ in range(120):
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
                break
        process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM


def test_uvloop_is_used_where_it_is(monkeypatch):
    loop = loop_factory()()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory() is asyncio.new_event_loop
