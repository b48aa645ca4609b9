"""The modules that pyproject.toml names are compiled, here and in the brokers of other tests."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
from kafka import KafkaProducer

from barnabas.broker.api.dispatch import ROUTES
from tests.broker.toy import ECHO, RawClient, Toy, request, small_config
from tests.compiled.listed import compiled_modules
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.transactional import committed

TOPIC = "payments"


@pytest.mark.parametrize("name", compiled_modules())
def test_a_module_is_compiled(name):
    assert importlib.import_module(name).__file__.endswith(".so")


def test_every_handler_says_which_services_it_names():
    importlib.import_module("barnabas.broker.handlers")
    for route in ROUTES:
        for function in (route.handler, route.shortcut):
            if function is not None:
                assert inspect.signature(function).parameters, route.api.name


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (request(ECHO, b"bug"), "ZeroDivisionError('a bug')"),
        (request(ECHO, b"bad"), "reason=bad bytes"),
        (b"\xff\xff\xff\xff", "reason="),
    ],
    ids=["an error of ours", "a malformed request", "a malformed frame"],
)
async def test_what_ends_a_connection_is_logged_by_it(frame, reason, caplog):
    """Never by the event loop: mypyc takes the type of a caught error from its first use."""
    toy = Toy(small_config())
    await toy.server.start()
    try:
        client = await RawClient.to(toy.server.listeners[0].bound)
        await client.send(frame)
        assert await client.closed() == b""
        await client.close()
    finally:
        await toy.server.abort()
    (record,) = caplog.records
    assert record.name.startswith("barnabas.broker.network")
    assert reason in record.getMessage()


def test_two_packages_and_a_library_are_installed():
    installed = Path(importlib.import_module("barnabas").__file__).parents[1]
    names = {path.name.partition(".")[0] for path in installed.iterdir()}
    assert {name for name in names if name and not name.startswith("barnabas-")} == {
        "barnabas",
        "barnabas__mypyc",
        "bin",
        "pyspark_barnabas",
    }


def test_a_broker_runs_them_and_ends_transactions(tmp_path, monkeypatch):
    compiled = Path(importlib.import_module("barnabas").__file__).parents[1]
    monkeypatch.setattr(BarnabasProcess, "packages", str(compiled))
    with BarnabasProcess(tmp_path) as broker:
        loaded = Path(f"/proc/{broker.pid}/maps").read_text().split()
        assert [path for path in loaded if f"{compiled}/" in path and "__mypyc" in path]
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, transactional_id="cashier"
        )
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            producer.send(TOPIC, b"%d" % number, partition=0)
            producer.commit_transaction() if number % 2 else producer.abort_transaction()
        producer.close()
        expected = {0: [b"1", b"3", b"5", b"7", b"9"]}
        assert committed(broker.bootstrap_servers, TOPIC, 1, expected) == expected
