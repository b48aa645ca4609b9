"""A broker is killed at each upload of a flush while a client runs two transactions.

Each flush that has records is uploaded. The victim dies before the object is durable, or before it
learns that it is: the object is never named then. Otherwise as ``test_killed_at_commits``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.objects.blob_store import UploadKey
from tests.cluster.stage import Stage, running_stage
from tests.cluster.test_killed_at_commits import (
    COORDINATOR,
    DATA,
    OFFSETS,
    Client,
    Death,
    run,
    run_over_each,
)
from tests.products import case
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
        if not self.comes(parts.session) or self._is_committed:
            PUT(uploads, key, body)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with running_stage(**{"barnabas.flush.object.min.bytes": "1"}) as made:
        yield made


DEATHS = [
    case(victim, is_durable, in_test=is_durable == (victim == DATA))
    for victim in (COORDINATOR, DATA, OFFSETS)
    for is_durable in (False, True)
]
"""In `make test` each victim dies at one side of an upload."""


@pytest.mark.parametrize(("victim", "is_durable"), DEATHS)
def test_a_broker_that_dies_at_an_upload_leaves_no_transaction_in_part(
    stage, monkeypatch, victim, is_durable
):
    def run_over(client: Client, at: int) -> bool:
        death = DeathAtUpload(stage, victim, at, is_committed=is_durable)
        with monkeypatch.context() as patched:
            patched.setattr(MemoryUploads, "put", functools.partialmethod(put, death))
            run(client, death, commits=False)
        return death.has_come

    run_over_each(stage, f"t-{victim}-{is_durable}", victim, IMPLICIT, run_over)


def put(uploads: MemoryUploads, death: DeathAtUpload, key: str, body: bytes) -> None:
    death.put(uploads, key, body)
