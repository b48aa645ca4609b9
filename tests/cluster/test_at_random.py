"""Three brokers with random faults, while clients write, commit and read.

All of it runs in a world: a failure repeats with its seed, and ten minutes take one.
"""

from __future__ import annotations

import pytest

from barnabas.broker.testing.store import base, log_upkeep
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.replicated.log_index import Flush, FlushAnswer, Outcome
from tests.cluster.nemesis import HURRIED, STEADY
from tests.cluster.objects import keep_up_all_the_time
from tests.cluster.torture import torture
from tests.products import case
from tests.seeds import SEED
from tests.storage.scripted_blobs import FaultyBlobs, LedgerUploads
from tests.storage.scripted_objects import clusters_with_objects

UPLOADED = {"barnabas.flush.object.min.bytes": "1"}
"""Settings with which each flush that has records is uploaded."""

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


# The seeds of the night are few beside those of `make torture-simulated`, which also runs then.
@pytest.mark.parametrize("number", [case(each, in_test=each < 2) for each in range(5)])
def test_clients_lose_nothing(number: int) -> None:
    torture(SEED + number, 2.5, HURRIED)


@pytest.mark.slow
def test_clients_lose_nothing_over_leases_that_run_out() -> None:
    torture(SEED, 60, STEADY)


@pytest.mark.slow
@pytest.mark.parametrize("number", [case(each, in_test=each < 1) for each in range(4)])
def test_clients_lose_nothing_while_all_flushes_are_uploaded(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails at random, and unused objects are deleted all the time, but no others."""
    monkeypatch.setattr(log_upkeep, "MemoryUploads", LedgerUploads)
    monkeypatch.setattr(base, "MemoryBlobStore", FaultyBlobs)
    keep_up_all_the_time(monkeypatch)
    deleted = LedgerUploads.deleted
    torture(SEED + number, 10, HURRIED, UPLOADED)
    assert LedgerUploads.deleted > deleted, "failed and late attempts leave objects"


@pytest.mark.slow
@pytest.mark.parametrize("number", [case(each, in_test=each < 1) for each in range(4)])
def test_clients_lose_nothing_while_all_flushes_are_in_an_object_store(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call fails before or after its effect, comes late or as a ghost; listings lag.

    Objects are deleted as soon as nothing lies in them, and never before.
    """
    keep_up_all_the_time(monkeypatch)
    with clusters_with_objects(SEED + number, failures=0.05) as stores:
        torture(SEED + number, 10, HURRIED, UPLOADED | {"barnabas.objects.delete.delay.ms": "0"})
    assert sum(each.deleted for each in stores), "failed and late attempts leave objects"
    assert sum(len(each.bodies) for each in stores), "large flushes are objects"


@pytest.mark.slow
def test_one_seed_writes_one_log() -> None:
    first, again = torture(SEED, 1, HURRIED), torture(SEED, 1, HURRIED)
    assert first == again
    assert torture(SEED + 1, 1, HURRIED).digest != first.digest


def test_fenced_flush_reported_as_committed_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other half of the proof: what is wrong is seen."""
    genuine = MemoryIndex.commit_flush

    def commit_flush(store: MemoryIndex, session: int, flush: Flush) -> FlushAnswer:
        answer = genuine(store, session, flush)
        if answer.outcome is Outcome.FENCED:
            return FlushAnswer(Outcome.COMMITTED)
        return answer

    monkeypatch.setattr(MemoryIndex, "commit_flush", commit_flush)
    with pytest.raises(AssertionError):
        torture(SEED, 25, HURRIED)
