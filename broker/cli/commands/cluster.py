"""``barnabas cluster``: describe, configs, alter, move, release, drain; import, export, reopen;
cost.
"""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from barnabas.broker.admin.exchange import Rejected, check, partition_text
from barnabas.broker.admin.settings import (
    BROKER,
    DEFAULT_CONFIG,
    alter_settings,
    setting_of,
    settings_of,
)
from barnabas.broker.cli.arguments import (
    add_flag,
    add_operand,
    add_settings,
    add_unset,
    changes_in,
    topic_partitions,
    whole_number,
)
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.directory import cluster_cost, cluster_transfer
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.leader_moves import (
    Asked,
    Move,
    Mover,
    Placed,
    asked_for,
    away_from,
    placed,
)
from barnabas.broker.cli.outcome import Outcome
from barnabas.broker.cli.output import (
    SETTING_COLUMNS,
    print_done,
    print_found,
    print_json,
    print_pairs,
    print_table,
)
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.broker.client.errors import Unreachable
from barnabas.broker.cluster.moves import Pinning
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS, DescribeLogDirsRequest

CORDONED = "cordoned.log.dirs"
"""The setting that excludes a broker from new partitions; with Apache Kafka it keeps its present
ones."""
CORDONED_SINCE = 5
"""First version of DescribeLogDirs with cordoned directories (KIP-1066)."""
_CORDONED_SECONDS = 2.0
"""Time for a broker to report whether it is cordoned; the output does not depend on it."""
_COST = ("Show what the stores of a cluster have, and what they cost", cluster_cost.add_cost)
_FEATURES = ("metadata.version", "group.version", "transaction.version")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS, offline={**cluster_transfer.VERBS, "cost": _COST})


