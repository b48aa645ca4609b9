"""Confirmation of actions that cannot be undone: ``--yes``, or a word typed at a prompt."""

from __future__ import annotations

import argparse
import sys

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.printing import print_text


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add the option that skips the confirmation."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def check_can_ask(arguments: argparse.Namespace) -> None:
    """Raise CommandError if confirmation is required and no user can give it."""
    if not arguments.yes and not sys.stdin.isatty():
        raise CommandError("standard input is not a terminal: give --yes", USAGE)


def confirm(arguments: argparse.Namespace, question: str) -> None:
    """Request confirmation, if required; raises CommandError unless the input is yes."""
    if arguments.yes:
        return
    print_text(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("cancelled; no change was made")
