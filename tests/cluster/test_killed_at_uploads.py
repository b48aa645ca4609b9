"""A broker is killed at each upload of a flush while a client runs two transactions.

Each flush that has records is uploaded. The victim dies before the object is durable, or before it
learns that it is: the object is never named then. Otherwise as ``test_killed_at_commits``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import count

import pytest

from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.replicated.blob_store import UploadKey
from tests.cluster.stage import Stage, running_stage
from tests.cluster.test_killed_at_commits import COMMITS_AT_LEAST, Client, Death, run, spread
from tests.seeds import SEED
from tests.workload.routing import Led
from tests.workload.scripted import Writer
from tests.workload.wire_transactions import IMPLICIT
from tests.worlds import world

__all__ = ["world"]

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

PUT = MemoryUploads.put


class DeathAtUpload(Death):
    """Death of a broker at one of its uploads."""

    def put(self, uploads: MemoryUploads, key: str, body: bytes) -> None:
        """Store an object of any broker, in place of the store."""
        parts = UploadKey.parse(key)
        assert parts is not None
        is_victim = parts.session == self._session and not self.has_come
        self._left -= is_victim
        if not is_victim or self._left:
            PUT(uploads, key, body)
            return
        self.has_come = True
        self._cluster.cut_from_store(self._victim)
        if self._is_committed:
            PUT(uploads, key, body)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with running_stage(**{"barnabas.flush.object.min.bytes": "1"}) as made:
        yield made


@pytest.mark.parametrize("is_durable", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("victim", range(3), ids=["coordinator", "data", "offsets"])
def test_a_broker_that_dies_at_an_upload_leaves_no_transaction_in_part(
    stage, monkeypatch, victim, is_durable
):
    topic = f"t-{victim}-{is_durable}"
    stage.cluster.create_topic(topic, 2)
    source, target = places = [Led(topic, 0), Led(topic, 1)]
    del stage.clients[:]
    writer = stage.add(Writer(f"writer-{topic}", stage.addresses, SEED, source))
    for at in count(1):
        client = stage.add(Client(f"{topic}-{at}", stage.addresses, SEED, IMPLICIT, source, target))
        spread(stage, client)
        writer.once()
        death = DeathAtUpload(stage, victim, at, is_committed=is_durable)
        with monkeypatch.context() as patched:
            patched.setattr(MemoryUploads, "put", functools.partialmethod(put, death))
            run(client, death, commits=False)
        if not death.has_come:
            break
    assert at > COMMITS_AT_LEAST[victim]
    stage.judge(set(), places)


def put(uploads: MemoryUploads, death: DeathAtUpload, key: str, body: bytes) -> None:
    death.put(uploads, key, body)
