"""Queries to the coordinators of other brokers: their time, and the use of the responses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.cluster.coordinating.remote_coordinators import (
    ANSWER_TIMEOUT_MS,
    Bounds,
    Question,
    RemoteCoordinators,
)
from barnabas.broker.cluster.coordinating.verification_guards import Guards
from barnabas.broker.cluster.peers.interface import Failure, NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE, Leader
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.runtime.clock import ManualClock
from barnabas.coordinator.transactions.state import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from barnabas.storage.log.producers import ProducerState
from tests.seeds import SEED

HERE, NODE, OTHER = 1, 2, 3
WAIT_MS = 30_000
NONE = ErrorCode.NONE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
NO_WORD = ErrorCode.NETWORK_EXCEPTION
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("u", 3)


@dataclass(eq=False)
class Log:
    producers: ProducerState = field(default_factory=ProducerState)


@dataclass
class Asked:
    """A request on its way to a broker."""

    node_id: int
    request: Any
    on_answer: Any
    timeout_ms: float

    @property
    def keys(self) -> list[str]:
        return [each.transactional_id for each in self.request.transactions]

    def answer(self, codes=NONE, *, leave_out=()) -> None:
        """Complete all queries, with codes by transactional id or with one code for all."""

        def code(key, topic, index):
            said = codes.get(key, NONE) if isinstance(codes, dict) else codes
            return said.get((topic, index), NONE) if isinstance(said, dict) else said

        results = [
            AddPartitionsToTxnResult(
                each.transactional_id,
                [
                    AddPartitionsToTxnTopicResult(
                        topic.name,
                        [
                            AddPartitionsToTxnPartitionResult(
                                index, code(each.transactional_id, topic.name, index)
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in self.request.transactions
            if each.transactional_id not in leave_out
        ]
        self.on_answer(AddPartitionsToTxnResponse(results_by_transaction=results))

    def fail(self, failure: Failure) -> None:
        self.on_answer(NoAnswer(failure, "scripted"))


class ScriptedPeers:
    """Takes questions, one at a time of each broker; a test answers them."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def ask(self, node_id, purpose, api, version, request, on_answer, *, timeout_ms) -> None:
        assert purpose is Purpose.VERIFICATION
        assert (api, version) == (ADD_PARTITIONS_TO_TXN, 5)
        asked = Asked(node_id, request, lambda answer: self._ended(asked, answer), timeout_ms)
        assert node_id not in [each.node_id for each in self.asked], "two on their way"
        decoded = api.decode_request(
            memoryview(b"".join(bytes(each) for each in api.encode_request(request, version))),
            0,
            version,
        )
        keys = [each.transactional_id for each in decoded.transactions]
        assert len(keys) == len(set(keys)), "a transactional id twice"
        asked.ended = on_answer
        self.asked.append(asked)

    def _ended(self, asked: Asked, answer: Any) -> None:
        self.asked.remove(asked)
        asked.ended(answer)


