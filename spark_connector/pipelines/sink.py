"""Sinks of pipelines, and the start of each kind.

`two_phase`: tasks write in parallel, the driver decides. `single_transaction`: the driver
writes each batch in one transaction. Both exactly once. `stock`: Spark's own Kafka sink, at
least once. `auto` is `two_phase` where the broker offers two-phase commit (KIP-939), otherwise
`single_transaction`: without it a decided transaction could still run out of its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.pipelines.source import Source
from barnabas.spark_connector.settings.options import SERVERS, SinkOptions
from barnabas.spark_connector.settings.security import (
    KAFKA,
    OF_SOURCE,
    is_about_security,
    security_of_options,
)
from barnabas.spark_connector.settings.servers import servers_or_default
from barnabas.spark_connector.sinks.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from barnabas.broker.client.security import ClientSecurity

AUTO: Final = "auto"
TWO_PHASE: Final = "two_phase"
SINGLE_TRANSACTION: Final = "single_transaction"
STOCK: Final = "stock"
KINDS: Final = (AUTO, TWO_PHASE, SINGLE_TRANSACTION, STOCK)
OUTPUT_MODES: Final = ("append", "update", "complete")
EXACTLY_ONCE: Final = (AUTO, TWO_PHASE, SINGLE_TRANSACTION)


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Topic that a pipeline writes, with the kind of sink.

    `sink_id` identifies the sink across restarts: no two pipelines may have the same. `options` are
    those of the kind of sink. `trigger` has the arguments of Spark's `DataStreamWriter.trigger`, as
    in `{"processingTime": "1 second"}`.
    """

    sink_id: str
    topic: str | None = None
    """Topic of rows without a column `topic`."""
    table: Table | None = None
    """Function that writes each batch to a table and returns the rows for the topic, or `None`."""
    servers: str | None = None
    kind: str = AUTO
    output_mode: str = "append"
    trigger: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    def security(self) -> ClientSecurity | None:
        """Return the security settings for the sink's brokers; raises WrongOption."""
        return security_of_options(self.options)

    def spark_options(self, checkpoint: str, source: Source | None = None) -> dict[str, str]:
        """Return the sink's options; ``source`` is the source of the rows, or `None` if unknown."""
        given = {name: _text(value) for name, value in self.options.items()}
        if source is not None and self.kind != STOCK:
            given["sourceServers"] = source.resolved_servers()
            given |= {
                f"{OF_SOURCE}{name.lower().removeprefix(KAFKA)}": _text(value)
                for name, value in source.options.items()
                if is_about_security(name.lower())
            }
        given[SERVERS] = servers_or_default(self.servers)
        given["checkpointLocation"] = checkpoint
        if self.topic is not None:
            given["topic"] = self.topic
        if self.kind != STOCK:
            given["sinkId"] = self.sink_id
        return given

    def sink_options(
        self, checkpoint: str = "checkpoint", source: Source | None = None
    ) -> SinkOptions:
        """Return the options of an exactly-once sink, checked; raises WrongOption."""
        return SinkOptions.parse(self.spark_options(checkpoint, source))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def start(
    frame: DataFrame,
    sink: Sink,
    kind: str,
    checkpoint: str,
    *,
    once: bool,
    source: Source | None = None,
) -> StreamingQuery:
    """Start the query that writes a stream; `kind` is the sink's, with `auto` decided."""
    writer = frame.writeStream.queryName(sink.sink_id).outputMode(sink.output_mode)
    if once:
        writer = writer.trigger(availableNow=True)
    elif sink.trigger:
        writer = writer.trigger(**sink.trigger)
    return _to(writer, sink, kind, sink.spark_options(checkpoint, source)).start()


def _to(
    writer: DataStreamWriter, sink: Sink, kind: str, options: dict[str, str]
) -> DataStreamWriter:
    if kind == STOCK:
        return writer.format("kafka").options(**options)
    if kind not in {TWO_PHASE, SINGLE_TRANSACTION}:
        raise WrongOption(f"Kind of sink {kind!r} does not exist; use one of {', '.join(KINDS)}.")
    # As a data source it would go through two more Python processes in every batch; and Spark has
    # no update mode for those, which see a batch in its tasks only.
    from barnabas.spark_connector.sinks import foreach_batch

    made = {
        TWO_PHASE: foreach_batch.two_phase,
        SINGLE_TRANSACTION: foreach_batch.single_transaction,
    }
    writer = writer.option("checkpointLocation", options["checkpointLocation"])
    return writer.foreachBatch(made[kind](options, sink.table))
