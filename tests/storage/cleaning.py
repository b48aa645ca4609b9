"""Compaction of a store in a test: a whole pass in the caller's thread."""

from barnabas.storage.compaction.cleanable import plan, survey
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.log.segment_swap import discard, take_over

SALT = b"salt"
MAP_BYTES = 1 << 20
COMPACTED = LogConfig(
    segment_bytes=1000,
    index_interval_bytes=200,
    cleanup_policy=frozenset((COMPACT,)),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
)


def clean_groups(log, now_ms, *, map_bytes=MAP_BYTES):
    """The groups of a pass over everything that may be cleaned; nothing is put in place."""
    cleanable = survey(log, now_ms)
    if cleanable is None or not cleanable.segments:
        return
    planned = plan(
        log,
        cleanable,
        now_ms=now_ms,
        map_bytes=map_bytes,
        salt=SALT,
    )
    yield from clean(log.directory.file_system, planned, lambda _size: None)


def compact(log, now_ms, *, map_bytes=MAP_BYTES):
    """Run a pass and take over what it gives; answers how many groups that were."""
    count = 0
    for group in clean_groups(log, now_ms, map_bytes=map_bytes):
        count += 1
        if not take_over(log, group):
            discard(log.directory, group)
            break
    return count
