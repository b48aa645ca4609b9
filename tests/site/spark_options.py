"""Write docs/spark-options.md from the options of the Spark connector: ``make docs-spark-options``.

With ``--check`` it only reports by its exit code whether the page is current.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from barnabas.broker.config.pages.generated_page import write_or_compare
from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.pipelines.checks import (
    SOURCE_OPTIONS,
    STOCK_OPTIONS,
    WITHOUT_EFFECT,
)
from barnabas.spark_connector.pipelines.sink import KINDS, OUTPUT_MODES
from barnabas.spark_connector.pipelines.source import BATCH_OFFSETS_MAX, MAX_OFFSETS
from barnabas.spark_connector.running.command import add_options
from barnabas.spark_connector.settings.options import KAFKA_OPTIONS, OWN_OPTIONS, SinkOptions
from barnabas.spark_connector.settings.store_options import OPTIONS as OF_STORES
from barnabas.spark_connector.settings.store_options import STORE_OPTIONS
from tests.checkout import ROOT

PAGE: Final = ROOT / "docs" / "spark-options.md"

ARGUMENTS: Final = {
    Pipeline: {
        "source": "a `Source`, or a function from the SparkSession to a streaming DataFrame",
        "transform": "a function from DataFrame to DataFrame; by default the rows stay as they are",
        "sink": "a `Sink`",
    },
    Source: {
        "topic": "a topic, or a list of topics",
        "pattern": "a regular expression of Java's, in place of topics",
        "servers": "`host:port,...`; by default those of `--servers`",
        "options": 'options of Spark\'s Kafka source, such as `{"maxOffsetsPerTrigger": 200_000}`',
    },
    Sink: {
        "sink_id": (
            "the name that identifies the sink across restarts; no two pipelines may have the same"
        ),
        "topic": (
            "the topic of rows without a column `topic`. Every topic must exist: create the output "
            "topic first"
        ),
        "table": (
            "a function that writes each batch [to a table, "
            "too](spark.md#a-table-and-a-topic-in-one-batch)"
        ),
        "servers": "`host:port,...`; by default those of `--servers`",
        "kind": (
            f"one of {', '.join(f'`{kind}`' for kind in KINDS)}: "
            "[Which sink when](spark.md#which-sink-when)"
        ),
        "output_mode": (
            f"one of {', '.join(f'`{mode}`' for mode in OUTPUT_MODES)}, each with each kind"
        ),
        "trigger": (
            '`{"processingTime": "5 seconds"}`, `{"availableNow": True}`; by default a batch '
            "starts when the previous one has ended"
        ),
        "options": "[options of the sink](#options-of-the-sink)",
    },
}
"""Meanings of the arguments, by class."""

OF_SOURCE: Final = {
    "kafka.isolation.level": "Spark's consumers read aborted records otherwise",
    "startingOffsets": "the first batch starts with the oldest record",
    "kafka.max.poll.records": (
        "Kafka's default of 500 costs two requests for each 500 records: with 10,000 a batch read "
        "had 1.8 times the rate"
    ),
    MAX_OFFSETS: (
        "bounds the first batch of a large topic. Not set with a `processingTime` trigger: more "
        "records than that may arrive between two batches"
    ),
}
"""Reasons for the options that `Source` sets."""

OF_SINK: Final = {
    "kafka.bootstrap.servers": "the brokers of the sink, as `host:port,...`",
    "sinkId": "the name that identifies the sink across restarts",
    "topic": "the topic of rows without a column `topic`",
    "checkpointLocation": "the checkpoint of this very query",
    "sourceGroupId": "the group for the source's offsets; empty: none",
    "transactionTimeoutMs": (
        "longest time, in milliseconds, for which a task's transaction may be open before the "
        "driver takes it over; the broker's `transaction.max.timeout.ms` limits it"
    ),
    "kafka.compression.type": "`none`, `gzip`, `snappy`, `lz4` or `zstd`",
    "batchMaxBytes": (
        "size of a record batch before compression, in bytes; below the topic's `max.message.bytes`"
    ),
    "kafka.delivery.timeout.ms": "maximum time of a request with its retries",
    "kafka.request.timeout.ms": "maximum time of one attempt of a request",
    "kafka.client.id": "the client ID of the sink in the broker's logs",
    "ledgerTopic": "the topic of the ledger: the same for all drivers of a sink, permanently",
    "newQuery": (
        "queries that are given up for this one, as the refusal names them: holds once. `true` "
        "holds for any query"
    ),
    "acceptIds": "new IDs of topics and clusters to accept, separated by commas",
    "acceptLostBatch": (
        "`<query>:<batch>`, the last batch that may be lost, as the refusal names it. A batch "
        "alone holds for any query"
    ),
    "acceptNewPlan": (
        "the batch that may have other offsets than at its start, since no table has rows of it"
    ),
    "sourceServers": (
        "the brokers of the source, by default the sink's; `Pipeline` takes those of its `Source`"
    ),
}
"""Meanings of the options of the sink."""

_FIELDS: Final = {
    "sourceGroupId": "source_group_id",
    "transactionTimeoutMs": "transaction_timeout_ms",
    "kafka.compression.type": "compression",
    "batchMaxBytes": "batch_max_bytes",
    "kafka.delivery.timeout.ms": "delivery_timeout_ms",
    "kafka.request.timeout.ms": "request_timeout_ms",
    "kafka.client.id": "client_id",
    "ledgerTopic": "ledger_topic",
    "newQuery": "new_query",
}
"""Fields of the options that have a default."""
_REQUIRED: Final = {"kafka.bootstrap.servers", "sinkId"}

STORES: Final = {
    "checkpoint.endpoint": "another server, as `http://HOST:PORT` or `https://HOST`",
    "checkpoint.region": "by default the region of the bucket",
    "checkpoint.caFile": "certificate authorities in PEM",
    "checkpoint.accessKey": "an access key; for Azure the key of the account",
    "checkpoint.secretKey": "the secret of the access key",
    "checkpoint.sessionToken": "the token of temporary credentials",
    "checkpoint.roleArn": "a role, assumed with the login of the environment",
    "checkpoint.externalId": "the external ID for the role",
    "checkpoint.sasToken": "a shared access signature",
    "checkpoint.tenantId": "the tenant of a service principal",
    "checkpoint.clientId": "a service principal; alone, a managed identity",
    "checkpoint.clientSecret": "the secret of the service principal",
}
"""Meanings of the options of object stores."""

_INTRODUCTION: Final = """\
# Spark options

