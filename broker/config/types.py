"""Configuration keys: types, accepted values, and sources of values.

The tables of keys (``broker_config.py``, ``topic_configs.py``) are data built from these classes;
parsing, checking, DescribeConfigs and ``barnabas config`` all read the same tables. Type numbers,
source numbers, the parsing rules and the texts of the errors are Kafka's, because clients print
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

SHORT_MAX = 2**15 - 1
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Value = bool | int | float | str | tuple[str, ...] | None

HIDDEN: Final = "[hidden]"
"""Text shown in place of a secret."""


class ConfigType(IntEnum):
    """Kafka's types of configuration values, by their numbers in DescribeConfigs (v3 and later)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9
    UNKNOWN = 0


class ConfigSource(IntEnum):
    """Source of a value, by the numbers in DescribeConfigs.

    A smaller number takes precedence, except that a group's own setting precedes all.
    """

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    GROUP = 8


SOURCE_WORDS: Final[Mapping[int, str]] = {
    ConfigSource.TOPIC: "topic",
    ConfigSource.DYNAMIC_BROKER: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "cluster",
    ConfigSource.STATIC_BROKER: "configuration at the start",
    ConfigSource.DEFAULT: "default",
}
"""Names of the sources of a topic's or broker's value, as shown to users."""


class UpdateMode(Enum):
    """Ways in which a broker's key can change while the broker runs (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class ConfigError(Exception):
    """A key or a value that cannot be used. ``str()`` is one line that names all that matters."""

    def __init__(self, key: str, value: str | None, expected: str) -> None:
        self.key = key
        self.value = value
        self.expected = expected
        super().__init__(f"Invalid value {value} for configuration {key}: {expected}")


class UnknownKey(ConfigError):
    """A key that no table has, where an unknown key is an error (topic configurations)."""

    def __init__(self, key: str) -> None:
        super().__init__(key, None, "unknown key")
        self.args = (f"Unknown topic config name: {key}",)


class UnknownSetting(ConfigError):
    """A broker's key that no table has and that was given on the command line."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        from difflib import get_close_matches  # Only now: it would slow each start down.

        super().__init__(key, None, "unknown key")
        close = get_close_matches(key, list(known), n=1)
        hint = f", did you mean {close[0]}?" if close else ""
        self.args = (f"unknown key {key}{hint}",)


class ConflictingValues(ConfigError):
    """Values that are valid alone but not together."""

    def __init__(self, key: str, value: str, reason: str) -> None:
        super().__init__(key, value, reason)
        self.args = (reason,)


class Validator(Protocol):
    """A check of one parsed value."""

    def problem(self, value: Value) -> str | None:
        """Return the problem with ``value`` in Kafka's wording, or None."""

    @property
    def accepted(self) -> str:
        """Accepted values, for documentation."""


@dataclass(frozen=True, slots=True)
class Between:
    """A number from ``low`` to ``high``, both included; None leaves an end open."""

    low: float | None = None
    high: float | None = None

    def problem(self, value: Value) -> str | None:
        """Return the exceeded limit, or None."""
        assert isinstance(value, int | float)
        if self.low is not None and value < self.low:
            return f"Value must be at least {self.low}"
        if self.high is not None and value > self.high:
            return f"Value must be no more than {self.high}"
        return None

    @property
    def accepted(self) -> str:
        """Kafka's notation: [0,...]."""
        low = "" if self.low is None else f"{self.low},"
        high = "" if self.high is None else f",{self.high}"
        return f"[{low}...{high}]"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words, or, for a list, only some words."""

    words: tuple[str, ...]

    def problem(self, value: Value) -> str | None:
        """Return the accepted words for a wrong one."""
        values = value if isinstance(value, tuple) else (value,)
        if all(each in self.words for each in values):
            return None
        return f"String must be one of: {', '.join(self.words)}"

    @property
    def accepted(self) -> str:
        """Kafka's notation: [compact, delete]."""
        return f"[{', '.join(self.words)}]"


@dataclass(frozen=True, slots=True)
class BetweenOr:
    """A number between two limits, or one special number outside of them."""

    low: int
    high: int
    special: int

    def problem(self, value: Value) -> str | None:
        """Return the range and the special number."""
        assert isinstance(value, int)
        if value == self.special or self.low <= value <= self.high:
            return None
        return f"Value must be between {self.low} and {self.high} or equal to {self.special}"

    @property
    def accepted(self) -> str:
        """Kafka's notation: [1,...,9] or -1."""
        return f"[{self.low},...,{self.high}] or {self.special}"


@dataclass(frozen=True, slots=True)
class Matches:
    """Text, or every item of a list, of a certain form."""

    pattern: str
    described: str

    def problem(self, value: Value) -> str | None:
        """Return a problem with the value, or None."""
        values = value if isinstance(value, tuple) else (value,)
        if all(isinstance(each, str) and re.fullmatch(self.pattern, each) for each in values):
            return None
        return f"Value must be {self.described}"

    @property
    def accepted(self) -> str:
        """Description of the accepted form."""
        return self.described


def at_least(low: float) -> Between:
    """Accept ``low`` and larger values."""
    return Between(low)


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DIGITS_MAX = 100  # Python refuses to read endless numbers.
_LIMITS = {ConfigType.SHORT: 2**15, ConfigType.INT: 2**31, ConfigType.LONG: 2**63}


