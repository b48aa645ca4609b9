"""``barnabas check --repair``: cut out of the logs what is damaged, after saying what that is.

It goes through a whole start of the storage, without any socket, and an orderly stop. What a start
would refuse is salvaged first: with the checkpoint after that a broker starts, and what is damaged
is offline. The cut hangs on another checkpoint, like a pass of compaction.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.output import count_text
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cluster.view import OneBroker
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.metadata.catalogue import Catalogue, new_cluster_id
from barnabas.broker.metadata.identity import read_properties
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.runtime.engine import LoopEngine
from barnabas.broker.runtime.simulated import run_coroutine
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.journal.journal_files import JournalLoss
from barnabas.storage.log.damage import DamagedRange
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from barnabas.storage.repair.repair import cut_out, find_damage
from barnabas.storage.repair.salvage import Salvage
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import StoreCallbacks, StoreSettings


class Cut(NamedTuple):
    """A damaged range of a partition."""

    topic: str
    partition: int
    damaged: DamagedRange

    @property
    def text(self) -> str:
        """Description of the loss, in one line."""
        each = self.damaged
        offsets = each.end_offset - each.base_offset
        where = f"offsets {each.base_offset} to {each.end_offset - 1}" if offsets else "no offsets"
        return (
            f"{self.topic}-{self.partition}: {where}, "
            f"at most {count_text(offsets, 'record')}, "
            f"{count_text(each.end_position - each.position, 'byte')} of {each.segment:020d}.log "
            f"from byte {each.position} on: {each.reason}"
        )


class Lost(NamedTuple):
    """Offsets of a partition that were in a lost end of the journal, and in nothing else."""

    topic: str
    partition: int
    base_offset: int
    end_offset: int

    @property
    def text(self) -> str:
        """Description of the loss, in one line."""
        offsets = self.end_offset - self.base_offset
        return (
            f"{self.topic}-{self.partition}: offsets {self.base_offset} to {self.end_offset - 1}, "
            f"at most {count_text(offsets, 'record')}"
        )


class Repair(NamedTuple):
    """Losses that a repair needs consent for."""

    damaged_tables: Sequence[str]
    """Damaged tables of the metadata."""
    cuts: Sequence[Cut]
    journal_loss: JournalLoss | None
    lost: Sequence[Lost]

    def lines(self) -> Iterator[str]:
        """Yield the description, line by line."""
        if self.damaged_tables:
            tables = ", ".join(self.damaged_tables)
            yield f"--repair would take the metadata as they are now, with what is in {tables}"
        for cut in self.cuts:
            yield f"--repair would cut out {cut.text}"
        if self.journal_loss is not None:
            yield f"--repair would let the journal end {_end_of(self.journal_loss)}"
        for each in self.lost:
            yield f"--repair would lose {each.text}"


def _end_of(loss: JournalLoss) -> str:
    groups = max(0, loss.last_sequence - loss.first_sequence + 1)
    if not loss.is_known:
        groups_text = f"at least {count_text(groups, 'group')}" if groups else "an unknown number"
        return f"before group {loss.first_sequence}: {groups_text} may have followed"
    if not groups:
        return f"before group {loss.first_sequence}: nothing that is needed is missing"
    return (
        f"before group {loss.first_sequence}: {count_text(groups, 'group')} that had been "
        "acknowledged would be gone"
    )


def lost_of(salvage: Salvage) -> list[Lost]:
    """Return the losses of each partition, in the order of their names."""
    return sorted(
        Lost(log.topic, log.partition, base, end) for log, base, end in salvage.lost_offsets()
    )


def consequences(salvage: Salvage, cuts: Iterable[Cut | Lost]) -> Iterator[str]:
    """Yield the consequences of a cut, besides the lost records."""
    for log, each in salvage.abandoned:
        yield (
            f"{log.topic}-{log.partition}: the transaction of producer {each.producer_id} from "
            f"offset {each.first_offset} on counts as aborted at offset "
            f"{each.damaged.end_offset - 1}, as its end may have been cut out"
        )
    topics = {cut.topic for cut in cuts}
    for topic in sorted(topics & _MEANINGS.keys()):
        yield f"{topic}: {_MEANINGS[topic]} may fall back to what they were before"


_MEANINGS = {
    GROUP_OFFSETS: "groups and committed offsets",
    TRANSACTION_STATE: "transactions and the epochs of their producers",
}


def confirm(*, yes: bool) -> None:
    """Request consent to the loss; raises CommandError."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError("confirmation takes a terminal, or the option --yes; no change was made")
    print_text("Delete this data permanently? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("cancelled; no change was made")


def repair(directory: str, config: BrokerConfig, agreed: Repair) -> list[str]:
    """Cut out the agreed losses; return the files with the bytes. Raises the errors of a start."""
    return run_coroutine(_repair(directory, config, agreed))


async def _repair(directory: str, config: BrokerConfig, agreed: Repair) -> list[str]:
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
        metastore = _open_metastore(files, directory, config, agreed.damaged_tables)
        try:
            return await _cut(store, metastore, config, agreed, failed)
        finally:
            metastore.close()
    finally:
        store.abandon()
        engine.close()


def _open_metastore(
    files: LocalFileSystem, directory: str, config: BrokerConfig, damaged: Sequence[str]
) -> SqliteMetaStore:
    properties = read_properties(files, directory)
    return SqliteMetaStore.open(
        files.join(directory, FILE_NAME),
        node_id=properties.node_id if properties is not None else config.node_id,
        new_cluster_id=properties.cluster_id if properties is not None else new_cluster_id(),
        accept_damage=bool(damaged),
    )


async def _cut(
    store: LogStore,
    metastore: SqliteMetaStore,
    config: BrokerConfig,
    agreed: Repair,
    failed: asyncio.Future[None],
) -> list[str]:
    view = OneBroker(metastore.identity.node_id, None, lambda: store.leader_epoch)
    catalogue = Catalogue(metastore, store, view, config)
    salvage = Salvage()
    open_store(
        store,
        catalogue.load(metastore.load()),
        leader_epoch=metastore.begin_boot(),
        removable=catalogue.deleted_directories,
        deleted_ids=catalogue.deleted_partition_ids,
        salvage=salvage,
    )
    metastore.raise_boot_epoch(store.leader_epoch)
    if salvage.journal_loss != agreed.journal_loss or lost_of(salvage) != agreed.lost:
        raise CommandError("the damage changed since it was listed; run the command again")
    refused = {log for log, _ in salvage.refusals}
    damaged: dict[PartitionLog, list[DamagedRange]] = {}
    for log in list(store.logs.values()):
        ranges = [each.damaged for each in agreed.cuts if each[:2] == (log.topic, log.partition)]
        if not ranges and log not in refused:
            continue
        if list(find_damage(log, lambda _size: None)) != ranges:
            raise CommandError(f"{log.topic}-{log.partition}: the damage changed; run it again")
        if any(each.segment == log.active.base_offset for each in ranges):
            log.roll(store.journal.group_for(0))
        damaged[log] = ranges
    await checkpoint(store, failed)
    kept = [path for log, ranges in damaged.items() for path in cut_out(log, ranges)]
    # The first checkpoint puts the new segments in place, the last says that the stop was orderly.
    await checkpoint(store, failed)
    await checkpoint(store, failed, clean=True)
    store.close()
    return kept


async def checkpoint(store: LogStore, failed: asyncio.Future[None], *, clean: bool = False) -> None:
    """Write a checkpoint; raises the exception of ``failed``, the store's failure."""
    done = asyncio.get_running_loop().create_future()
    store.checkpoint(lambda: done.set_result(None), clean=clean)
    await asyncio.wait({done, failed}, return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        failed.result()
