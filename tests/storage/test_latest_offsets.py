"""The latest offsets of keys that a compaction pass keeps."""

from barnabas.storage.compaction.cleaner import ENTRY_BYTES, LatestOffsets

KEYS = 20_000
LARGEST_TABLE = 200
"""Far from where the growth of a table could be felt: a fair share is KEYS / 256."""


def key_of(number):
    """Short keys and long ones, of which only a digest is kept."""
    return b"%d" % number if number % 2 else b"%030d" % number


def remembered():
    latest = LatestOffsets(KEYS * ENTRY_BYTES, b"salt")
    for offset in range(KEYS):
        assert not latest.is_full
        latest.put(key_of(offset), offset)
    return latest


def test_every_key_has_its_latest_offset():
    latest = remembered()
    latest.put(key_of(7), KEYS)
    assert len(latest) == KEYS
    for number in range(KEYS):
        assert not latest.is_overtaken(key_of(number), KEYS)
        assert latest.is_overtaken(key_of(number), number) == (number == 7)
    assert not latest.is_overtaken(b"unknown", 0)
    assert latest.is_full


def test_keys_are_spread_over_small_tables():
    latest = remembered()
    assert max(map(len, latest._tables)) < LARGEST_TABLE
    latest.forget()
    assert len(latest) == 0
