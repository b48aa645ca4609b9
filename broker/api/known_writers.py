"""Client software whose large batches are appended without a look at their records.

The broker compares the records of a batch with its header: their number, lengths, timestamps and
header names. For a large uncompressed batch that costs about a tenth of the Produce request (15 ns
for each record, measured), and is left out for the software below. The name comes from ApiVersions
(KIP-511), and a client can lie about it; docs/batch-header.md has what it can do then.
"""

from __future__ import annotations

from typing import Final

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
"""`barnabas produce`, the console and the Spark sinks write as "barnabas"."""
