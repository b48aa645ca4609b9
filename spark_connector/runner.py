"""Starts Spark and a file's pipelines, watches them, and ends them between two batches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Self

from spark_connector.checks import check_columns
from spark_connector.pipeline import Pipeline
from spark_connector.preflight import check_brokers, cluster_at
from spark_connector.progress import BatchProgress, BatchWatch
from spark_connector.refusals import Refusal, WrongUse
from spark_connector.sentences import sentence_of
from spark_connector.sinks import STOCK, start
from spark_connector.source import servers_or_default
from spark_connector.spark_process import SparkLog, spark_session
from spark_connector.transaction_age import TransactionAges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S: Final = 0.2


@dataclass(frozen=True)
class Plan:
    """What the command was told."""

    pipelines: Sequence[Pipeline]
    checkpoints: str = "checkpoints"
    """Each pipeline's checkpoint is a directory in there with the sink's id for a name."""
    master: str = "local[*]"
    settings: Mapping[str, str] = field(default_factory=dict)
    once: bool = False


class Stop:
    """Whether somebody wants the pipelines to end, and how much of a hurry they are in."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.at_once = False

    @property
    def is_asked(self) -> bool:
        """Whether to end after the running batch."""
        return self._asked.is_set()

    def ask(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Ask for the end; a second time, do not even wait for the running batch."""
        self.at_once = self.is_asked
        self._asked.set()

    def on_signals(self) -> None:
        """Take SIGTERM and SIGINT. Again after Spark's start, which takes SIGINT for itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.ask)

    def wait(self, seconds: float) -> None:
        """Sleep, but not past being asked."""
        self._asked.wait(seconds)


@dataclass
class Running:
    """A query that was started."""

    pipeline: Pipeline
    query: StreamingQuery
    watch: BatchWatch
    ages: TransactionAges | None
    """None where the sink has no transactions."""

    @classmethod
    def of(cls, pipeline: Pipeline, query: StreamingQuery, ages: TransactionAges | None) -> Self:
        """Return what was just started."""
        return cls(pipeline, query, BatchWatch(pipeline.name, query), ages)

    def ended_batches(self) -> Iterator[BatchProgress]:
        """Yield what there is to report, with what the broker knows about it."""
        for batch in self.watch.ended():
            age = None if self.ages is None else self.ages.oldest_ms(self.pipeline.name)
            yield replace(batch, transaction_age_ms=age)


def run(plan: Plan, report: Callable[[BatchProgress], None], stop: Stop, log: SparkLog) -> None:
    """Run the pipelines until they end or are to end; raises what a query has failed with."""
    kinds = [check_brokers(pipeline) for pipeline in plan.pipelines]
    if stop.is_asked:
        return
    with spark_session(plan.master, plan.settings, log) as spark:
        stop.on_signals()
        frames = [pipeline.frame(spark) for pipeline in plan.pipelines]
        for pipeline, frame in zip(plan.pipelines, frames, strict=True):
            check_frame(pipeline, frame)
        running: list[Running] = []
        try:
            for query in _started(plan, frames, kinds, stop):
                running.append(query)  # noqa: PERF402 - each is to be ended if the next one fails
            watch(running, report, stop)
        finally:
            for each in running:
                _end(each)


def _started(
    plan: Plan, frames: Sequence[DataFrame], kinds: Sequence[str], stop: Stop
) -> Iterator[Running]:
    for pipeline, frame, kind in zip(plan.pipelines, frames, kinds, strict=True):
        if stop.is_asked:
            return
        checkpoint = checkpoint_of(plan.checkpoints, pipeline)
        query = start(frame, pipeline.sink, kind, checkpoint, once=plan.once)
        ages = None
        if kind != STOCK:
            ages = TransactionAges(cluster_at(servers_or_default(pipeline.sink.servers)))
        yield Running.of(pipeline, query, ages)


def check_frame(pipeline: Pipeline, frame: Any) -> None:  # noqa: ANN401 - a user's function made it
    """Refuse what a transform has returned if it is no stream that the sink can write."""
    if not hasattr(frame, "isStreaming"):
        raise WrongUse(
            f"{pipeline.name}: transform returned {type(frame).__name__}, not a DataFrame"
        )
    if not frame.isStreaming:
        raise WrongUse(
            f"{pipeline.name}: transform returned a table, not a stream: read the source with"
            " Source(...) or read_stream(...), a table only to join it"
        )
    try:
        check_columns(frame.dtypes, pipeline.sink)
    except WrongUse as error:
        raise WrongUse(f"{pipeline.name}: {error}") from None


def _end(running: Running) -> None:
    with suppress(Exception):  # Spark itself is gone: what ended it is on its way to the user.
        running.query.stop()
    if running.ages is not None:
        running.ages.close()


def checkpoint_of(checkpoints: str, pipeline: Pipeline) -> str:
    """Return where a pipeline's checkpoint is: a path, or a URI of a Hadoop file system."""
    if "://" in checkpoints:
        return f"{checkpoints.rstrip('/')}/{pipeline.name}"
    return str(Path(checkpoints).absolute() / pipeline.name)


# ------------------------------------------------------------------------------------- watching


def watch(running: Sequence[Running], report: Callable[[BatchProgress], None], stop: Stop) -> None:
    """Report batches until every query has ended, one has failed, or the end was asked for."""
    while not stop.is_asked:
        active = [each.query.isActive for each in running]
        _report(running, report)
        _raise_failure(running)
        if not any(active):
            return
        stop.wait(LOOK_S)
    for each in running:
        _finish(each, stop)
    _report(running, report)
    _raise_failure(running)


def _report(running: Sequence[Running], report: Callable[[BatchProgress], None]) -> None:
    for each in running:
        for batch in each.ended_batches():
            report(batch)


def _raise_failure(running: Sequence[Running]) -> None:
    for each in running:
        failure = each.query.exception()
        if failure is not None:
            raise QueryFailed(each.pipeline.name, failure) from failure


class QueryFailed(Refusal):
    """A query ended with a failure; the message says which one and why."""

    def __init__(self, name: str, failure: BaseException) -> None:
        self.failure = failure
        super().__init__(f"{name}: {sentence_of(failure)}")


def _finish(running: Running, stop: Stop) -> None:
    """Stop a query when its running batch has ended, or at once when told twice.

    A batch that begins between the look and the stop is cut off; nothing of it is committed, and
    the next start writes it.
    """
    query = running.query
    before = _latest_batch(query)
    while query.isActive and not stop.at_once:
        if not query.status["isTriggerActive"] or _latest_batch(query) != before:
            break
        threading.Event().wait(LOOK_S / 4)
    query.stop()


def _latest_batch(query: StreamingQuery) -> object:
    progress: Any = query.lastProgress
    return None if progress is None else (progress["batchId"], progress["timestamp"])
