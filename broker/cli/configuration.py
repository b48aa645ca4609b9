"""Conversion of arguments to a checked configuration, for ``serve``, ``config`` and ``ready``."""

from __future__ import annotations

import argparse
import os

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.properties_file import read_properties
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.cluster import METADATA, STORAGE, has_password
from barnabas.broker.config.loading.environment import is_secret
from barnabas.broker.config.loading.loader import LoadedConfig, load_config
from barnabas.broker.config.loading.providers import is_reference
from barnabas.broker.config.types import ConfigError

# For images and packages, so that every command beside the broker has the broker's configuration: a
# file with defaults of their own, and the file used if none is named, if it exists.
DEFAULTS_VARIABLE = "BARNABAS_DEFAULTS"
PROPERTIES_VARIABLE = "BARNABAS_PROPERTIES"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file and the overrides of a configuration."""
    parser.add_argument(
        "properties", nargs="?", metavar="server.properties", help="Kafka configuration file"
    )
    add_override(parser)


def add_override(parser: argparse.ArgumentParser) -> None:
    """Add the option that sets single keys."""
    parser.set_defaults(properties=None)
    parser.add_argument(
        "-X",
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a key, before the file and KAFKA_* of the environment",
    )


def directory_of(arguments: argparse.Namespace) -> tuple[str, BrokerConfig]:
    """Return the requested data directory, and its broker's settings; raises CommandError."""
    if arguments.directory is not None:
        arguments.override = [*arguments.override, f"log.dirs={arguments.directory}"]
    config = load(arguments).config
    if not os.path.isdir(config.data_directory):
        raise CommandError(f"{config.data_directory}: not a directory", USAGE)
    return config.data_directory, config


def cluster_config(arguments: argparse.Namespace, *, needs_storage: bool = False) -> BrokerConfig:
    """Return a configuration that names a cluster; raises CommandError.

    ``needs_storage``: it also names the object store.
    """
    config = load(arguments).config
    values = {METADATA: config.metadata}
    if needs_storage:
        values[STORAGE] = config.storage
    for key, value in values.items():
        if value is None:
            keys = " and ".join(values)
            raise CommandError(f"name the cluster: set {keys}; {key} is not set", USAGE)
    return config


def load(arguments: argparse.Namespace) -> LoadedConfig:
    """Load the settings of file, environment and overrides; raises CommandError."""
    _check_no_secrets(arguments.override)
    path: str | None = arguments.properties or _standing_file(PROPERTIES_VARIABLE)
    defaults = os.environ.get(DEFAULTS_VARIABLE)
    try:
        return load_config(
            read_properties(path) if path else [],
            os.environ,
            arguments.override,
            file_name=path or "",
            defaults=read_properties(defaults) if defaults else [],
            defaults_name=defaults or "",
        )
    except ConfigError as error:
        raise CommandError(str(error), USAGE) from None


def _check_no_secrets(overrides: list[str]) -> None:
    """Raise CommandError for secrets in arguments, which a list of processes shows."""
    for override in overrides:
        key, _, value = override.partition("=")
        key = key.strip()
        if key == METADATA and not has_password(value.strip()):
            continue
        if is_secret(key) and value.strip() and not is_reference(value):
            raise CommandError(
                f"{key} is a secret, and every user of this machine can see arguments: set it in "
                "a file, in the environment, or by a reference such as ${file:/path:key}",
                USAGE,
            )


def _standing_file(variable: str) -> str | None:
    """Return the file that a variable names, if there is one."""
    path = os.environ.get(variable)
    return path if path and os.path.exists(path) else None
