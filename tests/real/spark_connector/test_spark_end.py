"""The end of a service: its processes stop in any order, without a reported failure."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.running import runner
from barnabas.spark_connector.running.failures import QueryFailed
from barnabas.spark_connector.running.runner import Plan, run
from barnabas.spark_connector.running.screen import TEXT, Screen
from barnabas.spark_connector.session import spark_process
from barnabas.spark_connector.session.spark_log import SparkLog
from barnabas.spark_connector.session.spark_process import SparkDied, _ending, _is_shutting_down
from barnabas.spark_connector.session.stopping import Stop
from tests.waiting import WAIT_S

TERMINATED = 128 + signal.SIGTERM
OUT_OF_MEMORY = 52
ENDS_S = 0.3
NO_WORKER = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
NO_CONTEXT = "Job 3 cancelled because SparkContext was shut down"
NO_FILES = "java.io.IOException: Filesystem closed"


class Java:
    """A Java process that starts to end on request, and takes its time."""

    def __init__(self, exit_code: int) -> None:
        self._exit_code = exit_code
        self._is_over = threading.Event()
        self.is_ending = False

    def end(self) -> None:
        """Start the end of the process."""
        self.is_ending = True
        threading.Timer(ENDS_S, self._is_over.set).start()

    def poll(self) -> int | None:
        return self._exit_code if self._is_over.is_set() else None

    def wait(self, seconds: float) -> int:
        if not self._is_over.wait(seconds):
            raise subprocess.TimeoutExpired("java", seconds)
        return self._exit_code


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Java:
    """Return one whose end takes longer than its connections need to break."""
    made = Java(getattr(request, "param", TERMINATED))
    monkeypatch.setattr(spark_process, "_DIES_S", ENDS_S / 10)
    monkeypatch.setattr(spark_process, "TOLD_S", WAIT_S)
    monkeypatch.setattr(spark_process, "_is_shutting_down", lambda: made.is_ending)
    return made


class OfJava(Exception):
    """PySpark's exception for a Java error: only Java has its text."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def what_leaves(java: Java, failure: str | Exception, stop: Stop) -> Exception:
    """Return the exception of Spark after a query that fails like this."""
    error = QueryFailed("a", RuntimeError(failure)) if isinstance(failure, str) else failure
    with (
        SparkLog(verbose=True) as log,
        pytest.raises((QueryFailed, SparkDied)) as raised,
        _ending(java, log, "local[1]", stop),  # type: ignore[arg-type]
    ):
        raise error
    return raised.value


@contextmanager
def soon(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(seconds, action)
    timer.start()
    yield
    timer.join()


def asked() -> Stop:
    stop = Stop()
    stop.ask()
    return stop


@pytest.mark.parametrize("stop", [Stop(), asked()], ids=["runs", "asked"])
@pytest.mark.parametrize(
    "failure",
    [NO_WORKER, NO_CONTEXT, NO_FILES, OfJava()],
    ids=["worker", "context", "files", "no-words"],
)
def test_failure_while_java_is_ending_is_sigterm(java, failure, stop):
    java.end()
    left = what_leaves(java, failure, stop)
    assert isinstance(left, SparkDied), left
    assert left.has_received_sigterm


@pytest.mark.parametrize("failure", [NO_WORKER, NO_FILES], ids=["worker", "files"])
def test_sigterm_of_java_after_the_program_is_recognized(java, failure):
    with soon(0.2, java.end):
        left = what_leaves(java, failure, asked())
    assert isinstance(left, SparkDied), left


def test_sigterm_of_workers_then_program_then_java_is_recognized(java):
    stop = Stop()
    with soon(0.1, stop.ask), soon(0.3, java.end):
        left = what_leaves(java, NO_WORKER, stop)
    assert isinstance(left, SparkDied), left


@pytest.mark.parametrize("stop", [Stop(), asked()], ids=["runs", "asked"])
@pytest.mark.parametrize("failure", ["no amount", NO_WORKER], ids=["rows", "worker"])
def test_failure_while_java_runs_stays_a_failure(monkeypatch, java, failure, stop):
    monkeypatch.setattr(spark_process, "TOLD_S", 0.1)
    assert isinstance(what_leaves(java, failure, stop), QueryFailed)


@pytest.mark.parametrize("stop", [Stop(), asked()], ids=["runs", "asked"])
def test_exception_of_a_transform_stays_the_failure_while_java_is_ending(java, stop):
    failed = QueryFailed("a", RuntimeError("of Spark's"))
    failed.set_sentence("transform raised ValueError: no amount (payments.py, line 3)")
    java.end()
    assert what_leaves(java, failed, stop) is failed


@pytest.mark.parametrize("java", [OUT_OF_MEMORY], indirect=True)
def test_death_of_java_by_itself_stays_the_failure(java):
    java.end()
    left = what_leaves(java, "java.lang.OutOfMemoryError: Java heap space", asked())
    assert "Java ran out of memory" in str(left)


# -------------------------------------------------------------------------- is Java about to end


def lost() -> bool:
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("answer", "is_ending"), [(lambda: True, True), (lambda: False, False), (lost, True)]
)
def test_java_is_asked_whether_it_ends(monkeypatch, answer, is_ending):
    let_spark_be(monkeypatch, spark_that_answers(answer))
    assert _is_shutting_down() is is_ending


