"""Loggers of this process as Kafka's tools see them: "root" and one by module, with levels.

A change lasts until the process ends, as in Kafka, or until a broker in a test's process stops.
No log line has the level TRACE.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.broker.config.types import ConfigEntry, ConfigSource, ConfigType

ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG // 2,
    "WARN": logging.WARNING,
}
"""Kafka's names of the levels, in the order in which it lists them."""
_LEVELS_BEFORE: Final[dict[str, int]] = {}
"""Numbers of the levels before `set_levels`, by the name of the logger."""


def describe_loggers() -> list[ConfigEntry]:
    """Return every logger with its effective level, as DescribeConfigs does."""
    return [
        ConfigEntry(
            name=name,
            value=level_name(_logger(name).getEffectiveLevel()),
            type=ConfigType.UNKNOWN,
            source=ConfigSource.BROKER_LOGGER,
            read_only=False,
            synonyms=(),
            documentation="",
        )
        for name in sorted(logger_names())
    ]


def logger_names() -> set[str]:
    """Return the names of all loggers."""
    # A copy, since other threads create loggers, too.
    known = list(logging.root.manager.loggerDict.items())
    return {ROOT} | {name for name, each in known if isinstance(each, logging.Logger)}


def level_name(level: int) -> str:
    """Return the lowest of Kafka's levels that a logger of this level logs."""
    return min(
        (name for name, number in LEVELS.items() if number >= level),
        key=LEVELS.__getitem__,
        default="FATAL",
    )


def problem_of(name: str, level: str | None) -> str | None:
    """Return the error in a level for a logger, or None; a ``level`` of None removes its own
    level.
    """
    if name not in logger_names():
        return f"Logger {name} does not exist!"
    if level is not None and level not in LEVELS:
        return (
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}"
        )
    return None


def set_levels(levels: Iterable[tuple[str, str | None]]) -> None:
    """Set checked levels; None removes a logger's own level."""
    for name, level in levels:
        logger = _logger(name)
        _LEVELS_BEFORE.setdefault(name, logger.level)
        logger.setLevel(logging.NOTSET if level is None else LEVELS[level])


def restore_levels() -> None:
    """Undo every change by `set_levels`, where the process continues without its broker."""
    while _LEVELS_BEFORE:
        name, level = _LEVELS_BEFORE.popitem()
        _logger(name).setLevel(level)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)
