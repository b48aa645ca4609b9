"""Mistakes in a pipeline, reported in one sentence each before the query starts.

Spark silently accepts options that have no effect, or with which a sink is only at least once.
These checks refuse them. The sinks themselves report faults that appear later (a second driver, a
lost transaction), see `errors.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.pipelines.pipeline import Pipeline
from barnabas.spark_connector.pipelines.sink import EXACTLY_ONCE, KINDS, OUTPUT_MODES, STOCK, Sink
from barnabas.spark_connector.pipelines.source import ISOLATION, Source
from barnabas.spark_connector.pipelines.triggers import check_trigger
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.settings.client_options import CONSUMER_OPTIONS, PRODUCER_OPTIONS
from barnabas.spark_connector.settings.options import OWN_OPTIONS as SINK_OPTIONS
from barnabas.spark_connector.settings.security import KAFKA, OF_SOURCE
from barnabas.spark_connector.settings.servers import servers_or_default
from barnabas.spark_connector.sinks.table import Batch, rows_for_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ASYNC_PROGRESS: Final = "asyncProgressTrackingEnabled"

_ARGUMENTS: Final = {
    "kafka.bootstrap.servers": "servers=",
    "topic": "topic=",
    "sinkid": "sink_id=",
    "checkpointlocation": "--checkpoint",
    "path": "--checkpoint",
}
OWN_OPTIONS: Final = tuple(each for each in SINK_OPTIONS if each.lower() not in _ARGUMENTS)
"""Options of the exactly-once sinks, which have no effect on Spark's own sink."""

WITHOUT_EFFECT: Final = {
    "kafka.acks": "every record is acknowledged by all replicas",
    "kafka.enable.idempotence": "the sink is always idempotent",
    "kafka.transactional.id": "the sink names its transactions after the sink id",
    "kafka.transaction.timeout.ms": "use transactionTimeoutMs",
    "kafka.linger.ms": "the sink makes its batches of whole Arrow batches",
    "kafka.batch.size": "use batchMaxBytes",
    "kafka.buffer.memory": "the sink keeps only the batches in flight",
    "kafka.max.in.flight.requests.per.connection": "it is always 5",
    "kafka.retries": "the sink tries again for kafka.delivery.timeout.ms",
    "kafka.key.serializer": "keys are bytes or strings",
    "kafka.value.serializer": "values are bytes or strings",
    "includeheaders": "headers are written when there is a column of that name",
}
"""Options of Spark's own sink that would have no effect, in lower case, each with the reason."""

# Settings of Kafka's clients since 4.1, with the equal options of kafka.sasl.jaas.config.
_OF_NEWER_CLIENTS: Final = {
    "kafka.sasl.oauthbearer.client.credentials.client.id": "clientId",
    "kafka.sasl.oauthbearer.client.credentials.client.secret": "clientSecret",
    "kafka.sasl.oauthbearer.scope": "scope",
}

