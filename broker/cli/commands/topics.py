"""``barnabas topics``: list, describe, create, delete, alter."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial

from barnabas.broker.admin.exchange import Rejected, check
from barnabas.broker.admin.offsets import EARLIEST, LATEST, Offsets, offsets_at
from barnabas.broker.admin.settings import (
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    Setting,
    alter_settings,
    setting_of,
    settings_of,
)
from barnabas.broker.admin.topics import (
    BROKER_DEFAULT,
    add_partitions,
    create_topics,
    delete_topics,
)
from barnabas.broker.cli.arguments import (
    add_flag,
    add_operand,
    add_settings,
    add_unset,
    changes_in,
    positive_number,
)
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.outcome import Outcome
from barnabas.broker.cli.output import (
    SETTING_COLUMNS,
    print_each,
    print_found,
    print_pairs,
    print_rows,
)
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.retries import patiently
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_records import uuid_text
from barnabas.protocol.messages.delete_topics import DeleteTopicState
from barnabas.protocol.messages.metadata import MetadataResponseTopic

_PARTITIONS = {
    "PARTITION": "partition",
    "LEADER": "leader",
    "EPOCH": "leader_epoch",
    "REPLICAS": "replicas_text",
    "IN SYNC": "in_sync_text",
    "START": "start_offset",
    "END": "end_offset",
}


@dataclass(frozen=True)
class ListedTopic:
    """A topic in a list."""

    topic: str | None
    topic_id: str
    internal: bool
    partitions: int
    replicas: int


@dataclass(frozen=True)
class TopicPartition:
    """A partition of a topic; values that only its leader knows are ``None`` without one."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    start_offset: int | None
    end_offset: int | None

    @property
    def replicas_text(self) -> str:
        """Return the replicas as text."""
        return ",".join(map(str, self.replicas)) or "-"

    @property
    def in_sync_text(self) -> str:
        """Return the in-sync replicas as text."""
        return ",".join(map(str, self.in_sync)) or "-"


@dataclass(frozen=True)
class TopicDescription:
    """A topic with its configurations and partitions."""

    topic: str | None
    topic_id: str
    internal: bool
    partitions: list[TopicPartition]
    replicas: int
    configs: list[Setting]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-i", "--internal", action="store_true", help="also internal topics")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument(
        "-c", "--configs", action="store_true", help="all settings, not only those made"
    )


