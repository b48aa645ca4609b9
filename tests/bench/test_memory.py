"""Memory that is touched before a measurement."""

import resource

from tests.bench.memory import free_bytes, touch


def test_memory_is_touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    touch(64 << 20)
    # Also with pages of 2 MB there is a fault for each.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before >= 32


def test_free_memory_is_positive_and_plausible():
    assert 0 < free_bytes() < 1 << 44
