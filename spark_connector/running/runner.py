"""Runner of a file's pipelines: starts Spark, watches them, ends them between batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from barnabas.spark_connector.checkpoint.checkpoint import check_usable
from barnabas.spark_connector.failures.raised import beginning
from barnabas.spark_connector.failures.sentences import is_overtaken, may_miss_a_topic
from barnabas.spark_connector.monitoring.monitoring import monitor
from barnabas.spark_connector.monitoring.progress import (
    NOTHING_KNOWN,
    BatchProgress,
    BatchWatch,
    batch_progress,
)
from barnabas.spark_connector.pipelines.checks import check_columns, with_checked_table
from barnabas.spark_connector.pipelines.pipeline import Pipeline
from barnabas.spark_connector.pipelines.preflight import check_brokers
from barnabas.spark_connector.pipelines.sink import STOCK, TWO_PHASE, start
from barnabas.spark_connector.pipelines.source import Source
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.running.broker_view import BrokerView
from barnabas.spark_connector.running.failures import QueryFailed, failures_of, failures_of_spark
from barnabas.spark_connector.running.screen import Screen
from barnabas.spark_connector.session.spark_log import SparkLog
from barnabas.spark_connector.session.spark_process import TOLD_S, made_ready, spark_session
from barnabas.spark_connector.session.stopping import Stop, Stopped, within
from barnabas.spark_connector.sinks.starting import take_the_sink
from barnabas.storage.runtime.clock import sleep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S: Final = 0.2
STARTS_MAX: Final = 5
"""Maximum number of starts of a query while another driver of its checkpoint interferes."""
_END_S: Final = 30.0
_END_AT_ONCE_S: Final = 5.0
"""Time for queries to end, normally and after an urgent stop."""


@dataclass(frozen=True)
class Plan:
    """Options of the command `run`."""

    pipelines: Sequence[Pipeline]
    checkpoints: str = "checkpoints"
    """Directory of the checkpoints, one for each pipeline, named after its sink ID."""
    master: str | None = None
    """Spark's master, or `None` with spark-submit, which has its own."""
    settings: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    metrics_at: tuple[str, int] | None = None
    """Host and port of the metrics, or `None` without a port for them."""


@dataclass
class Running:
    """A query that was started."""

    pipeline: Pipeline
    query: StreamingQuery
    watch: BatchWatch
    checkpoint: str
    view: BrokerView | None = None
    """View of its brokers, or `None` without one."""
    start: Callable[[], StreamingQuery] | None = None
    """Function that starts it again, or `None` if it may start only once."""
    starts: int = 1

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        query: StreamingQuery,
        checkpoint: str,
        view: BrokerView | None = None,
        start: Callable[[], StreamingQuery] | None = None,
    ) -> Self:
        """Return a query that was just started."""
        return cls(pipeline, query, BatchWatch(query), checkpoint, view, start)

    def starts_again_after(self, failure: BaseException) -> bool:
        """Start again if another driver of the checkpoint has interfered; return false otherwise.

        That driver was fenced when this one started, but it may have finished a batch, which Spark
        records only for one of the two. If a batch has ended here, the other driver is the later
        one, and this query stops.
        """
        if self.start is None or self.watch.has_ended_one or self.starts >= STARTS_MAX:
            return False
        if not is_overtaken(failure):
            return False
        with suppress(Exception):  # Raises the failure again.
            self.query.awaitTermination(int(_END_S))
        self.query = self.start()
        self.watch = BatchWatch(self.query)
        self.starts += 1
        return True

    def ended_batches(self) -> Iterator[BatchProgress]:
        """Yield the newly ended batches, with the brokers' numbers."""
        for report in self.watch.ended():
            facts = NOTHING_KNOWN if self.view is None else self.view.facts(report)
            yield batch_progress(self.pipeline.name, report, facts)

    def failed_with(self, failure: BaseException) -> QueryFailed:
        """Return the query's failure, with the missing topic or checkpoint that Spark omits."""
        failed = QueryFailed(self.pipeline.name, failure)
        if may_miss_a_topic(failed.sentence) and self.view is not None:
            failed.set_sentence(self.view.missing_topic() or failed.sentence)
        is_named = f"checkpoint {self.checkpoint}" in failed.sentence
        if self.checkpoint in failed.sentence and not is_named:
            failed.set_sentence(f"the checkpoint cannot be used any more: {failed.sentence}")
        return failed

    def close(self) -> None:
        """Close the connections to its brokers."""
        if self.view is not None:
            self.view.close()


def run(plan: Plan, screen: Screen, stop: Stop, log: SparkLog) -> None:
    """Run the pipelines until they end or `stop` is requested; raises a query's failure."""
    kinds = [_kind_of(pipeline) for pipeline in plan.pipelines]
    screen.note(f"starting Spark ({plan.master or 'spark-submit'})")
    settings = made_ready(plan.master, plan.settings)
    names = ", ".join(pipeline.name for pipeline in plan.pipelines)
    try:
        with (
            failures_of_spark(names),
            spark_session(plan.master, settings, log, stop) as spark,
        ):
            stop.on_signals()
            if address := spark.sparkContext.uiWebUrl:
                screen.announce(f"Spark's UI is at {address}")
            frames = [_frame_of(pipeline, spark, plan) for pipeline in plan.pipelines]
            with _monitored(plan, spark, screen):
                _run_queries(plan, frames, kinds, screen, stop)
    except QueryFailed as failed:
        # A service manager also signals Java, perhaps first.
        if failed.has_received_sigterm:
            stop.wait(TOLD_S)
        if not (stop.is_asked and failed.has_received_sigterm):
            raise


