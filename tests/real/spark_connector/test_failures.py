"""Each failure is one line with its pipeline's name, and says what has failed."""

import subprocess
import sys

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.errors import BrokerUnreachable, WrongOption
from barnabas.spark_connector.failures.raised import Raised, beginning, raising
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.running.failures import (
    OutputClosed,
    QueryFailed,
    failures_of,
    failures_of_spark,
)
from barnabas.spark_connector.session.spark_process import SparkDied, _end_of, has_lost_java


@pytest.mark.parametrize(
    ("failure", "kind", "says"),
    [
        (WrongUse("the option is wrong"), WrongUse, "a: the option is wrong"),
        (WrongOption("The option is wrong."), WrongUse, "a: The option is wrong."),
        (BrokerUnreachable("The broker is away."), QueryFailed, "a: The broker is away."),
        (Refusal("it failed"), QueryFailed, "a: it failed"),
        (RuntimeError("one\ntwo"), QueryFailed, "a: one"),
        (SparkDied(-9), QueryFailed, "a: Spark's Java process was killed by SIGKILL; start again"),
        (SparkDied(3), QueryFailed, "a: Spark's Java process ended with exit code 3; start again"),
    ],
)
def test_the_name_of_the_pipeline_comes_first(failure, kind, says):
    with pytest.raises(kind) as failed, failures_of("a"):
        raise failure
    assert str(failed.value).startswith(says)
    assert failed.value.exit_code == (2 if kind is WrongUse else 1)


def failing(_frame):
    raise ValueError("no amount\nand more")


def test_exception_of_a_transform_is_reported_with_its_line():
    class NoSource(Source):
        def load(self, spark, *, is_bounded):
            return spark

    each = Pipeline(source=NoSource(topic="in"), transform=failing, sink=Sink(sink_id="a"))
    with pytest.raises(Raised) as raised:
        each.frame(None)
    line = failing.__code__.co_firstlineno + 1
    assert str(raised.value) == (
        f"transform raised ValueError: no amount (test_failures.py, line {line})"
    )


def ending(_frame):
    raise SystemExit(4)


def test_a_transform_that_ends_python_itself_is_a_failure():
    says = r"^transform ends Python itself \(SystemExit: 4\)$"
    with pytest.raises(Raised, match=says), raising("transform"):
        ending(None)


def test_a_source_that_returns_something_else():
    each = Pipeline(source=lambda _spark: 5, sink=Sink(sink_id="a"))
    with pytest.raises(WrongUse, match=r"^source returned int, not a DataFrame$"):
        each.frame(None)


def test_query_refused_by_spark_is_reported_as_a_failed_start():
    says = r'^Spark cannot begin the query: For input string: "x"$'
    with pytest.raises(Raised, match=says), beginning():
        raise RuntimeError('For input string: "x"')
    with pytest.raises(WrongOption), beginning():
        raise WrongOption("said already")


def test_failure_of_all_pipelines_has_their_names():
    says = r"^a, b: Spark's Java process was killed by SIGKILL"
    with pytest.raises(QueryFailed, match=says), failures_of_spark("a, b"):
        raise SparkDied(-9)
    for said_already in (QueryFailed("a", ValueError("x")), WrongUse("y"), OutputClosed()):
        with pytest.raises(type(said_already)) as raised, failures_of_spark("a, b"):
            raise said_already
        assert raised.value is said_already


@pytest.mark.parametrize(
    ("code", "has_received_sigterm"), [(143, True), (-15, True), (-9, False), (1, False)]
)
def test_sigterm_of_java_is_recognized_by_the_exit_code(code, has_received_sigterm):
    assert QueryFailed("a", SparkDied(code)).has_received_sigterm is has_received_sigterm


def test_barnabas_error_is_raised_unchanged():
    with pytest.raises(WrongOption, match=r"^The option x is wrong\.$"), raising("source"):
        raise WrongOption("The option x is wrong.")


def test_a_broken_connection_to_java_is_found_below_other_errors():
    wrapped = RuntimeError("outside")
    wrapped.__cause__ = ConnectionRefusedError(111, "Connection refused")
    assert has_lost_java(wrapped)
    assert has_lost_java(ConnectionResetError())
    # PySpark's own class has this name; PySpark itself may not be installed.
    cut_off = type("Py4JError", (Exception,), {})
    assert has_lost_java(cut_off("An error occurred while calling o100.isDefined"))
    assert not has_lost_java(ValueError("no connection at all"))


def test_the_exit_of_java_is_waited_for():
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(5)"]) as process:
        assert _end_of(process) == 5
    assert _end_of(None) is None
