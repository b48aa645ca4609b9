"""``barnabas transactions``: list, describe, list-blocking, abort."""

from __future__ import annotations

import argparse

from barnabas.broker.admin.exchange import Partition, Rejected, partition_text
from barnabas.broker.admin.transactions import fence
from barnabas.broker.cli.arguments import add_operand, add_topics, seconds, whole_number
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.consent import add_yes, check_can_ask, confirm
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.output import (
    as_json,
    count_text,
    duration_text,
    print_done,
    print_each,
    print_found,
    print_json,
    print_pairs,
    print_table,
    time_text,
)
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.retries import patiently, repeat
from barnabas.broker.cli.transaction_abort import abort_hanging, check_open
from barnabas.broker.cli.transaction_view import (
    HANGING,
    NEVER_MS,
    PREPARED,
    Filters,
    Listing,
    OpenTransaction,
    Transaction,
    describe_transactions,
    held_partitions,
    list_reachable,
)
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.broker.client.errors import Unreachable

_RENAMED = {"holders": "list-blocking"}
_LARGEST_OFFSET = 2**63 - 1
_LISTED = {
    "ID": "transactional_id",
    "STATE": "state",
    "PRODUCER": "producer_id",
    "EPOCH": "producer_epoch",
    "OPEN FOR": "age_text",
    "PARTITIONS": "partition_count",
    "CLIENT": "client_text",
    "HOST": "host",
}
_BLOCKING_COLUMNS = (
    *("TOPIC", "PARTITION", "STABLE", "END"),
    *("FROM", "PRODUCER", "EPOCH", "ID", "STATE", "OPEN FOR", "CLIENT", "HOST"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS, renamed=_RENAMED)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", action="append", default=[], metavar="STATE",
        help="only in this state, such as Ongoing",
    )  # fmt: skip
    parser.add_argument(
        "--longer-than", type=seconds, metavar="SECONDS", help="only transactions open for longer"
    )
    parser.add_argument(
        "--producer-id", type=_offset, action="append", default=[], metavar="N",
        help="only of this producer",
    )  # fmt: skip
    parser.add_argument("--pattern", metavar="REGEX", help="only ids that match, in RE2 syntax")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "ids", "ID", count="+")


def _add_list_blocking(parser: argparse.ArgumentParser) -> None:
    add_topics(parser, "only of these (default: all topics)")


def _add_abort(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "id", "ID", count="?")
    parser.add_argument("-t", "--topic", help="topic of a hanging transaction")
    parser.add_argument("-p", "--partition", type=whole_number, metavar="N", help="its partition")
    parser.add_argument(
        "--start-offset", type=_offset, metavar="N", help="its first offset, from list-blocking"
    )
    add_yes(parser)


def _offset(text: str) -> int:
    return whole_number(text, most=_LARGEST_OFFSET)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.verb == "abort":
        _check_abort(arguments)
    return run_verb(arguments, at_once=True)


# -------------------------------------------------------------------------------- list, describe