class World:
    """A caller of the coordinators, with a stopped clock."""

    def __init__(self, wait_ms: int = 500, **bounds: int) -> None:
        self.clock = ManualClock(0)
        self.peers = ScriptedPeers()
        self.guards = Guards()
        self.leaders: dict[str, int] = {}
        self.told: dict[int, Any] = {}
        """Results by caller and partition; callers have numbers."""
        self.order: list[int] = []
        self.flushed = 0
        self.has_topic = True
        host: Any = SimpleNamespace(
            clock=self.clock,
            config=replace(BrokerConfig(), transaction_wait_ms=wait_ms),
            loop=asyncio.get_running_loop(),
            flush_answers=self._flush,
        )
        self._keys: list[str] = []
        view: Any = SimpleNamespace(node_id=HERE, leader_of=self._leader_of)
        self.remote_coordinators = RemoteCoordinators(
            host, view, self._partition_id_of, self.peers, self.guards, Bounds(**bounds)
        )

    def _flush(self) -> None:
        self.flushed += 1

    def _partition_id_of(self, key: str) -> int | None:
        self._keys.append(key)
        return len(self._keys) - 1 if self.has_topic else None

    def _leader_of(self, partition_id: int) -> Leader:
        return Leader(self.leaders.get(self._keys[partition_id], NODE), 1)

    def ask(self, number, key="id", *, adds=True, wait_ms=WAIT_MS, places=(FIRST,), epoch=0):
        """Send a query; its result is used at once, as by an append."""
        question = Question(key, number, epoch, {each: Log() for each in places}, adds)

        def act(answer):
            assert number not in self.told, "told twice"
            self.told[number] = {
                each: answer.refusal(each, log) for each, log in question.logs.items()
            }
            self.order.append(number)

        asking = self.remote_coordinators.ask(question, act, wait_ms=wait_ms)
        assert number not in self.told, "told from inside of ask"
        return asking

    def only(self, node_id: int = NODE) -> Asked:
        (asked,) = [each for each in self.peers.asked if each.node_id == node_id]
        return asked

    def said(self, number: int) -> ErrorCode:
        """Return the result of a caller's only partition."""
        (code,) = self.told[number].values()
        return code

    def nothing_is_left(self) -> None:
        assert len(self.remote_coordinators) == 0
        assert self.peers.asked == []
        assert self.remote_coordinators._nodes == {}
        assert not any(
            known.guards for log in self.guards._by_log.values() for known in log.values()
        )
        assert not [each for each in self.clock._timers if not each.done]


@pytest.fixture
async def world():
    return World()


async def turn() -> None:
    await asyncio.sleep(0)


# --------------------------------------------------------------------------- requests and responses


async def test_verification_request_and_response(world):
    world.ask(7, "one", places=(FIRST, SECOND), epoch=3)
    asked = world.only()
    assert asked.timeout_ms == ANSWER_TIMEOUT_MS
    (transaction,) = asked.request.transactions
    assert transaction.transactional_id == "one"
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 3)
    assert not transaction.verify_only
    assert [(each.name, each.partitions) for each in transaction.topics] == [("t", [0]), ("u", [3])]
    asked.answer({"one": {SECOND: ABORTABLE}})
    assert world.told == {7: {FIRST: NONE, SECOND: ABORTABLE}}
    assert world.flushed == 1
    world.nothing_is_left()


async def test_verify_only_request_has_flag(world):
    world.ask(7, adds=False)
    (transaction,) = world.only().request.transactions
    assert transaction.verify_only
    world.only().answer()
    world.nothing_is_left()


async def test_one_request_is_on_its_way_and_the_rest_is_asked_together(world):
    world.ask(1, "one")
    world.ask(2, "two")
    world.ask(3, "three", adds=False)
    assert world.only().keys == ["one"]
    world.only().answer()
    assert world.order == [1]
    assert world.only().keys == ["two", "three"]
    world.ask(4, "four")
    world.only().answer({"two": ABORTABLE})
    assert world.order == [1, 2, 3]
    assert [world.said(number) for number in (2, 3)] == [ABORTABLE, NONE]
    assert world.only().keys == ["four"]
    world.only().answer()
    world.nothing_is_left()


async def test_a_transactional_id_is_asked_about_once_in_a_request(world):
    world.ask(1, "one")
    for number, key in enumerate(["one", "one", "two", "one"], start=2):
        world.ask(number, key)
    sent = []
    while world.peers.asked:
        sent.append(world.only().keys)
        world.only().answer()
    assert sent == [["one"], ["one", "two"], ["one"], ["one"]]
    assert world.order == [1, 2, 4, 3, 5]
    world.nothing_is_left()


async def test_each_broker_is_asked_by_itself(world):
    world.leaders = {"there": OTHER}
    world.ask(1, "here")
    world.ask(2, "there")
    world.ask(3, "there")
    world.only(OTHER).answer()
    world.only(OTHER).answer()
    assert world.order == [2, 3]
    world.only(NODE).answer()
    assert world.order == [2, 3, 1]
    world.nothing_is_left()


