"""The objects of a cluster: those that PostgreSQL names compared with those that the store has.

Rules of this file:

1. Rows are read before the store is listed. A running cluster names an object after its upload, and
   deletes an object a day after its last row, so what it changes meanwhile is no problem.
2. Objects that no row names are no problem either: they are uploads that were never committed, or
   wait for their deletion. Brokers delete them.
3. ``sweep`` deletes all objects of a cluster, so it does not touch the one that
   ``barnabas.metadata`` names.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.admin.exchange import partition_text
from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import add_format
from barnabas.broker.cli.consent import add_yes, check_can_ask, confirm
from barnabas.broker.cli.directory.store_waits import StoreWaits
from barnabas.broker.cli.errors import FAILED, OK, USAGE, CommandError, report
from barnabas.broker.cli.output import Progress, count_text, print_done, print_json
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cluster.start.object_store import opener_of
from barnabas.broker.cluster.start.postgresql import base_of
from barnabas.broker.config.cluster import METADATA, without_password
from barnabas.broker.config.types import ConfigError
from barnabas.storage.errors import StorageError
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.objects.blob_store import BlobStoreError, claim_of, keys_with
from barnabas.storage.replicated.log_index import IndexMisused

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import TransferBase
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.storage.metastore.interface import MetadataImage
    from barnabas.storage.objects.object_blob_store import ObjectBlobStore
    from barnabas.storage.objects.object_rows import ObjectRows

PATIENCE_S: Final = 60.0
ROWS_AT_ONCE: Final = 10_000
DELETED_AT_ONCE: Final = 1000
_EVERYTHING: Final = ""


@dataclass(frozen=True, slots=True)
class Lacking:
    """An object that the store lacks, or has in another size."""

    key: str
    problem: str
    ranges: list[dict[str, Any]]
    """Topic, partition, first and last offset of the records in it."""

    def describe(self) -> str:
        """Return the problem in one line."""
        places = (
            f"{partition_text((each['topic'], each['partition']))} offsets "
            f"{each['first_offset']} to {each['last_offset']}"
            for each in self.ranges
        )
        return f"object {self.key} {self.problem}: {', '.join(places)}"


@dataclass(slots=True)
class Compared:
    """The result of a comparison."""

    cluster_id: str
    objects: int = 0
    size_bytes: int = 0
    unnamed_objects: int = 0
    unnamed_bytes: int = 0
    problems: list[Lacking] = field(default_factory=list)

    def describe(self) -> str:
        """Return the verdict in one line."""
        named = f"{count_text(self.objects, 'object')}, {count_text(self.size_bytes, 'byte')}"
        if self.problems:
            return f"damaged: {count_text(len(self.problems), 'problem')} in {named}"
        return f"healthy: {named}, all in the store"


def check_cluster(arguments: argparse.Namespace) -> int:
    """Compare the objects that a cluster names with its object store; return the exit code."""
    config = configuration.cluster_config(arguments, needs_storage=True)
    with opened_stores(config) as (base, open_store):
        with contextlib.closing(base.metastore(config.node_id)) as metastore:
            compared = Compared(metastore.identity.cluster_id)
            image = metastore.load()
        with (
            contextlib.closing(base.object_rows()) as rows,
            contextlib.closing(open_store(compared.cluster_id)) as store,
        ):
            _compare(compared, rows, store, _names_of(image))
    if arguments.format == "json":
        print_json(_document(compared))
    else:
        unnamed = count_text(compared.unnamed_objects, "object")
        size = count_text(compared.unnamed_bytes, "byte")
        print_text(f"cluster {compared.cluster_id}")
        print_text(f"{unnamed} with {size} beside them, which brokers delete in time")
        print_text(compared.describe())
    for each in compared.problems:
        report(each.describe(), FAILED)
    return FAILED if compared.problems else OK


def _compare(
    compared: Compared, rows: ObjectRows, store: ObjectBlobStore, names: Mapping[int, Any]
) -> None:
    named: dict[str, int] = {}
    sidecars: set[str] = set()
    after = 0
    with Progress(output_waits=True) as progress:
        while found := rows.named_objects(after, ROWS_AT_ONCE):
            named.update((each.key, each.size_bytes) for each in found)
            sidecars.update(key for each in found for key in keys_with(each.key) if key != each.key)
            after = found[-1].row
            progress.show(f"{count_text(len(named), 'object')} named")
        compared.objects, compared.size_bytes = len(named), sum(named.values())
        for entry in store.sizes(_EVERYTHING):
            size_bytes = named.get(entry.key)
            if entry.key in sidecars:
                sidecars.remove(entry.key)
            elif size_bytes is None:
                compared.unnamed_objects += 1
                compared.unnamed_bytes += entry.size_bytes
            elif size_bytes == entry.size_bytes:
                del named[entry.key]
            else:
                problem = f"has {entry.size_bytes:,} bytes, not {size_bytes:,}"
                compared.problems.append(_lacking(rows, entry.key, problem, names))
                del named[entry.key]
            progress.show(f"{count_text(len(named), 'object')} not found yet")
    for key in [*named, *sidecars]:
        compared.problems.append(_lacking(rows, key, "is missing", names))
    compared.problems.sort(key=lambda each: each.key)


def _lacking(rows: ObjectRows, key: str, problem: str, names: Mapping[int, Any]) -> Lacking:
    claim = claim_of(key)  # No row has the key of a sidecar.
    ranges = [
        {
            "topic": names.get(each.partition_id, ("a deleted topic", -1))[0],
            "partition": names.get(each.partition_id, ("", each.partition_id))[1],
            "first_offset": each.base_offset,
            "last_offset": each.next_offset - 1,
        }
        for each in rows.extents_in(key if claim is None else claim.name)
    ]
    return Lacking(key, problem, ranges)


def _names_of(image: MetadataImage) -> dict[int, tuple[str, int]]:
    """Return topic and number of each partition by its ID."""
    return {
        each.partition_id: (topic.name, each.index)
        for topic in image.topics
        for each in topic.partitions
    }


def _document(compared: Compared) -> dict[str, Any]:
    return {
        "verdict": "damaged" if compared.problems else "healthy",
        "cluster_id": compared.cluster_id,
        "objects": compared.objects,
        "bytes": compared.size_bytes,
        "unnamed_objects": compared.unnamed_objects,
        "unnamed_bytes": compared.unnamed_bytes,
        "problems": [
            {"key": each.key, "problem": each.problem, "ranges": each.ranges}
            for each in compared.problems
        ],
    }


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``barnabas objects sweep``."""
    parser.usage = "barnabas objects sweep --cluster ID [server.properties] [options]"
    parser.epilog = (
        "For a cluster whose database no longer exists: brokers delete the objects of their own "
        "cluster. barnabas.storage names the object store. The cluster in barnabas.metadata is "
        "not swept."
    )
    configuration.add_arguments(parser)
    parser.add_argument("--cluster", required=True, metavar="ID", help="cluster ID of the objects")
    parser.add_argument(
        "--dry-run", action="store_true", help="only print how many objects would be deleted"
    )
    add_yes(parser)
    add_format(parser)


