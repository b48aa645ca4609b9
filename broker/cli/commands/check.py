"""``barnabas check``: would a broker start from this data directory, and is all of it whole?

It goes through the same recovery as a start, on a scratch copy of the directory, so the directory
itself is not changed; then every batch, index and producer of every partition is verified.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from barnabas.broker.admin.exchange import TopicPartition, partition_text
from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import add_format
from barnabas.broker.cli.directory.directory_lock import locked
from barnabas.broker.cli.directory.repair import Cut, Repair, confirm, consequences, lost_of, repair
from barnabas.broker.cli.errors import FAILED, OK, USAGE, CommandError, report
from barnabas.broker.cli.output import Progress, count_text, print_json, print_table, time_text
from barnabas.broker.cli.printing import print_text
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.types import ConfigError
from barnabas.broker.metadata.identity import BACKUP_MANIFEST
from barnabas.broker.metadata.restored import RESTORED_MARK
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.opening.opened_directory import opened, original, scratch_directory
from barnabas.storage.adoption.adoption import CLEAN_SHUTDOWN
from barnabas.storage.errors import StorageError
from barnabas.storage.files.file_system import AlreadyLocked
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.metastore.sqlite import FILE_NAME, describe_damage
from barnabas.storage.repair.check import verify
from barnabas.storage.repair.repair import find_damage
from barnabas.storage.repair.salvage import Salvage
from barnabas.storage.repair.scrub_notes import progress_of, read_notes
from barnabas.storage.store.checkpoint_work import CHECKPOINT_NAMES
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import RecoveryReport

_NAMED_MAX = 5
"""Maximum number of damaged partitions that the verdict names."""

_SIGNS = (*CHECKPOINT_NAMES, FILE_NAME, CLEAN_SHUTDOWN)
"""Files by which a data directory of a broker is recognised: it has at least one."""


@dataclass
class Checked:
    """Findings: how the last broker ended, and each partition with its problems."""

    stopped: str
    report: RecoveryReport
    partitions: list[dict[str, Any]]
    repair: Repair
    consequences: list[str]
    is_refused: bool
    """Whether a broker would refuse to start from the directory."""

    @property
    def problems(self) -> list[str]:
        """All problems."""
        loss = self.repair.journal_loss
        problems = [_refusal(loss.reason)] if loss is not None else []
        if tables := list(self.repair.damaged_tables):
            problems.insert(0, _refusal(f"{FILE_NAME}: {describe_damage(tables)}"))
        return problems + [problem for each in self.partitions for problem in each["problems"]]

    @property
    def verdict(self) -> str:
        """Verdict for programs: "healthy", "damaged", or "refused" by a start."""
        if self.is_refused:
            return "refused"
        return "damaged" if self.problems else "healthy"

    def describe(self) -> str:
        """Return the verdict in one line, with the problems and their places."""
        size_bytes = sum(each["bytes"] for each in self.partitions)
        partitions = count_text(len(self.partitions), "partition")
        if self.verdict == "healthy":
            return f"healthy: {partitions}, {count_text(size_bytes, 'byte')}, all verified"
        wrong = [partition_text(_at(each)) for each in self.partitions if each["problems"]]
        named = ", ".join(wrong[:_NAMED_MAX]) + (", ..." if len(wrong) > _NAMED_MAX else "")
        line = f"{self.verdict}: {count_text(len(self.problems), 'problem')}"
        line += f", in {len(wrong):,} of {partitions}: {named}" if wrong else ""
        return line + (" (no broker starts from this)" if self.is_refused else "")


def _refusal(reason: str) -> str:
    return f"{reason} (no broker starts from this)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the data directory and its broker's settings."""
    parser.usage = "barnabas check [server.properties] [options]"
    parser.epilog = (
        "The directory is not changed without --repair, and no broker may be using it. The "
        "temporary directory needs room for what a start would read back from the journal. "
        "Exit code 1: something is damaged."
    )
    configuration.add_arguments(parser)
    parser.add_argument(
        "-d", "--directory", metavar="PATH", help="data directory (default: log.dirs)"
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="compare a cluster's rows with its object store",
    )
    parser.add_argument(
        "--progress",
        action="store_true",
        help="say how far the check is, and the broker's own verification was",
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="cut damaged ranges out of the logs, let an end of the journal that is lost go, "
        "once it was agreed to",
    )
    parser.add_argument("--yes", action="store_true", help="consent to the loss")
    parser.add_argument("--dry-run", action="store_true", help="only print what --repair would do")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check a directory, or the objects of a cluster; return the exit code."""
    if arguments.cluster:
        from barnabas.broker.cli.directory.cluster_objects import check_cluster

        return check_cluster(arguments)
    directory, config = configuration.directory_of(arguments)
    if not any(os.path.exists(os.path.join(directory, name)) for name in _SIGNS):
        reason = "neither Barnabas nor an Apache Kafka that was stopped cleanly left data in it"
        raise CommandError(f"{directory}: {reason}", USAGE)
    if arguments.progress:
        _report_scrubber(directory)
        if is_in_use(directory):
            return OK
    if arguments.repair and os.path.exists(os.path.join(directory, BACKUP_MANIFEST)):
        raise CommandError(f"{directory} is a backup: restore it, and repair what that makes")
    with locked(directory), scratch_directory() as scratch:
        checked = _checked(directory, scratch, config, lines=arguments.progress)
        _print(checked, arguments.format)
        for problem in checked.problems:
            report(original(problem, scratch, directory), FAILED)
    if arguments.repair and not arguments.dry_run and (checked.repair.cuts or checked.is_refused):
        if checked.stopped == "kafka":
            raise CommandError(f"{directory}: let a broker start and stop in it before a repair")
        confirm(yes=arguments.yes)
        return _repair(directory, config, checked.repair)
    if checked.problems:
        raise CommandError(f"{directory}: {count_text(len(checked.problems), 'problem')}")
    return OK


def problems_of(directory: str, config: BrokerConfig) -> list[str]:
    """Return the problems of a directory that is not in use; raises CommandError."""
    with scratch_directory() as scratch:
        checked = _checked(directory, scratch, config, lines=False)
        return [original(problem, scratch, directory) for problem in checked.problems]


def _checked(directory: str, scratch: str, config: BrokerConfig, *, lines: bool) -> Checked:
    try:
        return _check(directory, scratch, config, lines=lines)
    except (ConfigError, StorageError, MetaStoreError) as error:
        raise CommandError(original(str(error), scratch, directory)) from None
    except OSError as error:
        path = original(str(error.filename or directory), scratch, directory)
        raise CommandError(f"{path}: {error.strerror or error}") from None


def _repair(directory: str, config: BrokerConfig, agreed: Repair) -> int:
    try:
        kept = repair(directory, config, agreed)
    except (ConfigError, StorageError, MetaStoreError, OSError, AlreadyLocked) as error:
        raise CommandError(f"{directory}: not repaired: {error}") from None
    for path in kept:
        print_text(f"cut out, the bytes are in {path}")
    return OK


def _report_scrubber(directory: str) -> None:
    """Print the progress that the broker's own verification last recorded."""
    notes = read_notes(LocalFileSystem(read_only=True), directory)
    if notes is None:
        print_text("the broker has not noted yet what it has verified", file=sys.stderr)
        return
    progress = progress_of(notes)
    print_text(
        f"verified by the broker as of {time_text(progress.noted_ms)}: "
        f"{progress.verified_segments:,} of {count_text(progress.segments, 'sealed segment')}, "
        f"{progress.verified_bytes:,} of {count_text(progress.size_bytes, 'byte')}; "
        f"last full pass {time_text(progress.last_full_pass_ms or -1) or 'never'}; "
        f"{count_text(progress.damaged_ranges, 'damaged range')}",
        file=sys.stderr,
    )