def list_all(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print every transactional ID with its state and transaction."""
    longer_than = arguments.longer_than
    filters = Filters(
        arguments.state,
        arguments.producer_id,
        -1 if longer_than is None else int(longer_than * 1000),
        arguments.pattern,
    )
    listing = Listing([], {}, has_moved=False)

    def attempt() -> None:
        nonlocal listing
        listing = list_reachable(cluster, filters)
        listing.check()

    problem: Rejected | Unreachable | None = None
    try:
        patiently(cluster, attempt)
    except (Rejected, Unreachable) as error:
        if not listing.transactions:
            raise
        problem = error
    print_found(listing.transactions, _LISTED, arguments.format)
    if problem is not None:
        missing = [f"broker {node_id}: {each}" for node_id, each in listing.unreached.items()]
        raise CommandError(f"not all is listed: {'; '.join(missing) or problem}")


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print the details of transactional IDs."""
    ids = list(dict.fromkeys(arguments.ids))
    found = patiently(cluster, lambda: describe_transactions(cluster, ids))
    print_each(found, _print_description, arguments.format)


def _print_description(transaction: Transaction) -> None:
    timeout_ms = transaction.timeout_ms
    pairs: list[tuple[str, str | int | None]] = [
        ("transactional id", transaction.transactional_id),
        ("state", transaction.state),
        ("producer id", transaction.producer_id),
        ("producer epoch", transaction.producer_epoch),
        ("timeout", "none" if timeout_ms == NEVER_MS else duration_text(timeout_ms)),
    ]
    if transaction.start_time_ms is not None:
        pairs.append(("since", time_text(transaction.start_time_ms)))
        pairs.append(("open for", transaction.age_text))
        pairs.append(("ends", _end_text(transaction)))
    pairs.append(("coordinator", transaction.coordinator))
    if transaction.host is not None:
        pairs += [("client", transaction.client_text), ("host", transaction.host)]
    print_pairs(pairs)
    if transaction.partitions:
        print_text()
        print_table(("TOPIC", "PARTITION"), transaction.partitions)


def _end_text(transaction: Transaction) -> str:
    """Return the latest end of a transaction, and its cause."""
    if transaction.state in PREPARED:
        left = count_text(len(transaction.partitions), "partition")
        return f"when the marker is written on {left}"
    remaining_ms = transaction.remaining_ms
    if remaining_ms is None:
        return "when its producer or an operator decides: it has no timeout (two-phase commit)"
    return f"aborted in {duration_text(remaining_ms)} unless its producer ends it"


# ---------------------------------------------------------------------------------- list-blocking


def list_blocking(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print the open transactions that block ``read_committed`` consumers."""
    _chosen(cluster, arguments.topic)  # An unknown topic is reported at once.
    held = patiently(
        cluster,
        lambda: held_partitions(cluster, _chosen(cluster, arguments.topic)),
    )
    if arguments.format == "json":
        print_json(as_json(held))
        return
    print_table(
        _BLOCKING_COLUMNS,
        [
            (*(each.topic, each.partition, each.stable_offset, each.end_offset), *_blocking(found))
            for each in held
            for found in each.transactions
        ],
    )


def _chosen(cluster: Cluster, wanted: list[tuple[str, list[int]]]) -> list[Partition]:
    """Return the requested partitions, by default all with a leader.

    Raises CommandError.
    """
    if not wanted:
        return [
            Partition(topic.name or "", each.partition_index, each.leader_id)
            for topic in cluster.topics()
            for each in topic.partitions
            if each.leader_id >= 0
        ]
    return cluster.chosen(wanted)


def _blocking(each: OpenTransaction) -> tuple[str | int | None, ...]:
    found = each.transaction
    of_producer = each.start_offset, each.producer_id, each.producer_epoch
    if found is None:
        return (*of_producer, None, HANGING, None, None, None)
    return (*of_producer, *(getattr(found, _LISTED[name]) for name in _BLOCKING_COLUMNS[7:]))


# ------------------------------------------------------------------------------------------ abort


def abort(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Abort a transaction by its ID, or a hanging one by partition and offset."""
    if arguments.id is not None:
        _abort_by_id(cluster, arguments)
    else:
        _abort_by_place(cluster, arguments)


def _check_abort(arguments: argparse.Namespace) -> None:
    topic_partition = (arguments.topic, arguments.partition, arguments.start_offset)
    if (arguments.id is None) == (topic_partition == (None, None, None)):
        raise CommandError("name the transaction: ID, or -t, -p and --start-offset", USAGE)
    if arguments.id is None and None in topic_partition:
        raise CommandError("-t, -p and --start-offset go together", USAGE)
    check_can_ask(arguments)


def _abort_by_id(cluster: Cluster, arguments: argparse.Namespace) -> None:
    key = arguments.id
    (transaction,) = patiently(cluster, lambda: describe_transactions(cluster, [key]))
    check_open(transaction)
    question = (
        f"Abort {key}, open for {transaction.age_text} on "
        f"{count_text(len(transaction.partitions), 'partition')}, and fence its producer"
    )
    if transaction.timeout_ms == NEVER_MS:
        question += " (another system may have promised to commit it: two-phase commit)"
    confirm(arguments, question)
    repeat(cluster, fence, key, transaction.timeout_ms)
    print_done(arguments.format, {"transactional_id": key, "changed": True}, f"{key} aborted")


def _abort_by_place(cluster: Cluster, arguments: argparse.Namespace) -> None:
    topic_partition, start_offset = (arguments.topic, arguments.partition), arguments.start_offset
    (partition,) = cluster.chosen([(topic_partition[0], [topic_partition[1]])])
    confirm(
        arguments,
        f"Abort what hangs on {partition_text(topic_partition)} from offset {start_offset} on",
    )
    patiently(cluster, lambda: abort_hanging(cluster, partition, start_offset))
    place = dict(zip(("topic", "partition"), topic_partition, strict=True))
    document = {**place, "start_offset": start_offset, "changed": True}
    text = f"{partition_text(topic_partition)} from offset {start_offset} on aborted"
    print_done(arguments.format, document, text)


_VERBS = {
    "list": Verb("List transactional ids and their transactions", "[options]", _add_list, list_all),
    "describe": Verb(
        "Show details of transactional ids",
        "ID... [options]",
        _add_describe,
        describe,
    ),
    "list-blocking": Verb(
        "Show transactions that block read_committed",
        "[options]",
        _add_list_blocking,
        list_blocking,
    ),
    "abort": Verb(
        "Abort an open transaction and fence its producer",
        "(ID | -t TOPIC -p N --start-offset N) ...",
        _add_abort,
        abort,
    ),
}
