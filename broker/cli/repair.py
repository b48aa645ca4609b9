"""``barnabas check --repair``: cut out of the logs what is damaged, after saying what that is.

It goes through a whole start of the storage, without any socket, and an orderly stop: the cut hangs
on a checkpoint like a pass of compaction.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import NamedTuple

from broker.catalogue import Catalogue, new_cluster_id
from broker.cli.errors import CommandError
from broker.cli.output import count_text
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.engine import LoopEngine
from broker.identity import read_properties
from storage.damage import DamagedRange
from storage.io import LocalFileSystem
from storage.log_store import LogStore, StoreCallbacks, StoreSettings
from storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from storage.recovery import lock_directory, open_store
from storage.repair import cut_out, find_damage


class Cut(NamedTuple):
    """A damaged range of a partition."""

    topic: str
    partition: int
    damaged: DamagedRange
    is_sealed: bool
    """What is still written to cannot be cut: a crash meanwhile would leave no way to start."""

    @property
    def text(self) -> str:
        """What would go, in one line."""
        each = self.damaged
        offsets = each.end_offset - each.base_offset
        return (
            f"{self.topic}-{self.partition}: offsets {each.base_offset} to {each.end_offset - 1}, "
            f"at most {count_text(offsets, 'record')}, "
            f"{count_text(each.end_position - each.position, 'byte')} of {each.segment:020d}.log "
            f"from byte {each.position} on: {each.reason}"
        )


def check_all_sealed(cuts: Sequence[Cut]) -> None:
    """Raise CommandError if some of it lies where it cannot be cut."""
    for cut in cuts:
        if not cut.is_sealed:
            raise CommandError(
                f"damage in a segment that is still written to cannot be cut out, nothing was "
                f"changed: {cut.text}"
            )


def confirm(cuts: Sequence[Cut], *, yes: bool) -> None:
    """Have somebody agree to the loss; raises CommandError."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError("nothing is changed without --yes")
    print(f"Cut {count_text(len(cuts), 'range')} out for good? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("nothing was changed")


def repair(directory: str, config: BrokerConfig, cuts: Sequence[Cut]) -> list[str]:
    """Cut exactly that out; return where the bytes are kept. Raises what a start would."""
    return asyncio.run(_repair(directory, config, cuts))


async def _repair(directory: str, config: BrokerConfig, cuts: Sequence[Cut]) -> list[str]:
    files = LocalFileSystem()
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    engine = LoopEngine(loop, lambda: None)
    store = LogStore(
        files,
        directory,
        engine=engine,
        now_ms=SystemClock().now_ms,
        settings=StoreSettings(
            journal_file_bytes=config.journal_file_bytes,
            journal_max_bytes=config.journal_max_bytes,
            checkpoint_journal_bytes=config.checkpoint_journal_bytes,
        ),
        callbacks=StoreCallbacks(on_fatal=failed.set_exception),
    )
    lock_directory(store)
    try:
        metastore = _open_metastore(files, directory, config)
        try:
            return await _cut(store, metastore, config, cuts, failed)
        finally:
            metastore.close()
    finally:
        store.abandon()
        engine.close()


def _open_metastore(
    files: LocalFileSystem, directory: str, config: BrokerConfig
) -> SqliteMetaStore:
    properties = read_properties(files, directory)
    return SqliteMetaStore.open(
        files.join(directory, FILE_NAME),
        node_id=properties.node_id if properties is not None else config.node_id,
        new_cluster_id=properties.cluster_id if properties is not None else new_cluster_id(),
    )


async def _cut(
    store: LogStore,
    metastore: SqliteMetaStore,
    config: BrokerConfig,
    cuts: Sequence[Cut],
    failed: asyncio.Future[None],
) -> list[str]:
    catalogue = Catalogue(metastore, store, config)
    open_store(
        store,
        catalogue.load(),
        leader_epoch=metastore.begin_boot(),
        removable=catalogue.deleted_directories,
        deleted_ids=catalogue.deleted_partition_ids,
    )
    metastore.raise_boot_epoch(store.leader_epoch)
    await _checkpoint(store, failed)
    kept: list[str] = []
    for log in list(store.logs.values()):
        agreed = [each.damaged for each in cuts if each[:2] == (log.topic, log.partition)]
        if not agreed:
            continue
        if list(find_damage(log, lambda _size: None)) != agreed:
            raise CommandError(f"{log.topic}-{log.partition}: the damage is not what it was")
        kept += cut_out(log, agreed)
    # The first checkpoint puts the new segments in place, the last says that the stop was orderly.
    await _checkpoint(store, failed)
    await _checkpoint(store, failed, clean=True)
    store.close()
    return kept


async def _checkpoint(
    store: LogStore, failed: asyncio.Future[None], *, clean: bool = False
) -> None:
    done = asyncio.get_running_loop().create_future()
    store.checkpoint(lambda: done.set_result(None), clean=clean)
    await asyncio.wait({done, failed}, return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        failed.result()
