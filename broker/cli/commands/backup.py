"""``barnabas backup``: a consistent copy of a data directory, also of a running broker.

The copy has the state that a power cut at one moment would have left, with everything that was
acknowledged before the command started. A broker does not start in it (it can share files with the
original): ``barnabas restore`` creates a data directory from it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil

from barnabas.broker.cli import configuration
from barnabas.broker.cli.commands import check
from barnabas.broker.cli.directory.directory_copy import (
    Copied,
    DirectoryCopy,
    sync_name,
    write_file,
)
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import Progress, count_text
from barnabas.broker.cli.printing import print_text
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.metadata.identity import BACKUP_MANIFEST
from barnabas.broker.version import __version__
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.io import make_private_directory
from barnabas.storage.metastore.sqlite import FILE_NAME as METADATA
from barnabas.storage.runtime.clock import now_ns

UNFINISHED = ".unfinished"
"""Suffix of a backup until it is complete."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the target, the data directory and its broker's settings."""
    parser.usage = "barnabas backup TARGET [options]"
    parser.epilog = (
        "The broker goes on serving. TARGET must not be there yet. On the same file system closed "
        "segments are links, which take no room; what can be cloned is cloned, the rest copied."
    )
    parser.add_argument("target", metavar="TARGET", help=argparse.SUPPRESS)
    configuration.add_override(parser)
    parser.add_argument(
        "-d", "--directory", metavar="PATH", help="data directory (default: log.dirs)"
    )
    parser.add_argument(
        "--no-check", action="store_true", help="do not verify every batch of the copy"
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy, verify the copy and rename it; return the exit code."""
    source, config = configuration.directory_of(arguments)
    if not os.path.exists(os.path.join(source, METADATA)):
        raise CommandError(f"{source}: not the data directory of a broker", USAGE)
    target = arguments.target.rstrip("/")
    if os.path.lexists(target):
        raise CommandError(f"{target}: exists already", USAGE)
    if os.path.realpath(target).startswith(os.path.realpath(source) + os.sep):
        raise CommandError(f"{target}: inside of the data directory", USAGE)
    unfinished = target + UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    make_private_directory(unfinished)
    try:
        copied = _copy(source, unfinished)
        _write_manifest(unfinished, source, copied)
        if not arguments.no_check:
            _verify(source, unfinished, config)
        os.rename(unfinished, target)
        sync_name(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    checked = "not verified" if arguments.no_check else "verified"
    print_text(f"{target}: {_described(copied)}, {checked}")
    return OK


def _copy(source: str, target: str) -> Copied:
    with Progress(output_waits=True) as progress, check.not_in_use(source) as is_free:
        try:
            return DirectoryCopy(source, target, in_use=not is_free).run(
                lambda copied: progress.show(_described(copied))
            )
        except Corrupt as error:
            raise CommandError(f"{error} (run 'barnabas check')") from None


def _verify(source: str, copy: str, config: BrokerConfig) -> None:
    """Raise CommandError for the first problem of the copy."""
    for problem in check.problems_of(copy, config):
        raise CommandError(f"{problem.replace(copy, source)}: the backup is refused")


def _described(copied: Copied) -> str:
    kinds = (
        ("copied", copied.copied_bytes),
        ("cloned", copied.cloned_bytes),
        ("linked", copied.linked_bytes),
    )
    sizes = ", ".join(f"{size:,} bytes {kind}" for kind, size in kinds if size)
    return f"{count_text(copied.files, 'file')} of partitions, {sizes or 'nothing to copy'}"


def _write_manifest(directory: str, source: str, copied: Copied) -> None:
    """Write the manifest, which makes ``serve`` refuse to start in the backup."""
    text = {
        "barnabas": __version__,
        "source": os.path.abspath(source),
        "taken_ms": now_ns() // 1_000_000,
        "linked_bytes": copied.linked_bytes,
    }
    write_file(os.path.join(directory, BACKUP_MANIFEST), json.dumps(text).encode())
