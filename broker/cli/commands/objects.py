"""``barnabas objects``: sweep."""

from __future__ import annotations

import argparse

from barnabas.broker.cli.directory.cluster_objects import add_sweep, sweep
from barnabas.broker.cli.verbs import add_verbs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb and its arguments."""
    text = "Delete the objects of a cluster whose database no longer exists"
    add_verbs(parser, {}, offline={"sweep": (text, add_sweep)})


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    return sweep(arguments)