Written by `make docs-spark-options` from the sources of the connector; `make check` compares it.
[Exactly once with Spark](spark.md) explains how to use them.

A misspelled option is an error that names the nearest one.
"""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    for kind, meanings in ARGUMENTS.items():
        yield f"## Arguments of {kind.__name__}\n"
        fields = {each.name: each for each in dataclasses.fields(kind)}
        assert fields.keys() == meanings.keys(), kind
        yield from _table(
            ("Argument", "Default", "Meaning"),
            ((f"`{name}=`", _default(fields[name]), meanings[name]) for name in meanings),
        )
        yield ""
    yield from _of_source()
    yield from _of_sink()
    yield from _of_stores()
    yield from _of_run()


def _of_source() -> Iterator[str]:
    yield "## Options of the source\n"
    yield "`Source` takes the options of Kafka's consumer with the prefix `kafka.`, and those of"
    yield f"Spark's Kafka source: {_names(SOURCE_OPTIONS)}.\n"
    yield "It sets four of them, unless you do:\n"
    given = Source(topic="a", servers="b:1").spark_options(starting="earliest")
    del given["kafka.bootstrap.servers"], given["subscribe"]
    given[MAX_OFFSETS] = str(BATCH_OFFSETS_MAX)
    assert given.keys() == OF_SOURCE.keys()
    yield from _table(
        ("Option", "Default of `Source`", "Reason"),
        ((f"`{name}`", f"`{given[name]}`", reason) for name, reason in OF_SOURCE.items()),
    )
    yield ""


def _of_sink() -> Iterator[str]:
    yield "## Options of the sink\n"
    yield '`Sink(options={...})`, or `.option(...)` of `format("barnabas")`. `Pipeline` sets the'
    yield "first four itself.\n"
    assert OF_SINK.keys() == {*OWN_OPTIONS, *KAFKA_OPTIONS}
    parsed = SinkOptions.parse({"kafka.bootstrap.servers": "a:1", "sinkId": "sinkId"})

    def default(name: str) -> str:
        if name in _FIELDS:
            value = getattr(parsed, _FIELDS[name])
            text = str(value).lower() if isinstance(value, bool) else str(value)
            return f"`{text.replace('sinkId', '<sinkId>')}`"
        return "required" if name in _REQUIRED else ""

    yield from _table(
        ("Option", "Default", "Meaning"),
        ((f"`{name}`", default(name), meaning) for name, meaning in OF_SINK.items()),
    )
    yield "\n[TLS and logins](spark.md#tls-and-logins) has the options with the prefixes"
    yield "`kafka.security.`, `kafka.sasl.`, `kafka.ssl.` and, for the source's brokers,"
    yield "`source.kafka.`. With the kind `stock` the sink is Spark's own, with the options of"
    yield f"Kafka's producer and {_names(STOCK_OPTIONS)}.\n"
    yield "The exactly-once sinks refuse these options, since they would have no effect:\n"
    yield from _table(
        ("Option", "Reason"),
        ((f"`{name}`", reason) for name, reason in WITHOUT_EFFECT.items()),
    )
    yield ""


def _of_stores() -> Iterator[str]:
    yield "## Options of a checkpoint on an object store\n"
    yield "[Checkpoints on object stores](spark.md#checkpoints-on-object-stores) explains when they"
    yield "are needed. None has a default: without them the environment decides.\n"
    assert set(STORES) == set(STORE_OPTIONS)
    yield from _table(
        ("Option", "Stores", "Meaning"),
        ((f"`{name}`", ", ".join(OF_STORES[name].stores), STORES[name]) for name in STORES),
    )
    yield ""


def _of_run() -> Iterator[str]:
    yield "## Options of the command\n"
    yield "`python -m barnabas.spark run FILE` takes these:\n"
    yield from _table(
        ("Option", "Default", "Meaning"),
        (
            (f"`{_written(action)}`", _default_of(action), str(action.help) % vars(action))
            for action in _actions()
        ),
    )


def _actions() -> list[argparse.Action]:
    """Return the options of `run`, in their order."""
    actions: list[argparse.Action] = []

    class Recorder(argparse.ArgumentParser):
        """A parser that keeps the options that are added to it."""

        def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
            """Add an option and keep it."""
            action = super().add_argument(*names, **settings)
            actions.append(action)
            return action

    add_options(Recorder(add_help=False))
    return actions


def _written(action: argparse.Action) -> str:
    name = action.option_strings[-1]
    return f"{name} {action.metavar}" if action.metavar else name


def _default_of(action: argparse.Action) -> str:
    return f"`{action.default}`" if isinstance(action.default, str) else ""


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is dataclasses.MISSING:
        return "required" if field.default_factory is dataclasses.MISSING else "`{}`"
    if callable(field.default) or field.default is None:
        return ""
    return f"`{field.default}`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    return write_or_compare(
        PAGE, page(), module="tests.site.spark_options", target="docs-spark-options"
    )


if __name__ == "__main__":
    sys.exit(main())