def is_in_use(directory: str) -> bool:
    """Return whether a broker uses the directory."""
    with not_in_use(directory) as is_free:
        return not is_free


@contextmanager
def not_in_use(directory: str) -> Iterator[bool]:
    """Lock the directory against brokers; yields False if a broker uses it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(directory))
        except CommandError:
            yield False
        else:
            yield True


def _check(directory: str, scratch: str, config: BrokerConfig, *, lines: bool = False) -> Checked:
    """Recover the logs and verify them; raises the errors that a start would raise."""
    salvage = Salvage()
    with opened(directory, scratch, config, salvage=salvage) as found:
        stopped = "kafka" if found.is_kafkas else _stop_of(directory, found.report)
        accepted = found.metastore.accepted
        cuts: list[Cut] = []
        partitions = list(_verify_all(found.store, salvage, cuts, lines=lines))
        lost = lost_of(salvage)
        return Checked(
            stopped,
            found.report,
            partitions,
            Repair(accepted, cuts, salvage.journal_loss, lost),
            list(consequences(salvage, [*cuts, *lost])),
            is_refused=bool(salvage.refusals or salvage.journal_loss or accepted),
        )


def _stop_of(directory: str, report: RecoveryReport) -> str:
    """Return the key of ``_STOPPED`` for the last process that wrote the directory."""
    if report.clean:
        return "clean"
    marks = (BACKUP_MANIFEST, RESTORED_MARK)
    is_copy = any(os.path.exists(os.path.join(directory, each)) for each in marks)
    return "backup" if is_copy else "crash"


def _verify_all(
    store: LogStore, salvage: Salvage, cuts: list[Cut], *, lines: bool
) -> Iterator[dict[str, Any]]:
    """Yield the findings of each partition; removable damage is added to ``cuts``."""
    logs = sorted(store.logs.values(), key=lambda log: (log.topic, log.partition))
    total_bytes, done_bytes = sum(log.size_bytes for log in logs), 0
    with Progress(output_waits=True, lines=lines) as progress:
        for number, log in enumerate(logs):
            progress.show(
                f"{number:,} of {count_text(len(logs), 'partition')} checked, "
                f"{done_bytes:,} of {count_text(total_bytes, 'byte')}: {log}"
            )
            done_bytes += log.size_bytes
            refused = [reason for other, reason in salvage.refusals if other is log]
            problems = [_refusal(reason) for reason in refused]
            problems += _problems_of(log)
            damaged = list(find_damage(log, lambda _size: None)) if problems else []
            cuts += [Cut(log.topic, log.partition, each) for each in damaged]
            yield {
                "topic": log.topic,
                "partition": log.partition,
                "start_offset": log.log_start_offset,
                "end_offset": log.next_offset,
                "segments": len(log.segments),
                "bytes": sum(segment.size_bytes for segment in log.segments),
                "problems": problems,
                "damaged": [each._asdict() for each in damaged],
            }


def _problems_of(log: PartitionLog) -> list[str]:
    try:
        return verify(log, exact=False)
    except StorageError as error:
        return [str(error)]


_STOPPED = {
    "kafka": "left by Apache Kafka after a clean stop",
    "clean": "left after a clean stop",
    "backup": "copied by barnabas backup from a broker that had not stopped",
    "crash": "left by a crash, or by a kill",
}


def _print(checked: Checked, output_format: str) -> None:
    found = checked.report
    if output_format == "json":
        print_json(
            {
                "verdict": checked.verdict,
                "stopped": checked.stopped,
                "journal_groups": found.journal_groups,
                "batches_replayed": found.batches_replayed,
                "partitions": checked.partitions,
                "journal_loss": _described(checked.repair),
                "consequences": checked.consequences,
            }
        )
        return
    print_text(_STOPPED[checked.stopped])
    print_text(
        f"a start reads {count_text(found.journal_groups, 'journal group')} "
        f"with {count_text(found.batches_replayed, 'batch', 'batches')}"
    )
    print_text()
    print_table(
        ("TOPIC", "PARTITION", "START", "END", "SEGMENTS", "BYTES", "PROBLEMS"),
        _rows(checked.partitions),
    )
    lines = list(checked.repair.lines())
    if lines:
        print_text()
    for line in lines:
        print_text(line)
    for line in checked.consequences:
        print_text(f"then {line}")
    print_text()
    print_text(checked.describe())


def _rows(partitions: list[dict[str, Any]]) -> list[tuple[str | int | None, ...]]:
    """Return a row for each partition; those of an internal topic without a problem share one."""
    rows: list[tuple[str | int | None, ...]] = []
    together: dict[str, list[dict[str, Any]]] = {}
    for each in partitions:
        if each["topic"] in (GROUP_OFFSETS, TRANSACTION_STATE) and not each["problems"]:
            together.setdefault(each["topic"], []).append(each)
            continue
        offsets = each["start_offset"], each["end_offset"]
        rows.append((*_at(each), *offsets, *_sizes([each]), len(each["problems"])))
    for topic, some in together.items():
        rows.append((f"{topic} ({len(some)})", None, None, None, *_sizes(some), 0))
    return rows


def _at(partition: dict[str, Any]) -> TopicPartition:
    return partition["topic"], partition["partition"]


def _sizes(partitions: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the numbers of segments and bytes."""
    return sum(each["segments"] for each in partitions), sum(each["bytes"] for each in partitions)


def _described(agreed: Repair) -> dict[str, Any] | None:
    loss = agreed.journal_loss
    if loss is None:
        return None
    return {
        "reason": loss.reason,
        "first_group": loss.first_sequence,
        "last_group": loss.last_sequence,
        "is_known": loss.is_known,
        "lost": [each._asdict() for each in agreed.lost],
    }
