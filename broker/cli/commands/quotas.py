"""``barnabas quotas``: list, set, remove."""

from __future__ import annotations

import argparse
from typing import Any, Final

from barnabas.broker.admin import quotas
from barnabas.broker.admin.quotas import Entity, Quota
from barnabas.broker.cli.arguments import add_flag, add_operand
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.output import print_json, print_table
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.broker.security.quotas.quota_limits import (
    CLIENT_ID,
    CONNECTIONS,
    CONSUMER_BYTES,
    CONTROLLER_MUTATIONS,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTES,
    REQUEST_PERCENTAGE,
    USER,
)

_KEYS: Final = (
    PRODUCER_BYTES,
    CONSUMER_BYTES,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATIONS,
    CONNECTIONS,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS)


def _add_set(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "limits", "KEY=VALUE", count="+", read=_limit)
    _add_entity(parser)
    add_flag(parser, "--dry-run", "only validate the change")
    parser.epilog = f"Keys: {', '.join(_KEYS)}."


def _add_remove(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "keys", "KEY", count="*")
    _add_entity(parser)
    add_flag(parser, "--dry-run", "only show what would be removed")


def _add_entity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="user")
    parser.add_argument("--client-id", metavar="NAME", help="client id; with --user, both")
    parser.add_argument("--ip", metavar="ADDRESS", help="address of connections")
    parser.add_argument(
        "--default", choices=ENTITY_TYPES, action="append", default=[], metavar="TYPE",
        help="every user, client-id or ip without its own",
    )  # fmt: skip


def _limit(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        return _known(key), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not KEY=NUMBER") from None


def _known(key: str) -> str:
    if key not in _KEYS:
        raise argparse.ArgumentTypeError(f"{key} is not one of {', '.join(_KEYS)}")
    return key


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    arguments.entity = _entity(arguments)
    if arguments.verb != "list" and not arguments.entity:
        raise CommandError("name the entity with --user, --client-id, --ip or --default", USAGE)
    return run_verb(arguments)


def _entity(arguments: argparse.Namespace) -> dict[str, str | None]:
    given = {USER: arguments.user, CLIENT_ID: arguments.client_id, IP: arguments.ip}
    entity = {kind: name for kind, name in given.items() if name is not None}
    for kind in arguments.default:
        if kind in entity and entity[kind] is not None:
            raise CommandError(f"--default {kind} and --{kind} exclude each other", USAGE)
        entity[kind] = None
    if IP in entity and len(entity) > 1:
        raise CommandError("addresses go neither with users nor with client ids", USAGE)
    return entity


# ------------------------------------------------------------------------------------------- list


def list_quotas(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print the quotas of the entities that the options select, by default of all."""
    _print(cluster.run(quotas.list_quotas(arguments.entity)), arguments.format)


def _print(found: list[Quota], output_format: str) -> None:
    if output_format == "json":
        print_json([_as_json(*each) for each in found])
        return
    print_table(
        ("USER", "CLIENT ID", "ADDRESS", "KEY", "VALUE"),
        [
            (*map(each.name, ENTITY_TYPES), key, _number(value))
            for each in found
            for key, value in sorted(each.limits.items())
        ],
    )


def _as_json(entity: Entity, limits: dict[str, float]) -> dict[str, Any]:
    ordered = {kind: entity[kind] for kind in ENTITY_TYPES if kind in entity}
    return {"entity": ordered, "limits": dict(sorted(limits.items()))}


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


# ---------------------------------------------------------------------------------------- changes


def set_limits(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Set quotas of one entity; its others stay."""
    entity, limits = arguments.entity, dict(arguments.limits)
    cluster.run(quotas.alter_quotas(entity, limits, dry_run=arguments.dry_run))
    _print([Quota(entity, limits)], arguments.format)


def remove(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Remove quotas of one entity, all by default."""
    entity = arguments.entity
    found = cluster.run(quotas.list_quotas(entity, strict=True))
    there = next((each.limits for each in found), {})
    for key in arguments.keys:
        if key not in there:
            raise CommandError(f"{key}: this quota is not set")
    limits = {key: there[key] for key in arguments.keys or there}
    if not limits:
        raise CommandError("no quota is set for the given entity")
    removal = quotas.alter_quotas(entity, dict.fromkeys(limits), dry_run=arguments.dry_run)
    cluster.run(removal)
    _print([Quota(entity, limits)], arguments.format)


_VERBS: Final = {
    "list": Verb(
        "List quotas of users, clients and addresses", "[options]", _add_entity, list_quotas
    ),
    "set": Verb(
        "Set quotas of a user, a client or an address",
        "KEY=VALUE... --user NAME [options]",
        _add_set,
        set_limits,
    ),
    "remove": Verb("Remove quotas", "[KEY...] --user NAME [options]", _add_remove, remove),
}