async def test_a_request_has_its_bounds():
    world = World(at_once_max=3, partitions_at_once_max=4)
    world.ask(0, "0")
    two = (FIRST, SECOND)
    for number in range(1, 8):
        world.ask(number, str(number), places=two if number < 4 else (FIRST,))
    sent = []
    while world.peers.asked:
        sent.append(world.only().keys)
        world.only().answer()
    assert sent == [["0"], ["1", "2"], ["3", "4", "5"], ["6", "7"]]
    world.nothing_is_left()


async def test_a_question_of_more_than_a_request_should_have_is_asked_alone():
    world = World(partitions_at_once_max=1)
    world.ask(1, "one", places=(FIRST, SECOND))
    world.ask(2, "two", places=(FIRST, SECOND))
    world.only().answer()
    world.only().answer()
    assert world.order == [1, 2]
    world.nothing_is_left()


@pytest.mark.parametrize("bound", ["questions_max", "bytes_max"])
async def test_waiting_questions_are_limited(bound):
    size = Question("1", 0, 0, {FIRST: Log()}, adds=True).size_bytes
    world = World(**{bound: 2 if bound == "questions_max" else 2 * size})
    for number in range(4):
        world.ask(number, str(number))
    await turn()
    assert world.order == [2, 3]
    assert world.said(2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.leaders = {"there": OTHER}
    world.ask(5, "there")  # Another broker has room.
    world.only(OTHER).answer()
    world.only(NODE).answer()
    world.ask(6, "6")
    world.only(NODE).answer()
    world.only(NODE).answer()
    assert world.order == [2, 3, 5, 0, 1, 6]
    world.nothing_is_left()


async def test_one_question_may_be_as_large_as_it_likes():
    world = World(bytes_max=1)
    world.ask(1)
    world.only().answer()
    assert world.said(1) == NONE


# ----------------------------------------------------------------------------- no good answers


@pytest.mark.parametrize("failure", Failure)
async def test_missing_response_fails_all_questions(world, failure, caplog):
    world.ask(0, "first")
    for number in range(1, 3):
        world.ask(number, str(number))
    world.only().answer()
    world.only().fail(failure)
    assert [world.said(number) for number in (0, 1, 2)] == [NONE, NO_WORD, NO_WORD]
    world.nothing_is_left()
    world.ask(4)
    world.only().fail(failure)
    world.ask(5)
    world.only().answer()
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["coordinator does not answer node=2 reason=scripted"]


async def test_partition_missing_from_response_is_not_verified(world):
    world.ask(0, "zero")
    world.ask(1, "one", places=(FIRST, SECOND))
    world.ask(2, "two")
    world.only().answer()
    world.only().answer(leave_out={"one"})
    assert world.told[1] == {FIRST: NO_WORD, SECOND: NO_WORD}
    assert world.said(2) == NONE
    world.nothing_is_left()


async def test_an_error_of_the_whole_request_admits_nothing(world):
    world.ask(1)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    world.only().on_answer(AddPartitionsToTxnResponse(error_code=refused))
    assert world.said(1) == NO_WORD
    world.nothing_is_left()


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED]
)
async def test_temporary_coordinator_error_becomes_network_exception(world, code):
    world.ask(1)
    world.only().answer(code)
    assert world.said(1) == NO_WORD
    world.nothing_is_left()


@pytest.mark.parametrize(
    "code", [ErrorCode.PRODUCER_FENCED, ABORTABLE, ErrorCode.INVALID_TXN_STATE]
)
async def test_coordinator_error_about_transaction_is_returned(world, code):
    world.ask(1)
    world.only().answer(code)
    assert world.said(1) == code
    world.nothing_is_left()


