"""Server of a command without ``-b``: from the environment, a profile, or the client settings.

In this order: ``-b``, ``--profile NAME``, BARNABAS_SERVERS, BARNABAS_PROFILE, the profile
``default``, ``bootstrap.servers`` of ``--command-config``, localhost:9092. Profiles are tables of
``~/.config/barnabas/profiles.toml`` (or of the file that BARNABAS_PROFILES names)::

    [staging]
    bootstrap-server = "kafka-1.staging:9092,kafka-2.staging:9092"
    command-config = "staging.properties"

The second key names a file of client settings; a relative path starts at the directory of the
profiles. The file is used for the profile's server only, so that no other one receives a password.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.broker.cli.errors import USAGE, CommandError

DEFAULT_SERVER: Final = "localhost:9092"
SERVER_VARIABLE: Final = "BARNABAS_SERVERS"
PROFILE_VARIABLE: Final = "BARNABAS_PROFILE"
FILE_VARIABLE: Final = "BARNABAS_PROFILES"
_SERVER_KEY: Final = "bootstrap-server"
_CONFIG_KEY: Final = "command-config"
_DEFAULT_PROFILE: Final = "default"
_SERVERS_PROPERTY: Final = "bootstrap.servers"


class Server(NamedTuple):
    """Addresses of the brokers, and a file of client settings."""

    addresses: str
    command_config: str | None = None
    """File of client settings of the profile, or None."""


def server_of(
    profile: str | None, environment: Mapping[str, str], command_config: str | None = None
) -> Server:
    """Return the server that is used without ``-b``; raises CommandError.

    ``command_config``: the file of client settings that the command line names.
    """
    if profile is None:
        if address := environment.get(SERVER_VARIABLE):
            return Server(address)
        profile = environment.get(PROFILE_VARIABLE)
    path = _path(environment)
    profiles = _profiles(path)
    if profile is None and _DEFAULT_PROFILE not in profiles:
        return Server(_server_in(command_config) or DEFAULT_SERVER)
    name = profile or _DEFAULT_PROFILE
    if name not in profiles:
        raise CommandError(f"{path}: profile {name} does not exist", USAGE)
    return _server(path, name, profiles[name])


def _server_in(command_config: str | None) -> str | None:
    if command_config is None:
        return None
    from barnabas.broker.cli.properties_file import read_properties  # Most commands have no file.

    settings = {each.key: each.value for each in read_properties(command_config)}
    return settings.get(_SERVERS_PROPERTY)


def _path(environment: Mapping[str, str]) -> Path:
    if given := environment.get(FILE_VARIABLE):
        return Path(given)
    base = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "barnabas" / "profiles.toml"


def _profiles(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    import tomllib  # Most commands find no file.

    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", USAGE) from None
    except ValueError as error:
        raise CommandError(f"{path}: {error}", USAGE) from None


def _server(path: Path, name: str, profile: object) -> Server:
    if not isinstance(profile, dict):
        raise CommandError(f"{path}: {name} is not a table", USAGE)
    unknown = sorted(profile.keys() - {_SERVER_KEY, _CONFIG_KEY})
    if unknown:
        raise CommandError(f"{path}: profile {name} has an unknown key {unknown[0]}", USAGE)
    server, config = profile.get(_SERVER_KEY), profile.get(_CONFIG_KEY)
    if not isinstance(server, str):
        raise CommandError(f"{path}: profile {name} has no {_SERVER_KEY}", USAGE)
    if config is not None and not isinstance(config, str):
        raise CommandError(f"{path}: profile {name}: {_CONFIG_KEY} is no text", USAGE)
    return Server(server, config and str(path.parent / Path(config).expanduser()))