SOURCE_OPTIONS: Final = (
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
)
"""Options of Spark's Kafka source (4.2) besides those of the consumer, which begin with kafka."""
STOCK_OPTIONS: Final = (
    "includeHeaders",
    ASYNC_PROGRESS,
    "asyncProgressTrackingCheckpointIntervalMs",
)
"""Options of Spark's Kafka sink besides those of the producer."""
_NEARLY: Final = 0.85
_NUMBERS: Final = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "minPartitions",
    "maxRecordsPerPartition",
    "startingTimestamp",
    "endingTimestamp",
)
_BOOLEANS: Final = ("failOnDataLoss", "includeHeaders")
_OFFSETS: Final = ("startingOffsets", "endingOffsets")
_FORMS: Final = {
    **dict.fromkeys(map(str.lower, _NUMBERS), (re.compile(r"\d+"), "a whole number")),
    **dict.fromkeys(
        map(str.lower, _BOOLEANS), (re.compile("true|false", re.IGNORECASE), "True or False")
    ),
    **dict.fromkeys(
        map(str.lower, _OFFSETS),
        (
            re.compile(r"\s*(earliest|latest|\{.*\})\s*", re.IGNORECASE | re.DOTALL),
            """'earliest', 'latest', or JSON as in '{"topic":{"0":23,"1":-2}}'""",
        ),
    ),
}
"""Forms of options that Spark would refuse without their name; other options have any value."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}
"""Columns of a sink with their types in Spark."""


def check_pipelines(pipelines: Sequence[Pipeline]) -> None:
    """Refuse mistakes that are visible without Spark and without a broker."""
    for name, count in Counter(pipeline.name for pipeline in pipelines).items():
        if count > 1:
            raise WrongUse(
                f"{count} pipelines have the sink id {name!r}: each would fence the other; give"
                " each one an id of its own"
            )
    for pipeline in pipelines:
        try:
            _check_pipeline(pipeline)
        except (WrongUse, WrongOption) as error:
            raise type(error)(f"pipeline {pipeline.name}: {error}") from None


def _check_pipeline(pipeline: Pipeline) -> None:
    sink = pipeline.sink
    if sink.kind not in KINDS:
        raise WrongUse(f"kind of sink {sink.kind!r} does not exist: use {_any_of(KINDS)}")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", sink.sink_id):
        raise WrongUse(
            f"the sink id {sink.sink_id!r} may only have letters, digits, '_' and '-', at most 100"
        )
    if sink.output_mode not in OUTPUT_MODES:
        raise WrongUse(
            f"output mode {sink.output_mode!r} does not exist: use {_any_of(OUTPUT_MODES)}"
        )
    _check_table(sink)
    check_trigger(sink.trigger, is_exactly_once=sink.kind in EXACTLY_ONCE)
    _check_options(sink)
    sink.security()
    if isinstance(pipeline.source, Source):
        _check_source(pipeline.source, sink)
        if any(name.lower() == "sourceservers" for name in sink.options):
            raise WrongUse("the sink's option sourceServers is said with the source's servers=")
        for name in sink.options:
            if name.lower().startswith(OF_SOURCE):
                raise WrongUse(f"the sink's option {name} is said with the source's options")
    if sink.kind in EXACTLY_ONCE:
        options = sink.sink_options()
        if options.topic == options.ledger_topic:
            raise WrongUse(
                f"the topic {options.topic} is the sink's ledger, which only the sink may write"
            )


def _check_source(source: Source, sink: Sink) -> None:
    given = source.spark_options()
    source.security()
    _refuse_misspelt("source", source.options, SOURCE_OPTIONS, CONSUMER_OPTIONS)
    for name, value in given.items():
        pattern, form = _FORMS.get(name.lower(), (None, ""))
        if pattern is not None and not pattern.fullmatch(value):
            raise WrongUse(f"the source's option {name} must be {form}, but is {value!r}")
    is_same_cluster = servers_or_default(source.servers) == servers_or_default(sink.servers)
    if is_same_cluster and sink.topic in source.topics():
        raise WrongUse(
            f"source and sink are the topic {sink.topic}: the pipeline would read its own output"
        )
    if sink.kind in EXACTLY_ONCE and given[ISOLATION].lower() != "read_committed":
        raise WrongUse(
            f"a source with {ISOLATION}={given[ISOLATION]} reads what may be aborted later, so"
            " its results are not exactly once; leave the option out, or use kind='stock'"
        )


def _refuse_misspelt(
    of: str, names: Iterable[str], known: Sequence[str], of_client: Sequence[str]
) -> None:
    """Refuse an unknown option, and name the most similar known one.

    Of options for Kafka's client refuse only those that resemble a known one: plug-ins of the
    client may have options of their own.
    """
    by_name = {each.lower(): each for each in known}
    for name in names:
        if name.lower() in _OF_NEWER_CLIENTS and name.lower() not in of_client:
            raise WrongUse(
                f"the {of}'s option {name} has no effect on Spark's own Kafka clients, which are"
                f" older: write {_OF_NEWER_CLIENTS[name.lower()]}= into kafka.sasl.jaas.config"
            )
        if name.lower().startswith("kafka."):
            near = get_close_matches(name.lower(), of_client, n=1, cutoff=_NEARLY)
            if near and near[0] != name.lower():
                raise WrongUse(f"the {of} has no option {name}: did you mean {near[0]}?")
        elif name.lower() not in by_name:
            near = get_close_matches(name.lower(), by_name, n=1)
            hint = f"did you mean {by_name[near[0]]}?" if near else f"there are {', '.join(known)}"
            raise WrongUse(f"the {of} has no option {name}: {hint}")


# ---------------------------------------------------------------------------- tables and options


def _check_table(sink: Sink) -> None:
    if sink.table is None:
        return
    if not callable(sink.table):
        raise WrongUse(
            f"table= is {sink.table!r}, not a function of a DataFrame and a Batch that writes the"
            " one and returns the rows for the topic"
        )
    if sink.kind == STOCK:
        raise WrongUse(
            "kind='stock' cannot write a table, too: it has no ledger that decides about both;"
            " leave table= out, or use an exactly-once kind"
        )


def with_checked_table(sink: Sink) -> Sink:
    """Return the sink with checks for the rows that its table returns for the topic."""
    table = sink.table
    if table is None:
        return sink

    def checked(rows: DataFrame, batch: Batch) -> DataFrame:
        found = rows_for_topic(table, rows, batch)
        check_columns(found.dtypes, sink)
        return found

    return replace(sink, table=checked)


def _check_options(sink: Sink) -> None:
    given = {name.lower(): str(value) for name, value in sink.options.items()}
    for name in sink.options:
        if name.lower() in _ARGUMENTS:
            raise WrongUse(f"the sink's option {name} is said with {_ARGUMENTS[name.lower()]}")
    if sink.kind == STOCK:
        _check_options_of_the_stock_sink(sink)
        return
    if given.get(ASYNC_PROGRESS.lower(), "").lower() == "true":
        raise WrongUse(
            "asynchronous progress tracking cannot be exactly once: after a crash Spark plans other"
            f" batches; leave the option {ASYNC_PROGRESS} out"
        )
    for name in sink.options:
        if name.lower() in WITHOUT_EFFECT:
            raise WrongUse(
                f"the sink's option {name} has no effect: {WITHOUT_EFFECT[name.lower()]}"
            )
    # SinkOptions checks options that start with kafka.
    own = [name for name in sink.options if not name.lower().startswith((KAFKA, OF_SOURCE))]
    _refuse_misspelt("sink", own, [*OWN_OPTIONS, ASYNC_PROGRESS], ())


def _check_options_of_the_stock_sink(sink: Sink) -> None:
    ours = {name.lower() for name in OWN_OPTIONS}
    for name in sink.options:
        if name.lower() in ours:
            raise WrongUse(f"the sink's option {name} has no effect on kind='stock'; leave it out")
        if name.lower() == "kafka.transactional.id":
            raise WrongUse(
                "kind='stock' cannot write in transactions, Spark's sink never begins one: leave"
                " the option kafka.transactional.id out, or use an exactly-once kind"
            )
    _refuse_misspelt("sink", sink.options, STOCK_OPTIONS, PRODUCER_OPTIONS)


def check_configuration(pipelines: Sequence[Pipeline], settings: Mapping[str, str]) -> None:
    """Refuse settings of Spark with which an exactly-once sink would not be exactly once."""
    if not any(pipeline.sink.kind in EXACTLY_ONCE for pipeline in pipelines):
        return
    for name, value in settings.items():
        if ASYNC_PROGRESS.lower() in name.lower() and value.lower() == "true":
            raise WrongUse(
                "asynchronous progress tracking cannot be exactly once: after a crash Spark plans"
                f" other batches; leave {name} out"
            )


# ------------------------------------------------------------------------------------- columns


def check_columns(columns: Sequence[tuple[str, str]], sink: Sink) -> None:
    """Refuse columns that the sink cannot write, or would silently leave out.

    `columns` are names and types as `DataFrame.dtypes` has them.
    """
    for name, count in Counter(name for name, _type in columns).items():
        if count > 1:
            raise WrongUse(f"{count} columns are called {name!r}: drop all except one")
    for name, found in columns:
        _check_column(name, found, sink)
    names = {name for name, _type in columns}
    if "value" not in names:
        raise WrongUse(
            "the column 'value' is missing: call the column to write 'value', or make one"
            " of several with to_json(struct(...))"
        )
    if sink.topic is None and "topic" not in names:
        raise WrongUse(
            "the topic of the rows is unknown: give the sink a topic=, or the rows a column 'topic'"
        )


def _check_column(name: str, found: str, sink: Sink) -> None:
    if name not in COLUMNS or (name == "timestamp" and sink.kind == STOCK):
        known = [column for column in COLUMNS if sink.kind != STOCK or column != "timestamp"]
        raise WrongUse(
            f"the sink has no column {name!r} and would leave it out: its columns are"
            f" {', '.join(known)}; drop it, or put it into 'value' with to_json(struct(...))"
        )
    if found not in COLUMNS[name]:
        raise WrongUse(
            f"the column {name!r} has the type {found}, but must be {_any_of(COLUMNS[name])}:"
            " cast it"
        )
    if name == "topic" and sink.topic is not None:
        raise WrongUse(
            "the rows have a column 'topic' and the sink has a topic=, which would win: leave"
            " one of them out"
        )


def _any_of(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
