"""Runs: coroutines that come to the response of one request, and what can happen meanwhile."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest

from barnabas.broker.api.direct_call import response_to
from barnabas.broker.api.dispatch import CloseConnection, Deferred
from barnabas.broker.api.driver import Encoded, Run, response_of
from barnabas.broker.api.waits import Aside, Durable, TransactionEnded, Turn, later
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.runtime.turns import turn_over
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.journal.refusal import Refusal
from tests.cycles import cycles

ROUTE = SimpleNamespace(name="Toy")


class Word:
    """A word whose result the test gives."""

    def __init__(self, *, ends_early=False, is_work=False):
        self.ends_early = ends_early
        self.is_work = is_work
        self.ticket = None
        self.given_up = 0

    def __await__(self):
        return (yield self)

    def begin(self, ticket):
        self.ticket = ticket
        return self.give_up

    def give_up(self):
        self.given_up += 1


class Settled(Word):
    """A word that has its result when the wait begins."""

    def begin(self, ticket):
        ticket.settle("at once")


class Connection:
    """Starts a coroutine, and keeps its outcome."""

    def __init__(self, coroutine, **kind):
        self.answers, self.bugs, self.closed = [], [], []
        self.at_work = set()
        self.is_answered = asyncio.Event()
        self.answer = Deferred()
        self.answer.route, self.answer.version, self.answer.connection = ROUTE, 3, self
        self.run = self.answer.run = Run(coroutine, **kind)
        self.run.start(self, self.answer, "request", self.at_work)

    def answered(self, deferred):
        chunks = deferred.chunks
        self.answers.append(deferred.response if chunks is None else chunks)
        self.is_answered.set()

    def refused(self, route, request, error):
        return route.name, request, error.code

    def bug(self, name, error):
        self.bugs.append((name, error))

    def close(self, reason):
        self.closed.append(reason)


async def test_run_starts_at_once_and_resumes_inside_its_word():
    steps, word = [], Word()

    async def handle():
        steps.append("before")
        steps.append(await word)
        return "response"

    connection = Connection(handle())
    assert steps == ["before"]
    word.ticket.settle("result")
    assert steps == ["before", "result"]
    assert connection.answers == ["response"]
    word.ticket.settle("again")
    assert connection.answers == ["response"]


async def test_words_that_need_no_wait_follow_each_other():
    async def handle():
        return [await Settled() for _ in range(3)]

    assert Connection(handle()).answers == [["at once"] * 3]


@pytest.mark.parametrize(
    ("result", "answer"), [(None, []), (Encoded([b"chunk"]), [b"chunk"]), ("text", "text")]
)
async def test_run_returns_response_nothing_or_bytes(result, answer):
    async def handle():
        return result

    assert Connection(handle()).answers == [answer]


async def test_kafka_error_is_the_refusal_of_the_route():
    async def handle():
        await Settled()
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    connection = Connection(handle())
    assert connection.answers == [("Toy", "request", ErrorCode.INVALID_REQUEST)]


async def test_close_connection_names_the_request_and_the_reason():
    async def handle():
        raise CloseConnection("no other response")

    connection = Connection(handle())
    assert connection.closed == ["api=Toy version=3 reason=no other response"]
    assert not connection.answers


async def test_internal_error_closes_the_connection_and_spares_the_caller():
    word, error = Word(), ZeroDivisionError("a bug")

    async def handle():
        await word
        raise error

    connection = Connection(handle())
    word.ticket.settle()
    assert connection.bugs == [("Toy", error)]
    assert not connection.answers


async def test_failed_word_raises_in_the_handler():
    word = Word()

    async def handle():
        try:
            await word
        except KeyError as error:
            return error.args[0]

    connection = Connection(handle())
    word.ticket.fail(KeyError("failed"))
    assert connection.answers == ["failed"]


async def test_word_that_cannot_begin_raises_in_the_handler():
    class Broken(Word):
        def begin(self, ticket):
            raise KeyError("no thread")

    async def handle():
        try:
            await Broken()
        except KeyError as error:
            return error.args[0]

    assert Connection(handle()).answers == ["no thread"]


async def test_client_that_leaves_ends_the_run_at_its_word():
    word, left = Word(), []

    async def handle():
        try:
            await word
        finally:
            left.append("left")

    connection = Connection(handle())
    connection.answer.abandoned()
    assert (left, word.given_up) == (["left"], 1)
    word.ticket.settle("late")
    assert connection.answers == connection.bugs == connection.closed == []


async def test_client_that_leaves_does_not_end_work_under_way():
    """A topic that is being created is created whole."""
    work = asyncio.get_running_loop().create_future()
    steps, word = [], Word()

    async def handle():
        steps.append(await work)
        try:
            await word
        finally:
            steps.append("left")

    connection = Connection(handle())
    assert connection.at_work == {connection.run}
    connection.answer.abandoned()
    assert steps == []
    work.set_result("done")
    await asyncio.sleep(0)
    assert steps == ["done", "left"]
    assert connection.at_work == set()
    assert word.ticket is None


async def test_failed_cleanup_is_logged(caplog):
    caplog.set_level(logging.ERROR)
    word = Word()

    async def handle():
        try:
            await word
        finally:
            raise ZeroDivisionError

    Connection(handle()).answer.abandoned()
    assert "cleanup after a disconnected client failed: api=Toy" in caplog.text


async def test_early_end_reaches_only_words_that_end_early():
    patient, hasty = Word(), Word(ends_early=True)

    async def handle():
        return [await patient, await hasty]

    connection = Connection(handle())
    connection.run.complete_early()
    assert patient.given_up == 0
    patient.ticket.settle("patient")
    assert connection.answers == [["patient", False]]
    assert hasty.ticket is None


async def test_early_end_cuts_a_wait_short():
    word = Word(ends_early=True)

    async def handle():
        return await word

    connection = Connection(handle())
    connection.run.complete_early()
    assert (connection.answers, word.given_up) == ([False], 1)


async def test_waits_for_others_are_reported():
    work, others = Word(is_work=True), Word()
    store = asyncio.get_running_loop().create_future()

    async def handle():
        await work
        await others
        await turn_over()
        steps.append("turn")
        await store

    steps = []
    run = Run(handle())
    run.on_idle = lambda: steps.append("idle")
    run.start(None, Deferred(), None, set())
    assert steps == []
    work.ticket.settle()
    assert steps == ["idle"]
    others.ticket.settle()
    for _ in range(3):
        await asyncio.sleep(0)
    assert steps == ["idle", "turn", "idle"]
    store.cancel()


async def test_timeout_of_asyncio_holds_in_a_run():
    never = asyncio.get_running_loop().create_future()

    async def handle():
        try:
            async with asyncio.timeout(0.001):
                await never
        except TimeoutError:
            pass
        try:
            async with asyncio.timeout(0.001):
                await Word()
        except TimeoutError:
            return "late"

    connection = Connection(handle())
    await connection.is_answered.wait()
    assert connection.answers == ["late"]


async def test_run_inside_a_task_leaves_the_task_as_it_was():
    async def handle():
        await asyncio.sleep(0)
        return asyncio.current_task()

    task = asyncio.current_task()
    connection = Connection(handle())
    assert asyncio.current_task() is task
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection.answers == [connection.run]


async def test_cancelled_run_closes_its_connection():
    left = []

    async def handle():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            left.append("left")

    connection = Connection(handle())
    assert connection.run.cancel()
    await asyncio.sleep(0)
    assert left == ["left"]
    assert connection.answers == connection.bugs == []
    assert connection.closed == ["api=Toy version=3 reason=the request was cancelled"]
    assert not connection.run.cancel()


async def test_wait_that_closes_its_connection_when_it_begins_is_given_up():
    class Closing(Word):
        def begin(self, ticket):
            answer.abandoned()
            return super().begin(ticket)

    async def handle():
        await word

    word, answer = Closing(), Deferred()
    answer.run = Run(handle())
    answer.run.start(None, answer, None, set())
    assert word.given_up == 1


async def test_long_chain_of_runs_that_await_each_other_is_answered():
    async def handle(awaited):
        return await awaited

    last = awaited = Deferred()
    for _ in range(1000):
        answer = Deferred()
        answer.run = Run(handle(awaited))
        answer.run.start(None, answer, None, set())
        awaited = answer
    connection = Connection(handle(awaited))
    last.complete("response")
    await connection.is_answered.wait()
    assert connection.answers == ["response"]


async def test_deferred_is_awaited_like_a_word():
    pending, done = Deferred(), Deferred()
    done.complete("before")

    async def handle():
        return [await done, await pending]

    connection = Connection(handle())
    pending.complete("after")
    assert connection.answers == [["before", "after"]]


async def test_response_comes_of_every_form():
    pending = Deferred()

    async def handle():
        return "coroutine"

    async def all_of_them():
        found = [await response_of(each) for each in ("plain", Run(handle()), handle(), pending)]
        return [*found, await response_of(None)]

    connection = Connection(all_of_them())
    pending.complete("deferred")
    assert connection.answers == [["plain", "coroutine", "coroutine", "deferred", None]]


async def test_direct_call_raises_what_the_handler_raises():
    async def handle(error):
        raise error

    for error in (KafkaError(ErrorCode.INVALID_REQUEST), ZeroDivisionError("a bug")):
        with pytest.raises(type(error)):
            await response_to(handle(error), ROUTE)
    with pytest.raises(CloseConnection, match="reason=no other"):
        await response_to(handle(CloseConnection("no other")), ROUTE)


# ------------------------------------------------------------------------------------------- words


async def test_until_waits_for_its_time_and_is_given_up():
    clock = ManualClock(0)
    waiting, left = (Connection(later(clock, 500, "late")) for _ in range(2))
    left.run.complete_early()
    left.answer.abandoned()
    clock.advance(milliseconds=499)
    assert waiting.answers == []
    clock.advance(milliseconds=1)
    assert (waiting.answers, left.answers) == (["late"], [])


async def test_aside_raises_or_returns_what_its_future_has():
    loop = asyncio.get_running_loop()
    good, bad, left = (loop.create_future() for _ in range(3))

    async def handle(future):
        return await Aside(lambda: future)

    connections = [Connection(handle(each)) for each in (good, bad, left)]
    good.set_result("found")
    bad.set_exception(ZeroDivisionError())
    connections[2].answer.abandoned()
    await asyncio.sleep(0)
    assert connections[0].answers == ["found"]
    assert [type(error) for _, error in connections[1].bugs] == [ZeroDivisionError]
    assert left.cancelled()


async def test_durable_keeps_what_came_before_the_wait():
    durable, refused, late = (CommitGroup(1) for _ in range(3))
    refusal = Refusal([])

    async def handle(word):
        return [await word]

    words = [Durable(group) for group in (durable, refused, late)]
    waiting = Connection(handle(words[2]))
    for group in (durable, late):
        for answer in group.answers:
            answer.prepare()
    refused.refuse(refusal)
    assert waiting.answers == [[None]]
    assert Connection(handle(words[0])).answers == [[None]]
    assert Connection(handle(words[1])).answers == [[refusal]]


async def test_end_of_a_transaction_that_no_run_waits_for_is_ignored():
    waiting = []
    coordinator = SimpleNamespace(when_decided=lambda key, then: waiting.append((key, then)))

    async def handle():
        await TransactionEnded(coordinator, "key")
        return "ended"

    stays, leaves = Connection(handle()), Connection(handle())
    leaves.answer.abandoned()
    for key, then in waiting:
        assert key == "key"
        then()
    assert (stays.answers, leaves.answers) == (["ended"], [])


async def test_turn_is_left_to_others_once_the_slice_is_over():
    order = []

    async def handle(name):
        for number in range(2):
            order.append((name, number))
            await Turn()
            until = asyncio.get_running_loop().time() + 0.006
            while asyncio.get_running_loop().time() < until:
                pass
        return name

    connections = [Connection(handle(name)) for name in "ab"]
    for connection in connections:
        await connection.is_answered.wait()
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


@pytest.mark.parametrize("is_word", [False, True], ids=["a future", "a word"])
async def test_error_that_a_run_ends_with_leaves_no_cycle(is_word):
    async def handle():
        failing = Word() if is_word else asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(fail, failing)
        await failing

    def fail(failing):
        error = KafkaError(ErrorCode.NOT_COORDINATOR)
        if is_word:
            failing.ticket.fail(error)
        else:
            failing.set_exception(error)

    with cycles() as found:
        connection = Connection(handle())
        await connection.is_answered.wait()
        assert connection.answers == [("Toy", "request", ErrorCode.NOT_COORDINATOR)]
        connection.answer.connection = None  # It refers to the answer.
        del connection
        await asyncio.sleep(0)
    assert not found
