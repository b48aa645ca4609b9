"""Configuration from the environment: ``KAFKA_*`` as the apache/kafka image reads it.

``KAFKA_`` is removed, the rest becomes lower case, then ``_`` becomes a dot, three dots a dash and
two dots an underscore, in this order. Bitnami's ``KAFKA_CFG_`` prefix means the same and is read
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.listener_keys import PREFIX as LISTENER_PREFIX
from barnabas.broker.config.loading.image_secrets import FILE_SUFFIX, image_secrets, secret_in
from barnabas.broker.config.loading.image_secrets import VARIABLES as SECRETS
from barnabas.broker.config.types import ConfigType

PREFIX = "KAFKA_"
BITNAMI_PREFIX = "KAFKA_CFG_"

# Variables of Kafka's start scripts and of other images, which are not properties.
EXCLUDED = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HEAP_OPT",
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_PORT",
        "KAFKA_CREATE_TOPICS_SEPARATOR",
    }
)

# No property, but part of what another variable says.
READ_ELSEWHERE = frozenset({"KAFKA_CREATE_TOPICS_SEPARATOR"})
# Variables without a setting, ignored without a warning.
_QUIET = READ_ELSEWHERE | {"KAFKA_VERSION"}

# Variables with a meaning of their own: whose key they are.
SPECIAL = {
    "CLUSTER_ID": "cluster.id",
    "KAFKA_CLUSTER_ID": "cluster.id",
    "KAFKA_KRAFT_CLUSTER_ID": "cluster.id",
    "KAFKA_CREATE_TOPICS": "barnabas.create.topics",
    "KAFKA_LOG4J_ROOT_LOGLEVEL": "barnabas.log.level",
}

# Options of Java, of which one names the file with users.
_JAVA_OPTIONS = "KAFKA_OPTS"
_JAAS_FILE = re.compile(
    r"""(?:^|\s)-Djava\.security\.auth\.login\.config==?(?:"([^"]+)"|'([^']+)'|(\S+))"""
)

# log4j's names of levels, and those of Python's logging.
_LOG_LEVELS = {
    "ALL": "DEBUG",
    "TRACE": "DEBUG",
    "WARN": "WARNING",
    "FATAL": "ERROR",
    "OFF": "ERROR",
}


# wurstmeister's separator between topics instead of a comma; its users write $'\n' for a line's
# end.
_TOPICS = "KAFKA_CREATE_TOPICS"
_TOPICS_SEPARATOR = "KAFKA_CREATE_TOPICS_SEPARATOR"
_SPELLED = {"$'\\n'": "\n", "$$'\\n'": "\n", "\\n": "\n", "$'\\t'": "\t"}


class Variable(NamedTuple):
    """A variable that sets a key."""

    key: str
    value: str
    name: str


def key_of(name: str) -> str | None:
    """Return the key that a variable sets, or None."""
    if name in SPECIAL:
        return SPECIAL[name]
    if name in EXCLUDED or name in SECRETS or not name.startswith(PREFIX):
        return None
    # The image removes KAFKA_ wherever it stands, so KAFKA_KAFKA_X is the key "x".
    rest = name.removeprefix(BITNAMI_PREFIX) if name.startswith(BITNAMI_PREFIX) else name
    rest = rest.replace(PREFIX, "").lower()
    return rest.replace("_", ".").replace("...", "-").replace("..", "_") or None


def variable_of(key: str) -> str:
    """Return the variable that sets a key: the inverse of ``key_of``."""
    return PREFIX + key.upper().translate({ord("."): "_", ord("_"): "__", ord("-"): "___"})


def from_environment(environment: Mapping[str, str]) -> list[Variable]:
    """Return the settings of the environment; of a repeated key the last one counts.

    Raises ConfigError for a named file that cannot be read.
    """
    variables = []
    jaas_file = _jaas_file_of(environment)
    if jaas_file is not None:
        variables.append(Variable("barnabas.sasl.jaas.file", jaas_file, _JAVA_OPTIONS))
    from_files = []
    for name in sorted(environment, key=_precedence):
        value, secret = environment[name], _secret_of(name)
        if secret is not None and value:
            from_files.append(Variable(secret, secret_in(value, name), name))
        key = key_of(name)
        if key is None or secret is not None:
            continue
        if key == "barnabas.log.level":
            value = _LOG_LEVELS.get(value.strip().upper(), value.strip().upper())
        elif name == _TOPICS:
            value = _topics(value, environment.get(_TOPICS_SEPARATOR, ","))
        variables.append(Variable(key, value, name))
    variables += [Variable(*each) for each in image_secrets(environment)]
    return variables + from_files


def _secret_of(name: str) -> str | None:
    """Return the key whose value is in the file that a variable names, or None."""
    key = key_of(name.removesuffix(FILE_SUFFIX)) if name.endswith(FILE_SUFFIX) else None
    if key is None:
        return None
    return key if is_secret(key) else None


def is_secret(key: str) -> bool:
    """Whether the value of a key, or of one of a listener's own, is a secret."""
    of_one_listener = key.startswith(LISTENER_PREFIX)
    return any(
        key == each.name or (of_one_listener and key.endswith(f".{each.name}"))
        for each in BROKER_CONFIGS.values()
        if each.type is ConfigType.PASSWORD
    )


def ignored_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the variables for Kafka's start scripts that have no effect here."""
    read = set() if _jaas_file_of(environment) is None else {_JAVA_OPTIONS}
    return sorted(EXCLUDED & environment.keys() - SPECIAL.keys() - _QUIET - read)


def _jaas_file_of(environment: Mapping[str, str]) -> str | None:
    """Return the JAAS file that Java's options name; the last one counts."""
    found = _JAAS_FILE.findall(environment.get(_JAVA_OPTIONS, ""))
    return "".join(found[-1]) if found else None


def _topics(value: str, separator: str) -> str:
    """Return wurstmeister's list of topics in the syntax of Barnabas; empty items are ignored."""
    separator = _SPELLED.get(separator, separator) or ","
    return ",".join(item.strip() for item in value.split(separator) if item.strip())


def _precedence(name: str) -> tuple[bool, bool, str]:
    """Return the precedence of a name: Bitnami's before plain before special ones."""
    return name not in SPECIAL, name.startswith(BITNAMI_PREFIX), name
