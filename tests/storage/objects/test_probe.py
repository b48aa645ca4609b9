"""The check of an object store at a start: one that breaks a promise is refused in a sentence."""

import pytest
from obstore.store import MemoryStore

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.blob_store import BlobRefused, BlobStoreError
from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
from barnabas.storage.runtime.clock import monotonic
from tests.worlds import world

__all__ = ["world"]


class Faulty(ObjectBlobStore):
    """A store in memory with one fault."""

    def __init__(self, fault):
        store = MemoryStore()
        super().__init__(lambda *_: store, "memory://")
        self.fault = fault

    def put(self, key, body):
        if self.fault == "refuses":
            raise BlobRefused("403 Forbidden")
        if self.fault == "fails at first" and key.endswith(("-1", "-2")):
            super().put(key, body)
            raise BlobStoreError("500 Internal Server Error")
        if self.fault == "fails":
            raise BlobStoreError("500 Internal Server Error")
        super().put(key, body[1:] if self.fault == "truncates" else body)

    def put_new(self, key, body):
        if self.fault == "overwrites":
            self.put(key, [body])
            return True
        return super().put_new(key, body)

    def get_range(self, key, position, length):
        if self.fault == "ignores ranges":
            return super().get_range(key, 0, 10**6)
        return super().get_range(key, position, length)

    def list(self, prefix, after, most):
        return [] if self.fault == "lists nothing" else super().list(prefix, after, most)

    def delete(self, keys):
        if self.fault != "keeps":
            super().delete(keys)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("refuses", "PUT failed: 403 Forbidden"),
        ("truncates", "an object is not read as written"),
        ("ignores ranges", "a range of an object is not read as written"),
        ("lists nothing", "a new object is not listed"),
        ("overwrites", "on the condition that no object exists has replaced one"),
        ("keeps", "a deleted object is still read"),
    ],
)
def test_store_that_breaks_a_promise_is_refused(fault, problem):
    with pytest.raises(StoreUnusable, match=problem) as refused:
        Faulty(fault).check("1")
    assert str(refused.value).startswith("the object store at memory:// cannot be used: ")


def test_store_that_fails_for_some_seconds_is_accepted_and_left_empty(world):
    blobs = Faulty("fails at first")
    blobs.check("1")
    assert blobs.list("probe/", "", 9) == []


def test_store_that_fails_for_longer_is_refused(world):
    began_s = monotonic()
    with pytest.raises(StoreUnusable, match="PUT failed: 500 Internal Server Error"):
        Faulty("fails").check("1")
    assert 4 < monotonic() - began_s < 10


def test_store_that_keeps_its_promises_is_accepted_and_left_empty(tmp_path):
    Faulty("").check("1")
    blobs = ObjectBlobStore.open(Address(f"file://{tmp_path}/objects"))
    blobs.check("1")
    assert blobs.list("probe/", "", 9) == []
