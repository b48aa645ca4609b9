"""Power losses of all brokers and restarts of one, under transactions that span three of them.

Coordinators, the leaders of data and of offsets are different brokers; what they ask each other
is delayed, lost, doubled, and comes late on connections that were given up. After operations on a
disk, all disks are drawn as a power loss may leave them then. What is found there must hold all
invariants of transactions over all logs together; and with no client there, the coordinators must
bring everything that was decided, or left open for too long, to its end. A failure prints its seed:
``BARNABAS_CRASH_SEED=<seed> pytest tests/crash/test_several_on_simulated_disks.py``.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest

from barnabas.broker.coordination.remote_coordinators import Answer, RemoteCoordinators
from barnabas.broker.coordination.remote_markers import RemoteMarkers
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.testing.loopback import FAIR, Weather
from barnabas.coordinator.transactions.commands import MarkersPlaced
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.metastore.sqlite import SqliteMetaStore
from barnabas.storage.simulated import Operation, SimulatedFileSystem
from tests.crash.amounts import seeds
from tests.crash.crashes import Keep
from tests.crash.several_lives import NODES, RETRIABLE, Brokers, LifeOfSeveral, made_topics
from tests.crash.transaction_history import Place
from tests.crash.transaction_life import PARTITIONS, copy_of
from tests.crash.transaction_load import TIMEOUT_MS, Load, PlainProducer, Written

SEEDS = seeds(in_test=3, at_night=6)
STEPS = 4000
SHARE = 0.05
"""Of how many operations on a disk the power loss is looked at."""
POINTS_PER_SEED = 15
ENDED_PER_SEED = 5
"""The least in the worst weather."""
WEATHER = (
    FAIR,
    Weather(delay_ms=200, duplicated=0.1),
    Weather(delay_ms=3000, lose_question=0.05, lose_answer=0.05, cut=0.1, duplicated=0.1),
)


@dataclass
class Moment:
    """What a power loss may leave, and what clients had been told by then."""

    disks: dict[int, SimulatedFileSystem]
    store: SqliteMetaStore
    now_ms: int
    acknowledged: list[tuple[Place, bytes]]
    written: list[Written]
    what: str


class SeveralLoad(Load):
    """Clients of several brokers, and what may happen to these."""

    def step(self, life: Any) -> None:
        """One random thing: of a client, of a thread of a broker, of time, or of a broker."""
        brokers: Brokers = life
        random = self.random
        one = brokers.lives[random.choice(sorted(brokers.lives))]
        kind = random.random()
        if kind < 0.40:
            random.choice(self.clients).step(life, random)
            brokers.send_again()
        elif kind < 0.60:
            one.engine.turn(disk_is_quick=kind < 0.50)
        elif kind < 0.83:
            one.engine.commit(random.choice((1, 2, 100)))
        elif kind < 0.87:
            one.engine.write()
        elif kind < 0.89:
            one.engine.aside()
        elif kind < 0.895:
            one.logs.checkpoint()
        elif kind < 0.90:
            one.markers.is_delayed = random.random() < 0.2
        elif kind < 0.91:
            brokers.views[one.node_id].refresh()
        else:
            brokers.clock.advance(milliseconds=random.choice((1, 10, 20, 100, 100, 600)))


class SeveralCrashes:
    """One seed's run; ``points`` counts the moments that were recovered and checked."""

    def __init__(self, seed: int, share: float = SHARE, weather: Weather | None = None) -> None:
        """``weather``: on all links; None: that of the seed."""
        self.seed = seed
        self.weather = weather or WEATHER[seed % len(WEATHER)]
        self.points = 0
        self.restarts = 0
        self.load = SeveralLoad(Random(seed), allowed=frozenset(RETRIABLE))
        self._share = share
        self._random = Random(f"{seed} draws")
        self._moments: list[Moment] = []
        self._brokers: Brokers

    async def run(self) -> None:
        """Run; raises at the first violation, with the seed."""
        store, ids = await made_topics()
        leaders = {place: self._random.choice(NODES) for place in ids}
        disks = {node_id: SimulatedFileSystem() for node_id in NODES}
        brokers = Brokers(store, ids, leaders, disks, now_ms=1_000_000, seed=self.seed)
        self._brokers = brokers
        brokers.script(self.weather)
        try:
            for node_id in NODES:
                await self._start(node_id)
            brokers.refresh()
            for _ in range(STEPS):
                self.load.step(brokers)
                await brokers.turn()
                await self._check_moments()
                if self._random.random() < 0.003:
                    await self._restart(self._random.choice(NODES))
            await self._check(self._moment("the end"))
        except BaseException as error:
            error.add_note(f"BARNABAS_CRASH_SEED={self.seed}")
            raise
        finally:
            await brokers.end()
            store.close()

    async def _start(self, node_id: int) -> None:
        brokers = self._brokers
        brokers.start(node_id)
        life = brokers.lives[node_id]
        await life.catalogue.producer_ids.ensure()
        life.disk.after = partial(self._crash_here, life)

    async def _restart(self, node_id: int) -> None:
        """A kill, or a power loss at this broker alone."""
        self.restarts += 1
        keep = self._random.random() < 0.5
        self._brokers.crash(node_id, Keep() if keep else self._random)
        await self._start(node_id)

    def _crash_here(self, life: LifeOfSeveral, operation: Operation) -> None:
        if self._random.random() < self._share:
            self._moments.append(self._moment(f"{operation} of {life.node_id}"))

    def _moment(self, what: str) -> Moment:
        draw = Keep() if self._random.random() < 0.25 else self._random
        brokers = self._brokers
        disks = {}
        for node_id, disk in brokers.disks.items():
            disks[node_id] = disk.crash(draw)
        return Moment(
            disks,
            copy_of(brokers.store),
            brokers.clock.now_ms(),
            list(self.load.plain.acknowledged),
            deepcopy(self.load.written),
            what,
        )

    async def _check_moments(self) -> None:
        moments, self._moments = self._moments, []
        for moment in moments:
            try:
                await self._check(moment)
            except BaseException as error:
                error.add_note(f"power loss at {moment.what}")
                raise

    async def _check(self, moment: Moment) -> None:
        """Start all on what is left; judge what is found, then what becomes of it."""
        self.points += 1
        brokers = Brokers(
            moment.store,
            self._brokers.ids,
            self._brokers.leaders,
            moment.disks,
            now_ms=moment.now_ms,
            seed=self.seed,
        )
        try:
            for node_id in NODES:
                brokers.start(node_id, opened=False)
            for life in brokers.lives.values():
                life.catalogue.producer_ids.peek = lambda: -1  # type: ignore[method-assign]
            found = brokers.history()
            found.check()
            for life in brokers.lives.values():
                life.open()
                epoch = life.transactions.coordinator_epoch
                assert epoch > found.highest_coordinator_epoch, "a coordinator epoch again (D6)"
            await brokers.drain(TIMEOUT_MS)
            self._judge(brokers, moment)
        finally:
            await brokers.end()
            moment.store.close()

    def _judge(self, brokers: Brokers, moment: Moment) -> None:
        ended = brokers.history()
        ended.check_complete()
        told = SeveralLoad(Random(0))
        told.plain = PlainProducer(told)
        told.plain.acknowledged = moment.acknowledged
        told.written = moment.written
        told.check(ended)
        for node_id, life in brokers.lives.items():
            mine = [place for place, leader in brokers.leaders.items() if leader == node_id]
            self.load.check_offsets(life, ended, mine)
        for topic, count in PARTITIONS.items():
            for index in range(count):
                log = brokers.log(topic, index)
                assert log.last_stable_offset == log.high_watermark, f"{log} is not stable (C6)"


