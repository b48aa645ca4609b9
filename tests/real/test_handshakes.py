"""The order of TLS handshakes, and those that are never computed."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.network import handshakes as module
from barnabas.broker.network.handshakes import HANDED_OVER, Handshakes
from barnabas.storage.runtime.threads import new_event
from tests.waiting import until

BOTH_LOOPS = True

LIMIT = 50


class Client:
    """A handshake of which tests see what was computed."""

    def __init__(self, case, name, source):
        self.case = case
        self.name = name
        self.source = source

    def displaced(self):
        self.end()

    def end(self):
        dropped = self.case.handshakes.end(self)
        self.case.to_be_told -= dropped
        return dropped

    def run(self, *, is_first=True):
        self.case.to_be_told += 1
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
        self.gate = new_event()
        self.computed = []
        self.told = []
        self.to_be_told = 0
        """Steps that were not dropped."""

    def client(self, name, source="127.0.0.1"):
        client = Client(self, name, source)
        self.handshakes.begin(client)
        return client

    def occupied(self):
        """Occupy the threads until the gate opens."""
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
    """Return the handshakes computed after the occupying ones."""
    case.gate.set()
    await until(lambda: len(case.told) == case.to_be_told)
    return [each for each in case.computed if not each.startswith("busy")]


async def test_closed_connections_cost_no_handshake(case):
    case.occupied()
    clients = [case.client(f"client-{number}") for number in range(20)]
    for each in clients:
        each.run()
    assert case.handshakes.waiting == 20
    dropped = [each.end() for each in clients[:19]]
    assert dropped == [True] * 19
    assert case.handshakes.waiting == 1
    assert await rest(case) == ["client-19"]
    assert clients[19].end() is False


async def test_steps_that_wait_are_no_more_than_handshakes(case):
    case.occupied()
    for number in range(LIMIT * 4):
        case.client(f"client-{number}").run()
    assert case.handshakes.waiting == LIMIT
    assert case.handshakes.displaced == LIMIT * 3 + HANDED_OVER
    assert len(await rest(case)) == LIMIT


async def test_started_handshakes_run_first_then_the_newest(case):
    case.occupied()
    for name, is_first in [("a", True), ("b", False), ("c", True), ("d", False)]:
        case.client(name).run(is_first=is_first)
    assert await rest(case) == ["b", "d", "c", "a"]


async def test_an_address_waits_for_one_of_each_other_and_not_for_a_flood(case):
    case.occupied()
    for number in range(20):
        case.client(f"flood-{number}", "10.0.0.1").run()
    case.client("early", "10.0.0.2").run()
    case.client("late", "10.0.0.3").run()
    case.client("later", "10.0.0.3").run()
    computed = await rest(case)
    assert computed[:6] == ["flood-19", "early", "later", "flood-18", "late", "flood-17"]
    assert computed[6:] == [f"flood-{number}" for number in reversed(range(17))]


async def test_later_steps_take_turns_as_well(case):
    case.occupied()
    for number in range(3):
        case.client(f"flood-{number}", "10.0.0.1").run(is_first=False)
    case.client("other", "10.0.0.2").run(is_first=False)
    assert await rest(case) == ["flood-0", "other", "flood-1", "flood-2"]


async def test_a_flood_displaces_its_own(case):
    others = [case.client(f"other-{number}", f"10.0.1.{number}") for number in range(10)]
    flood = [case.client(f"flood-{number}", "10.0.0.1") for number in range(3 * LIMIT)]
    assert case.handshakes.displaced == 2 * LIMIT + 10
    assert case.handshakes.under_way == LIMIT
    late = case.client("late", "10.0.2.1")
    assert case.handshakes.under_way == LIMIT
    for each in [*others, late, *flood[-LIMIT + 11 :]]:
        each.run()
    assert len(await rest(case)) == LIMIT
    for each in [*others, late, *flood]:
        each.end()
    assert case.handshakes.under_way == 0


async def test_nothing_is_computed_after_the_end(case):
    case.occupied()
    case.client("late").run()
    case.handshakes.close()
    case.client("later").run()
    assert case.handshakes.waiting == 0
    case.gate.set()
    await asyncio.sleep(0.05)
    assert not {"late", "later"} & set(case.computed)
