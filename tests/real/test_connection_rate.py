"""Connections that come faster than they may. On both loops, with TLS and without."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.config.types import INT_MAX
from barnabas.broker.network import connection_rate as module
from barnabas.broker.network.connection_rate import ConnectionRates
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.quotas.quota_limits import CONNECTIONS, IP, entity
from barnabas.broker.security.quotas.quotas import Quotas
from tests.broker import toy as toy_module
from tests.broker.tls.listener import toy_tls
from tests.broker.toy import ECHO, RawClient, Refused, Toy, request, small_config
from tests.waiting import until

BOTH_LOOPS = True


class Running:
    """A server and its clients; each is let in by itself."""

    def __init__(self, clock, **changes):
        self.clock = clock
        self.server = Toy(small_config(**changes), clock).server
        self.clients = []

    async def __aenter__(self):
        await self.server.start()
        return self

    async def __aexit__(self, *_):
        for client in self.clients:
            client.cancel()
        await self.server.abort()
        assert not self.server._held

    def client(self):
        """Connect and ask, whenever that is let in; returns the answer, or what else came."""
        task = asyncio.ensure_future(self._ask())
        self.clients.append(task)
        return task

    async def _ask(self):
        client = await RawClient.to(self.server.listeners[0].bound)
        if isinstance(client, Refused):
            return b""
        try:
            await client.send(request(ECHO, b"x"))
            return await client.answer()
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            return getattr(error, "partial", b"")
        finally:
            await client.close()

    async def all_answered(self, count):
        tasks = [self.client() for _ in range(count)]
        assert await asyncio.gather(*tasks) == [(1, b"x")] * count


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=["plain", "TLS"])
def transport(request, monkeypatch):
    if request.param == "TLS":
        monkeypatch.setattr(toy_module, "TLS", toy_tls())


async def still_waiting(task):
    await asyncio.sleep(0.05)
    return not task.done()


async def test_beyond_the_rate_a_connection_waits_for_its_turn(clock, transport):
    async with Running(clock, max_connection_creation_rate=1) as running:
        await running.all_answered(10)  # What ten full windows allow.
        late, later = running.client(), running.client()
        assert await still_waiting(late)
        clock.advance(seconds=1.001)
        await until(lambda: late.done() or later.done())
        assert late.done() != later.done()
        clock.advance(seconds=1.001)
        assert await late == await later == (1, b"x")


async def test_the_rate_of_an_address_holds_and_then_closes(clock, transport, caplog):
    async with Running(clock) as running:
        running.server.quotas.limits.set(entity({IP: "127.0.0.1"}), CONNECTIONS, 1.0)
        await running.all_answered(10)
        held = running.client()
        assert await still_waiting(held)
        assert running.server._held
        clock.advance(seconds=1)
        assert await held == b""
        assert "connection_creation_rate of 1 reached" in caplog.text
        assert running.server.connections_refused == 1
        running.server.quotas.limits.set(entity({IP: "127.0.0.1"}), CONNECTIONS, None)
        await running.all_answered(3)


async def test_connection_with_too_long_a_wait_is_closed_at_once(clock):
    async with Running(clock, max_connection_creation_rate=1) as running:
        tasks = [running.client() for _ in range(10 + 30 + 5)]
        await until(lambda: sum(task.done() for task in tasks) == 15)
        found = [task.result() for task in tasks if task.done()]
        assert found.count((1, b"x")) == 10
        assert found.count(b"") == 5
        clock.advance(seconds=31)
        assert (await asyncio.gather(*tasks)).count((1, b"x")) == 40


async def test_only_so_many_are_held(clock, monkeypatch):
    monkeypatch.setattr("barnabas.broker.network.socket_server.HELD_MAX", 3)
    async with Running(clock, max_connection_creation_rate=1) as running:
        await running.all_answered(10)
        tasks = [running.client() for _ in range(5)]
        await until(lambda: sum(task.done() for task in tasks) == 2)
        assert len(running.server._held) == 3


async def test_stop_does_not_wait_for_held_connections(clock):
    async with Running(clock, max_connection_creation_rate=1) as running:
        await running.all_answered(10)
        held = running.client()
        await until(lambda: running.server._held)
        await running.server.stop(1000)
        assert await held == b""


async def test_an_address_may_have_a_limit_of_its_own(clock, caplog):
    overrides = "10.0.0.1:5, 127.0.0.1:2,::1:9"
    async with Running(clock, max_connections_per_ip_overrides=overrides) as running:
        address = running.server.listeners[0].bound
        clients = [await RawClient.to(address) for _ in range(3)]
        assert await clients[2].closed() == b""
        assert "max.connections.per.ip of 2 reached" in caplog.text
        for client in clients:
            await client.close()


def rates(clock, **changes):
    return ConnectionRates(clock, Quotas(clock, Generation()), small_config(**changes))


def test_connections_are_not_held_without_limits(clock):
    assert not rates(clock)
    assert rates(clock, max_connection_creation_rate=5)
    quotas = Quotas(clock, Generation())
    quotas.limits.set(entity({IP: None}), CONNECTIONS, 3.0)
    assert ConnectionRates(clock, quotas, small_config())


def test_rate_of_zero_rejects_all_connections(clock):
    assert rates(clock, max_connection_creation_rate=0).judge("PLAINTEXT", "127.0.0.1").refused


def test_turns_are_as_far_apart_as_the_rate_says(clock):
    counted = rates(clock, max_connection_creation_rate=2)
    waits = [counted.judge("PLAINTEXT", "10.0.0.1").wait_s for _ in range(24)]
    assert waits == pytest.approx([0.0] * 20 + [0.5, 1.0, 1.5, 2.0])


def test_addresses_are_counted_apart_and_no_more_than_so_many(clock, monkeypatch):
    monkeypatch.setattr(module, "ADDRESSES_MAX", 3)
    quotas = Quotas(clock, Generation())
    quotas.limits.set(entity({IP: None}), CONNECTIONS, 1.0)
    counted = ConnectionRates(clock, quotas, small_config())
    verdicts = [counted.judge("PLAINTEXT", "10.0.0.1") for _ in range(12)]
    assert [bool(each.refused) for each in verdicts] == [False] * 10 + [True] * 2
    assert verdicts[-1].wait_s == 1.0
    for number in range(2, 6):
        assert not counted.judge("PLAINTEXT", f"10.0.0.{number}").refused
    assert len(counted._addresses) == 3
    assert counted._broker_limit == INT_MAX