@pytest.mark.parametrize("seed", SEEDS)
async def test_transactions_over_several_brokers_end_whole(seed):
    run = SeveralCrashes(seed)
    await run.run()
    ended = [each for each in run.load.written if each.told is not None]
    print(
        f"seed {seed}: {run.points} power losses, {run.restarts} restarts, "
        f"{len(ended)} transactions, {dict(run.load.refused)}"
    )
    assert run.points >= POINTS_PER_SEED, "the workload became too small to mean anything"
    assert run.restarts
    assert len(ended) >= ENDED_PER_SEED
    assert run.load.plain.acknowledged


# ------------------------------------------------------------------ each rule broken in its turn


STORM = Weather(delay_ms=3000, lose_answer=0.05, cut=0.2, duplicated=0.3)
"""In which copies come late."""


async def first_violation(weather: Weather | None = None) -> str:
    """The message of the first seed's run that finds something; empty if none does."""
    for seed in range(12):
        try:
            await SeveralCrashes(seed, weather=weather).run()
        except AssertionError as error:
            return str(error)
    return ""


async def test_a_batch_in_front_of_its_partition_is_found_out_r1(monkeypatch):
    """Whatever the coordinator says, and be it nothing: the batch is appended."""
    ask = RemoteCoordinators.ask

    def ask_and_go_on(remote_coordinators, question, on_answer, *, wait_ms):
        asking = ask(remote_coordinators, question, lambda _answer: None, wait_ms=wait_ms)
        guarded = {
            place: remote_coordinators.guards.make(log, question.producer_id)
            for place, log in question.logs.items()
        }
        codes = dict.fromkeys(question.logs, ErrorCode.NONE)
        answer = Answer(question, codes, guarded, remote_coordinators.guards)
        asyncio.get_running_loop().call_soon(on_answer, answer)
        return asking

    monkeypatch.setattr(RemoteCoordinators, "ask", ask_and_go_on)
    assert "(P1)" in await first_violation()


async def test_a_marker_in_front_of_its_decision_is_found_out_r2(monkeypatch):
    debt_of = RemoteMarkers._debt

    def debt_at_once(markers, shard, transaction):
        debt = debt_of(markers, shard, transaction)
        if debt is not None:
            debt.is_durable = True
        return debt

    monkeypatch.setattr(RemoteMarkers, "_debt", debt_at_once)
    assert "(C3)" in await first_violation()


async def test_completion_in_front_of_a_marker_is_found_out_r3(monkeypatch):
    takes = RemoteMarkers.takes

    def takes_and_forgets(markers, shard, transaction, place):
        is_taken = takes(markers, shard, transaction, place)
        if is_taken:
            key = transaction.transactional_id
            shard.machine.change(MarkersPlaced(key, [place]))
        return is_taken

    monkeypatch.setattr(RemoteMarkers, "takes", takes_and_forgets)
    monkeypatch.setattr(RemoteMarkers, "done", lambda _markers, _key: None)
    assert "(D5, M1)" in await first_violation()


async def test_an_answer_in_front_of_its_decision_is_found_out_r4(monkeypatch):
    monkeypatch.setattr(Transactions, "when_durable", lambda _all, waiter: waiter.durable())
    assert await first_violation()


async def test_a_marker_of_an_earlier_coordinator_is_found_out_r6(monkeypatch):
    monkeypatch.setattr("barnabas.storage.producers.TRANSACTION_COORDINATOR_FENCED", 0)
    assert "(M3)" in await first_violation(STORM)
