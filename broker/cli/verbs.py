"""Commands with verbs that send requests to a broker: ``barnabas topics list``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from barnabas.broker.cli.arguments import Parser, add_format, add_server
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import OK

Adder: TypeAlias = Callable[[argparse.ArgumentParser], None]
Action: TypeAlias = Callable[..., None]
"""Function of a verb: it gets the cluster, the arguments and further arguments of a command that
runs its verbs itself."""


class Verb(NamedTuple):
    """A verb: its line of help, its operands in the usage, its arguments, and its function."""

    text: str
    usage: str
    add: Adder
    run: Action


def add_verbs(
    parser: argparse.ArgumentParser,
    verbs: Mapping[str, Verb],
    *,
    offline: Mapping[str, tuple[str, Adder]] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> None:
    """Add the verbs of a command.

    ``offline`` are verbs that reach no broker. ``renamed`` has the present name of each old verb:
    lists of verbs omit old ones, and their own help calls them old; ``old_verb`` is the one used.
    """
    offline, renamed = offline or {}, renamed or {}
    parser.usage = f"{parser.prog} VERB [options]"
    parsers = parser.add_subparsers(
        dest="verb", metavar="VERB", required=True, title="verbs", prog=parser.prog
    )
    for name, verb in verbs.items():
        shown = parsers.add_parser(name, help=verb.text, description=f"{verb.text}.")
        _add(shown, verb)
        for old_name in (each for each, new_name in renamed.items() if new_name == name):
            # Without a line of help it is not listed.
            description = f"{verb.text}. {old_name} is an old name."
            old = parsers.add_parser(old_name, prog=shown.prog, description=description)
            old.set_defaults(verb=name, old_verb=old_name)
            _add(old, verb)
    for name, (text, add) in offline.items():
        add(parsers.add_parser(name, help=text, description=f"{text}."))
    if isinstance(parser, Parser):
        parser.expect_names("verb", [*verbs, *offline], frozenset(renamed))


def _add(parser: argparse.ArgumentParser, verb: Verb) -> None:
    parser.usage = f"{parser.prog} {verb.usage}"
    parser.set_defaults(action=verb.run)
    verb.add(parser)
    add_server(parser)
    add_format(parser)


def run_verb(arguments: argparse.Namespace, *, at_once: bool = False) -> int:
    """Run the verb of a command; ``at_once``: report a broker that is unreachable at once."""
    with Cluster.of(arguments) as cluster:
        if at_once:
            cluster.topics([])
        arguments.action(cluster, arguments)
    return OK
