"""Writes docs/configuration.md from the tables of keys: ``make docs-configuration``.

With ``--check`` it only says whether the page is what the tables say, by its exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.group_configs import GROUP_CONFIGS
from barnabas.broker.config.ignored import IGNORED_CONFIGS, is_ignored
from barnabas.broker.config.loading.environment import (
    BITNAMI_PREFIX,
    EXCLUDED,
    READ_ELSEWHERE,
    SPECIAL,
    variable_of,
)
from barnabas.broker.config.pages.generated_page import write_or_compare
from barnabas.broker.config.protection import UNAVAILABLE
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.config.types import ConfigKey, UpdateMode

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"

_INTRODUCTION: Final = """\
# Configuration

Written by `make docs-configuration` from the tables in `broker/config/broker_config.py`,
`broker/config/topic_configs.py` and `broker/config/group_configs.py`; `make check` compares it.

`barnabas serve` needs no settings: it is then a durable broker on localhost:9092 with its data in
`./data`. `barnabas config` prints each key with its value and the origin of that.
`/config` on the HTTP port also shows changes by clients.

## Most used keys
"""

_MOST_USED: Final = """\
listeners | addresses for clients; `0.0.0.0`: all | [Security](security.md#listeners)
advertised.listeners | another address for clients | [Production](production.md#before-you-start)
log.dirs | the data directory | [Quick start](quickstart.md)
num.partitions | partitions of a new topic | [Production](production.md#sizing)
log.retention.hours | age at which records are deleted | [Production](production.md)
log.retention.bytes | size at which a partition is shortened | [Production](production.md)
barnabas.disk.reserve.bytes | space kept free | [A full disk](monitoring.md#a-full-disk)
max.connections.per.ip | connections of one address | [Production](production.md#limits)
barnabas.http.listener | address of metrics and console; empty: none | [Monitoring](monitoring.md)
barnabas.http.bearer.token | token for them | [HTTP port](security/reference.md#http-port)
sasl.enabled.mechanisms | how users authenticate | [Passwords](security/passwords.md)
authorizer.class.name | turns ACLs on | [ACLs](security/acls.md)
super.users | users with all permissions | [ACLs](security/acls.md)
barnabas.metadata | the PostgreSQL of a cluster; without it, no cluster | [A cluster](cluster.md)
node.id | number of a broker in its cluster | [A cluster](cluster.md)"""
"""Purpose of the keys that the quick start and the pages about production, security and clusters
use most, and the page that explains each."""

_SOURCES: Final = """
## Sources of values

The last of these that sets a key wins; it does not matter which keys the others set.

1. The default in the tables below.
2. A file: `barnabas serve server.properties`, in the format of Kafka's.
3. The environment, see below.
4. An argument, repeatable: `--override key=value` or `-X key=value`.
5. For keys that change at any time: what a client sets while the broker runs
   (`kafka-configs.sh --alter`), for all brokers or for this one.

An invalid value stops the broker with one line: the key, the value, the accepted values and the
origin. An unknown key causes one warning, or an error if it comes from `--override`, starts with
`barnabas.` or resembles a security key. A secret in `--override` is an error: each user of the
machine can read arguments. One line at level INFO names Kafka's keys without effect.

## Environment

Drop `KAFKA_`, write the rest in lower case, `_` as a dot, `__` as `_` and `___` as `-`:
"""

_DIALECTS: Final = """
Two things are as in Kafka's images: without `KAFKA_LISTENERS` the broker listens, on every
interface, on the ports of `KAFKA_ADVERTISED_LISTENERS`; and `KAFKA_BROKER_ID` sets `node.id`.
Topics in `KAFKA_CREATE_TOPICS` (`name:partitions:replication[:cleanup.policy]`, separated by commas
or by `KAFKA_CREATE_TOPICS_SEPARATOR`) exist when the broker is ready.
"""

_SECTIONS: Final = (
    ("Identity", "node.id"),
    ("Listeners and addresses", "listeners"),
    ("Data directory", "log.dirs"),
    ("Topics", "num.partitions"),
    ("Defaults of topics", "log.cleanup.policy"),
    ("Retention and cleaning", "log.retention.check.interval.ms"),
    ("Connections and requests", "socket.request.max.bytes"),
    ("Producers", "producer.id.expiration.ms"),
    ("Consumer groups", "offsets.topic.num.partitions"),
    ("Transactions", "transaction.max.timeout.ms"),
    ("Barnabas' own", "barnabas.journal.file.bytes"),
    ("Clusters", "barnabas.metadata"),
    ("Limits of connections", "max.connections"),
    ("TLS", "ssl.keystore.type"),
    ("Logins by token", "sasl.oauthbearer.jwks.endpoint.url"),
    ("Logins and access control", "sasl.enabled.mechanisms"),
    ("Barnabas' own: looking for damage", "barnabas.scrub.bytes.per.second"),
)
"""The sections of broker/config/broker_config.py and of its base classes, each with its first
key."""

_CHANGES: Final = {
    UpdateMode.READ_ONLY: "at a start",
    UpdateMode.PER_BROKER: "any time",
    UpdateMode.CLUSTER_WIDE: "any time",
}


def page() -> str:
    """Return the whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield from _table(
        ("Key", "Default", "Purpose", "Page"),
        (
            (f"[`{name}`](#{name})", _default_and_accepted(BROKER_CONFIGS[name])[0], *row)
            for name, *row in (line.split(" | ") for line in _MOST_USED.splitlines())
        ),
    )
    yield _SOURCES
    yield from _environment()
    yield _DIALECTS
    yield "## Keys of the broker"
    for title, keys in sections().items():
        yield f"\n### {title}\n"
        yield from _table(
            ("Key", "Default", "Accepted", "Changes", "Meaning"),
            (
                (_anchored(key.name), *_default_and_accepted(key), _CHANGES[key.update], key.doc)
                for key in keys
            ),
        )
    yield "\n## Keys of topics\n"
    yield "A topic without a value of its own has that of the broker's key; of several, that of the"
    yield "first that is set.\n"
    yield from _table(
        ("Key", "Default", "Accepted", "Broker's key", "Meaning"),
        map(_inherited, TOPIC_CONFIGS.values()),
    )
    yield "\n## Keys of groups\n"
    yield "Set by clients (`kafka-configs.sh --entity-type groups`).\n"
    yield from _table(
        ("Key", "Default", "Accepted", "Broker's key", "Meaning"),
        map(_inherited, GROUP_CONFIGS.values()),
    )
    yield "\n## Kafka's keys without effect\n"
    yield "Brokers of a cluster use `sasl.login.*` and token keys to log in to each other.\n"
    yield from _by_first_word(name for name in IGNORED_CONFIGS if is_ignored(name))
    yield "\nThese keys stop the start if they name a class, which they would need for security:\n"
    yield ", ".join(f"`{name}`" for name in sorted(UNAVAILABLE.keys() & IGNORED_CONFIGS.keys()))


def _by_first_word(names: Iterable[str]) -> Iterator[str]:
    for _, group in groupby(sorted(names), key=lambda name: name.split(".")[0]):
        yield "* " + ", ".join(f"`{name}`" for name in group)


def sections() -> dict[str, list[ConfigKey]]:
    """Return the broker's keys by section."""
    titles = {first: title for title, first in _SECTIONS}
    result: dict[str, list[ConfigKey]] = {}
    title = ""
    for key in BROKER_CONFIGS.values():
        title = titles.get(key.name, title)
        result.setdefault(title, []).append(key)
    return {title: result[title] for title, _ in _SECTIONS}


def _environment() -> Iterator[str]:
    examples = ("num.partitions", "log.retention.ms", "barnabas.http.listener")
    yield from _table(
        ("Variable", "Key"),
        [
            *((f"`{variable_of(key)}`", f"`{key}`") for key in examples),
            (f"`{BITNAMI_PREFIX}NUM_PARTITIONS`", "`num.partitions` (Bitnami's dialect)"),
            *((f"`{name}`", f"`{key}`") for name, key in sorted(SPECIAL.items())),
        ],
    )
    yield "\n`KAFKA_OPTS` sets `barnabas.sasl.jaas.file` where it has"
    yield "`-Djava.security.auth.login.config=<file>`; the rest of it has no effect."
    without_effect = EXCLUDED - SPECIAL.keys() - READ_ELSEWHERE - {"KAFKA_OPTS"}
    excluded = ", ".join(f"`{name}`" for name in sorted(without_effect))
    yield f"\nNot keys, and without effect here: {excluded}."


def _default_and_accepted(key: ConfigKey) -> tuple[str, str]:
    default = key.default_text
    if default is None:
        return "", key.accepted
    return f"`{default}`" if default else "empty", key.accepted


def _inherited(key: ConfigKey) -> tuple[str, ...]:
    keys = ", ".join(f"`{name}`" for name in key.synonyms)
    anchor = f"topic-{key.name}" if key.name in BROKER_CONFIGS else key.name
    return (_anchored(key.name, anchor), *_default_and_accepted(key), keys, key.doc)


def _anchored(name: str, anchor: str = "") -> str:
    """Return the cell of a key, to which ``docs/configuration.md#key`` leads.

    A key of topics that is also one of the broker has the anchor ``topic-key``.
    """
    return f'<a id="{anchor or name}"></a>`{name}`'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _row(head)
    yield _row(("---",) * len(head))
    for row in rows:
        yield _row(cell.replace("|", r"\|") for cell in row)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    return write_or_compare(
        PAGE, page(), module="barnabas.broker.config.pages.reference", target="docs-configuration"
    )


if __name__ == "__main__":
    sys.exit(main())
