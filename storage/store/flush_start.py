"""Start of a cluster's broker: its directory is a cache, and its logs come from a log index.

Rules of this file:

1. A cache is worthless once its process has ended. Durable records are in the index, so no file of
   the cache is synced, or read by a later process: each start removes them.
2. Only a directory with the file ``barnabas-cache`` is emptied, and only an empty directory gets
   that file. Any other directory may have the only copy of a single broker's records.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.storage.errors import NotACache
from barnabas.storage.files.directory_names import DELETED_SUFFIX, LOADING_SUFFIX, is_hidden
from barnabas.storage.files.file_system import FileSystem, temporary_name
from barnabas.storage.log.log_directory import is_partition_directory, is_removable, remove_tree
from barnabas.storage.replicated.block_cache import BLOCKS_NAME
from barnabas.storage.replicated.flush_committer import PATIENCE_SECONDS, FlushCommitter
from barnabas.storage.replicated.flush_uploads import Uploads
from barnabas.storage.replicated.log_index import LogIndex
from barnabas.storage.replicated.log_reading import read_log
from barnabas.storage.store.log_store import LOCK_NAME, LogStore
from barnabas.storage.store.store_parts import PartitionSpec

CACHE_MARK: Final = "barnabas-cache"
_MARK_TEXT: Final = (
    b"Partitions in this directory are copies. Every start of the broker removes them.\n"
)


def open_cache(
    store: LogStore,
    index: LogIndex,
    session: int,
    specs: Iterable[PartitionSpec] = (),
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    uploads: Uploads | None = None,
) -> FlushCommitter:
    """Empty the store's directory, start to commit to ``index``, and load the led partitions.

    Call ``lock_directory`` first. ``specs`` are partitions that ``session`` leads, each in its
    ``leader_epoch``; ``LogStore.load`` loads others later. ``patience_seconds`` limits how long
    the end of the store waits for an unavailable index. ``uploads`` as in ``FlushCommitter``. This
    call blocks while the index is unavailable. Returns the committer, which must learn of the
    session's end and of the next session. Raises NotACache, and IndexClosed if the index is closed
    meanwhile.
    """
    wipe(store.file_system, store.root)
    committer = FlushCommitter(
        index,
        store,
        store.flush_times,
        store.flush_batches,
        patience_seconds=patience_seconds,
        uploads=uploads,
    )
    committer.begin_session(session)
    store.start_on(committer)
    for spec in specs:
        assert spec.leader_epoch is not None, f"{spec} has no leader epoch"
        store.load(spec, read_log(index, spec.partition_id))
    return committer


def wipe(file_system: FileSystem, root: str) -> None:
    """Remove the contents of a cache; make one of an empty directory. Raises NotACache.

    The directory may be the root of a file system: ``lost+found`` and hidden directories such as
    ``.snapshot`` are left alone.
    """
    mark = file_system.join(root, CACHE_MARK)
    names = file_system.list_directory(root)
    if CACHE_MARK not in names:
        harmless = {LOCK_NAME, temporary_name(CACHE_MARK)}
        for name in names:
            if name not in harmless and not _is_of_file_system(file_system, root, name):
                raise NotACache(root, name)
        file_system.write_file_atomically(mark, _MARK_TEXT)
        return
    for name in names:
        path = file_system.join(root, name)
        if name == BLOCKS_NAME:
            file_system.unlink(path)
        if file_system.is_directory(path) and (
            is_removable(file_system, root, name, DELETED_SUFFIX, LOADING_SUFFIX)
            or is_partition_directory(file_system, root, name)
        ):
            remove_tree(file_system, path)


def _is_of_file_system(file_system: FileSystem, root: str, name: str) -> bool:
    """Whether a directory is one that file systems and their tools make in the root."""
    return (
        name == "lost+found"
        or (is_hidden(name) and not is_partition_directory(file_system, root, name))
    ) and file_system.is_directory(file_system.join(root, name))
