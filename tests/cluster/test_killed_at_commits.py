"""A broker is killed at each commit of its store while a client runs two transactions.

The victim is the coordinator of the transactions, the leader of their data, or the coordinator of
the group whose offsets are part of them. It dies before the store has the commit, or before it
receives the response. Other brokers take over, and the transactions end whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.storage.replicated.log_index import Flush, FlushAnswer, Outcome
from barnabas.storage.runtime.threads import start_thread
from tests.broker.raw_producer import TIMEOUT_MS
from tests.cluster.stage import Stage, running_stage
from tests.products import case
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.routing import GROUP, Coordinated, Led
from tests.workload.scripted import Transformer, Writer
from tests.workload.wire_transactions import CLASSIC, IMPLICIT
from tests.worlds import world

__all__ = ["world"]

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

COORDINATOR, DATA, OFFSETS = range(3)
COMMITS_AT_LEAST = {COORDINATOR: 4, DATA: 2, OFFSETS: 2}
COMMIT = MemoryIndex.commit_flush


class Client(Transformer):
    """Client that can end its first transaction with two-phase commit (KIP-939)."""

    keeps = False

    def transform(self, reads, end) -> None:
        super().transform(reads, end)
        if self.keeps:
            request = InitProducerIdRequest(self.name, TIMEOUT_MS, -1, -1, True, True)
            answer = self._ask_coordinator(INIT_PRODUCER_ID, request, 6)
            self._use(answer.producer_id, answer.producer_epoch)


class Death:
    """Death of a broker at one of its commits."""

    def __init__(self, stage: Stage, victim: int, at: int, *, is_committed: bool) -> None:
        self._cluster = stage.cluster
        self._victim = victim
        self._session = stage.cluster.brokers[victim].server._home.session
        self._left = at
        self._is_committed = is_committed
        self.has_come = False

    def commit(self, index: MemoryIndex, session: int, flush: Flush) -> FlushAnswer:
        """Commit a flush of any broker, in place of the store."""
        if not self.comes(session) or self._is_committed:
            return COMMIT(index, session, flush)
        return FlushAnswer(Outcome.COMMITTED)  # The victim is cut off, and does not receive it.

    def comes(self, session: int) -> bool:
        """Count a call of a broker; cut the victim off and return True if it dies now."""
        if session != self._session or self.has_come:
            return False
        self._left -= 1
        self.has_come = not self._left
        if self.has_come:
            self._cluster.cut_from_store(self._victim)
        return self.has_come

    def complete(self) -> None:
        """Kill the victim, which is cut off, and start it again."""
        self._cluster.kill(self._victim)
        self._cluster.mend_to_store(self._victim)
        self._cluster.restart(self._victim)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with running_stage(**{"transaction.two.phase.commit.enable": "true"}) as made:
        yield made


# How the first transaction ends; the second one is committed without being prepared.
ENDS = ((CLASSIC, True, True), (IMPLICIT, False, False))
DEATHS = [
    case(*ends, victim, is_committed, in_test=is_committed == ((victim + turn) % 2 == 0))
    for turn, ends in enumerate(ENDS)
    for victim in (COORDINATOR, DATA, OFFSETS)
    for is_committed in (False, True)
]
"""In `make test` each victim dies before and after a commit, with one of the ends each."""


@pytest.mark.parametrize(("version", "keeps", "commits", "victim", "is_committed"), DEATHS)
def test_a_broker_that_dies_at_a_commit_leaves_no_transaction_in_part(
    stage, monkeypatch, version, keeps, commits, victim, is_committed
):
    topic = f"t-{version}-{keeps}-{victim}-{is_committed}"

    def run_over(client: Client, at: int) -> bool:
        client.keeps = keeps
        death = Death(stage, victim, at, is_committed=is_committed)
        with monkeypatch.context() as patched:
            replaced = functools.partialmethod(commit, death)
            patched.setattr(MemoryIndex, "commit_flush", replaced)
            run(client, death, commits=commits)
        return death.has_come

    run_over_each(stage, topic, victim, version, run_over)


def commit(index: MemoryIndex, death: Death, session: int, flush: Flush) -> FlushAnswer:
    return death.commit(index, session, flush)


def run_over_each(
    stage: Stage, topic: str, victim: int, version: int, run_over: Callable[[Client, int], bool]
) -> None:
    """Run a client over the first death of the victim, the second, and so on until none comes."""
    stage.cluster.create_topic(topic, 2)
    source, target = places = [Led(topic, 0), Led(topic, 1)]
    del stage.clients[:]
    writer = stage.add(Writer(f"writer-{topic}", stage.addresses, SEED, source))
    for at in count(1):
        client = stage.add(Client(f"{topic}-{at}", stage.addresses, SEED, version, source, target))
        spread(stage, client)
        writer.once()
        if not run_over(client, at):
            break
    assert at > COMMITS_AT_LEAST[victim]
    stage.judge(set(), places)


def spread(stage: Stage, client: Client) -> None:
    """Give each role to a broker of its own."""
    stage.cluster.wait_until_served()
    roles = (client.coordinator, client.target, Coordinated(GROUP, client.group))
    for number, place in enumerate(roles):
        if stage.leader(place) != number:
            stage.cluster.move(*stage.led(place), to=number)


def run(client: Client, death: Death, *, commits: bool) -> None:
    """Run two transactions, of which the second is committed, over the death of a broker."""

    failed: list[BaseException] = []

    def transact() -> None:
        try:
            for client.commits in (commits, True):
                client.once()
        except BaseException as error:  # noqa: BLE001  Raised again by the thread of the test.
            failed.append(error)

    thread = start_thread("client", transact)
    wait_until(lambda: death.has_come or not thread.is_alive())
    if death.has_come:
        death.complete()
    thread.join()
    if failed:
        raise failed[0]