@contextmanager
def _monitored(plan: Plan, spark: SparkSession, screen: Screen) -> Iterator[None]:
    if plan.metrics_at is None:
        yield
        return
    host, port = plan.metrics_at
    with failures_of("--metrics-port"):
        watching = monitor(spark, port=port, host=host)
    try:
        screen.announce(f"metrics are at {watching.url}")
        yield
    finally:
        watching.stop()


def _run_queries(
    plan: Plan, frames: Sequence[DataFrame], kinds: Sequence[str], screen: Screen, stop: Stop
) -> None:
    running: list[Running] = []
    ends_s = _END_S
    try:
        for query in _started(plan, frames, kinds, stop):
            running.append(query)
            stop.waits = True
        watch(running, screen.batch, stop)
        for each in running:
            if plan.once and not each.watch.has_ended_one:
                screen.note(f"{each.pipeline.name}: nothing to do")
    except Stopped:
        ends_s = _END_AT_ONCE_S
        raise
    finally:
        within(ends_s, [each.query.stop for each in running])
        for each in running:
            each.close()


def _started(
    plan: Plan, frames: Sequence[DataFrame], kinds: Sequence[str], stop: Stop
) -> Iterator[Running]:
    for pipeline, frame, kind in zip(plan.pipelines, frames, kinds, strict=True):
        if stop.is_asked:
            return
        start = partial(_start, plan, pipeline, frame, kind)
        with failures_of(pipeline.name):
            query = start()
        checkpoint = checkpoint_of(plan.checkpoints, pipeline)
        yield Running.of(pipeline, query, checkpoint, BrokerView(pipeline), start)


def _start(plan: Plan, pipeline: Pipeline, frame: DataFrame, kind: str) -> StreamingQuery:
    """Start a query as the only driver of its sink."""
    sink = pipeline.sink
    checkpoint = checkpoint_of(plan.checkpoints, pipeline)
    source = pipeline.source if isinstance(pipeline.source, Source) else None
    check_usable(checkpoint)
    if kind != STOCK:
        options = sink.sink_options(checkpoint, source)
        topics = [] if source is None else source.topics()
        take_the_sink(options, topics, is_two_phase=kind == TWO_PHASE)
    sink = with_checked_table(sink)
    with beginning():
        return start(frame, sink, kind, checkpoint, once=plan.once, source=source)


def _kind_of(pipeline: Pipeline) -> str:
    with failures_of(pipeline.name):
        return check_brokers(pipeline)


def _frame_of(pipeline: Pipeline, spark: SparkSession, plan: Plan) -> DataFrame:
    with failures_of(pipeline.name):
        frame = pipeline.frame(spark, once=plan.once)
        check_frame(pipeline, frame)
    return frame


def check_frame(pipeline: Pipeline, frame: Any) -> None:  # noqa: ANN401 - a user's function made it
    """Refuse the result of a transform if it is no stream that the sink can write."""
    if not hasattr(frame, "isStreaming"):
        raise WrongUse(f"transform returned {type(frame).__name__}, not a DataFrame")
    if not frame.isStreaming:
        raise WrongUse(
            "transform returned a table, not a stream: read the source with Source(...) or"
            " read_stream(...), a table only to join it"
        )
    if pipeline.sink.table is None:
        check_columns(frame.dtypes, pipeline.sink)


def checkpoint_of(checkpoints: str, pipeline: Pipeline) -> str:
    """Return the location of a pipeline's checkpoint: a path, or a URI of Hadoop."""
    if "://" in checkpoints:
        return f"{checkpoints.rstrip('/')}/{pipeline.name}"
    return str(Path(checkpoints).absolute() / pipeline.name)


# ------------------------------------------------------------------------------------- watching


def watch(running: Sequence[Running], report: Callable[[BatchProgress], None], stop: Stop) -> None:
    """Report batches until all queries have ended, one has failed, or `stop` is requested."""
    while not stop.is_asked:
        active = [each.query.isActive for each in running]
        _report(running, report)
        if _raise_failure(running, may_start=True):
            continue
        if not any(active):
            return
        stop.wait(LOOK_S)
    for each in running:
        _finish(each)
    _report(running, report)
    _raise_failure(running, may_start=False)


def _report(running: Sequence[Running], report: Callable[[BatchProgress], None]) -> None:
    for each in running:
        for batch in each.ended_batches():
            report(batch)


def _raise_failure(running: Sequence[Running], *, may_start: bool) -> bool:
    """Raise the failure of a query; return whether one was started again instead."""
    has_started = False
    for each in running:
        failure = each.query.exception()
        if failure is None:
            continue
        if not may_start or not each.starts_again_after(failure):
            raise each.failed_with(failure) from failure
        has_started = True
    return has_started


def _finish(running: Running) -> None:
    """Stop a query after its running batch.

    A batch that starts between the check and the stop is interrupted; it is not committed, and
    the next start writes it.
    """
    query = running.query
    before = _latest_batch(query)
    while query.isActive:
        if not query.status["isTriggerActive"] or _latest_batch(query) != before:
            break
        sleep(LOOK_S / 4)
    query.stop()


def _latest_batch(query: StreamingQuery) -> object:
    progress: Any = query.lastProgress
    return None if progress is None else (progress["batchId"], progress["timestamp"])
