"""The comparison of the objects that a cluster names with those that its object store has."""

from types import SimpleNamespace

from barnabas.broker.cli.directory.cluster_objects import Compared, _compare
from barnabas.storage.objects.blob_store import SegmentKey
from barnabas.storage.objects.object_blob_store import ObjectEntry
from barnabas.storage.objects.object_rows import NamedExtent, NamedObject

SEGMENT = SegmentKey(7, 0, 3, 1)
WAL = "wal/3/0-0000000000000000-1"
ROWS = SimpleNamespace(
    named_objects=lambda after, _most: [
        each
        for each in (NamedObject(1, WAL, 10), NamedObject(2, SEGMENT.text, 20))
        if each.row > after
    ],
    extents_in=lambda key: [NamedExtent(7, 0, 5)] if key == SEGMENT.text else [],
)


def compared(*entries):
    found = Compared("c")
    store = SimpleNamespace(sizes=lambda _prefix: [ObjectEntry(*each, 0.0) for each in entries])
    _compare(found, ROWS, store, {7: ("orders", 0)})
    return found


def test_sidecar_of_a_segment_belongs_to_the_cluster():
    found = compared((WAL, 10), (SEGMENT.text, 20), (SEGMENT.sidecar, 4), ("probe/1", 9))
    assert (found.objects, found.size_bytes) == (2, 30)
    assert (found.unnamed_objects, found.unnamed_bytes) == (1, 9)
    assert found.problems == []


def test_missing_sidecar_is_reported_with_the_offsets_of_its_segment():
    found = compared((WAL, 10), (SEGMENT.text, 20))
    (problem,) = found.problems
    assert problem.describe() == f"object {SEGMENT.sidecar} is missing: orders-0 offsets 0 to 4"
