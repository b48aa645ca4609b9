"""``barnabas cluster import``: the data directory of a broker that was alone, into a cluster.

Rules of this file:

1. One place goes on with what is there. Brokers of the cluster start once all of it is theirs, and
   no sooner; before that the directory is marked, so that no broker goes on alone.
2. An import that was cut short is done again, from the beginning.
3. What a start would change is changed in a scratch copy: beside the mark nothing is written to the
   directory.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from barnabas.broker.cli import configuration
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.opened_directory import opened, original, scratch_directory
from barnabas.broker.cli.output import Progress, count_text
from barnabas.broker.config.cluster import METADATA, without_password
from barnabas.broker.config.types import ConfigError
from barnabas.broker.opening.postgresql import base_of
from barnabas.broker.topics.identity import mark_imported, refuse_backup, refuse_cache
from barnabas.storage.adoption import is_foreign
from barnabas.storage.errors import Corrupt, StorageError
from barnabas.storage.file_system import AlreadyLocked
from barnabas.storage.io import LocalFileSystem
from barnabas.storage.log_import import ImportProgress, import_logs
from barnabas.storage.log_index import IndexMisused
from barnabas.storage.log_store import LOCK_NAME
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.metastore.sqlite import FILE_NAME

if TYPE_CHECKING:
    from barnabas.broker.cli.opened_directory import OpenedDirectory
    from barnabas.broker.cluster.base import TransferBase
    from barnabas.broker.config.broker_config import BrokerConfig

PATIENCE_S: Final = 60.0
"""For one answer of the store: all metadata are written at once."""


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster import DIRECTORY [server.properties] [options]"
    parser.epilog = (
        "No broker may be using the directory, and the cluster may have no topics and no brokers "
        "yet. Without --into its address is barnabas.metadata of the configuration. Afterwards no "
        "broker starts alone in the directory. What was cut short is to be done again: until then "
        "no broker of the cluster starts. The temporary directory needs room for what a start "
        "would read back from the journal."
    )
    parser.add_argument("directory", metavar="DIRECTORY", help=argparse.SUPPRESS)
    configuration.add_arguments(parser)
    _add_address(parser, "--into")


def _add_address(parser: argparse.ArgumentParser, option: str) -> None:
    parser.add_argument(
        option,
        dest="address",
        metavar="ADDRESS",
        help="postgresql://... of the cluster; with a password only in the configuration",
    )


VERBS: Final = {
    "import": ("Have a cluster go on with the data directory of a broker", _add_import),
}


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    if arguments.address is not None:
        arguments.override = [*arguments.override, f"{METADATA}={arguments.address}"]
    config = configuration.load(arguments).config
    if config.metadata is None:
        raise CommandError(f"which cluster? give its address, or set {METADATA}", USAGE)
    try:
        base = base_of(config, PATIENCE_S)
    except ConfigError as error:
        raise CommandError(str(error), USAGE) from None
    with contextlib.closing(base):
        progress = import_directory(arguments.directory, base, config)
    partitions = count_text(progress.partitions, "partition")
    size = count_text(progress.size_bytes, "byte")
    print(f"{without_password(config.metadata)}: {partitions} with {size} imported")
    return OK


def import_directory(directory: str, base: TransferBase, config: BrokerConfig) -> ImportProgress:
    """Have the cluster behind ``base`` go on with a data directory; raises CommandError.

    ``config`` says what topics of the directory have by default.
    """
    files = LocalFileSystem()
    if not os.path.exists(os.path.join(directory, FILE_NAME)):
        raise CommandError(f"{directory}: not the data directory of a broker", USAGE)
    with _translated(directory, scratch=""):
        refuse_backup(files, directory)
        refuse_cache(files, directory)
        if is_foreign(files, directory):
            raise CommandError(f"{directory}: let a broker start and stop in it before")
    with (
        _held(files, directory),
        scratch_directory() as scratch,
        _translated(directory, scratch),
        opened(directory, scratch, config) as found,
    ):
        return _import(found, files, directory, base)


def _import(
    found: OpenedDirectory, files: LocalFileSystem, directory: str, base: TransferBase
) -> ImportProgress:
    contents = found.metastore.contents()
    transfer = base.transfer(found.metastore.identity.node_id)
    token = uuid4()
    session = transfer.begin_import(token, found.metastore.identity.node_id)
    logs = sorted(found.store.logs.values(), key=lambda log: log.partition_id)
    epoch = found.store.leader_epoch
    with Progress(output_waits=True) as shown:
        progress = import_logs(
            logs,
            transfer,
            base.log_index(),
            session,
            epoch,
            lambda done: shown.show(_described(done)),
        )
        transfer.fill(token, contents)
        mark_imported(files, directory, contents.cluster_id)
        transfer.end_import(token)
    return progress


def _described(progress: ImportProgress) -> str:
    partitions = f"{progress.done:,} of {count_text(progress.partitions, 'partition')}"
    return f"{partitions}, {count_text(progress.size_bytes, 'byte')}"


@contextlib.contextmanager
def _held(files: LocalFileSystem, directory: str) -> Iterator[None]:
    """Keep brokers away; raises CommandError where one is."""
    try:
        lock = files.lock(os.path.join(directory, LOCK_NAME))
    except AlreadyLocked:
        raise CommandError(f"{directory}: a broker is using it: stop it first") from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _translated(directory: str, scratch: str) -> Iterator[None]:
    """Raise CommandError for what an operator can do something about."""
    try:
        yield
    except Corrupt as error:
        text = original(str(error), scratch, directory)
        raise CommandError(f"{text} (run 'barnabas check')") from None
    except (ConfigError, StorageError, MetaStoreError, IndexMisused) as error:
        raise CommandError(original(str(error), scratch, directory)) from None
