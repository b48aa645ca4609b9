"""Reads of the object store on threads: what one failing object may not delay."""

import pytest

from barnabas.storage.errors import ObjectDamaged
from barnabas.storage.objects.blob_store import BlobRefused, BlobStoreError
from barnabas.storage.replicated.log_index import Extent, Item, ObjectPlace
from barnabas.storage.replicated.object_reading import READS_AT_ONCE, ObjectReader
from barnabas.storage.replicated.wal_object import wal_object
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import new_event, start_thread
from tests.storage.stores import batch
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]


class Blobs:
    """Objects of which some fail until they are mended."""

    def __init__(self, bodies):
        self.bodies = bodies
        self.failing = set()
        self.read = []

    def get_range(self, key, position, length):
        self.read.append(key)
        if key in self.failing:
            raise BlobRefused("403 Forbidden: the object is archived")
        return self.bodies[key][position : position + length]

    def close(self):
        pass


def an_extent(key):
    data = bytes(batch())
    made = wal_object([Item(1, 0, 0, 1, 0, len(data))], [data])
    item = made.items[0]
    place = ObjectPlace(key, item.position, item.length, made.size)
    return Extent(0, 1, 0, b"", place), b"".join(made.body)


def test_read_behind_an_object_that_fails_gets_a_thread_of_its_own(world):
    blobs = Blobs({key: key.encode() for key in "abc"})
    blobs.failing.add("a")
    reader = ObjectReader(lambda: blobs)
    first, second, third = (ObjectPlace(key, 0, 1, None) for key in "abc")
    reader.read([third])
    wait_until(lambda: reader._idle_threads)
    found = {}
    with reader._changed:  # Both come before the idle thread has taken one.
        for place in (first, second):
            start_thread(place.key, lambda place=place: found.update(reader.read([place])))
        sleep(0.01)
    wait_until(lambda: second in found)
    assert first not in found
    blobs.failing.clear()
    wait_until(lambda: first in found)
    reader.close()


def test_objects_that_fail_for_a_takeover_leave_threads_to_others(world, caplog):
    archived = [f"archived-{number}" for number in range(2 * READS_AT_ONCE)]
    blobs = Blobs({key: key.encode() for key in ("a", *archived)})
    blobs.failing.update(archived)
    reader = ObjectReader(lambda: blobs)
    found = {}
    for key in archived:
        place = ObjectPlace(key, 0, 1, None)
        start_thread(key, lambda place=place: found.update(reader.read([place])))
    wait_until(lambda: {*blobs.read} == {*archived})
    sound = ObjectPlace("a", 0, 1, None)
    assert reader.read([sound]) == {sound: b"a"}
    assert not found
    lines = [each.getMessage() for each in caplog.records]
    words = (
        "takeover waits for an object key=archived-3 error=403 Forbidden: the object is archived"
    )
    assert lines.count(words) == 1
    blobs.failing.clear()
    wait_until(lambda: len(found) == len(archived))
    reader.close()


def test_read_with_a_limit_is_not_repeated(world):
    blobs = Blobs({"a": b"a"})
    blobs.failing.add("a")
    reader = ObjectReader(lambda: blobs)
    place = ObjectPlace("a", 0, 1, None)
    with pytest.raises(BlobRefused):
        reader.read([place], within_s=60)
    assert blobs.read == ["a"]
    held = new_event()
    blobs.get_range = lambda *_: held.wait(60)
    with pytest.raises(BlobStoreError, match="object a: no response within"):
        reader.read([place], within_s=0.1)
    held.set()
    reader.close()


def test_footer_that_two_threads_read_at_once_counts_once(world):
    extent, body = an_extent("a")
    blobs = Blobs({"a": body})
    blobs.failing.add("a")
    reader = ObjectReader(lambda: blobs)
    found = []
    for name in ("one", "another"):
        start_thread(name, lambda: found.append(reader.headers([extent])))
    wait_until(lambda: len(blobs.read) > 1)
    blobs.failing.clear()
    wait_until(lambda: len(found) == 2)
    assert reader._footer_bytes == extent.place.size.size_bytes - extent.place.size.footer_at
    reader.close()


def test_body_that_is_read_without_its_footer_can_be_damaged(world):
    extent, body = an_extent("a")
    at = extent.place.position + 16
    reader = ObjectReader(lambda: Blobs({"a": body[:at] + b"?" + body[at + 1 :]}))
    with pytest.raises(ObjectDamaged, match="object a: magic"):
        reader._headers_at(extent.place)
    reader.close()
