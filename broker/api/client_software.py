"""Decisions that depend on the name of a client's software.

The name and the version come from ApiVersions (KIP-511), and a client can change or omit both. By
them the broker chooses the form of an error, so that a wrong name costs that client alone, and
whether it compares the records of a large uncompressed batch with their header: their number,
lengths, timestamps and header names. The comparison costs about a tenth of the Produce request (15
ns for each record, measured); docs/batch-header.md has what a client with a wrong name can do.

* librdkafka names itself ``librdkafka``. Its bindings set their own name:
  ``confluent-kafka-python``, ``-go``, ``-dotnet`` and ``-javascript``. Others keep the library's
  name in their version: Karafka sends ``v2.5.0-rdkafka-ruby-v0.19.5-librdkafka-v2.8.0``. A program
  that replaces both, such as ClickHouse, is not found and gets the same answers as from Apache
  Kafka.
* aiokafka 0.14 sends ApiVersions in version 0, which has no name, as do kafkajs and kafka-go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.api.client_seen import ClientSeen

KNOWN_WRITERS: Final = frozenset(
    {
        "apache-kafka-java",
        "librdkafka",
        "confluent-kafka-dotnet",
        "confluent-kafka-go",
        "confluent-kafka-javascript",
        "confluent-kafka-python",
        "kafka-python",
        "barnabas",
    }
)
"""Software whose large batches are appended without that comparison.

`barnabas produce`, the console and the Spark sinks write as "barnabas".
"""

LIBRARY: Final = "rdkafka"
BINDING_PREFIX: Final = "confluent-kafka-"
"""The Go and .NET bindings have no trace of the library in their versions."""


def is_librdkafka(seen: ClientSeen) -> bool:
    """Return whether the client uses librdkafka, itself or by one of its bindings."""
    name = seen.software
    return name.startswith(BINDING_PREFIX) or LIBRARY in name or LIBRARY in seen.software_version


def is_unnamed(seen: ClientSeen) -> bool:
    """Return whether the client has not named its software."""
    return not seen.software
