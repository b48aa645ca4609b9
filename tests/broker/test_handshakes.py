"""Whose handshake is computed next, and whose never."""

from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.broker.network import handshakes as module
from barnabas.broker.network.handshakes import HANDED_OVER, Handshakes
from tests.waiting import until

BOTH_LOOPS = True

LIMIT = 50


class Client:
    """A handshake of which tests see what was computed."""

    def __init__(self, case, name):
        self.case = case
        self.name = name

    def displaced(self):
        self.case.handshakes.end(self)

    def run(self, *, is_first=True):
        self.case.handshakes.run(
            self, self._compute, lambda _step: self.case.told.append(self.name), is_first=is_first
        )

    def _compute(self):
        self.case.gate.wait(20)
        self.case.computed.append(self.name)
        return True


class Case:
    def __init__(self):
        self.handshakes = Handshakes(asyncio.get_running_loop(), lambda: LIMIT)
        self.gate = threading.Event()
        self.computed = []
        self.told = []

    def client(self, name):
        client = Client(self, name)
        self.handshakes.begin(client)
        return client

    def occupied(self):
        """Have the threads be busy until the gate opens."""
        for number in range(HANDED_OVER):
            self.client(f"busy-{number}").run()


@pytest.fixture
async def case(monkeypatch):
    monkeypatch.setattr(module, "THREADS", 1)
    case = Case()
    yield case
    case.gate.set()
    case.handshakes.close()


async def rest(case):
    """What was computed behind those that were there before."""
    case.gate.set()
    await until(lambda: len(case.told) == len(case.computed) and not case.handshakes.waiting)
    return [each for each in case.computed if not each.startswith("busy")]


async def test_whoever_has_gone_costs_nothing(case):
    case.occupied()
    clients = [case.client(f"client-{number}") for number in range(20)]
    for each in clients:
        each.run()
    assert case.handshakes.waiting == 20
    dropped = [case.handshakes.end(each) for each in clients[:19]]
    assert dropped == [True] * 19
    assert case.handshakes.waiting == 1
    assert await rest(case) == ["client-19"]
    assert case.handshakes.end(clients[19]) is False


async def test_steps_that_wait_are_no_more_than_handshakes(case):
    case.occupied()
    for number in range(LIMIT * 4):
        case.client(f"client-{number}").run()
    assert case.handshakes.waiting == LIMIT
    assert case.handshakes.displaced == LIMIT * 3 + HANDED_OVER
    assert len(await rest(case)) == LIMIT


async def test_what_has_begun_goes_on_first_and_then_the_newest(case):
    case.occupied()
    for name, is_first in [("a", True), ("b", False), ("c", True), ("d", False)]:
        case.client(name).run(is_first=is_first)
    assert await rest(case) == ["b", "d", "c", "a"]


async def test_nothing_is_computed_after_the_end(case):
    case.occupied()
    case.client("late").run()
    case.handshakes.close()
    case.client("later").run()
    assert case.handshakes.waiting == 0
    case.gate.set()
    await asyncio.sleep(0.05)
    assert not {"late", "later"} & set(case.computed)
