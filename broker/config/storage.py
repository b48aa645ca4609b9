"""Settings of the journal and of checkpoints: what a start reads, and what a stop waits for."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.fields import setting
from barnabas.broker.config.scrub import ScrubConfig
from barnabas.broker.config.types import ConfigType, at_least


@dataclass(frozen=True, slots=True)
class StorageConfig(ScrubConfig):
    """Sizes and intervals of the journal and its checkpoints."""

    journal_file_bytes: int = setting(
        "barnabas.journal.file.bytes", ConfigType.LONG, 64 * 1024 * 1024, at_least(1024 * 1024)
    )
    """Size of one journal file; a batch must be smaller."""
    journal_max_bytes: int = setting(
        "barnabas.journal.max.bytes", ConfigType.LONG, 1024 * 1024 * 1024, at_least(2 * 1024 * 1024)
    )
    """Maximum size of the journal kept for recovery, in bytes."""
    journal_backlog_max_bytes: int = setting(
        "barnabas.journal.backlog.max.bytes",
        ConfigType.LONG,
        128 * 1024 * 1024,
        at_least(1024 * 1024),
    )
    """Bytes that wait for the disk, above which producers have to wait."""
    disk_reserve_bytes: int = setting(
        "barnabas.disk.reserve.bytes", ConfigType.LONG, 64 * 1024 * 1024, at_least(1024 * 1024)
    )
    """Room kept free on the disk, to end transactions: with less, Produce is refused."""
    checkpoint_interval_ms: int = setting(
        "barnabas.checkpoint.interval.ms", ConfigType.LONG, 60_000, at_least(1)
    )
    """Interval of checkpoints, which bounds recovery."""
    checkpoint_journal_bytes: int = setting(
        "barnabas.checkpoint.journal.bytes",
        ConfigType.LONG,
        512 * 1024 * 1024,
        at_least(1024 * 1024),
    )
    """Bytes of journal after which a checkpoint is written at once."""
    shutdown_timeout_ms: int = setting(
        "barnabas.shutdown.timeout.ms", ConfigType.LONG, 5_000, at_least(0)
    )
    """Time for which a stop waits for requests in flight."""
    shutdown_checkpoint_timeout_ms: int = setting(
        "barnabas.shutdown.checkpoint.timeout.ms", ConfigType.LONG, 20_000, at_least(0)
    )
    """Time for the last checkpoint of a stop; without it, the next start reads the journal."""
