"""``barnabas acls``: list, add, remove."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from barnabas.broker.admin import acls
from barnabas.broker.cli.arguments import add_flag
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.consent import add_yes, check_can_ask, confirm
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.output import count_text, print_done, print_json, print_table
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.broker.security.acls.acls import EVERYWHERE, Acl, AclFilter
from barnabas.broker.security.acls.operations import (
    ANY,
    CLUSTER_NAME,
    MATCH,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

_NAMED: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
"""Resources with an option of their own; the cluster has no name."""
USER_PREFIX: Final = "User:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS)


def _add_list(parser: argparse.ArgumentParser) -> None:
    _add_rule(parser)
    add_flag(parser, "--match", "all ACLs that apply to these names")
    _add_permission(parser)


def _add_add(parser: argparse.ArgumentParser) -> None:
    _add_rule(parser)
    add_flag(parser, "--deny", "deny it, even if another ACL allows it")


def _add_remove(parser: argparse.ArgumentParser) -> None:
    _add_rule(parser)
    _add_permission(parser)
    add_flag(parser, "--dry-run", "only show what would be removed")
    add_yes(parser)


def _add_rule(parser: argparse.ArgumentParser) -> None:
    """Add the options for the parts of an ACL, equal for all verbs."""
    parser.add_argument("--user", type=_user, metavar="NAME", help="user name; '*' for all users")
    parser.add_argument(
        "--operation", type=_operations, action="extend", default=[], metavar="NAME[,NAME]",
        help="operation: READ, WRITE, ... ALL",
    )  # fmt: skip
    for name in ("topic", "group", "transactional-id"):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="NAME", help=argparse.SUPPRESS
        )
    parser.add_argument("--cluster", action="store_true", help=argparse.SUPPRESS)
    add_flag(parser, "--prefixed", "all names with these prefixes")
    parser.add_argument("--host", metavar="ADDRESS", help="address or network of the client")
    parser.epilog = (
        "To what: --topic NAME, --group NAME, --transactional-id NAME (each repeatable, '*' is "
        "all) and --cluster."
    )


def _add_permission(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--permission", choices=("allow", "deny"), help="only ACLs with this permission"
    )


def _operations(text: str) -> list[Operation]:
    found = []
    for part in text.split(","):
        name = part.strip().upper().replace("-", "_")
        # As kafka-acls writes them, without the lines.
        known = {key: each for each in Operation for key in (each.name, each.name.replace("_", ""))}
        if name not in known:
            names = ", ".join(each.name for each in Operation)
            raise argparse.ArgumentTypeError(f"{part} is not one of {names}")
        found.append(known[name])
    return found


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.verb == "remove" and not arguments.dry_run:
        check_can_ask(arguments)
    return run_verb(arguments)


def _resources(arguments: argparse.Namespace) -> list[tuple[ResourceType, str]]:
    """Return the resources of the options, each once."""
    found = [
        (kind, name)
        for option, kind in _NAMED.items()
        for name in dict.fromkeys(getattr(arguments, option))
    ]
    return found + [(ResourceType.CLUSTER, CLUSTER_NAME)] * arguments.cluster


def _user(text: str) -> str:
    """Return the principal of a user's name, with or without the prefix ``User:``."""
    name = text.removeprefix(USER_PREFIX)
    if not name:
        raise argparse.ArgumentTypeError("the user name is empty; write NAME or User:NAME")
    return USER_PREFIX + name


# ------------------------------------------------------------------------------------------- list


