"""Three brokers to which everything happens at random, while clients write, commit and read.

What the clients were told, and what is there in the end, has to be one history: every acknowledged
record once and in order, transactions whole or not at all, offsets that never go back, nothing that
stays open.
"""

from __future__ import annotations

import pytest

from barnabas.storage.log_index import Flush, FlushAnswer, Outcome
from barnabas.storage.memory_index import MemoryIndex
from barnabas.testing import Cluster
from tests.cluster.nemesis import Nemesis
from tests.cluster.workload import PLACES, TOPICS, Workload
from tests.seeds import SEED

# Requests that a broker has just begun with when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

HARM_S = 2.5
INTERNAL = [
    (topic, index) for topic in ("__consumer_offsets", "__transaction_state") for index in range(3)
]


COMMIT_MS = 6


@pytest.mark.parametrize("number", range(3))
def test_clients_lose_nothing(number):
    live(SEED + number, HARM_S)


def test_what_is_said_to_be_durable_and_is_not_is_found(monkeypatch):
    """The other half of the proof: what is wrong is seen."""
    genuine = MemoryIndex.commit_flush

    def commit_flush(index: MemoryIndex, session: int, flush: Flush) -> FlushAnswer:
        answer = genuine(index, session, flush)
        if answer.outcome is Outcome.FENCED:
            return FlushAnswer(Outcome.COMMITTED)
        return answer

    monkeypatch.setattr(MemoryIndex, "commit_flush", commit_flush)
    with pytest.raises(AssertionError):
        live(SEED, 10 * HARM_S)


def live(seed: int, harm_s: float) -> None:
    """Have clients at work while a cluster is harmed, and judge what has come of it."""
    with Cluster(brokers=3, commit_ms=COMMIT_MS, seed=seed) as cluster:
        for topic, partitions in TOPICS.items():
            cluster.create_topic(topic, partitions)
        addresses = [broker.address for broker in cluster.brokers]
        with Workload(addresses, seed) as workload:
            workload.goes_on()
            nemesis = Nemesis(cluster, seed, [*PLACES, *INTERNAL])
            nemesis.run(harm_s, workload.raise_errors)
            print(f"seed={seed} {dict(nemesis.done)}")
            cluster.wait_until_served()
            workload.goes_on()
            workload.end()
            workload.judge()