async def test_id_without_coordinator_gets_error(world):
    world.leaders = {"nobody": NO_NODE, "this": HERE}
    world.ask(1, "nobody")
    world.ask(2, "this")
    world.has_topic = False
    world.ask(3, "no topic")
    await turn()
    missing = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [world.said(number) for number in (1, 2, 3)] == [
        missing,
        ErrorCode.NOT_COORDINATOR,
        missing,
    ]
    world.nothing_is_left()


# ------------------------------------------------------------------------------ asked again


async def test_a_transaction_that_is_ending_is_asked_about_again(world):
    """2 ms later, then after 4, 8 and 10 each time, until the wait expires."""
    world.ask(1)
    pauses, waited = [2, 4, 8, *[10] * 48], 0
    for pause_ms in pauses:
        world.only().answer(CONCURRENT)
        assert world.peers.asked == []
        world.clock.advance(milliseconds=pause_ms - 1)
        assert world.peers.asked == []
        world.clock.advance(milliseconds=1)
        waited += pause_ms
        assert world.only().keys == ["id"]
    assert waited == 494
    world.only().answer(CONCURRENT)
    assert world.said(1) == CONCURRENT
    world.nothing_is_left()


async def test_others_do_not_wait_for_who_asks_again(world):
    world.ask(1, "one")
    world.ask(2, "two")
    world.only().answer(CONCURRENT)
    world.only().answer()
    assert world.order == [2]
    world.clock.advance(milliseconds=20)
    world.only().answer()
    assert world.order == [2, 1]
    world.nothing_is_left()