def _add_create(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument(
        "-p", "--partitions", type=positive_number, default=BROKER_DEFAULT, metavar="N",
        help="number of partitions (default: the broker's)",
    )  # fmt: skip
    parser.add_argument(
        "-r", "--replication-factor", type=positive_number, default=BROKER_DEFAULT, metavar="N",
        help="replication factor (default: the broker's)",
    )  # fmt: skip
    add_settings(parser)
    add_flag(parser, "--if-not-exists", "ignore topics that exist")
    add_flag(parser, "--dry-run", "only validate the change")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    add_flag(parser, "--if-exists", "ignore topics that do not exist")


def _add_alter(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "topic", "TOPIC")
    parser.add_argument(
        "-p", "--partitions", type=positive_number, metavar="N",
        help="new total number of partitions (not below the current number)",
    )  # fmt: skip
    add_settings(parser)
    add_unset(parser, "configuration")
    add_flag(parser, "--dry-run", "only validate the change")


def _add_names(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "topics", "TOPIC", count="+")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    return run_verb(arguments)


# -------------------------------------------------------------------------------- list, describe


def list_topics(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print name, partitions and replicas of every topic."""
    topics = [each for each in cluster.topics() if arguments.internal or not each.is_internal]
    columns = {"TOPIC": "topic", "PARTITIONS": "partitions", "REPLICAS": "replicas"}
    print_found([_listed(topic) for topic in topics], columns, arguments.format)


def _listed(topic: MetadataResponseTopic) -> ListedTopic:
    replicas = max((len(each.replica_nodes) for each in topic.partitions), default=0)
    topic_id = uuid_text(topic.topic_id)
    return ListedTopic(topic.name, topic_id, topic.is_internal, len(topic.partitions), replicas)


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print everything about topics: ids, configurations, leaders, replicas and offsets."""
    names = list(dict.fromkeys(arguments.topics))
    topics = cluster.topics(names)
    for topic in topics:
        check(topic.name or "", topic.error_code)
    settings = cluster.run(settings_of(TOPIC, names))
    described = [
        TopicDescription(
            **{
                **vars(_listed(topic)),
                "partitions": _partitions(cluster, topic),
            },
            configs=[
                setting_of(each)
                for each in settings[topic.name or ""]
                if arguments.configs or each.config_source == DYNAMIC_TOPIC_CONFIG
            ],
        )
        for topic in topics
    ]
    show = partial(_print_description, every=arguments.configs)
    print_each(described, show, arguments.format)


def _partitions(cluster: Cluster, topic: MetadataResponseTopic) -> list[TopicPartition]:
    """Return leader, replicas and offsets of a topic's partitions, in their order."""
    name = topic.name or ""

    def offsets() -> list[Offsets]:
        led = [each for each in cluster.partitions(name) if each.leader_id >= 0]
        return [cluster.run(offsets_at(led, when)) for when in (EARLIEST, LATEST)]

    starts, ends = patiently(cluster, offsets)
    return [
        TopicPartition(
            each.partition_index,
            each.leader_id if each.leader_id >= 0 else None,
            each.leader_epoch,
            each.replica_nodes,
            each.isr_nodes,
            starts.get((name, each.partition_index)),
            ends.get((name, each.partition_index)),
        )
        for each in topic.partitions
    ]


def _print_description(topic: TopicDescription, *, every: bool) -> None:
    print_pairs(
        [
            ("topic", topic.topic),
            ("id", topic.topic_id),
            ("partitions", len(topic.partitions)),
            ("replicas", topic.replicas),
        ]
    )
    if every:
        print_text()
        print_rows(topic.configs, SETTING_COLUMNS)
    else:
        for each in topic.configs:
            print_text(f"config      {each.key}={each.value}")
    print_text()
    print_rows(topic.partitions, _PARTITIONS)


# ---------------------------------------------------------------------------------------- changes


def create(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Create topics that are all alike."""
    creation = create_topics(
        dict.fromkeys(arguments.topics),
        arguments.partitions,
        arguments.config,
        dry_run=arguments.dry_run,
        replicas=arguments.replication_factor,
        timeout_ms=int(arguments.timeout * 1000),
    )
    outcome = Outcome(
        "topic", "would be created" if arguments.dry_run else "created", arguments.format
    )
    results = cluster.run(creation)
    if not arguments.dry_run:
        made = [result.name for result in results if not result.error_code]
        patiently(cluster, lambda: _check_visible(cluster, made))
    for result in results:
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and arguments.if_not_exists:
            outcome.unchanged(result.name, "was there already")
        elif outcome.settled(result.name, result.error_code, result.error_message):
            counts = {"partitions": result.num_partitions, "replicas": result.replication_factor}
            outcome.done(result.name, "", **counts)
    outcome.conclude()


def _check_visible(cluster: Cluster, names: list[str]) -> None:
    """Raise Rejected until every topic is visible, which takes Kafka a moment."""
    for topic in cluster.topics(names) if names else []:
        check(topic.name or "", topic.error_code)
        for each in topic.partitions:
            if each.leader_id < 0:
                raise Rejected(topic.name or "", ErrorCode.LEADER_NOT_AVAILABLE)


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete topics."""
    topics = [DeleteTopicState(name) for name in dict.fromkeys(arguments.topics)]
    deletion = delete_topics(topics, int(arguments.timeout * 1000))
    outcome = Outcome("topic", "deleted", arguments.format)
    for result in cluster.run(deletion):
        name = result.name or ""
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and arguments.if_exists:
            outcome.unchanged(name, "was not there")
        elif outcome.settled(name, result.error_code, result.error_message):
            outcome.done(name)
    outcome.conclude()


def alter(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Change a topic's configurations, then the number of its partitions."""
    changes = changes_in(arguments)
    if not changes and arguments.partitions is None:
        raise CommandError("no change was given: use -p, -X or --unset", USAGE)
    name = arguments.topic
    if changes:
        cluster.run(alter_settings(TOPIC, name, changes, dry_run=arguments.dry_run))
    if arguments.partitions is not None:
        timeout_ms, count = int(arguments.timeout * 1000), arguments.partitions
        cluster.run(add_partitions(name, count, dry_run=arguments.dry_run, timeout_ms=timeout_ms))
    outcome = Outcome(
        "topic", "would be altered" if arguments.dry_run else "altered", arguments.format
    )
    outcome.done(name)
    outcome.conclude()


_VERBS = {
    "list": Verb("List topics", "[options]", _add_list, list_topics),
    "describe": Verb(
        "Show partitions, offsets and configurations of topics",
        "TOPIC... [options]",
        _add_describe,
        describe,
    ),
    "create": Verb("Create topics", "TOPIC... [options]", _add_create, create),
    "delete": Verb(
        "Delete topics with all their records", "TOPIC... [options]", _add_delete, delete
    ),
    "alter": Verb(
        "Add partitions to a topic, change its configurations",
        "TOPIC [options]",
        _add_alter,
        alter,
    ),
}
