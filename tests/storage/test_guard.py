"""The guard of an object store detects an index that was restored to an earlier moment."""

from random import Random

import pytest

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.objects.guard import (
    GUARD_KEY,
    accept_loss,
    check_guard,
    lost_since,
    read_guard,
    write_guard,
)
from barnabas.storage.objects.object_rows import Moment, NamedObject
from tests.storage.scripted_objects import ScriptedBlobs, ScriptedObjects
from tests.worlds import world

__all__ = ["world"]

NOW = Moment(7, 40, {"7/0": 5})


class Rows:
    """The rows of an index at a moment."""

    def __init__(self, moment, *keys):
        self.now = moment
        self.keys = keys
        self.raised_to = 0

    def moment(self):
        return self.now

    def raise_sessions(self, session):
        self.raised_to = session

    def named_objects(self, after_row, most):
        assert (after_row, most) == (0, 1)
        return [NamedObject(1, key, 9) for key in self.keys[:1]]


@pytest.fixture
def blobs():
    return ScriptedBlobs(ScriptedObjects(), Random(0), failures=0)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (NOW, ""),
        (Moment(9, 41, {"7/0": 6, "9/0": 1}), ""),
        (Moment(9, 41, {}), ""),  # The session was forgotten.
        (NOW._replace(session=6), "session 7"),
        (NOW._replace(version=39), "version 40"),
        (NOW._replace(flushes={"7/0": 4}), "flush 4"),
    ],
)
def test_index_behind_the_guard_is_detected(now, words):
    found = lost_since(NOW, now)
    assert (words in found) if words else (found == "")


def test_start_without_a_guard_and_at_its_moment_is_allowed(blobs):
    rows = Rows(NOW)
    check_guard(rows, blobs)
    write_guard(rows, blobs)
    assert read_guard(blobs) == NOW
    check_guard(rows, blobs)


def test_restored_index_is_refused_until_the_loss_is_accepted(blobs):
    write_guard(Rows(NOW), blobs)
    restored = Rows(Moment(3, 20, {"3/0": 9}))
    with pytest.raises(StoreUnusable, match=r"earlier moment .* \(session 7"):
        check_guard(restored, blobs)
    accept_loss(restored, blobs)
    assert restored.raised_to == NOW.session
    check_guard(restored, blobs)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>Not found</html>",
        b"\xff\xfe",
        b"[1, 2, 3]",
        b"null",
        b'{"session": 7}',
        b'{"session": 7, "version": 40, "flushes": []}',
        b'{"session": "7", "version": 40, "flushes": {}}',
        b'{"session": 7, "version": 40, "flushes": {"7/0": null}}',
        b"[" * 100_000,
    ],
)
def test_guard_that_is_none_is_named_in_one_line(blobs, data):
    blobs.put(GUARD_KEY, [data])
    for check in (check_guard, accept_loss):
        with pytest.raises(StoreUnusable, match=f"object {GUARD_KEY} .* is no guard") as refused:
            check(Rows(NOW), blobs)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 400


def test_guard_that_cannot_be_read_is_read_again_for_some_seconds(world, blobs, monkeypatch):
    write_guard(Rows(NOW), blobs)
    failures = [BlobStoreError("503 Slow Down")] * 3
    read = ScriptedBlobs.get_range

    def get_range(self, *arguments):
        if failures:
            raise failures.pop()
        return read(self, *arguments)

    monkeypatch.setattr(ScriptedBlobs, "get_range", get_range)
    check_guard(Rows(NOW), blobs)
    failures += [BlobStoreError("503 Slow Down")] * 99
    with pytest.raises(StoreUnusable, match="cannot be read: 503 Slow Down"):
        check_guard(Rows(NOW), blobs)


def test_store_of_another_address_is_refused_until_the_loss_is_accepted(blobs):
    rows = Rows(NOW, "wal/7/0-0-1")
    with pytest.raises(StoreUnusable, match=r"neither a guard nor object wal/7/0-0-1,"):
        check_guard(rows, blobs)
    accept_loss(rows, blobs)
    check_guard(rows, blobs)


def test_new_store_that_has_the_named_objects_needs_no_guard_yet(blobs):
    blobs.put("wal/7/0-0-1", [b"records"])
    check_guard(Rows(NOW, "wal/7/0-0-1"), blobs)


def test_object_that_is_not_known_to_be_missing_is_not_refused(blobs, monkeypatch):
    read = ScriptedBlobs.get_range

    def get_range(self, key, *place):
        if key != GUARD_KEY:
            raise BlobStoreError("503 Slow Down")
        return read(self, key, *place)

    monkeypatch.setattr(ScriptedBlobs, "get_range", get_range)
    check_guard(Rows(NOW, "wal/7/0-0-1"), blobs)
