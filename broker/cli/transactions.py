"""``barnabas transactions``: list, describe, holders, abort."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from barnabas.broker.cli.arguments import (
    add_verbs,
    seconds,
    topic_partitions,
    whole_number,
)
from barnabas.broker.cli.cluster_view import Cluster, Partition, Rejected
from barnabas.broker.cli.consent import add_yes, check_can_ask, confirm
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.offsets import partition_text, patiently
from barnabas.broker.cli.output import (
    count_text,
    duration_text,
    print_json,
    print_pairs,
    print_table,
    time_text,
)
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.transaction_abort import abort_everywhere, abort_hanging, check_open
from barnabas.broker.cli.transaction_view import (
    HANGING,
    NEVER_MS,
    ONGOING,
    PREPARED,
    Filters,
    HeldPartition,
    Listing,
    OpenTransaction,
    Transaction,
    describe_transactions,
    held_partitions,
    list_reachable,
)
from barnabas.broker.client.errors import Unreachable
from barnabas.storage.runtime.clock import now_ns

_LARGEST_OFFSET = 2**63 - 1
_HOLDER_COLUMNS = (
    *("TOPIC", "PARTITION", "STABLE", "END"),
    *("FROM", "PRODUCER", "EPOCH", "ID", "STATE", "OPEN FOR", "CLIENT", "HOST"),
)
_VERBS = {
    "list": "List transactional ids and their transactions",
    "describe": "Show all there is to know of transactional ids",
    "holders": "Show whose open transactions readers wait for",
    "abort": "Abort an open transaction and fence its producer",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs with theirs."""
    parser.usage = "barnabas transactions VERB [options]"
    add_verbs(parser, _VERBS, _add_list, _add_describe, _add_holders, _add_abort)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas transactions list [options]"
    parser.add_argument(
        "--state", action="append", default=[], metavar="STATE",
        help="only in this state, such as Ongoing",
    )  # fmt: skip
    parser.add_argument(
        "--longer-than", type=seconds, metavar="SECONDS", help="only what has been open for longer"
    )
    parser.add_argument(
        "--producer-id", type=_producer_id, action="append", default=[], metavar="N",
        help="only of this producer",
    )  # fmt: skip
    parser.add_argument("--pattern", metavar="REGEX", help="only ids that match, in RE2's language")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas transactions describe ID... [options]"
    parser.add_argument("ids", metavar="ID", nargs="+", help=argparse.SUPPRESS)