def _add_describe(_: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def _add_configs(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "keys", "KEY", count="*")
    parser.add_argument(
        "-a", "--all", action="store_true", help="also defaults, not only settings made"
    )
    parser.add_argument(
        "--broker", type=whole_number, metavar="ID", help="node ID (default: the first)"
    )


def _add_alter(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    add_unset(parser, "setting")
    parser.add_argument(
        "--broker", type=whole_number, metavar="ID", help="node ID (default: all brokers)"
    )
    add_flag(parser, "--dry-run", "only validate the change")


def _add_move(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "partitions", "TOPIC", count="+", read=topic_partitions)
    parser.add_argument(
        "--to", type=whole_number, metavar="ID", required=True, help="node ID of the new leader"
    )
    add_flag(parser, "--dry-run", "only print which partitions would move")


def _add_release(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "partitions", "TOPIC", count="+", read=topic_partitions)
    add_flag(parser, "--dry-run", "only print which pins would be removed")


def _add_drain(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "broker", "ID", read=whole_number)
    add_flag(parser, "--undo", "allow it to lead partitions again")
    add_flag(parser, "--dry-run", "only print which partitions would move")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.verb in cluster_transfer.VERBS:
        return cluster_transfer.run(arguments)
    if arguments.verb == "cost":
        return cluster_cost.cost(arguments)
    return run_verb(arguments)


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print id, brokers and leadership of the cluster."""
    response = cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest())
    check("cluster", response.error_code, response.error_message)
    broker = cluster.any()
    partitions = placed(cluster)
    leads = Counter(each.leader_id for each in partitions)
    asked = _asked_for(cluster)
    coming = None if asked is None else Counter(asked.ongoing.values())
    cordoned = _cordoned(cluster)
    found: dict[str, Any] = {
        "cluster": response.cluster_id,
        "controller": response.controller_id,
        "features": {name: broker.feature_level(name) for name in _FEATURES},
        "brokers": [
            {
                "id": each.broker_id,
                "host": each.host,
                "port": each.port,
                "rack": each.rack,
                "leads": leads[each.broker_id],
                "coming": None if coming is None else coming[each.broker_id],
                "cordoned": cordoned.get(each.broker_id),
            }
            for each in sorted(response.brokers, key=lambda each: each.broker_id)
        ],
        "pins": None if asked is None else _pins(asked, partitions),
        "lacks_object_store": response.lacks_object_store,
    }
    if arguments.format == "json":
        print_json(found)
        return
    pairs = [(name, found[name]) for name in ("cluster", "controller")]
    lacking = response.lacks_object_store
    if lacking is not None:
        nodes = ", ".join(map(str, lacking))
        text = f"not used until these brokers have it: {nodes}" if lacking else "in use"
        pairs.append(("object store", text))
    print_pairs([*pairs, *found["features"].items()])
    print_text()
    said = {None: "unknown", True: "yes", False: "no"}
    print_table(
        ("BROKER", "HOST", "PORT", "RACK", "LEADS", "COMING", "CORDONED"),
        [(*[*each.values()][:-1], said[each["cordoned"]]) for each in found["brokers"]],
    )
    if found["pins"]:
        print_text()
        print_table(
            ("PARTITION", "PINNED TO", "LEADER"),
            [tuple(each.values()) for each in found["pins"]],
        )


def _asked_for(cluster: Cluster) -> Asked | None:
    """Return the requested reassignments, or None if this user may not see them."""
    try:
        return asked_for(cluster)
    except Rejected as refused:
        if refused.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return None


def _pins(requested: Asked, partitions: Sequence[Placed]) -> list[dict[str, Any]] | None:
    """Return the pinned partitions and their leaders, or None if the brokers know no pins."""
    if requested.pins is None:
        return None
    return [
        {
            "partition": partition_text(each.topic_partition),
            "broker": requested.pins[each.topic_partition],
            "leader": each.leader_id,
        }
        for each in partitions
        if each.topic_partition in requested.pins
    ]


def _cordoned(cluster: Cluster) -> dict[int, bool]:
    """Return whether each broker is cordoned, without those that do not report it."""
    found = {}
    seconds = min(cluster.timeout_seconds, _CORDONED_SECONDS)
    for node_id in cluster.node_ids:
        try:
            with contextlib.closing(cluster.connect(node_id, seconds)) as connection:
                if not connection.speaks(DESCRIBE_LOG_DIRS, CORDONED_SINCE):
                    continue
                response = connection.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest([]))
        except Unreachable:
            continue
        if response.results and not response.error_code:
            found[node_id] = all(each.is_cordoned for each in response.results)
    return found


def configs(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print a broker's settings."""
    cluster.topics([])
    node_id = cluster.node_ids[0] if arguments.broker is None else arguments.broker
    if node_id not in cluster.node_ids:
        raise CommandError(f"broker {node_id} is none of the brokers {list(cluster.node_ids)}")
    (settings,) = cluster.run(settings_of(BROKER, [str(node_id)], node_id)).values()
    unknown = sorted(set(arguments.keys) - {each.name for each in settings})
    if unknown:
        raise CommandError(f"{unknown[0]}: the setting does not exist", USAGE)
    found = [
        setting_of(each)
        for each in settings
        if each.name in arguments.keys
        or (not arguments.keys and (arguments.all or each.config_source != DEFAULT_CONFIG))
    ]
    document = {"broker": node_id, "configs": found}
    print_found(found, SETTING_COLUMNS, arguments.format, document)


def alter(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Change settings of one broker, or of all; they are kept over restarts."""
    changes = changes_in(arguments)
    if not changes:
        raise CommandError("no setting to alter was given: use -X or --unset", USAGE)
    name = "" if arguments.broker is None else str(arguments.broker)
    if arguments.broker is not None:
        cluster.topics([])
        _check_broker(cluster, arguments.broker)
    to = arguments.broker
    cluster.run(alter_settings(BROKER, name, changes, dry_run=arguments.dry_run, to=to))
    done = "would be altered" if arguments.dry_run else "altered"
    document = {"broker": arguments.broker, "changed": not arguments.dry_run}
    text = f"{f'broker {name}' if name else 'all brokers'} {done}"
    print_done(arguments.format, document, text)


def move(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Move the leadership of partitions to a broker, and pin them to it."""
    chosen = _chosen(cluster, arguments)
    _check_broker(cluster, arguments.to)
    _carry_out(cluster, arguments, [Move(each, arguments.to) for each in chosen], Pinning.SET)


def release(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Remove the pins of partitions."""
    chosen = _chosen(cluster, arguments)
    pins = asked_for(cluster).pins
    if pins is None:
        raise CommandError("partitions cannot be pinned: the cluster is not a Barnabas cluster")
    verb = "would be released" if arguments.dry_run else "released"
    outcome = Outcome("partition", verb, arguments.format)
    pinned = [each for each in chosen if each.topic_partition in pins]
    mover = Mover(cluster)
    if pinned and not arguments.dry_run:
        mover.release(pinned)
    for each in chosen:
        problem = mover.problems.get(each.topic_partition)
        if problem is not None:
            outcome.failed(problem)
        else:
            remark = "" if each in pinned else "is not pinned"
            outcome.done(partition_text(each.topic_partition), remark)
    outcome.conclude()


def _chosen(cluster: Cluster, arguments: argparse.Namespace) -> list[Placed]:
    """Return the partitions that a command names; raises CommandError."""
    asked: dict[str, list[list[int]]] = {}
    for topic, numbers in arguments.partitions:
        asked.setdefault(topic, []).append(numbers)
    found = placed(cluster, list(asked))
    known = {each.topic_partition for each in found}
    named = {(topic, each) for topic, lists in asked.items() for each in chain(*lists)}
    for missing in sorted(named - known):
        raise CommandError(f"partition {partition_text(missing)} does not exist")
    # A partition named alone selects all partitions of its topic, even among single ones.
    whole = {topic for topic, lists in asked.items() if [] in lists}
    return [each for each in found if each.topic in whole or each.topic_partition in named]


def drain(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Move all partitions away from a broker, until that is undone."""
    found = placed(cluster)
    node_id = arguments.broker
    _check_broker(cluster, node_id)
    if arguments.undo:
        _cordon(cluster, arguments, None)
        verb = "could" if arguments.dry_run else "can"
        document = {"broker": node_id, "changed": not arguments.dry_run}
        print_done(arguments.format, document, f"broker {node_id} {verb} lead partitions again")
        return
    cordoned = _cordoned(cluster)
    takers = [each for each in cluster.node_ids if each != node_id and not cordoned.get(each)]
    moves = away_from(node_id, found, takers or cluster.node_ids)
    _cordon(cluster, arguments, "*")
    # What is pinned here returns when that is undone.
    _carry_out(cluster, arguments, moves, Pinning.LEFT)


def _cordon(cluster: Cluster, arguments: argparse.Namespace, value: str | None) -> None:
    """Change whether a broker receives partitions, by a request to that broker as in Kafka."""
    name, changes, dry_run = str(arguments.broker), [(CORDONED, value)], arguments.dry_run
    cluster.run(alter_settings(BROKER, name, changes, dry_run=dry_run, to=arguments.broker))


def _check_broker(cluster: Cluster, node_id: int) -> None:
    if node_id not in cluster.node_ids:
        raise CommandError(f"broker {node_id} is none of the brokers {list(cluster.node_ids)}")


def _carry_out(
    cluster: Cluster, arguments: argparse.Namespace, moves: Sequence[Move], pinning: Pinning
) -> None:
    """Request moves, wait for them, and print the result of each."""
    outcome = Outcome(
        "partition", "would be moved" if arguments.dry_run else "moved", arguments.format
    )
    mover = Mover(cluster)
    wanted = [each for each in moves if each.partition.leader_id != each.to]
    # Those that are led so already are to stay as well.
    asked = moves if pinning is Pinning.SET else wanted
    late: list[Move] = []
    if asked and not arguments.dry_run:
        # A partition that leaves a broker can go to another one than requested: the balancer moves
        # it, too.
        late = mover.wait(mover.ask(asked, pinning), anywhere=pinning is Pinning.LEFT)
    for each in moves:
        name = partition_text(each.partition.topic_partition)
        problem = mover.problems.get(each.partition.topic_partition)
        if problem is not None:
            outcome.failed(problem)
        elif each in late:
            outcome.failed(CommandError(f"{name}: not led by broker {each.to} yet"))
        else:
            remark = "" if each in wanted else f"is led by broker {each.to} already"
            to = mover.leaders.get(each.partition.topic_partition, each.to)
            outcome.done(name, remark, **{"from": each.partition.leader_id, "to": to})
    outcome.conclude()


_VERBS = {
    "describe": Verb(
        "Show a cluster's id, brokers, their partitions, and features",
        "[options]",
        _add_describe,
        describe,
    ),
    "configs": Verb(
        "Show settings of a broker and where they come from",
        "[KEY...] [options]",
        _add_configs,
        configs,
    ),
    "alter": Verb("Change settings of brokers while they run", "[options]", _add_alter, alter),
    "move": Verb(
        "Move partitions to a broker, and pin them to it",
        "TOPIC[:N,N]... --to ID [options]",
        _add_move,
        move,
    ),
    "release": Verb(
        "Remove the pins of partitions", "TOPIC[:N,N]... [options]", _add_release, release
    ),
    "drain": Verb(
        "Move all partitions of a broker to other brokers", "ID [options]", _add_drain, drain
    ),
}