async def test_verify_only_returns_concurrent_transactions(world):
    world.ask(1, adds=False)
    world.only().answer(CONCURRENT)
    assert world.said(1) == CONCURRENT


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(
    "said", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
async def test_retry_looks_up_coordinator_again(world, adds, said):
    world.ask(1, adds=adds)
    world.leaders["id"] = OTHER
    world.only(NODE).answer(said)
    world.clock.advance(milliseconds=20)
    world.only(OTHER).answer()
    assert world.said(1) == NONE
    world.nothing_is_left()


async def test_a_coordinator_that_has_moved_here_is_not_asked(world):
    world.ask(1)
    world.leaders["id"] = HERE
    world.only(NODE).answer(ErrorCode.NOT_COORDINATOR)
    world.clock.advance(milliseconds=20)
    await turn()
    assert world.said(1) == ErrorCode.NOT_COORDINATOR
    world.nothing_is_left()


async def test_without_time_to_wait_nothing_is_asked_again():
    world = World(wait_ms=0)
    world.ask(1)
    world.only().answer(CONCURRENT)
    assert world.said(1) == CONCURRENT
    world.nothing_is_left()


# ------------------------------------------------------------------------------------ its end


@pytest.mark.parametrize("stage", ["sent", "waiting", "pausing"])
@pytest.mark.parametrize("end", ["late", "given up"])
async def test_cancelled_question_gets_no_later_response(world, stage, end):
    world.ask(0, "first")
    if stage != "waiting":
        world.only().answer()
    asking = world.ask(1, "one", wait_ms=100)
    if stage == "pausing":
        world.only().answer(CONCURRENT)
    if end == "late":
        world.clock.advance(milliseconds=19)
        world.clock.advance(milliseconds=81)
        assert world.said(1) == NO_WORD
    else:
        world.remote_coordinators.give_up(asking)
        world.remote_coordinators.give_up(asking)
    told = dict(world.told)
    world.ask(2, "two")
    while world.peers.asked:
        world.only().answer()
    world.clock.advance(seconds=10)
    assert world.told == {**told, 0: world.told[0], 2: {FIRST: NONE}}
    world.nothing_is_left()


async def test_close_cancels_all_questions(world):
    world.ask(1, "one")
    world.ask(2, "two")
    world.leaders = {"three": OTHER}
    world.ask(3, "three")
    world.only(OTHER).answer(CONCURRENT)
    on_its_way = world.only(NODE)
    world.remote_coordinators.close()
    on_its_way.answer()
    world.clock.advance(seconds=60)
    assert world.told == {}
    world.nothing_is_left()


async def test_callback_error_does_not_affect_other_questions(world, caplog):
    def act(_answer):
        raise ValueError("a mistake")

    world.ask(0, "zero")
    question = Question("one", 1, 0, {FIRST: Log()}, adds=True)
    world.remote_coordinators.ask(question, act, wait_ms=WAIT_MS)
    world.ask(2, "two")
    world.only().answer()
    world.only().answer()
    assert world.order == [0, 2]
    assert "a mistake" in caplog.text
    world.nothing_is_left()


# ------------------------------------------------------------------------------------ guards


@pytest.mark.parametrize("event", ["marker", "lost"])
@pytest.mark.parametrize("stage", ["sent", "waiting", "pausing"])
async def test_a_guard_is_of_one_request(world, stage, event):
    """Events before a request is sent do not change its result, later ones do."""
    world.ask(0, "first")
    if stage != "waiting":
        world.only().answer()
    log = Log()
    told = []
    question = Question("one", 1, 0, {FIRST: log}, adds=True)
    world.remote_coordinators.ask(
        question, lambda answer: told.append(answer.refusal(FIRST, log)), wait_ms=WAIT_MS
    )
    if stage == "pausing":
        world.only().answer(CONCURRENT)
    if event == "marker":
        world.guards.end(log, 1)
    else:
        world.guards.lose(log)
    if stage == "waiting":
        world.only().answer()
    elif stage == "pausing":
        world.clock.advance(milliseconds=20)
    world.only().answer()
    assert told == [NO_WORD if stage == "sent" else NONE]
    assert world.guards.has_verified(log, 1, "one") == (stage != "sent")
    world.nothing_is_left()


async def test_an_answer_is_good_for_one_append_to_one_log(world):
    log = Log()
    told = []

    def act(answer):
        told.extend(answer.refusal(FIRST, each) for each in (Log(), log))
        told.append(answer.refusal(SECOND, log))

    world.remote_coordinators.ask(
        Question("one", 1, 0, {FIRST: log}, adds=True), act, wait_ms=WAIT_MS
    )
    world.only().answer()
    assert told == [NO_WORD, NO_WORD, NO_WORD]
    world.nothing_is_left()


async def test_random_askers_and_coordinators():
    """Each caller gets one result, or has given up; nothing is left in the end."""
    random = Random(SEED)
    world = World(questions_max=6, at_once_max=3)
    askings, given_up = {}, set()
    keys = ["a", "b", "c", "d"]
    for number in range(2_000):
        action = random.randrange(8)
        if action < 3:
            askings[number] = world.ask(
                number,
                random.choice(keys),
                adds=random.random() < 0.7,
                wait_ms=random.choice([50, 500]),
            )
        elif action < 5 and world.peers.asked:
            asked = random.choice(world.peers.asked)
            if random.random() < 0.1:
                asked.fail(random.choice(list(Failure)))
            else:
                codes = [NONE, NONE, CONCURRENT, ErrorCode.NOT_COORDINATOR, ABORTABLE]
                asked.answer({key: random.choice(codes) for key in keys})
        elif action == 5:
            world.clock.advance(milliseconds=random.randrange(60))
        elif action == 6 and askings:
            chosen = random.choice(list(askings))
            world.remote_coordinators.give_up(askings[chosen])
            if chosen not in world.told:
                given_up.add(chosen)
        else:
            world.leaders[random.choice(keys)] = random.choice([NODE, OTHER, HERE, NO_NODE])
        await turn()
    world.clock.advance(seconds=1)
    for _ in range(10):
        for asked in list(world.peers.asked):
            asked.answer()
        await turn()
    assert given_up.isdisjoint(world.told)
    assert given_up | world.told.keys() == askings.keys()
    world.nothing_is_left()
