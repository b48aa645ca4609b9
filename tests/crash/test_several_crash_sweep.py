"""A crash of each broker of a transaction after each thing that happens, one after the other.

A is the broker of the transaction's coordinator, B leads the data, G coordinates the group whose
offsets are part of it. A client writes, sends offsets, ends its transaction and begins another one.
Everything that moves (the turns of each loop, each sync, the clock) is one step of a schedule that
is the same in every run; in each run one broker crashes after one of these steps, loses what it had
not synced or does not, and starts again at once. The client asks again whatever is not answered.
Steps in which nothing but the clock has moved are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from random import Random
from typing import Any

import pytest

from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.storage.metastore.sqlite import SqliteMetaStore
from barnabas.storage.simulated import SimulatedFileSystem
from tests.crash.crashes import Keep
from tests.crash.several_lives import NODES, RETRIABLE, Brokers, made_topics
from tests.crash.transaction_history import Place
from tests.crash.transaction_life import PARTITIONS, TOPIC, copy_of
from tests.crash.transaction_load import CLASSIC, IMPLICIT, TIMEOUT_MS, Load, Transactional
from tests.products import case

A, B, G = NODES
ROLES = {TRANSACTION_STATE: A, TOPIC: B, GROUP_OFFSETS: G}
FIRST, SECOND = (TOPIC, 0), (TOPIC, 1)
STEPS_MAX = 20_000
"""Of a schedule: a run that takes longer hangs."""
STEPS_AT_LEAST = 25


class Sequence(Transactional):
    """One transactional id whose client does the same in every run."""

    def __init__(self, load: Load, number: int, *, commit: bool, keeps: bool) -> None:
        """``keeps``: its first transaction is ended by two-phase commit (KIP-939)."""
        super().__init__(load, number)
        self._commit = commit
        self._keeps = keeps
        self._ended = 0
        self._done = 0
        self._random = Random(0)

    @property
    def is_over(self) -> bool:
        return self._ended == 2

    def forget(self) -> None:
        super().forget()
        self._done = 0

    def go_on(self, life: Any, random: Random) -> None:
        del random
        if self.producer is None:
            self._init(life)
            return
        if self._done and self.current is None:
            self._done = 0
            self._ended += 1
        steps = self._steps(life)
        if not self.is_over:
            steps[self._done]()
            self._done += 1

    def _keep(self, life: Any) -> None:
        """Take the open transaction over as prepared, as the client that comes after a crash."""
        request = InitProducerIdRequest(self.name, TIMEOUT_MS, -1, -1, True, True)

        def respond(response: InitProducerIdResponse) -> None:
            assert not response.error_code or response.error_code in RETRIABLE, response
            if response.error_code:
                self.forget()
            else:
                self._enter(response)

        self.send(life, INIT_PRODUCER_ID, 6, request, respond)

    def _steps(self, life: Any) -> list[Callable[[], None]]:
        """What a transaction consists of; the second one has data in one partition only."""
        adds = self.versions.add_partitions
        places = [FIRST, SECOND] if not self._ended else [SECOND]
        steps: list[Callable[[], None]] = []
        if adds is not None:
            steps += [partial(self._add, life, place, adds) for place in places]
        steps += [partial(self._write, life, place, self._random) for place in places]
        if not self._ended:
            if adds is not None:
                steps.append(partial(self._add_offsets, life, adds))
            steps.append(partial(self._send_offsets, life))
        if self._keeps and not self._ended:
            steps.append(partial(self._keep, life))
        return [*steps, partial(self._end, life, commit=self._commit or bool(self._ended))]


class Sweep:
    """One way to do it; ``run`` does it once."""

    def __init__(
        self,
        store: SqliteMetaStore,
        ids: dict[Place, int],
        number: int,
        *,
        commit: bool,
        keeps: bool,
    ) -> None:
        """``number`` of the client: an odd one is of the classic generation."""
        self._store = store
        self._ids = ids
        self._number = number
        self._commit = commit
        self._keeps = keeps
        self.moves: dict[int, object] = {}
        """The steps of the first run in which something has moved, and what there was then."""

    async def steps(self) -> list[int]:
        """Run without a crash; return the steps after which one makes a difference."""
        await self.run()
        return list(self.moves)

    async def run(self, victim: int | None = None, at: int = -1, *, keep: bool = True) -> None:
        """Crash ``victim`` after step ``at``, and judge what becomes of it."""
        store = copy_of(self._store)
        leaders = {place: ROLES[place[0]] for place in self._ids}
        disks = {node_id: SimulatedFileSystem() for node_id in NODES}
        brokers = Brokers(store, self._ids, leaders, disks, now_ms=1_000_000, seed=0)
        load = Load(Random(0), allowed=frozenset(RETRIABLE))
        client = Sequence(load, self._number, commit=self._commit, keeps=self._keeps)
        try:
            for node_id in NODES:
                await self._start(brokers, node_id)
            brokers.refresh()
            for step in count():
                if client.is_over:
                    break
                assert step < STEPS_MAX, "it hangs"
                self._step(brokers, client, step)
                await brokers.turn()
                if victim is None:
                    self._note(brokers, client, step)
                if step == at:
                    assert victim is not None
                    brokers.crash(victim, Keep() if keep else Random(at))
                    await self._start(brokers, victim)
                    brokers.refresh()
            await self._judge(brokers, load, client)
        except BaseException as error:
            error.add_note(f"crash of {victim} after step {at}, keep={keep}")
            raise
        finally:
            await brokers.end()
            store.close()

    def _note(self, brokers: Brokers, client: Sequence, step: int) -> None:
        lives = [brokers.lives[node_id] for node_id in NODES]
        now = (
            client.busy,
            client._done,
            client.is_over,
            brokers.network.in_transit,
            [life.disk.operations for life in lives],
            [life.engine.waiting for life in lives],
            [log.next_offset for life in lives for log in life.logs.logs.values()],
        )
        if not self.moves or now != self.moves[max(self.moves)]:
            self.moves[step] = now

    async def _start(self, brokers: Brokers, node_id: int) -> None:
        brokers.start(node_id)
        await brokers.lives[node_id].catalogue.producer_ids.ensure()

    def _step(self, brokers: Brokers, client: Sequence, step: int) -> None:
        """One thing that happens."""
        kind, at = step % 4, step // 4 % len(NODES)
        life = brokers.lives[NODES[at]]
        if kind == 0:
            client.step(brokers, client._random)  # type: ignore[arg-type]
            brokers.send_again()
        elif kind == 1:
            life.engine.turn()
        elif kind == 2:
            life.engine.commit(1)
        else:
            brokers.clock.advance(milliseconds=5)

    async def _judge(self, brokers: Brokers, load: Load, client: Sequence) -> None:
        await brokers.drain(TIMEOUT_MS)
        ended = brokers.history()
        ended.check_complete()
        load.transactional = [client]
        load.check(ended)
        assert load.written[-1].told is True
        assert ended.values(TOPIC)[SECOND[1]], "the second transaction is there"
        load.check_offsets(brokers.lives[G], ended)
        for topic, partitions in PARTITIONS.items():
            for index in range(partitions):
                log = brokers.log(topic, index)
                assert log.last_stable_offset == log.high_watermark, f"{log} is not stable (C6)"


# Both generations, decisions and ways to end it, but not everything with everything.
TRANSACTIONS = {
    "tv1-plain-abort": (CLASSIC, False, False),
    "tv1-kept-commit": (CLASSIC, True, True),
    "tv2-plain-commit": (IMPLICIT, False, True),
    "tv2-kept-abort": (IMPLICIT, True, False),
}
VICTIMS = dict(zip(("coordinator", "data", "offsets"), NODES, strict=True))
LOSSES = {"killed": True, "power loss": False}


def sweeps() -> Iterator[object]:
    """Yield all sweeps; in `make test` each victim with each loss has one of the transactions."""
    kinds = (TRANSACTIONS, VICTIMS, LOSSES)
    for names in itertools.product(*kinds):
        number = sum(list(kind).index(name) for kind, name in zip(kinds, names, strict=True))
        yield case(*names, in_test=number % len(TRANSACTIONS) == 0)


@pytest.mark.parametrize(("transaction", "victim", "loss"), [*sweeps()])
async def test_a_crash_after_each_step_leaves_a_transaction_that_ends_whole(
    transaction, victim, loss
):
    versions, keeps, commit = TRANSACTIONS[transaction]
    store, ids = await made_topics()
    number = 1 if versions is CLASSIC else 0
    sweep = Sweep(store, ids, number, commit=commit, keeps=keeps)
    steps = await sweep.steps()
    print(f"{len(steps)} steps of {max(steps)}")
    assert len(steps) > STEPS_AT_LEAST
    for step in steps:
        await sweep.run(VICTIMS[victim], step, keep=LOSSES[loss])
    store.close()
