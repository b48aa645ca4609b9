"""``barnabas cluster``: describe, configs, alter."""

from __future__ import annotations

import argparse
from typing import Any

from barnabas.broker.cli.arguments import add_settings, add_verbs, whole_number
from barnabas.broker.cli.cluster_view import Cluster, check
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.output import print_json, print_pairs, print_table
from barnabas.broker.cli.resource_settings import (
    BROKER,
    DEFAULT_CONFIG,
    alter_settings,
    changes_of,
    described,
    settings_of,
)
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest

_VERBS = {
    "describe": "Show a cluster's id, brokers and features",
    "configs": "Show settings of a broker and where they come from",
    "alter": "Change settings of brokers while they run",
}
_FEATURES = ("metadata.version", "group.version", "transaction.version")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs with theirs."""
    parser.usage = "barnabas cluster VERB [options]"
    add_verbs(parser, _VERBS, _add_describe, _add_configs, _add_alter)


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster describe [options]"


def _add_configs(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster configs [KEY...] [options]"
    parser.add_argument("keys", metavar="KEY", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument(
        "-a", "--all", action="store_true", help="defaults, too, not only what was set"
    )
    parser.add_argument(
        "--broker", type=whole_number, metavar="ID", help="of this one (default: the first)"
    )


def _add_alter(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas cluster alter [options]"
    add_settings(parser)
    parser.add_argument(
        "--unset",
        action="append",
        default=[],
        metavar="KEY",
        help="take a setting back; repeatable",
    )
    parser.add_argument(
        "--broker", type=whole_number, metavar="ID", help="of this one only (default: of all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would be done")


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    verb = {"describe": describe, "configs": configs, "alter": alter}[arguments.verb]
    with Cluster.of(arguments) as cluster:
        verb(cluster, arguments)
    return OK


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print who the cluster is."""
    response = cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest())
    check("cluster", response.error_code, response.error_message)
    broker = cluster.any()
    found: dict[str, Any] = {
        "cluster": response.cluster_id,
        "controller": response.controller_id,
        "features": {name: broker.feature_level(name) for name in _FEATURES},
        "brokers": [
            {"id": each.broker_id, "host": each.host, "port": each.port, "rack": each.rack}
            for each in sorted(response.brokers, key=lambda each: each.broker_id)
        ],
    }
    if arguments.format == "json":
        print_json(found)
        return
    pairs = [(name, found[name]) for name in ("cluster", "controller")]
    print_pairs([*pairs, *found["features"].items()])
    print()
    print_table(
        ("BROKER", "HOST", "PORT", "RACK"), [tuple(each.values()) for each in found["brokers"]]
    )


def configs(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print a broker's settings."""
    cluster.topics([])
    node_id = cluster.node_ids[0] if arguments.broker is None else arguments.broker
    if node_id not in cluster.node_ids:
        raise CommandError(f"there is no broker {node_id}")
    (settings,) = settings_of(cluster.node(node_id), BROKER, [str(node_id)]).values()
    unknown = sorted(set(arguments.keys) - {each.name for each in settings})
    if unknown:
        raise CommandError(f"{unknown[0]}: the broker has no such setting", USAGE)
    found = [
        described(each)
        for each in settings
        if each.name in arguments.keys
        or (not arguments.keys and (arguments.all or each.config_source != DEFAULT_CONFIG))
    ]
    if arguments.format == "json":
        print_json({"broker": node_id, "configs": found})
        return
    print_table(
        ("CONFIGURATION", "VALUE", "SOURCE"),
        [(each["key"], each["value"], each["source"]) for each in found],
    )


def alter(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Change settings of one broker, or of all; they are kept over restarts."""
    changes = changes_of(arguments.config, arguments.unset)
    if not changes:
        raise CommandError("nothing to alter: give -X or --unset", USAGE)
    name = "" if arguments.broker is None else str(arguments.broker)
    alter_settings(cluster, BROKER, name, changes, dry_run=arguments.dry_run)
    done = "would be altered" if arguments.dry_run else "altered"
    if arguments.format == "json":
        print_json({"broker": arguments.broker, "changed": not arguments.dry_run})
    else:
        print(f"{f'broker {name}' if name else 'all brokers'} {done}")
