"""``barnabas users``: list, create, alter, delete.

SCRAM users, which the broker stores. A password is never an argument, since every user of the
machine can read arguments; the broker receives the values that verify it, not the password.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from barnabas.broker.admin import users
from barnabas.broker.admin.exchange import check
from barnabas.broker.cli.arguments import add_flag, add_operand, one_of, whole_number
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.outcome import Outcome
from barnabas.broker.cli.output import print_json, print_table
from barnabas.broker.cli.passwords import add_password, password_of
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    SCRAM_SHA_512,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS)


def _add_list(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "users", "USER", count="*")


def _add_create(parser: argparse.ArgumentParser) -> None:
    _add_credential(parser)
    add_flag(parser, "--if-not-exists", "ignore users that exist, without a change")


def _add_credential(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "user", "USER")
    _add_mechanism(parser, f"repeatable (default {SCRAM_SHA_512.name})")
    add_password(parser)
    parser.add_argument(
        "--iterations",
        type=lambda text: whole_number(text, least=ITERATIONS_MIN, most=ITERATIONS_MAX),
        default=ITERATIONS_MIN,
        metavar="N",
        help=f"{ITERATIONS_MIN} (default) to {ITERATIONS_MAX}",
    )


def _add_delete(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "users", "USER", count="+")
    _add_mechanism(parser, "only this credential; repeatable")
    add_flag(parser, "--if-exists", "ignore users that do not exist")
    add_flag(parser, "--dry-run", "only print which users would be deleted")


def _add_mechanism(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument(
        "--mechanism", type=one_of(list(MECHANISMS)), action="append", default=[],
        metavar="NAME", help=text,
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.verb in {"create", "alter"}:
        arguments.password = password_of(arguments, f"Password of {arguments.user}")
        arguments.mechanism = list(dict.fromkeys(arguments.mechanism)) or [SCRAM_SHA_512.name]
    return run_verb(arguments)


# ------------------------------------------------------------------------------------------- list


def list_users(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print each user with the mechanisms that there is a credential for."""
    found = cluster.run(users.list_users(arguments.users))
    missing = [name for name in dict.fromkeys(arguments.users) if name not in found]
    if arguments.format == "json":
        print_json([_as_json(name, found[name]) for name in sorted(found)])
    elif found or not missing:
        print_table(
            ("USER", "MECHANISM", "ITERATIONS"),
            [
                (name, mechanism, iterations)
                for name in sorted(found)
                for mechanism, iterations in sorted(found[name].items())
            ],
        )
    for name in missing:
        check(name, ErrorCode.RESOURCE_NOT_FOUND, _NOBODY)


_NOBODY: Final = "there is no such user"


def _as_json(name: str, credentials: dict[str, int]) -> dict[str, Any]:
    return {
        "user": name,
        "credentials": [
            {"mechanism": mechanism, "iterations": iterations}
            for mechanism, iterations in sorted(credentials.items())
        ],
    }


# ---------------------------------------------------------------------------------------- changes


def create(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Create a user, or add a mechanism to an existing one."""
    user, outcome = arguments.user, Outcome("user", "created", arguments.format)
    there = cluster.run(users.list_users([user])).get(user, {})
    taken = [name for name in arguments.mechanism if name in there]
    if taken and not arguments.if_not_exists:
        check(user, ErrorCode.DUPLICATE_RESOURCE, f"is there already, for {', '.join(taken)}")
    arguments.mechanism = [name for name in arguments.mechanism if name not in there]
    if arguments.mechanism:
        _set(cluster, arguments, outcome)
    else:
        outcome.unchanged(user, "was there already")
    outcome.conclude()


def alter(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Replace the credential of a user; sessions authenticated with the old one end."""
    user, outcome = arguments.user, Outcome("user", "altered", arguments.format)
    if user not in cluster.run(users.list_users([user])):
        check(user, ErrorCode.RESOURCE_NOT_FOUND, _NOBODY)
    _set(cluster, arguments, outcome)
    outcome.conclude()


def _set(cluster: Cluster, arguments: argparse.Namespace, outcome: Outcome) -> None:
    user, password = arguments.user, arguments.password
    for name in arguments.mechanism:
        credential = users.credential_of(user, name, password, arguments.iterations)
        cluster.run(users.set_credential(credential))
    outcome.done(user, mechanisms=arguments.mechanism)


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete users, or one of their credentials."""
    dry_run = arguments.dry_run
    outcome = Outcome("user", "would be deleted" if dry_run else "deleted", arguments.format)
    found = cluster.run(users.list_users(arguments.users))
    for user in dict.fromkeys(arguments.users):
        there = sorted(found.get(user, {}))
        mechanisms = [name for name in there if name in (arguments.mechanism or there)]
        if mechanisms:
            for name in [] if dry_run else mechanisms:
                cluster.run(users.delete_credential(user, name))
            outcome.done(user, mechanisms=mechanisms)
        elif arguments.if_exists:
            outcome.unchanged(user, "was not there")
        else:
            outcome.settled(user, ErrorCode.RESOURCE_NOT_FOUND, _NOBODY)
    outcome.conclude()


_VERBS: Final = {
    "list": Verb(
        "List SCRAM users and their mechanisms", "[USER...] [options]", _add_list, list_users
    ),
    "create": Verb("Create a user with a password", "USER [options]", _add_create, create),
    "alter": Verb("Change the password of a user", "USER [options]", _add_credential, alter),
    "delete": Verb(
        "Delete users; their sessions end at once", "USER... [options]", _add_delete, delete
    ),
}
