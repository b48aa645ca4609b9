"""Options of the sinks: parsed from names and values, and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from barnabas.protocol import compression
from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.settings.acceptance import (
    LOST_BATCH,
    NEW_QUERY,
    NO_NEW_QUERY,
    LostBatch,
    NewQuery,
)
from barnabas.spark_connector.settings.security import (
    OF_SOURCE,
    is_about_security,
    security_of_options,
)
from barnabas.spark_connector.settings.store_options import (
    STORE_OPTIONS,
    StoreOptions,
    is_about_store,
    store_options,
)

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

LEDGER_TOPIC: Final = "__spark_sink_ledger"
_SINK_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INT_MAX: Final = 2**31 - 1
_LARGEST_BATCH_BYTES: Final = 64 * 1024 * 1024
_SMALLEST_BATCH_BYTES: Final = 1024

SERVERS: Final = "kafka.bootstrap.servers"
COMPRESSION: Final = "kafka.compression.type"
DELIVERY_TIMEOUT: Final = "kafka.delivery.timeout.ms"
REQUEST_TIMEOUT: Final = "kafka.request.timeout.ms"
CLIENT_ID: Final = "kafka.client.id"
OWN_OPTIONS: Final = (
    "sinkId",
    "topic",
    "sourceGroupId",
    "transactionTimeoutMs",
    "batchMaxBytes",
    "checkpointLocation",
    "ledgerTopic",
    NEW_QUERY,
    LOST_BATCH,
    "sourceServers",
    "acceptIds",
    "acceptNewPlan",
)
_SPARKS: Final = frozenset({"path", "queryname"})
"""Spark's options whose names resemble one of the sink."""
_NEARLY: Final = 0.8

KAFKA_OPTIONS: Final = (SERVERS, COMPRESSION, DELIVERY_TIMEOUT, REQUEST_TIMEOUT, CLIENT_ID)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All options of a sink. Picklable, since tasks receive it."""

    bootstrap_servers: str
    sink_id: str
    topic: str | None = None
    """Topic of rows without a column `topic`, or `None` if the rows have one."""
    source_group_id: str = ""
    """Consumer group to which the source's offsets are committed; empty for none."""
    transaction_timeout_ms: int = 900_000
    compression: str = "none"
    batch_max_bytes: int = 1024 * 1024 - 64 * 1024
    checkpoint_location: str | None = None
    ledger_topic: str = LEDGER_TOPIC
    delivery_timeout_ms: int = 120_000
    """Maximum time of a request, with its retries."""
    request_timeout_ms: int = 30_000
    """Maximum time of one attempt of a request."""
    client_id: str = "barnabas-spark"
    new_query: NewQuery = NO_NEW_QUERY
    """Permission for a query to start with the sink ID of another query."""
    lost_batch: LostBatch | None = None
    """Decided batch that is accepted although a part of it was lost; see BatchInDoubt."""
    source_servers: str = ""
    """Addresses of the source's brokers; empty if they are the sink's."""
    accepted_ids: frozenset[str] = frozenset()
    """Accepted new IDs of topics and clusters; see Recreated."""
    security: ClientSecurity | None = None
    """Settings for TLS and SASL, or `None` without them."""
    source_security: ClientSecurity | None = None
    """The same for the source's brokers, or `None` to use the sink's for the same brokers."""
    accepted_plan: int | None = None
    """Batch that may have other offsets than at its start, since no table has rows of it."""
    checkpoint_store: StoreOptions | None = None
    """Access to a checkpoint on an object store, or `None` to use the environment's settings."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Read the options of a writer; raises WrongOption. Spark may change the case of names."""
        given = {name.lower(): str(value) for name, value in options.items()}
        _refuse_unknown(given)
        sink_id = _required(given, "sinkId", "a name of your choice that no other pipeline has")
        if not _SINK_ID.fullmatch(sink_id):
            raise WrongOption(
                f"The option sinkId is {sink_id!r}, but may only have letters, digits, '_' and "
                "'-', at most 100 of them."
            )
        codec = given.get(COMPRESSION, "none")
        if codec not in compression.NAMES:
            raise WrongOption(
                f"The option {COMPRESSION} is {codec!r}; use one of {', '.join(compression.NAMES)}."
            )
        return cls(
            bootstrap_servers=_servers(given),
            sink_id=sink_id,
            topic=_topic(given, "topic", None),
            source_group_id=given.get("sourcegroupid", f"spark.{sink_id}"),
            transaction_timeout_ms=_number(given, "transactionTimeoutMs", 900_000, 1_000, _INT_MAX),
            compression=codec,
            batch_max_bytes=_number(
                given, "batchMaxBytes", 983_040, _SMALLEST_BATCH_BYTES, _LARGEST_BATCH_BYTES
            ),
            checkpoint_location=given.get("checkpointlocation"),
            ledger_topic=_topic(given, "ledgerTopic", LEDGER_TOPIC) or LEDGER_TOPIC,
            delivery_timeout_ms=_number(given, DELIVERY_TIMEOUT, 120_000, 1_000, _INT_MAX),
            request_timeout_ms=_number(given, REQUEST_TIMEOUT, 30_000, 100, _INT_MAX),
            client_id=given.get(CLIENT_ID, "barnabas-spark"),
            new_query=NewQuery.parse(given.get(NEW_QUERY.lower(), "false")),
            lost_batch=_lost_batch(given),
            source_servers=_source_servers(given),
            accepted_ids=frozenset(re.split(r"[,\s]+", given.get("acceptids", "").strip())) - {""},
            security=security_of_options(given),
            source_security=security_of_options(given, OF_SOURCE),
            accepted_plan=_batch(given, "acceptNewPlan"),
            checkpoint_store=store_options(given, given.get("checkpointlocation")),
        )

    @property
    def reads_where_it_writes(self) -> bool:
        """Whether the source has the sink's brokers and security settings."""
        is_there = self.source_servers in {"", self.bootstrap_servers}
        return is_there and self.source_security in (None, self.security)

    def accepts_lost(self, query_id: str, batch_id: int) -> bool:
        """Return whether a batch of a query is accepted although records of it are lost."""
        return self.lost_batch is not None and self.lost_batch.accepts(query_id, batch_id)

    @property
    def transactional_id(self) -> str:
        """ID of the driver's transactions, which only one driver of the sink has at a time."""
        return f"spark.{self.sink_id}"