def sweep(arguments: argparse.Namespace) -> int:
    """Delete all objects of a cluster whose database no longer exists; return the exit code."""
    if not arguments.dry_run:
        check_can_ask(arguments)
    config = configuration.cluster_config(arguments, needs_storage=True)
    with opened_stores(config) as (base, open_store):
        with contextlib.closing(base.metastore(config.node_id)) as metastore:
            if metastore.identity.cluster_id == arguments.cluster:
                reason = f"it is the cluster of {METADATA}, whose brokers delete what they can"
                raise CommandError(f"cluster {arguments.cluster}: {reason}", USAGE)
        with contextlib.closing(open_store(arguments.cluster)) as store:
            objects = size_bytes = 0
            for entry in store.sizes(_EVERYTHING):
                objects += 1
                size_bytes += entry.size_bytes
            found = f"{count_text(objects, 'object')} with {count_text(size_bytes, 'byte')}"
            if objects and not arguments.dry_run:
                confirm(arguments, f"delete {found} of cluster {arguments.cluster}")
                _delete_all(store)
    document = {"objects": objects, "bytes": size_bytes, "deleted": not arguments.dry_run}
    verb = "would be deleted" if arguments.dry_run else "deleted"
    print_done(arguments.format, document, f"cluster {arguments.cluster}: {found} {verb}")
    return OK


def _delete_all(store: ObjectBlobStore) -> None:
    deleted = 0
    with Progress(output_waits=True) as progress:
        keys: list[str] = []
        for entry in store.sizes(_EVERYTHING):
            keys.append(entry.key)
            if len(keys) == DELETED_AT_ONCE:
                store.delete(keys)
                deleted += len(keys)
                keys.clear()
                progress.show(f"{count_text(deleted, 'object')} deleted")
        store.delete(keys)


@contextlib.contextmanager
def opened_stores(config: BrokerConfig) -> Iterator[tuple[TransferBase, Any]]:
    """Yield the database of a cluster, and what opens its object store by its ID, or None."""
    try:
        base, open_store = base_of(config, PATIENCE_S), opener_of(config)
    except ConfigError as error:
        raise CommandError(str(error), USAGE) from None
    assert config.metadata is not None
    with contextlib.closing(base), StoreWaits(base, without_password(config.metadata)):
        try:
            yield base, open_store
        except BlobStoreError as error:
            raise CommandError(f"{config.storage}: {error}") from None
        except (StorageError, MetaStoreError, IndexMisused) as error:
            raise CommandError(str(error)) from None
