"""Brokers of one process over links that go wrong: what is told, and what is handled how often."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace

import pytest

from barnabas.broker.api.dispatch import ROUTES, CloseConnection, Deferred, Routes
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.features import levels_of
from barnabas.broker.peers.interface import Failure, Limits, NoAnswer, Purpose
from barnabas.broker.peers.sessions import PeerLink, PeerSessions
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.access import Access, Generation
from barnabas.broker.testing.loopback import Fate, LoopbackNetwork, Weather, scripted
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.api_versions import API_VERSIONS
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.testing import Broker
from tests.broker.peers.scripted import answer, question
from tests.seeds import SEED
from tests.waiting import until

ONE, TWO = 1, 2
TIMEOUT_MS = 1000


class Handler:
    """Handles markers at broker 2: at once, later, or in a coroutine, as it is told."""

    def __init__(self, kind: str, clock: ManualClock, sessions: PeerSessions) -> None:
        self.handled: list[int] = []
        self.waiting: list[Deferred] = []
        self.sessions = sessions
        self._clock = clock
        handler = {"at once": self.at_once, "later": self.later, "coroutine": self.coroutine}[kind]
        markers = ROUTES.get(WRITE_TXN_MARKERS.key)
        versions = ROUTES.get(API_VERSIONS.key)
        self.routes = Routes(
            [versions.copy(), markers.copy(handler=handler, is_coroutine=kind == "coroutine")]
        )
        self.routes.bind(
            {
                "routes": self.routes,
                "configs": SimpleNamespace(features=levels_of({}, 2)),
                "host": SimpleNamespace(config=BrokerConfig()),
                "peer_sessions": self.sessions,
            }
        )

    def _handle(self, context, request):
        if context.connection.link.is_ended:
            raise CloseConnection("ended")
        number = request.markers[0].producer_id
        self.handled.append(number)
        if number == 13:
            raise ZeroDivisionError("a bug")
        if number == 14:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return answer(number)

    def at_once(self, context, request):
        return self._handle(context, request)

    def later(self, context, request):
        pending: Deferred = Deferred()
        response = self._handle(context, request)
        self._clock.call_later(3, lambda: pending.response or pending.complete(response))
        return pending

    async def coroutine(self, context, request):
        for _ in range(3):
            await asyncio.sleep(0)
        return self._handle(context, request)


class Two:
    """Broker 1 asks broker 2."""

    def __init__(
        self,
        kind: str = "at once",
        seed: int = SEED,
        sessions: PeerSessions | None = None,
        **limits,
    ) -> None:
        self.clock = ManualClock(0)
        self.network = LoopbackNetwork(self.clock, seed)
        if sessions is None:
            sessions = PeerSessions()
        self.handler = Handler(kind, self.clock, sessions)
        self.peers = self.network.join(ONE, session=1, routes=Routes(), limits=Limits(**limits))
        self.network.join(TWO, session=1, routes=self.handler.routes)
        self.told: list[tuple[int, object]] = []

    def ask(self, number: int, timeout_ms: float = TIMEOUT_MS) -> None:
        self.peers.ask(
            TWO,
            Purpose.MARKERS,
            WRITE_TXN_MARKERS,
            2,
            question(number),
            lambda answer: self.told.append((number, answer)),
            timeout_ms=timeout_ms,
        )

    def script(self, *fates: Fate) -> None:
        self.network.scripts[ONE, TWO] = scripted(*fates)

    async def pass_time(self, milliseconds: float) -> None:
        """Move the clock in small steps, with some turns of the loop for each."""
        for _ in range(round(milliseconds)):
            await turns()
            self.clock.advance(milliseconds=1)
        await turns()

    async def told_of(self, number: int):
        """Return what the question was told, however long that takes."""
        for _ in range(20_000):
            found = [answer for each, answer in self.told if each == number]
            if found:
                (only,) = found
                return only
            await self.pass_time(1)
        raise AssertionError(f"question {number} was never told")


async def turns(count=12):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture(params=["at once", "later", "coroutine"])
async def two(request):
    two = Two(request.param)
    yield two
    await two.peers.close()


async def test_in_fair_weather_questions_are_answered_in_order(two):
    for number in range(5):
        two.ask(number)
    assert await two.told_of(4) == answer(4)
    assert two.handler.handled == list(range(5))
    assert [number for number, _ in two.told] == list(range(5))
    assert len(two.handler.sessions) == 1


async def test_a_delayed_question_and_answer_take_their_time(two):
    two.script(Fate(10, 10), Fate(30, 20))
    two.ask(1)
    await two.pass_time(49)
    assert not two.handler.handled
    await two.pass_time(30)
    assert await two.told_of(1) == answer(1)


@pytest.mark.parametrize("is_heard_of", [True, False])
async def test_a_lost_question_is_not_handled(two, is_heard_of):
    two.script(Fate(), Fate(lose_question=True, is_heard_of=is_heard_of))
    two.ask(1)
    told = await two.told_of(1)
    assert told.failure is (Failure.LOST if is_heard_of else Failure.LATE)
    assert told.was_sent
    assert not two.handler.handled


@pytest.mark.parametrize("is_heard_of", [True, False])
async def test_a_question_whose_answer_is_lost_is_handled(two, is_heard_of):
    two.script(Fate(), Fate(5, 5, lose_answer=True, is_heard_of=is_heard_of))
    two.ask(1)
    told = await two.told_of(1)
    assert told.failure is (Failure.LOST if is_heard_of else Failure.LATE)
    assert two.handler.handled == [1]


async def test_what_was_cut_off_arrives_all_the_same(two):
    two.script(Fate(), Fate(20, cut=True))
    two.ask(1)
    assert (await two.told_of(1)).failure is Failure.LOST
    assert not two.handler.handled
    await two.pass_time(40)
    assert two.handler.handled == [1]


async def test_but_not_behind_the_hello_of_the_next_connection(two):
    two.script(Fate(), Fate(20, cut=True), Fate(), Fate())
    two.ask(1)
    assert (await two.told_of(1)).failure is Failure.LOST
    two.ask(2)
    assert await two.told_of(2) == answer(2)
    await two.pass_time(40)
    assert two.handler.handled == [2]


async def test_a_hello_that_comes_late_ends_nothing(two):
    two.script(Fate(20, cut=True))
    two.ask(1)
    told = await two.told_of(1)
    assert (told.failure, told.was_sent) == (Failure.UNREACHABLE, False)
    two.ask(2)
    assert await two.told_of(2) == answer(2)
    await two.pass_time(40)
    (link,) = two.handler.sessions._links.values()
    assert (link.hello.number, link.is_gone) == (2, False)
    two.ask(3)
    assert await two.told_of(3) == answer(3)
    assert two.handler.handled == [2, 3]


async def test_a_duplicated_question_is_handled_twice_before_it_is_answered(two):
    two.script(Fate(duplicated=True), Fate(duplicated=True))
    two.ask(1)
    two.ask(2)
    assert await two.told_of(2) == answer(2)
    assert two.handler.handled == [1, 1, 2]
    assert two.network.in_transit == 0


async def test_the_end_of_a_broker_is_told(two):
    two.script(Fate(), Fate(10, 10))
    two.ask(1)
    await turns()
    two.network.leave(TWO)
    two.ask(2)
    assert (await two.told_of(1)).failure in {Failure.LOST, Failure.UNKNOWN_NODE}
    assert (await two.told_of(2)).failure is Failure.UNKNOWN_NODE
    await two.pass_time(40)
    assert not two.handler.handled


async def test_an_error_of_ours_is_kept_for_the_test(two):
    two.ask(13)
    assert (await two.told_of(13)).failure is Failure.LOST
    assert [type(each) for each in two.network.errors] == [ZeroDivisionError]


async def test_an_error_of_kafkas_is_an_answer(two):
    two.ask(14)
    told = await two.told_of(14)
    assert not isinstance(told, NoAnswer)
    assert not two.network.errors


async def test_who_may_not_act_for_the_cluster_is_not_let_in():
    two = Two()
    judge = SimpleNamespace(may=lambda *_, **__: False)
    access = Access("User:bob", "loopback", judge, Generation())
    two.network.join(TWO, session=2, routes=two.handler.routes, access=access)
    two.ask(1)
    assert (await two.told_of(1)).failure is Failure.NOT_LET_IN
    await two.peers.close()


async def test_markers_are_written_by_a_real_broker():
    async with Broker() as broker:
        await broker.create_topic("t", 1)
        network = LoopbackNetwork(ManualClock(), SEED)
        peers = network.join(ONE, session=1, routes=Routes())
        network.join(TWO, session=1, routes=broker.server.routes)
        topics = [WritableTxnMarkerTopic("t", [0, 1])]
        request = WriteTxnMarkersRequest([WritableTxnMarker(5000, 1, True, topics, 0, 2)])
        told = []
        ask = partial(peers.ask, TWO, Purpose.MARKERS, WRITE_TXN_MARKERS, 2, request)
        ask(told.append, timeout_ms=TIMEOUT_MS)
        await until(lambda: told)
        partitions = told[0].markers[0].topics[0].partitions
        assert [each.error_code for each in partitions] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert not network.errors
        await peers.close()


# ------------------------------------------------------------------------------------ bad weather

WEATHER = {
    "slow": Weather(delay_ms=150),
    "cuts": Weather(delay_ms=150, cut=0.4),
    "losses": Weather(delay_ms=150, lose_question=0.2, lose_answer=0.2),
    "copies": Weather(delay_ms=150, duplicated=0.5),
    "all of it": Weather(150, lose_question=0.1, lose_answer=0.1, cut=0.2, duplicated=0.2),
}


async def repeated_until_answered(two: Two, questions: int) -> None:
    """Ask one question after the other, each until it is answered, as markers are."""
    attempt = 0
    for number in range(questions):
        while True:
            attempt += 1
            found = []
            two.peers.ask(
                TWO,
                Purpose.MARKERS,
                WRITE_TXN_MARKERS,
                2,
                question(number),
                found.append,
                timeout_ms=90,
            )
            while not found:
                await two.pass_time(1)
            assert len(found) == 1
            if not isinstance(found[0], NoAnswer):
                assert found[0] == answer(number)
                break
            assert attempt < 100 * questions, "no answer gets through"


async def trace(
    kind: str, weather: Weather, seed: int, sessions: PeerSessions | None = None
) -> list[int]:
    limits = {"pause_first_ms": 1, "pause_max_ms": 4, "connect_timeout_ms": 150}
    two = Two(kind, seed, sessions, **limits)
    two.network.scripts[ONE, TWO] = weather
    await repeated_until_answered(two, 12)
    await two.pass_time(200)
    assert two.network.in_transit == 0
    assert not two.network.errors
    await two.peers.close()
    return two.handler.handled


@pytest.mark.parametrize("offset", range(3))
@pytest.mark.parametrize("kind", ["at once", "later", "coroutine"])
@pytest.mark.parametrize("weather", WEATHER)
async def test_no_copy_of_a_question_is_handled_once_it_was_answered_and_another_was_asked(
    weather, kind, offset
):
    """R10: numbers never go back in what was handled, and none is missing."""
    handled = await trace(kind, WEATHER[weather], SEED + offset)
    assert handled == sorted(handled), f"seed {SEED + offset}"
    assert set(handled) == set(range(12))


class Forgetful(PeerSessions):
    """Ends nothing: what R10 is there for."""

    def take(self, hello, close):
        return PeerLink(hello, close)


@pytest.mark.parametrize("weather", ["cuts", "losses", "all of it"])
async def test_without_r10_a_late_copy_is_handled_behind_the_next_question(weather):
    """The weather is bad enough to show it."""
    traces = [
        await trace("at once", WEATHER[weather], SEED + offset, Forgetful()) for offset in range(8)
    ]
    assert any(handled != sorted(handled) for handled in traces)


async def test_the_seed_decides_everything():
    traces = [await trace("coroutine", WEATHER["all of it"], seed) for seed in (5, 5, 6)]
    assert traces[0] == traces[1]
    assert traces[0] != traces[2]