def list_acls(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print the ACLs that match the options, all by default."""
    _print_acls(_meant(cluster, arguments, match=arguments.match), arguments.format)


def _meant(cluster: Cluster, arguments: argparse.Namespace, *, match: bool = False) -> list[Acl]:
    """Return the ACLs that match the options, sorted."""
    if match and arguments.prefixed:
        raise CommandError("--match and --prefixed exclude each other", USAGE)
    if match:
        pattern = MATCH
    elif arguments.prefixed:
        pattern = PatternType.PREFIXED
    else:
        pattern = PatternType.LITERAL
    # Of names the pattern counts, as for kafka-acls; what has no name has all of them.
    filters = [AclFilter(kind, name, pattern) for kind, name in _resources(arguments)]
    if not filters:
        filters = [AclFilter(pattern=PatternType.PREFIXED if arguments.prefixed else ANY)]
    found = {
        acl
        for wanted in filters
        for operation in arguments.operation or [ANY]
        for acl in _matching(cluster, arguments, wanted._replace(operation=operation))
    }
    return sorted(found)


def _matching(cluster: Cluster, arguments: argparse.Namespace, wanted: AclFilter) -> Iterable[Acl]:
    permission = arguments.permission
    wanted = wanted._replace(
        principal=arguments.user,
        host=arguments.host,
        permission=ANY if permission is None else Permission[permission.upper()],
    )
    return cluster.run(acls.list_acls(wanted))


def _print_acls(found: list[Acl], output_format: str) -> None:
    if output_format == "json":
        print_json([_as_json(acl) for acl in found])
        return
    rows = []
    in_order = sorted(found, key=lambda acl: (_but_operation(acl), acl.operation))
    for alike, group in groupby(in_order, _but_operation):
        kind, name, pattern, principal, host, permission = alike
        operations = ",".join(acl.operation.name for acl in group)
        rows.append(
            (acls.kind_text(kind), name, pattern.name.lower(), principal, host, permission.name,
             operations)
        )  # fmt: skip
    print_table(
        ("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "PERMISSION", "OPERATIONS"), rows
    )


def _but_operation(acl: Acl) -> tuple[ResourceType, str, PatternType, str, str, Permission]:
    return acl[:5] + acl[6:]


def _as_json(acl: Acl) -> dict[str, Any]:
    return {
        "resource": acls.kind_text(acl.resource_type),
        "name": acl.name,
        "pattern": acl.pattern.name.lower(),
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


# ------------------------------------------------------------------------------------ add, remove


def add(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Add an ACL for each operation on each resource; existing ones stay."""
    resources = _resources(arguments)
    if arguments.user is None or not arguments.operation or not resources:
        raise CommandError(
            "a rule needs --user, --operation, and --topic, --group, --transactional-id or "
            "--cluster",
            USAGE,
        )
    wanted = [
        Acl(
            kind,
            name,
            PatternType.PREFIXED if arguments.prefixed else PatternType.LITERAL,
            arguments.user,
            arguments.host or EVERYWHERE,
            operation,
            Permission.DENY if arguments.deny else Permission.ALLOW,
        )
        for kind, name in resources
        for operation in dict.fromkeys(arguments.operation)
    ]
    _check_possible(wanted)
    cluster.run(acls.create_acls(wanted))
    _print_acls(wanted, arguments.format)


def _check_possible(wanted: Iterable[Acl]) -> None:
    """Raise CommandError for a rule that could never apply: Apache Kafka stores such ones."""
    for acl in wanted:
        if not acls.is_possible(acl):
            names = ", ".join(each.name for each in acls.operations_on(acl.resource_type))
            kind = acls.kind_text(acl.resource_type)
            raise CommandError(f"{acl.operation.name} is no operation on a {kind}: {names}", USAGE)
        if acl.resource_type == ResourceType.CLUSTER and acl.pattern == PatternType.PREFIXED:
            raise CommandError("--cluster and --prefixed exclude each other", USAGE)


def remove(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Show the ACLs that match the options, and remove exactly these."""
    is_said = [arguments.user, arguments.operation, arguments.host, arguments.permission]
    if not any([*is_said, *_resources(arguments)]):
        raise CommandError("name the ACLs: with --user, --topic or another option", USAGE)
    found = _meant(cluster, arguments)
    if not found:
        raise CommandError("no ACL matches the given options")
    if arguments.dry_run:
        _print_acls(found, arguments.format)
        return
    if not arguments.yes:
        _print_acls(found, "text")
        confirm(arguments, f"Remove {count_text(len(found), 'rule')}")
    cluster.run(acls.delete_acls(found))
    removed = [_as_json(acl) for acl in found]
    print_done(arguments.format, removed, f"{count_text(len(found), 'rule')} removed")


_VERBS: Final = {
    "list": Verb("List ACLs", "[options]", _add_list, list_acls),
    "add": Verb(
        "Allow an operation to a user, or deny it",
        "--user NAME --operation NAME --topic NAME [options]",
        _add_add,
        add,
    ),
    "remove": Verb("Remove ACLs", "[options]", _add_remove, remove),
}