def test_silent_java_counts_as_running(monkeypatch):
    go_on = threading.Event()
    let_spark_be(monkeypatch, spark_that_answers(go_on.wait))
    monkeypatch.setattr(spark_process, "TOLD_S", 0.1)
    try:
        assert not _is_shutting_down()
    finally:
        go_on.set()


def test_without_spark_no_java_ends(monkeypatch):
    let_spark_be(monkeypatch, None)
    assert not _is_shutting_down()


def let_spark_be(monkeypatch: pytest.MonkeyPatch, active: SimpleNamespace | None) -> None:
    """Set PySpark's active context; PySpark itself may not be installed."""
    context_class = SimpleNamespace(_active_spark_context=active)
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkContext=context_class))


def spark_that_answers(answer: Callable[[], bool]) -> SimpleNamespace:
    """Return a Spark whose Java reports by ``answer`` whether it is shutting down."""
    util = SimpleNamespace(ShutdownHookManager=SimpleNamespace(inShutdown=answer))
    apache = SimpleNamespace(spark=SimpleNamespace(util=util))
    return SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=apache)))


# -------------------------------------------------------------------------------- the exit code


@pytest.fixture
def run_with_java_terminated(monkeypatch: pytest.MonkeyPatch) -> Callable[[Stop], None]:
    """Return a function that runs a pipeline with a Java process ended by SIGTERM."""

    @contextmanager
    def spark_session(*_given: object) -> Iterator[None]:
        raise SparkDied(TERMINATED)
        yield

    monkeypatch.setattr(runner, "spark_session", spark_session)
    monkeypatch.setattr(runner, "made_ready", lambda _master, settings: settings)
    monkeypatch.setattr(runner, "_kind_of", lambda _pipeline: "two_phase")
    pipeline = Pipeline(source=Source(topic="in"), sink=Sink(sink_id="a", topic="out"))

    def start(stop: Stop) -> None:
        with Screen(TEXT) as screen, SparkLog(verbose=True) as log:
            run(Plan(pipelines=[pipeline]), screen, stop, log)

    return start


def test_java_is_ended_before_the_program_is_asked(monkeypatch, run_with_java_terminated):
    stop = Stop()
    monkeypatch.setattr(runner, "TOLD_S", WAIT_S)
    with soon(0.2, stop.ask):
        run_with_java_terminated(stop)
    assert stop.is_asked


def test_java_alone_is_ended(monkeypatch, run_with_java_terminated):
    monkeypatch.setattr(runner, "TOLD_S", 0.1)
    with pytest.raises(QueryFailed, match="a: Spark's Java process ended with exit code 143"):
        run_with_java_terminated(Stop())