def _add_holders(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas transactions holders [options]"
    parser.add_argument(
        "-t", "--topic", type=topic_partitions, action="append", default=[], metavar="TOPIC[:N,N]",
        help="only of these (default: all topics)",
    )  # fmt: skip


def _add_abort(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas transactions abort (ID | -t TOPIC -p N --start-offset N) ..."
    parser.add_argument("id", metavar="ID", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("-t", "--topic", help="where a transaction hangs")
    parser.add_argument("-p", "--partition", type=whole_number, metavar="N", help="which partition")
    parser.add_argument(
        "--start-offset", type=_offset, metavar="N", help="where it begins: holders shows it"
    )
    add_yes(parser)


def _producer_id(text: str) -> int:
    return whole_number(text, most=_LARGEST_OFFSET)


def _offset(text: str) -> int:
    return whole_number(text, most=_LARGEST_OFFSET)


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    verb = {"list": list_all, "describe": describe, "holders": holders, "abort": abort}
    if arguments.verb == "abort":
        _check_abort(arguments)
    with Cluster.of(arguments) as cluster:
        cluster.topics([])  # A broker that is not there is reported at once.
        verb[arguments.verb](cluster, arguments)
    return OK


# -------------------------------------------------------------------------------- list, describe


def list_all(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print every transactional id with what it is doing."""
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

    problem: CommandError | Unreachable | None = None
    try:
        patiently(cluster, arguments.timeout, attempt)
    except (Rejected, Unreachable) as error:
        if not listing.transactions:
            raise
        problem = error
    _print_list(listing.transactions, arguments)
    if problem is not None:
        missing = [f"broker {node_id}: {each}" for node_id, each in listing.unreached.items()]
        raise CommandError(f"not all is listed: {'; '.join(missing) or problem}")


def _print_list(found: Sequence[Transaction], arguments: argparse.Namespace) -> None:
    if arguments.format == "json":
        print_json([_as_json(each) for each in found])
        return
    print_table(
        ("ID", "STATE", "PRODUCER", "EPOCH", "OPEN FOR", "PARTITIONS", "CLIENT", "HOST"),
        [
            (
                each.transactional_id,
                each.state,
                each.producer_id,
                each.producer_epoch,
                _age_text(each),
                len(each.partitions),
                each.client or None,
                each.host,
            )
            for each in found
        ],
    )


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print all there is to know of transactional ids."""
    ids = list(dict.fromkeys(arguments.ids))
    found = patiently(cluster, arguments.timeout, lambda: describe_transactions(cluster, ids))
    if arguments.format == "json":
        print_json([_as_json(each) for each in found])
        return
    for number, transaction in enumerate(found):
        if number:
            print_text()
        _print_description(transaction)


def _as_json(transaction: Transaction) -> dict[str, Any]:
    return {
        "transactional_id": transaction.transactional_id,
        "state": transaction.state,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "timeout_ms": transaction.timeout_ms,
        "start_time_ms": transaction.start_ms if transaction.is_open else None,
        "age_ms": _age_ms(transaction),
        "remaining_ms": _remaining_ms(transaction),
        "coordinator": transaction.coordinator,
        "client": transaction.client,
        "host": transaction.host,
        "partitions": [
            {"topic": topic, "partition": number} for topic, number in transaction.partitions
        ],
    }


def _age_ms(transaction: Transaction) -> int | None:
    """How long it has been open; None if it is not."""
    if not transaction.is_open or transaction.start_ms is None:
        return None
    return max(0, _now_ms() - transaction.start_ms)


def _age_text(transaction: Transaction) -> str | None:
    age_ms = _age_ms(transaction)
    return None if age_ms is None else duration_text(age_ms)


def _remaining_ms(transaction: Transaction) -> int | None:
    """How long its producer may still take; None without a time limit."""
    age_ms = _age_ms(transaction)
    if transaction.state != ONGOING or age_ms is None or transaction.timeout_ms == NEVER_MS:
        return None
    return max(0, transaction.timeout_ms - age_ms)


def _now_ms() -> int:
    return now_ns() // 1_000_000


def _print_description(transaction: Transaction) -> None:
    timeout_ms = transaction.timeout_ms
    age_ms = _age_ms(transaction)
    pairs: list[tuple[str, str | int | None]] = [
        ("transactional id", transaction.transactional_id),
        ("state", transaction.state),
        ("producer id", transaction.producer_id),
        ("producer epoch", transaction.producer_epoch),
        ("timeout", "none" if timeout_ms == NEVER_MS else duration_text(timeout_ms)),
    ]
    if age_ms is not None:
        pairs.append(("since", time_text(transaction.start_ms or 0)))
        pairs.append(("open for", duration_text(age_ms)))
        pairs.append(("ends", _end_text(transaction)))
    pairs.append(("coordinator", transaction.coordinator))
    if transaction.host is not None:
        pairs += [("client", transaction.client or None), ("host", transaction.host)]
    print_pairs(pairs)
    if transaction.partitions:
        print_text()
        print_table(("TOPIC", "PARTITION"), transaction.partitions)


def _end_text(transaction: Transaction) -> str:
    """When it will be over at the latest, and by whose doing."""
    if transaction.state in PREPARED:
        left = count_text(len(transaction.partitions), "partition")
        return f"when the marker is written on {left}"
    remaining_ms = _remaining_ms(transaction)
    if remaining_ms is None:
        return "when somebody decides: it has no timeout (two-phase commit)"
    return f"aborted in {duration_text(remaining_ms)} unless its producer ends it"


# ---------------------------------------------------------------------------------------- holders


def holders(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print the open transactions that keep committed records from their readers."""
    _chosen(cluster, arguments.topic)  # A topic that is not there is reported at once.
    held = patiently(
        cluster,
        arguments.timeout,
        lambda: held_partitions(cluster, _chosen(cluster, arguments.topic)),
    )
    if arguments.format == "json":
        print_json([_held_as_json(each) for each in held])
        return
    print_table(
        _HOLDER_COLUMNS,
        [
            (*each.topic_partition, each.stable_offset, each.end_offset, *_holder_row(holder))
            for each in held
            for holder in each.transactions
        ],
    )


def _chosen(cluster: Cluster, wanted: list[tuple[str, list[int]]]) -> list[Partition]:
    """Return the partitions that are meant; by default all that have a leader.

    Raises CommandError.
    """
    if not wanted:
        return [
            Partition(topic.name or "", each.partition_index, each.leader_id)
            for topic in cluster.topics()
            for each in topic.partitions
            if each.leader_id >= 0
        ]
    chosen = {}
    for topic, numbers in wanted:
        found = {each.number: each for each in cluster.partitions(topic)}
        for number in numbers or found:
            if number not in found:
                topic_partition = partition_text((topic, number))
                raise CommandError(f"{topic_partition}: the topic has only {len(found)} partitions")
            chosen[topic, number] = found[number]
    return list(chosen.values())


def _holder_row(each: OpenTransaction) -> tuple[str | int | None, ...]:
    transaction = each.transaction
    return (
        each.start_offset,
        each.producer.producer_id,
        each.producer.producer_epoch,
        None if transaction is None else transaction.transactional_id,
        HANGING if transaction is None else transaction.state,
        None if transaction is None else _age_text(transaction),
        None if transaction is None else transaction.client or None,
        None if transaction is None else transaction.host,
    )


def _held_as_json(held: HeldPartition) -> dict[str, Any]:
    topic, number = held.topic_partition
    return {
        "topic": topic,
        "partition": number,
        "stable_offset": held.stable_offset,
        "end_offset": held.end_offset,
        "transactions": [
            {
                "start_offset": each.start_offset,
                "producer_id": each.producer.producer_id,
                "producer_epoch": each.producer.producer_epoch,
                "last_timestamp_ms": each.producer.last_timestamp,
                "hanging": each.transaction is None,
                "transaction": None if each.transaction is None else _as_json(each.transaction),
            }
            for each in held.transactions
        ],
    }


# ------------------------------------------------------------------------------------------ abort


def abort(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Abort a transaction by its id, or a hanging one by its place."""
    if arguments.id is not None:
        _abort_by_id(cluster, arguments)
    else:
        _abort_by_place(cluster, arguments)


def _check_abort(arguments: argparse.Namespace) -> None:
    topic_partition = (arguments.topic, arguments.partition, arguments.start_offset)
    if (arguments.id is None) == (topic_partition == (None, None, None)):
        raise CommandError("say which one: ID, or -t, -p and --start-offset", USAGE)
    if arguments.id is None and None in topic_partition:
        raise CommandError("a place is -t, -p and --start-offset together", USAGE)
    check_can_ask(arguments)


def _abort_by_id(cluster: Cluster, arguments: argparse.Namespace) -> None:
    key = arguments.id
    (transaction,) = patiently(
        cluster, arguments.timeout, lambda: describe_transactions(cluster, [key])
    )
    check_open(transaction)
    question = (
        f"Abort {key}, open for {_age_text(transaction)} on "
        f"{count_text(len(transaction.partitions), 'partition')}, and fence its producer"
    )
    if transaction.timeout_ms == NEVER_MS:
        question += " (another system may have promised to commit it: two-phase commit)"
    confirm(arguments, question)
    patiently(cluster, arguments.timeout, lambda: abort_everywhere(cluster, transaction))
    if arguments.format == "json":
        print_json({"transactional_id": key, "changed": True})
    else:
        print_text(f"{key} aborted")


def _abort_by_place(cluster: Cluster, arguments: argparse.Namespace) -> None:
    topic_partition, start_offset = (arguments.topic, arguments.partition), arguments.start_offset
    (partition,) = _chosen(cluster, [(topic_partition[0], [topic_partition[1]])])
    confirm(
        arguments,
        f"Abort what hangs on {partition_text(topic_partition)} from offset {start_offset} on",
    )
    patiently(cluster, arguments.timeout, lambda: abort_hanging(cluster, partition, start_offset))
    if arguments.format == "json":
        topic, number = topic_partition
        print_json(
            {
                "topic": topic,
                "partition": number,
                "start_offset": start_offset,
                "changed": True,
            }
        )
    else:
        print_text(f"{partition_text(topic_partition)} from offset {start_offset} on aborted")