def parse_value(key: str, kind: ConfigType, text: str) -> Value:
    """Turn ``text`` into a value of ``kind`` by Kafka's rules; raises ConfigError.

    Space around the text never counts. Booleans are true or false in any case, lists are separated
    by commas, numbers must fit Java's int or long.
    """
    text = text.strip()
    if kind in _LIMITS:
        limit = _LIMITS[kind]
        is_number = len(text) <= _DIGITS_MAX and _WHOLE_NUMBER.fullmatch(text)
        if not is_number or not -limit <= int(text) < limit:
            raise ConfigError(key, text, f"Not a number of type {kind.name}")
        return int(text)
    if kind is ConfigType.BOOLEAN:
        if text.lower() not in {"true", "false"}:
            raise ConfigError(key, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if kind is ConfigType.DOUBLE:
        if not _DECIMAL_NUMBER.fullmatch(text):
            raise ConfigError(key, text, f"Not a number of type {kind.name}")
        return float(text)
    if kind is ConfigType.LIST:
        return tuple(item.strip() for item in text.split(",")) if text else ()
    return text


def format_value(value: Value) -> str | None:
    """Return a value in Kafka's form; None stays None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return str(value).replace("e+", "E").replace("e", "E")
        case _:
            return str(value)


_KINDS: Final[dict[ConfigType, str]] = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.INT: "whole number",
    ConfigType.SHORT: "whole number",
    ConfigType.LONG: "whole number",
    ConfigType.DOUBLE: "number",
    ConfigType.LIST: "list, separated by commas",
}


Documented: TypeAlias = str | Callable[[str], str]
"""Text that describes a key, or a function that returns it for the name of the key."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One configuration key with its properties.

    For a topic's key, ``synonyms`` are the broker's keys for its default; the first one that is set
    is used. For a broker's key they are alternative names, used if it is not set. Keys that
    end in ``.hours`` and ``.minutes`` are converted to milliseconds.
    """

    name: str
    type: ConfigType
    default: Value
    documented: Documented
    validator: Validator | None = None
    synonyms: tuple[str, ...] = ()
    update: UpdateMode = UpdateMode.READ_ONLY
    internal: bool = False
    """Whether DescribeConfigs omits the key."""

    @property
    def doc(self) -> str:
        """Meaning of the key, in sentences."""
        return self.documented if isinstance(self.documented, str) else self.documented(self.name)

    def parse(self, text: str) -> Value:
        """Parse and check ``text``; raises ConfigError."""
        value = parse_value(self.name, self.type, text)
        problem = self.validator.problem(value) if self.validator else None
        if problem:
            shown = "[hidden]" if self.type is ConfigType.PASSWORD else text.strip()
            raise ConfigError(self.name, shown, problem)
        return value

    @property
    def accepted(self) -> str:
        """Description of the accepted values."""
        kind = _KINDS.get(self.type)
        match self.validator:
            case None:
                return kind or "text"
            case Between(low, high):
                ends = [
                    f"{word} {end}"
                    for word, end in (("from", low), ("to", high))
                    if end is not None
                ]
                return f"{kind}, {' '.join(ends)}"
            case BetweenOr(low, high, special):
                return f"{kind}, from {low} to {high}, or {special}"
            case OneOf(words):
                several = "any of" if self.type is ConfigType.LIST else "one of"
                return f"{several} {', '.join(words)}"
            case validator:
                return validator.accepted

    @property
    def default_text(self) -> str | None:
        """Default in Kafka's form."""
        return format_value(self.default)


class Setting(NamedTuple):
    """A value that was set, and where."""

    text: str
    source: ConfigSource
    origin: str
    """Origin for messages: "server.properties line 12", "environment KAFKA_LOG_DIRS",
    "--override"."""


class ConfigSynonym(NamedTuple):
    """One of the places a value may come from, as DescribeConfigs lists them."""

    name: str
    value: str | None
    """Value, or None if it is secret."""
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One line of DescribeConfigs. A logger's level has neither type nor documentation."""

    name: str
    value: str | None
    type: ConfigType
    source: ConfigSource
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is secret; then it is not stored here."""
        return self.type is ConfigType.PASSWORD

    @property
    def shown(self) -> str | None:
        """Value as shown to users; a secret is replaced by a constant."""
        is_set = self.source is not ConfigSource.DEFAULT
        return HIDDEN if self.is_sensitive and is_set else self.value

    def without_secrets(self) -> ConfigEntry:
        """Return the entry as it may leave the process."""
        if not self.is_sensitive:
            return self
        synonyms = tuple(each._replace(value=None) for each in self.synonyms)
        return self._replace(value=None, synonyms=synonyms)


_MILLISECONDS = {".hours": 3_600_000, ".minutes": 60_000}


def in_milliseconds(key: str, value: Value) -> Value:
    """Convert the value of a ``.hours`` or ``.minutes`` key; other keys' values stay as they are.

    Kafka's "no limit" (-1, or anything below zero) stays -1.
    """
    for suffix, factor in _MILLISECONDS.items():
        if key.endswith(suffix):
            assert isinstance(value, int)
            return value * factor if value >= 0 else -1
    return value


def first_of(keys: Sequence[str], look_up: Callable[[str], Value]) -> Value:
    """Return the value of the first key that has one, in milliseconds where that applies."""
    for key in keys:
        value = look_up(key)
        if value is not None:
            return in_milliseconds(key, value)
    return None