def _refuse_unknown(given: Mapping[str, str]) -> None:
    """Refuse ignored options that start with `kafka.`, and names that resemble one of the sink.

    Others can be options of Spark.
    """
    own = {name.lower(): name for name in (*OWN_OPTIONS, *STORE_OPTIONS)}
    for name in given:
        if is_about_security(name) or is_about_security(name, OF_SOURCE) or is_about_store(name):
            continue
        if name.startswith(OF_SOURCE):
            raise WrongOption(
                f"The option {name} is not one of this sink's: behind {OF_SOURCE} stands how to get"
                " in, as in kafka.security.*, kafka.sasl.* and kafka.ssl.*."
            )
        if not name.startswith("kafka."):
            near = (
                [] if name in own or name in _SPARKS else get_close_matches(name, own, 1, _NEARLY)
            )
            if near:
                raise WrongOption(
                    f"The option {name} is not one of this sink's: did you mean {own[near[0]]}?"
                )
            continue
        if name in KAFKA_OPTIONS:
            continue
        near = get_close_matches(name, KAFKA_OPTIONS, n=1)
        hint = f": did you mean {near[0]}?" if near else f", which are {', '.join(KAFKA_OPTIONS)}."
        raise WrongOption(f"The option {name} is not one of this sink's{hint}")


def _source_servers(given: Mapping[str, str]) -> str:
    servers = given.get("sourceservers", "").strip()
    if servers:
        addresses(servers, "sourceServers")
    return servers


def _required(given: Mapping[str, str], name: str, content: str) -> str:
    value = given.get(name.lower(), "").strip()
    if not value:
        raise WrongOption(f"The option {name} is missing: give it {content}.")
    return value


def _servers(given: Mapping[str, str]) -> str:
    servers = _required(given, SERVERS, "the brokers' addresses, as in 'localhost:9092'")
    addresses(servers)
    return servers


def addresses(servers: str, option: str = SERVERS) -> list[tuple[str, int]]:
    """Parse 'host:port,host:port'; raises WrongOption."""
    found = []
    for each in servers.split(","):
        host, _, port = each.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
            raise WrongOption(
                f"The option {option} has the address {each.strip()!r}; write it as host:port."
            )
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return found


def _topic(given: Mapping[str, str], name: str, default: str | None) -> str | None:
    topic = given.get(name.lower(), default)
    if topic is not None and (not _TOPIC.fullmatch(topic) or topic in {".", ".."}):
        raise WrongOption(f"The option {name} is {topic!r}, which no topic can be called.")
    return topic


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    hint = f"use a whole number from {least} to {most}"
    text = given.get(name.lower(), str(default))
    try:
        value = int(text)
    except ValueError:
        raise WrongOption(f"The option {name} is {text!r}; {hint}.") from None
    if not least <= value <= most:
        raise WrongOption(f"The option {name} is {value}; {hint}.")
    return value


def _batch(given: Mapping[str, str], name: str) -> int | None:
    return _number(given, name, 0, 0, 2**63 - 1) if name.lower() in given else None


def _lost_batch(given: Mapping[str, str]) -> LostBatch | None:
    text = given.get(LOST_BATCH.lower())
    return None if text is None else LostBatch.parse(text)
