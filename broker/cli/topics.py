"""``barnabas topics``: list, describe, create, delete, alter."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from barnabas.broker.cli.arguments import (
    add_settings,
    add_verbs,
    positive_number,
)
from barnabas.broker.cli.cluster_view import Cluster, Rejected, check
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.offsets import EARLIEST, LATEST, offsets_at, patiently
from barnabas.broker.cli.outcome import Outcome
from barnabas.broker.cli.output import print_json, print_pairs, print_table
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.resource_settings import (
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    alter_settings,
    changes_of,
    described,
    settings_of,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_records import uuid_text
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.metadata import MetadataResponseTopic

_BROKER_DEFAULT = -1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs with theirs."""
    parser.usage = "barnabas topics VERB [options]"
    add_verbs(parser, _VERBS, _add_list, _add_describe, _add_create, _add_delete, _add_alter)


_VERBS = {
    "list": "List topics",
    "describe": "Show partitions, offsets and configurations of topics",
    "create": "Create topics",
    "delete": "Delete topics with all their records",
    "alter": "Add partitions to a topic, change its configurations",
}


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas topics list [options]"
    parser.add_argument(
        "-i", "--internal", action="store_true", help="also those of the broker itself"
    )


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas topics describe TOPIC... [options]"
    _add_names(parser)
    parser.add_argument(
        "-c", "--configs", action="store_true", help="all configurations, not only those set"
    )


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas topics create TOPIC... [options]"
    _add_names(parser)
    parser.add_argument(
        "-p",
        "--partitions",
        type=positive_number,
        default=_BROKER_DEFAULT,
        metavar="N",
        help="how many (default: the broker decides)",
    )
    parser.add_argument(
        "-r",
        "--replication-factor",
        type=positive_number,
        default=_BROKER_DEFAULT,
        metavar="N",
        help="copies (default: the broker decides)",
    )
    add_settings(parser)
    parser.add_argument(
        "--if-not-exists", action="store_true", help="a topic that is there is no error"
    )
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would be done")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas topics delete TOPIC... [options]"
    _add_names(parser)
    parser.add_argument(
        "--if-exists", action="store_true", help="a topic that is not there is no error"
    )


