"""A store of objects in memory, each of whose calls a test lets happen, fail, or come too late.

``Ledger`` remembers which keys flushes have named, and fails on a call that breaks F6, F7 or F9.
"""

from random import Random

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.uploads import MemoryUploads
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.replicated.log_index import Outcome
from barnabas.storage.runtime.clock import sleep
from tests.seeds import SEED

FAILS_BEFORE, COMES_LATE, FAILS_AFTER = 0.05, 0.07, 0.95
LATE_S = 1.5
"""Longer than an attempt without a hedge."""


class LedgerUploads(MemoryUploads):
    """Objects that fail on a key with other bytes, and on a delete of a key that was named."""

    deleted = 0
    """Number of objects that were deleted, of all ledgers."""

    def __init__(self):
        super().__init__()
        self.bodies = {}
        """Bytes of all keys that were ever put."""
        self.objects = None
        """The object store that has them instead, or None."""
        self.named = set()

    def put(self, key, body):
        assert self.bodies.setdefault(key, body) == body, f"{key} is used twice"
        super().put(key, body)

    def body(self, flush):
        found = super().body(flush)
        self.named.add(flush.key)
        return found

    def delete(self, keys):
        live = {*keys} & self.named
        assert not live, f"{live} are named"
        LedgerUploads.deleted += len({*keys} & {*self})
        super().delete(keys)


class Ledger(MemoryIndex):
    """An index in memory that fails on a flush that breaks F6 or F7."""

    def __init__(self):
        super().__init__()
        self.called = {}
        """Keys that a flush was called with, and not refused, by (session, lane, number)."""
        self.uploads = LedgerUploads()

    def commit_flush(self, session, flush):
        place = session, flush.lane, flush.number
        objects = self.uploads.objects
        known = self.uploads.bodies if objects is None else objects.bodies
        is_durable = flush.key is None or flush.key in known
        assert self.called.setdefault(place, flush.key) == flush.key, f"another key of {place}"
        answer = super().commit_flush(session, flush)
        if answer.outcome is Outcome.COMMITTED:
            assert is_durable, f"{flush.key} is named before it is durable"
        else:
            # The object of a session that has ended may be deleted already.
            self.called.pop(place)
        return answer


class FailingBlobs:
    """A ``BlobStore`` on an index that calls ``on_put`` first, which may raise or block."""

    repeats_calls = False

    def __init__(self, index, on_put):
        self.index = index
        self.on_put = on_put

    def put(self, key, body):
        self.on_put(key)
        self.index.uploads.put(key, b"".join(body))

    def close(self):
        pass


class FaultyBlobs(MemoryBlobStore):
    """A connection whose puts fail before or after their effect, or come late, at random."""

    repeats_calls = False
    random = Random(SEED)

    def put(self, key, body):
        fate = self.random.random()
        if fate < FAILS_BEFORE:
            raise BlobStoreError("503 Slow Down")
        if fate < COMES_LATE:
            sleep(LATE_S)
        super().put(key, body)
        if fate > FAILS_AFTER:
            raise BlobStoreError("connection reset")
