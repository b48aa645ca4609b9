"""``barnabas restore``: make a data directory of a backup. The backup stays as it is.

The first start in the new directory begins new producer ids and leader epochs
(``broker/metadata/restored.py``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat

from barnabas.broker.cli.commands.backup import UNFINISHED
from barnabas.broker.cli.directory.directory_copy import copy_file, sync_name, sync_tree
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import Progress, count_text
from barnabas.broker.cli.printing import print_text
from barnabas.broker.metadata.identity import BACKUP_MANIFEST
from barnabas.broker.metadata.restored import mark_restored
from barnabas.storage.files.io import LocalFileSystem, make_private_directory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add source and target."""
    parser.usage = "barnabas restore BACKUP DIRECTORY"
    parser.epilog = "DIRECTORY must be empty, or not there yet; 'barnabas serve' starts from it."
    parser.add_argument("backup", metavar="BACKUP", help=argparse.SUPPRESS)
    parser.add_argument("directory", metavar="DIRECTORY", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Copy all files, and rename the directory when all are durable."""
    backup, target = arguments.backup, arguments.directory.rstrip("/")
    if not os.path.exists(os.path.join(backup, BACKUP_MANIFEST)):
        raise CommandError(f"{backup}: not a backup of 'barnabas backup'", USAGE)
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise CommandError(f"{target}: exists already, and is not an empty directory", USAGE)
    unfinished = target + UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        files, size_bytes = _copy_tree(backup, unfinished)
        if os.path.isdir(target):  # Its owner chose its mode.
            os.chmod(unfinished, stat.S_IMODE(os.stat(target).st_mode))
        mark_restored(LocalFileSystem(), unfinished)
        sync_tree(unfinished)
        os.rename(unfinished, target)
        sync_name(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    print_text(f"{target}: {count_text(files, 'file')}, {count_text(size_bytes, 'byte')} restored")
    return OK


def _copy_tree(source: str, target: str) -> tuple[int, int]:
    """Copy all files except the manifest; return the number of files, and their bytes."""
    files = size_bytes = 0
    with Progress(output_waits=True) as progress:
        for path, _, names in os.walk(source):
            there = os.path.normpath(os.path.join(target, os.path.relpath(path, source)))
            make_private_directory(there, parents=True)
            for name in names:
                if name == BACKUP_MANIFEST and path == source:
                    continue
                size_bytes += copy_file(os.path.join(path, name), os.path.join(there, name))
                files += 1
                progress.show(f"{count_text(files, 'file')}, {count_text(size_bytes, 'byte')}")
    return files, size_bytes