def _add_alter(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas topics alter TOPIC [options]"
    parser.add_argument("topic", metavar="TOPIC", help=argparse.SUPPRESS)
    parser.add_argument(
        "-p",
        "--partitions",
        type=positive_number,
        metavar="N",
        help="how many it shall have in all; never fewer",
    )
    add_settings(parser)
    parser.add_argument(
        "--unset",
        action="append",
        default=[],
        metavar="KEY",
        help="take a configuration back; repeatable",
    )
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would be done")


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    verb = {
        "list": list_topics,
        "describe": describe,
        "create": create,
        "delete": delete,
        "alter": alter,
    }[arguments.verb]
    with Cluster.of(arguments) as cluster:
        verb(cluster, arguments)
    return OK


# -------------------------------------------------------------------------------- list, describe


def list_topics(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print name, partitions and replicas of every topic."""
    topics = [each for each in cluster.topics() if arguments.internal or not each.is_internal]
    if arguments.format == "json":
        print_json([_summary(topic) for topic in topics])
        return
    print_table(
        ("TOPIC", "PARTITIONS", "REPLICAS"),
        [(topic.name, len(topic.partitions), _replicas(topic)) for topic in topics],
    )


def _summary(topic: MetadataResponseTopic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": _replicas(topic),
    }


def _replicas(topic: MetadataResponseTopic) -> int:
    return max((len(each.replica_nodes) for each in topic.partitions), default=0)


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print everything about topics: ids, configurations, leaders, replicas and offsets."""
    names = list(dict.fromkeys(arguments.topics))
    topics = cluster.topics(names)
    for topic in topics:
        check(topic.name or "", topic.error_code)
    settings = _settings(cluster, names, every=arguments.configs)
    descriptions = [
        {
            **_summary(topic),
            "configs": settings[topic.name or ""],
            "partitions": _partitions(cluster, topic, arguments.timeout),
        }
        for topic in topics
    ]
    if arguments.format == "json":
        print_json(descriptions)
        return
    for number, topic_description in enumerate(descriptions):
        if number:
            print_text()
        _print_description(topic_description, every=arguments.configs)


def _partitions(
    cluster: Cluster, topic: MetadataResponseTopic, timeout_seconds: float
) -> list[dict[str, Any]]:
    """Return leader, replicas and offsets of a topic's partitions, in their order."""
    name = topic.name or ""

    def offsets() -> list[dict[tuple[str, int], int]]:
        led = [each for each in cluster.partitions(name) if each.leader_id >= 0]
        return [offsets_at(cluster, led, when, "read_uncommitted") for when in (EARLIEST, LATEST)]

    starts, ends = patiently(cluster, timeout_seconds, offsets)
    return [
        {
            "partition": each.partition_index,
            "leader": each.leader_id if each.leader_id >= 0 else None,
            "leader_epoch": each.leader_epoch,
            "replicas": each.replica_nodes,
            "in_sync": each.isr_nodes,
            "start_offset": starts.get((name, each.partition_index)),
            "end_offset": ends.get((name, each.partition_index)),
        }
        for each in topic.partitions
    ]


def _settings(
    cluster: Cluster, names: Sequence[str], *, every: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the settings of topics by name: those set on the topic, or all."""
    return {
        name: [
            described(each)
            for each in settings
            if every or each.config_source == DYNAMIC_TOPIC_CONFIG
        ]
        for name, settings in settings_of(cluster, TOPIC, names).items()
    }


def _print_description(topic: dict[str, Any], *, every: bool) -> None:
    partitions = topic["partitions"]
    print_pairs(
        [
            ("topic", topic["topic"]),
            ("id", topic["topic_id"]),
            ("partitions", len(partitions)),
            ("replicas", topic["replicas"]),
        ]
    )
    if every:
        print_text()
        print_table(
            ("CONFIGURATION", "VALUE", "SOURCE"),
            [(each["key"], each["value"], each["source"]) for each in topic["configs"]],
        )
    else:
        for each in topic["configs"]:
            print_text(f"config      {each['key']}={each['value']}")
    print_text()
    print_table(
        ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC", "START", "END"),
        [
            (
                each["partition"],
                each["leader"],
                each["leader_epoch"],
                _node_list(each["replicas"]),
                _node_list(each["in_sync"]),
                each["start_offset"],
                each["end_offset"],
            )
            for each in partitions
        ],
    )


def _node_list(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes)) or "-"


# ---------------------------------------------------------------------------------------- changes


def create(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Create topics that are all alike."""
    configs = [CreatableTopicConfig(key, value) for key, value in arguments.config]
    wanted = [
        CreatableTopic(name, arguments.partitions, arguments.replication_factor, [], configs)
        for name in dict.fromkeys(arguments.topics)
    ]
    timeout_ms = int(arguments.timeout * 1000)
    request = CreateTopicsRequest(wanted, timeout_ms, arguments.dry_run)
    outcome = Outcome(
        "topic", "would be created" if arguments.dry_run else "created", arguments.format
    )
    results = cluster.ask(CREATE_TOPICS, request).topics
    if not arguments.dry_run:
        made = [result.name for result in results if not result.error_code]
        patiently(cluster, arguments.timeout, lambda: _check_visible(cluster, made))
    for result in results:
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and arguments.if_not_exists:
            outcome.unchanged(result.name, "was there already")
        elif outcome.settled(result.name, result.error_code, result.error_message):
            counts = {"partitions": result.num_partitions, "replicas": result.replication_factor}
            outcome.done(result.name, "", **counts)
    outcome.conclude()


def _check_visible(cluster: Cluster, names: list[str]) -> None:
    """Raise Rejected until every topic can be used: Kafka's own metadata follows a little later."""
    for topic in cluster.topics(names) if names else []:
        check(topic.name or "", topic.error_code)
        for each in topic.partitions:
            if each.leader_id < 0:
                raise Rejected(topic.name or "", ErrorCode.LEADER_NOT_AVAILABLE)


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete topics."""
    names = list(dict.fromkeys(arguments.topics))
    timeout_ms = int(arguments.timeout * 1000)
    # Versions before 6 take the names from the second list.
    states = [DeleteTopicState(name=name) for name in names]
    request = DeleteTopicsRequest(states, names, timeout_ms)
    outcome = Outcome("topic", "deleted", arguments.format)
    for result in cluster.ask(DELETE_TOPICS, request).responses:
        name = result.name or ""
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and arguments.if_exists:
            outcome.unchanged(name, "was not there")
        elif outcome.settled(name, result.error_code, result.error_message):
            outcome.done(name)
    outcome.conclude()


def alter(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Change a topic's configurations, then the number of its partitions."""
    changes = changes_of(arguments.config, arguments.unset)
    if not changes and arguments.partitions is None:
        raise CommandError("nothing to alter: give -p, -X or --unset", USAGE)
    name = arguments.topic
    if changes:
        alter_settings(cluster, TOPIC, name, changes, dry_run=arguments.dry_run)
    if arguments.partitions is not None:
        _add_partitions(cluster, arguments)
    outcome = Outcome(
        "topic", "would be altered" if arguments.dry_run else "altered", arguments.format
    )
    outcome.done(name)
    outcome.conclude()


def _add_partitions(cluster: Cluster, arguments: argparse.Namespace) -> None:
    wanted = [CreatePartitionsTopic(arguments.topic, arguments.partitions, None)]
    timeout_ms = int(arguments.timeout * 1000)
    request = CreatePartitionsRequest(wanted, timeout_ms, arguments.dry_run)
    (result,) = cluster.ask(CREATE_PARTITIONS, request).results
    check(arguments.topic, result.error_code, result.error_message)
