"""What comes too late between brokers: a coordinator's word, and a copy of a marker (R7, R10).

Broker A coordinates the transaction and B leads its data. Each test is run once as it is, and once
more with the rule that it is about broken, which has to be found out.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from barnabas.broker.testing.loopback import Fate
from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.storage.simulated import SimulatedFileSystem
from tests.crash.several_lives import NODES, RETRIABLE, Brokers, made_topics
from tests.crash.transaction_life import TOPIC
from tests.crash.transaction_load import TIMEOUT_MS, Load, Transactional

A, B, G = NODES
ROLES = {TRANSACTION_STATE: A, TOPIC: B, GROUP_OFFSETS: G}
PLACE = (TOPIC, 0)
LATE_MS = 3000
CLASSIC_CLIENT = 1
STEPS_MAX = 2_000


class Stage:
    """Three brokers and one client of the classic generation, whose epoch stays as it is."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.load = Load(Random(0), allowed=frozenset(RETRIABLE))
        self.client = Transactional(self.load, CLASSIC_CLIENT)
        self.load.transactional = [self.client]
        self._random = Random(0)

    async def step(self) -> None:
        """Let a millisecond pass, and everything be done that there is to do."""
        brokers = self.brokers
        brokers.send_again()
        for life in brokers.lives.values():
            life.settle()
        await brokers.turn()
        brokers.clock.advance(milliseconds=1)

    async def until(self, holds: Any) -> None:
        for _ in range(STEPS_MAX):
            if holds():
                return
            await self.step()
        raise AssertionError("it does not come to that")

    async def answered(self) -> None:
        await self.until(lambda: not self.client.busy)

    async def pass_time(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            await self.step()

    async def begin(self) -> None:
        """Get an epoch."""
        self.client._init(self.brokers)  # type: ignore[arg-type]
        await self.answered()

    async def add(self) -> None:
        self.client._add(self.brokers, PLACE, 3)  # type: ignore[arg-type]
        await self.answered()

    def send(self) -> None:
        """Send a batch, and do not wait."""
        self.client._write(self.brokers, PLACE, self._random)  # type: ignore[arg-type]

    async def write(self) -> None:
        self.send()
        await self.answered()

    async def end(self, *, commit: bool) -> None:
        self.client._end(self.brokers, commit=commit)  # type: ignore[arg-type]
        await self.answered()

    async def is_complete(self) -> None:
        """Wait until the coordinator has all markers."""
        transactions = self.brokers.lives[A].transactions
        await self.until(lambda: not transactions.is_deciding(self.client.name))

    @property
    def log(self) -> Any:
        return self.brokers.log(*PLACE)

    def judge(self) -> None:
        ended = self.brokers.history()
        ended.check_complete()
        self.load.check(ended)


def only_first(fate: Fate) -> Any:
    """A script: this happens to the first question, and nothing to hellos and all others."""
    left = [Fate(), fate]  # The hello of the connection comes first.
    return lambda _chance: left.pop(0) if left else Fate()


@pytest.fixture
async def stage():
    store, ids = await made_topics()
    leaders = {place: ROLES[place[0]] for place in ids}
    disks = {node_id: SimulatedFileSystem() for node_id in NODES}
    brokers = Brokers(store, ids, leaders, disks, now_ms=1_000_000, seed=0)
    for node_id in NODES:
        brokers.start(node_id)
        await brokers.lives[node_id].catalogue.producer_ids.ensure()
    brokers.refresh()
    yield Stage(brokers)
    await brokers.end()
    store.close()


async def a_word_that_comes_behind_the_marker(stage: Stage) -> None:
    """The coordinator's word on a batch arrives when the transaction has ended (P6).

    The client has given up its batch, which may still be on its way, and has aborted.
    """
    network = stage.brokers.network
    await stage.begin()
    await stage.add()
    network.scripts[B, A] = only_first(Fate(answer_ms=LATE_MS))
    stage.send()
    written = stage.client.current
    await stage.pass_time(100)
    client = stage.client
    assert client.busy, "the batch waits"
    told: list[int] = []
    request = EndTxnRequest(client.name, *client.producer, committed=False)
    stage.brokers.connect("impatient").send(
        END_TXN, 3, request, lambda answer: told.append(answer.error_code)
    )
    await stage.until(lambda: told)
    assert told == [ErrorCode.NONE]
    written.told = False
    await stage.is_complete()
    end = stage.log.next_offset
    await stage.pass_time(LATE_MS)
    assert stage.log.next_offset == end, "a batch behind the marker (R7)"


async def a_copy_of_a_marker_in_the_next_transaction(stage: Stage) -> None:
    """A marker comes on a connection that was given up, when the next transaction is open."""
    network = stage.brokers.network
    await stage.begin()
    await stage.add()
    await stage.write()
    network.scripts[A, B] = only_first(Fate(question_ms=LATE_MS, cut=True))
    await stage.end(commit=True)
    await stage.is_complete()
    await stage.add()
    await stage.write()
    producer_id = stage.client.producer[0]
    assert stage.log.producers.has_open_transaction(producer_id)
    await stage.pass_time(LATE_MS)
    assert stage.log.producers.has_open_transaction(producer_id), "its end came too early (R10)"
    await stage.end(commit=False)
    await stage.is_complete()


async def test_no_batch_is_appended_when_its_transaction_has_ended_meanwhile_r7(stage):
    await a_word_that_comes_behind_the_marker(stage)
    await stage.brokers.drain(TIMEOUT_MS)
    stage.judge()


async def test_no_copy_of_a_marker_ends_the_next_transaction_r10(stage):
    await a_copy_of_a_marker_in_the_next_transaction(stage)
    await stage.brokers.drain(TIMEOUT_MS)
    stage.judge()
