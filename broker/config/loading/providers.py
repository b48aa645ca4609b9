"""Values by reference: ``${file:/path:key}``, ``${env:NAME}``, ``${dir:/path:name}``.

Kafka's config providers (KIP-297, KIP-421, KIP-887): ``config.providers`` names them, and each has
one of three classes. References are resolved once, at the start, in the operator's configuration:
never in values that a client sets while the broker runs (CVE-2024-31141).

A reference that cannot be resolved stops the start. Kafka would use its text as the password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from barnabas.broker.config.loading.properties import MalformedProperties, parse_properties
from barnabas.broker.config.types import ConfigError, ConflictingValues, Setting

KEY: Final = "config.providers"
_CLASSES: Final = {
    "org.apache.kafka.common.config.provider.FileConfigProvider": "file",
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": "env",
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": "dir",
}
_PARAMETERS: Final = {
    "file": ("allowed.paths",),
    "env": ("allowlist.pattern",),
    "dir": ("allowed.paths",),
}
_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
"""Kafka's pattern: the provider, a path if there is one, a key."""
FILE_BYTES_MAX: Final = 1024 * 1024

LookUp = Callable[[str, str], str]
"""Function that returns the value at a path under a key; raises _Unresolved."""


class _Unresolved(Exception):
    """A reference that cannot be resolved; the text is the reason."""


def resolved(given: Mapping[str, Setting], environment: Mapping[str, str]) -> dict[str, Setting]:
    """Return the settings with every reference replaced; raises ConfigError.

    What is about the providers themselves is left out: it has done its part.
    """
    providers = _providers(given, environment)
    settings = {
        key: setting
        for key, setting in given.items()
        if key == KEY or not key.startswith(f"{KEY}.")
    }
    for key, setting in settings.items():
        if "${" in setting.text:
            settings[key] = setting._replace(text=_replaced(key, setting, providers))
    return settings


def is_reference(text: str) -> bool:
    """Return whether a value is a single reference."""
    return _REFERENCE.fullmatch(text.strip()) is not None


def _replaced(key: str, setting: Setting, providers: Mapping[str, LookUp]) -> str:
    def look_up(match: re.Match[str]) -> str:
        name, path, wanted = match[1], match[3] or "", match[4]
        provider = providers.get(name)
        if provider is None:
            known = f", only {', '.join(providers)}" if providers else f": {KEY} names none"
            raise _Unresolved(f"config provider {name} does not exist{known}")
        return provider(path, wanted)

    try:
        return _REFERENCE.sub(look_up, setting.text)
    except _Unresolved as problem:
        raise ConflictingValues(key, "", f"{key}: {problem} ({setting.origin})") from None


def _providers(given: Mapping[str, Setting], environment: Mapping[str, str]) -> dict[str, LookUp]:
    listed = given.get(KEY)
    names = [name.strip() for name in listed.text.split(",")] if listed is not None else []
    providers: dict[str, LookUp] = {}
    for name in filter(None, names):
        class_key = f"{KEY}.{name}.class"
        found = given.get(class_key)
        kind = _CLASSES.get(found.text) if found is not None else None
        if kind is None:
            expected = f"Value must be one of {', '.join(_CLASSES)}"
            raise ConfigError(class_key, None if found is None else found.text, expected)
        parameters = _parameters(given, name, kind)
        providers[name] = _MAKERS[kind](parameters, environment)
    _check_others(given, providers)
    return providers


def _parameters(given: Mapping[str, Setting], name: str, kind: str) -> dict[str, str]:
    prefix = f"{KEY}.{name}.param."
    found = {
        key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)
    }
    for parameter, setting in found.items():
        if parameter not in _PARAMETERS[kind]:
            raise ConfigError(
                f"{prefix}{parameter}",
                setting.text,
                f"this provider has {', '.join(_PARAMETERS[kind])} ({setting.origin})",
            )
    return {parameter: setting.text for parameter, setting in found.items()}


def _check_others(given: Mapping[str, Setting], providers: Mapping[str, LookUp]) -> None:
    """Refuse settings of an unlisted provider, which would have no effect."""
    for key, setting in given.items():
        if key.startswith(f"{KEY}.") and key.split(".")[2] not in providers:
            raise ConflictingValues(
                key, setting.text, f"{key}: {KEY} does not name it ({setting.origin})"
            )


# ------------------------------------------------------------------------------------ the three


def _environment(parameters: Mapping[str, str], environment: Mapping[str, str]) -> LookUp:
    try:
        allowed = re.compile(parameters.get("allowlist.pattern", ".*"))
    except re.error as error:
        pattern = parameters["allowlist.pattern"]
        raise ConfigError("allowlist.pattern", pattern, str(error)) from None

    def look_up(path: str, key: str) -> str:
        if path:
            raise _Unresolved("a reference ${env:NAME} takes no path")
        if not allowed.fullmatch(key) or key not in environment:
            raise _Unresolved(f"environment variable {key} is not set, or is not allowed")
        return environment[key]

    return look_up


def _file(parameters: Mapping[str, str], _environment: Mapping[str, str]) -> LookUp:
    allowed = _allowed_paths(parameters)

    def look_up(path: str, key: str) -> str:
        text = _read(path, allowed)
        try:
            found = {each.key: each.value for each in parse_properties(text)}
        except MalformedProperties as error:
            raise _Unresolved(f"{path}: {error}") from None
        if key not in found:
            raise _Unresolved(f"{path} has no key {key}")
        return found[key]

    return look_up


def _directory(parameters: Mapping[str, str], _environment: Mapping[str, str]) -> LookUp:
    allowed = _allowed_paths(parameters)

    def look_up(path: str, key: str) -> str:
        if os.sep in key or key in {"", ".", ".."}:
            raise _Unresolved(f"{key} is no name of a file in {path}")
        return _read(os.path.join(path, key), allowed)

    return look_up


def _allowed_paths(parameters: Mapping[str, str]) -> list[Path] | None:
    text = parameters.get("allowed.paths")
    if text is None:
        return None
    return [Path(each.strip()).resolve() for each in text.split(",") if each.strip()]


def _read(path: str, allowed: list[Path] | None) -> str:
    """Return the text of an allowed file, or of a link to one."""
    real = Path(path).resolve()
    if not os.path.isabs(path):
        raise _Unresolved(f"{path} is not an absolute path")
    if allowed is not None and not any(real.is_relative_to(each) for each in allowed):
        raise _Unresolved(f"{path} is not below allowed.paths")
    try:
        with real.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise _Unresolved(f"{path} is longer than {FILE_BYTES_MAX} bytes")
        return data.decode()
    except OSError as error:
        raise _Unresolved(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _Unresolved(f"{path} is not UTF-8") from None


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], LookUp]]] = {
    "env": _environment,
    "file": _file,
    "dir": _directory,
}
