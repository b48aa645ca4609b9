"""The check of an object store at a start: one that breaks a promise is refused in a sentence."""

import pytest
from obstore.store import MemoryStore

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore


class Faulty(ObjectBlobStore):
    """A store in memory with one fault."""

    def __init__(self, fault):
        store = MemoryStore()
        super().__init__(lambda *_: store, "memory://")
        self.fault = fault

    def put(self, key, body):
        if self.fault == "refuses":
            raise BlobStoreError("403 Forbidden")
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


def test_store_that_keeps_its_promises_is_accepted_and_left_empty(tmp_path):
    Faulty("").check("1")
    blobs = ObjectBlobStore.open(Address(f"file://{tmp_path}/objects"))
    blobs.check("1")
    assert blobs.list("probe/", "", 9) == []
