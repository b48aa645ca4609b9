"""``barnabas config``: the effective configuration and who set each value."""

from __future__ import annotations

import argparse
import json
import sys

from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import add_format
from barnabas.broker.cli.configuration import load
from barnabas.broker.cli.errors import OK
from barnabas.broker.cli.printing import print_text
from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.listener_settings import describe_settings
from barnabas.broker.config.loading.loader import LoadedConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a configuration and of its output format."""
    parser.usage = "barnabas config [server.properties] [options]"
    configuration.add_arguments(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print every key, its value and its source."""
    loaded = load(arguments)
    if arguments.format == "json":
        print(json.dumps(as_json(loaded), indent=2))
    else:
        for line in as_text(loaded.config).split("\n"):
            print_text(line)
    for what, keys in (("ignored", loaded.ignored), ("unknown", loaded.unknown)):
        if keys and arguments.format == "text":
            print_text(f"{what}: {', '.join(keys)}", file=sys.stderr)
    return OK


def as_text(config: BrokerConfig) -> str:
    """Return a table of key, value and source."""
    rows = [
        (entry.name, "null" if entry.shown is None else entry.shown, origin(config, entry.name))
        for entry in describe_settings(config)
    ]
    widths = [min(max(len(row[column]) for row in rows), 48) for column in (0, 1)]
    return "\n".join(
        f"{key:{widths[0]}}  {value:{widths[1]}}  {source}".rstrip() for key, value, source in rows
    )


def as_json(loaded: LoadedConfig) -> dict[str, object]:
    """Return keys, values and sources for programs; values are text in Kafka's form, or null."""
    config = loaded.config
    entries = [
        {
            "key": entry.name,
            "value": entry.shown,
            "source": origin(config, entry.name),
            "type": entry.type.name,
            "default": _default(entry.name),
            "documentation": entry.documentation,
        }
        for entry in describe_settings(config)
    ]
    return {"config": entries, "ignored": loaded.ignored, "unknown": loaded.unknown}


def _default(name: str) -> str | None:
    """Return a key's default; a key of a single listener has none."""
    return BROKER_CONFIGS[name].default_text if name in BROKER_CONFIGS else None


def origin(config: BrokerConfig, name: str) -> str:
    """Return the origin of a key: "server.properties line 3", "environment KAFKA_X", "default"."""
    settings = config.settings.get(name)
    return settings[0].origin if settings else "default"
